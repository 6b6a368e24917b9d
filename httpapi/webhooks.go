package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/tierledger/tierledger/ledger"
)

const (
	// maxWebhook bounds a webhook's body: providers send a few KiB.
	maxWebhook = 64 << 10
	// maxWebhooks bounds how many are read and taken in at once. Anybody may send bodies
	// here, and none is judged before it's whole.
	maxWebhooks = 256
	// retryWebhook is when a provider may send one again that found no place.
	retryWebhook = time.Second
)

// receiveWebhook takes what a provider tells. The signature over the raw body is its
// key, and the provider's own event id makes a second delivery harmless. It's answered
// when the webhook is durably stored: whoever isn't answered must send it again.
func (a *api) receiveWebhook(ctx context.Context, c *call) (answer, error) {
	select {
	case a.webhooks <- struct{}{}:
		defer func() { <-a.webhooks }()
	default:
		err := ledger.ErrOverloaded.Because("%d webhooks are being taken in", maxWebhooks).After(retryWebhook)
		a.Metrics.observeWebhook(err)
		return answer{}, err
	}
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
