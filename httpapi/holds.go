package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

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
	for i, line := range request.Items {
		if line.Tier == "" {
			return answer{}, fault.BadField(fmt.Sprintf("items[%d].tier", i), "is missing")
		}
	}
	receipt, err := a.Holds.Place(ctx, c.caller.principal, key, c.vars["event"], request)
	return accepted(http.StatusCreated, receipt.Seq, receipt), err
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

// releaseHold answers with the hold's own version: a hold that had ended keeps
// it, and the receipt is of no entry.
func (a *api) releaseHold(ctx context.Context, c *call) (answer, error) {
	key, err := c.key()
	if err != nil {
		return answer{}, err
	}
	version, err := c.ifMatch()
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
	var hold struct {
		Version ledger.Seq `json:"version"`
	}
	err = json.Unmarshal(receipt.Data, &hold)
	return accepted(http.StatusOK, hold.Version, receipt), err
}

func (a *api) listHolds(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	filter := holds.Filter{
		Customer: c.query.Get("customer"), Status: holds.Status(c.query.Get("status")), Limit: page.Limit + 1,
	}
	if page.After != "" {
		if filter.After, err = uuid.Parse(page.After); err != nil {
			return answer{}, badCursor()
		}
	}
	switch {
	case filter.Customer != "" && !ledger.ValidCustomer(filter.Customer):
		return answer{}, fault.BadField("customer", "can't be a customer")
	case filter.Status != "" && !filter.Status.Valid():
		return answer{}, fault.BadField("status", "must be %s, %s or %s", holds.Held, holds.Released, holds.Expired)
	}
	list, err := a.Holds.List(ctx, c.vars["event"], filter)
	if err != nil {
		return answer{}, err
	}
	return listed(page, list, func(h holds.Hold) string { return h.ID.String() })
}

// holdID reads the hold of the path. What can't be an id is no hold's.
func (c *call) holdID() (uuid.UUID, error) {
	text := c.vars["hold_id"]
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len(uuid.UUID{}.String()) {
		return id, holds.ErrHoldNotFound.Because("%q isn't a hold's id", clip(text)).With("hold_id", clip(text))
	}
	return id, nil
}
