package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/tickets"
)

// Values of headers of the ticket keys. They're public, and change when an operator changes
// the secret: gates may keep them for some minutes.
var (
	typeKeySet = []string{"application/jwk-set+json"}
	keepKeys   = []string{"public, max-age=300"}
)

// listTickets answers with an order's tickets, valid or not. An order that isn't paid has
// none.
func (a *api) listTickets(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	after, err := page.afterNumber()
	if err != nil {
		return answer{}, err
	}
	id, err := c.orderID()
	if err != nil {
		return answer{}, err
	}
	if _, err := a.Orders.Get(ctx, id); err != nil {
		return answer{}, err
	}
	list, err := a.Tickets.List(ctx, id, after, page.Limit+1)
	if err != nil {
		return answer{}, err
	}
	return listed(page, list, func(t tickets.Ticket) string { return strconv.Itoa(t.Number) })
}

// afterNumber reads the position in a list by number; 0 at its beginning.
func (p *cursor) afterNumber() (int, error) {
	if p.After == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(p.After, 10, 32)
	if err != nil || n < 1 {
		return 0, badCursor()
	}
	return int(n), nil
}

func (a *api) getTicket(ctx context.Context, c *call) (answer, error) {
	id, err := c.ticketID()
	if err != nil {
		return answer{}, err
	}
	ticket, err := a.Tickets.Get(ctx, id)
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(ticket.Version, ticket)
}

// ticketID reads the ticket of the path. What can't be an id is no ticket's.
func (c *call) ticketID() (uuid.UUID, error) { return c.named("ticket_id", tickets.ErrTicketNotFound) }

// getTicketKeys answers with the keys that verify tickets, for anybody.
func (a *api) getTicketKeys(_ context.Context, c *call) (answer, error) {
	keys, err := a.Tickets.Keys()
	if err != nil {
		return answer{}, err
	}
	body, err := json.Marshal(keys)
	if err != nil {
		return answer{}, err
	}
	tag := `"` + digest(string(body)) + `"`
	headers := http.Header{"Cache-Control": keepKeys, "Etag": {tag}}
	if slices.Contains(c.request.Header["If-None-Match"], tag) {
		return answer{status: http.StatusNotModified, headers: headers}, nil
	}
	return answer{status: http.StatusOK, kind: typeKeySet, body: body, headers: headers}, nil
}
