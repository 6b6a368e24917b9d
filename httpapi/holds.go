package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
)

func (a *api) placeHold(ctx context.Context, c *call) (answer, error) {
	var request holds.Request
	key, err := c.command(&request)
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Holds.Place(ctx, c.caller.principal, key, c.vars["event"], request)
	if err != nil {
		return answer{}, err
	}
	ans := accepted(http.StatusCreated, receipt.Seq, receipt)
	ans.headers = a.laneOf(ctx, c.vars["event"], receipt)
	return ans, nil
}

// laneOf makes the header that tells in which lane of its event a hold is; none when the
// event was never split, or that isn't known.
func (a *api) laneOf(ctx context.Context, event string, r ledger.Receipt) http.Header {
	layout, err := a.Events.Layout(ctx, event) // which Place has looked at
	if err != nil || !layout.Split() {
		return nil
	}
	journal, _ := ledger.JournalOf(r.ID)
	return http.Header{"Tierledger-Lane": {strconv.Itoa(layout.Of(journal))}}
}

func (a *api) getHold(ctx context.Context, c *call) (answer, error) {
	id, err := c.holdID()
	if err != nil {
		return answer{}, err
	}
	hold, err := a.Holds.Get(ctx, id)
	switch {
	case err != nil:
		return answer{}, err
	case hold.Status == holds.Expired:
		// It reads as expired from its deadline on, before an entry says so and
		// makes a new version: a tag can't tell these apart, so it isn't asked.
		a, err := found(hold)
		a.version = hold.Version
		return a, err
	}
	return c.foundVersion(hold.Version, hold)
}

// releaseHold answers with the hold; one that had ended stays as it was.
func (a *api) releaseHold(ctx context.Context, c *call) (answer, error) {
	key, version, err := c.conditional()
	if err != nil {
		return answer{}, err
	}
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	id, err := c.holdID()
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Holds.Release(ctx, c.caller.principal, key, id, version)
	if err != nil {
		return answer{}, err
	}
	return recorded(http.StatusOK, receipt)
}

func (a *api) listHolds(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	filter := holds.Filter{
		Customer: c.query.Get("customer"), Status: holds.Status(c.query.Get("status")), Limit: page.Limit + 1,
	}
	if filter.After, err = page.afterID(); err != nil {
		return answer{}, err
	}
	switch {
	case filter.Customer != "" && !ledger.ValidCustomer(filter.Customer):
		return answer{}, fault.BadField("customer", "can't be a customer")
	case filter.Status != "" && !filter.Status.Valid():
		return answer{}, oneOf("status", holds.Statuses())
	}
	list, err := a.Holds.List(ctx, c.vars["event"], filter)
	if err != nil {
		return answer{}, err
	}
	return listed(page, list, func(h holds.Hold) string { return h.ID.String() })
}

// holdID reads the hold of the path. What can't be an id is no hold's.
func (c *call) holdID() (uuid.UUID, error) { return c.named("hold_id", holds.ErrHoldNotFound) }
