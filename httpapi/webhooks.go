package httpapi

import (
	"context"
	"net/http"
)

// maxWebhook bounds a webhook's body: providers send less than a tenth of it.
const maxWebhook = 256 << 10

// receiveWebhook takes what a provider tells. The signature over the raw body is its
// key, and the provider's own event id makes a second delivery harmless. It's answered
// when the webhook is durably stored: whoever isn't answered must send it again.
func (a *api) receiveWebhook(ctx context.Context, c *call) (answer, error) {
	body, err := c.raw(maxWebhook)
	if err == nil {
		err = a.Orders.Receive(ctx, c.vars["provider"], body, c.request.Header)
	}
	a.Metrics.observeWebhook(err)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: []byte(`{"received":true}`)}, nil
}
