package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// createEvent makes an event and, if it's given with it, loads its chart under the same
// key: that's of another journal. A repeat finishes what was begun.
func (a *api) createEvent(ctx context.Context, c *call) (answer, error) {
	var body eventBody
	key, err := a.chartCommand(ctx, c, &body)
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
	created, err := a.Events.CreateWith(ctx, c.caller.principal, key, body.Spec, body.Seating)
	if err != nil {
		return answer{}, err
	}
	loaded, err := a.Seats.Load(ctx, c.caller.principal, key, body.Event, *body.Seating)
	if err != nil {
		return answer{}, err
	}
	view, err := withSeats(created.Data, loaded.Data)
	return answer{status: http.StatusCreated, body: view, version: loaded.Seq,
		replayed: created.Replayed && loaded.Replayed}, err
}

// withSeats gives an event, as it was created, with the tickets of its chart.
func withSeats(created, loaded json.RawMessage) (json.RawMessage, error) {
	var event buckets.EventView
	var chart seats.ChartView
	if err := errors.Join(json.Unmarshal(created, &event), json.Unmarshal(loaded, &chart)); err != nil {
		return nil, err
	}
	event.Version = chart.Version
	for _, s := range chart.Sections {
		for i := range event.Tiers {
			if t := &event.Tiers[i]; t.Tier == s.Tier {
				t.Quantity += ledger.Amount(s.Seats)
			}
		}
	}
	return json.Marshal(event)
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
	var change buckets.TierChange
	dryRun, key, version, err := c.preview(&change)
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Quotas.ChangeTier(ctx, c.caller.principal, key,
		c.vars["event"], ledger.Unit(c.vars["tier"]), change, version, dryRun)
	return previewed(dryRun, http.StatusOK, receipt, err)
}
