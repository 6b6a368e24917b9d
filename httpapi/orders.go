package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

func (a *api) checkOut(ctx context.Context, c *call) (answer, error) {
	var request orders.CheckoutRequest
	key, err := c.command(&request)
	if err != nil {
		return answer{}, err
	}
	id, err := c.holdID()
	if err != nil {
		return answer{}, err
	}
	given, err := a.Orders.Checkout(ctx, c.caller.principal, key, id, request)
	ans, err := c.ordered(http.StatusCreated, given, err)
	a.Metrics.observeCheckout(&ans, err)
	return ans, err
}

func (a *api) getOrder(ctx context.Context, c *call) (answer, error) {
	id, err := c.orderID()
	if err != nil {
		return answer{}, err
	}
	order, err := a.Orders.Get(ctx, id)
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(order.Version, order)
}

// cancelOrder answers with the order: cancelled, or still to be cancelled by the
// provider.
func (a *api) cancelOrder(ctx context.Context, c *call) (answer, error) {
	key, version, err := c.conditional()
	if err != nil {
		return answer{}, err
	}
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	id, err := c.orderID()
	if err != nil {
		return answer{}, err
	}
	given, err := a.Orders.Cancel(ctx, c.caller.principal, key, id, version)
	return c.ordered(http.StatusOK, given, err)
}

// refundBody is a refund as its author writes it. What has no default must be said.
type refundBody struct {
	Amount        *buckets.Money      `json:"amount,omitempty"`
	Items         []orders.RefundLine `json:"items,omitempty"`
	ReturnTickets *bool               `json:"return_tickets"`
	Reason        string              `json:"reason"`
}

// request makes the request. An empty list isn't the same as none, which is everything.
func (b *refundBody) request() (orders.RefundRequest, error) {
	switch {
	case b.ReturnTickets == nil:
		return orders.RefundRequest{}, fault.BadField("return_tickets", "is missing")
	case b.Items != nil && len(b.Items) == 0:
		return orders.RefundRequest{}, fault.BadField("items", "must name tickets, or be left out")
	}
	return orders.RefundRequest{Amount: b.Amount, Items: b.Items, ReturnTickets: *b.ReturnTickets, Reason: b.Reason}, nil
}

func (a *api) refundOrder(ctx context.Context, c *call) (answer, error) {
	key, version, err := c.conditional()
	if err != nil {
		return answer{}, err
	}
	var body refundBody
	if err := c.body(&body); err != nil {
		return answer{}, err
	}
	request, err := body.request()
	if err != nil {
		return answer{}, err
	}
	id, err := c.orderID()
	if err != nil {
		return answer{}, err
	}
	given, err := a.Orders.Refund(ctx, c.caller.principal, key, id, request, version)
	given.Open = false // it's asked for, whatever the provider is yet to say
	return c.ordered(http.StatusCreated, given, err)
}

func (a *api) listOrders(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	filter := orders.Filter{
		Customer: c.query.Get("customer"), Status: orders.Status(c.query.Get("status")), Limit: page.Limit + 1,
	}
	if filter.After, err = page.afterID(); err != nil {
		return answer{}, err
	}
	event := c.query.Get("event")
	switch {
	case event == "":
		return answer{}, fault.BadField("event", "is missing")
	case filter.Customer != "" && !ledger.ValidCustomer(filter.Customer):
		return answer{}, fault.BadField("customer", "can't be a customer")
	case filter.Status != "" && !filter.Status.Valid():
		return answer{}, oneOf("status", orders.Statuses())
	}
	list, err := a.Orders.List(ctx, event, filter)
	if err != nil {
		return answer{}, err
	}
	return listed(page, list, func(o orders.Order) string { return o.ID.String() })
}

// ordered answers with an order as an entry records it, byte for byte: with a status,
// or as accepted while the outcome is open.
func (c *call) ordered(status int, given orders.Answer, err error) (answer, error) {
	if err != nil {
		c.replayed = given.Replayed // a payment that was declined is remembered
		return answer{}, err
	}
	if given.Open {
		status = http.StatusAccepted
	}
	return recorded(status, given.Receipt)
}

// recorded answers with what an entry records, byte for byte, under the version of
// the thing itself: what a command left as it was keeps its version, and the receipt
// is of no entry.
func recorded(status int, r ledger.Receipt) (answer, error) {
	var thing struct {
		Version ledger.Seq `json:"version"`
	}
	err := json.Unmarshal(r.Data, &thing)
	return accepted(status, thing.Version, r), err
}

// orderID reads the order of the path. What can't be an id is no order's.
func (c *call) orderID() (uuid.UUID, error) { return c.named("order_id", orders.ErrOrderNotFound) }

// oneOf says what a parameter may be.
func oneOf[T ~string](field string, values []T) error {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	last := len(names) - 1
	return fault.BadField(field, "must be %s or %s", strings.Join(names[:last], ", "), names[last])
}
