package httpapi

import (
	"context"
	"net/http"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// createEvent makes an event and, if it's given with it, loads its chart under the same
// key: that's of another journal. A repeat finishes what was begun.
func (a *api) createEvent(ctx context.Context, c *call) (answer, error) {
	var body eventBody
	key, err := c.commandOf(maxChart, &body)
	if err != nil {
		return answer{}, err
	}
	if err := body.validate(); err != nil {
		return answer{}, err
	}
	if body.Seating == nil {
		receipt, err := a.Events.Create(ctx, c.caller.principal, key, body.Spec)
		return accepted(http.StatusCreated, receipt.Seq, receipt), err
	}
	receipt, err := a.Events.CreateWith(ctx, c.caller.principal, key, body.Spec, body.Seating)
	if err == nil {
		_, err = a.Seats.Load(ctx, c.caller.principal, key, body.Event, *body.Seating)
	}
	return accepted(http.StatusCreated, receipt.Seq, receipt), err
}

func (a *api) listEvents(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	events, err := a.Events.List(ctx, page.After, page.Limit+1)
	if err != nil {
		return answer{}, err
	}
	return listed(page, events, func(e buckets.EventView) string { return e.Event })
}

func (a *api) getEvent(ctx context.Context, c *call) (answer, error) {
	event, err := a.Events.Get(ctx, c.vars["event"])
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(event.Version, event)
}

func (a *api) getAvailability(ctx context.Context, c *call) (answer, error) {
	availability, err := a.Events.Availability(ctx, c.vars["event"])
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(availability.Version, availability)
}

func (a *api) addTier(ctx context.Context, c *call) (answer, error) {
	var spec buckets.TierSpec
	key, err := c.command(&spec)
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Events.AddTier(ctx, c.caller.principal, key, c.vars["event"], spec)
	return accepted(http.StatusCreated, receipt.Seq, receipt), err
}

func (a *api) changeTier(ctx context.Context, c *call) (answer, error) {
	dryRun, key, err := c.maybeDry()
	if err != nil {
		return answer{}, err
	}
	version, err := c.ifMatch()
	if err != nil {
		return answer{}, err
	}
	var change buckets.TierChange
	if err := c.body(&change); err != nil {
		return answer{}, err
	}
	receipt, err := a.Events.ChangeTier(ctx, c.caller.principal, key,
		c.vars["event"], ledger.Unit(c.vars["tier"]), change, version, dryRun)
	if dryRun {
		receipt.Seq = 0 // nothing has got this version
	}
	return accepted(http.StatusOK, receipt.Seq, receipt), err
}
