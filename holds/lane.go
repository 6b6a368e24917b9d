package holds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

const (
	// patience is how long a request tries again, for its lane to be settled and for tickets
	// from other lanes. A pull that's under way when it ends is waited for.
	patience = 2 * time.Second
	// firstPause is how long it waits before it asks again what didn't change; each time
	// twice as long, up to lastPause.
	firstPause = 2 * time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// Place holds tickets of an event, all that a request asks for or none, in the customer's
// lane. Tickets that the lane lacks are brought from other lanes first; it's refused for
// want of tickets when all lanes together have too few. The receipt's data is the hold.
// Errors, in order of precedence: ErrInvalidRequest with the field, ErrEventNotFound,
// ErrInvalidCode, buckets.ErrAllotmentNotFound, buckets.ErrAllotmentClosed, ErrCodeRequired,
// ErrNotOnSale, ErrTierNotFound, ErrInvalidQuantity, ErrLimitExceeded, ErrCodeUsedUp,
// ErrSoldOut or ErrTemporarilyHeld, buckets.ErrLaneChanging, and those of ledger.Do.
func (s *Store) Place(ctx context.Context, principal, key, event string, r Request) (ledger.Receipt, error) {
	layout, err := s.events.Layout(ctx, event)
	if err == nil {
		err = r.validate()
	}
	if err != nil {
		return ledger.Receipt{}, err
	}
	p := placement{store: s, principal: principal, key: key, event: event, request: r, layout: layout}
	return p.do(ctx)
}

// placement is a hold on its way to the lane that takes it.
type placement struct {
	store          *Store
	principal, key string
	event          string
	request        Request
	layout         buckets.Layout
	journal        ledger.JournalID // that another lane named; 0 for the one of the hash
}

func (p *placement) do(ctx context.Context) (ledger.Receipt, error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		route := p.layout.Route(p.journal, p.request.Customer, p.principal, p.key)
		body := &place{request: p.request, route: route}
		c, err := ledger.NewCommand(route.Journal, p.principal, p.key, KindPlaced, p.request, body)
		if err != nil {
			return ledger.Receipt{}, err
		}
		body.id = c.ID
		receipt, err := p.store.ledger.Do(ctx, route.Journal, c)
		if err == nil {
			return receipt, nil
		}
		refused := err
		again, err := p.again(ctx, route.Journal, refused)
		if err != nil {
			return ledger.Receipt{}, err
		}
		if !again {
			wait.For(patient, pause)
		}
		if patient.Err() != nil {
			if errors.Is(refused, buckets.ErrLaneChanging) {
				return ledger.Receipt{}, buckets.ErrLaneChanging.Because("it isn't done yet").After(time.Second)
			}
			return ledger.Receipt{}, ledger.ErrOverloaded.Because("tickets are on their way between lanes").After(time.Second)
		}
	}
}

// again learns from a refusal: whether to ask again, at once if something has changed, or
// else after a pause; an error is the answer.
func (p *placement) again(ctx context.Context, lane ledger.JournalID, refused error) (atOnce bool, err error) {
	if to, ok := buckets.MovedTo(refused); ok {
		before := p.layout.Generation
		if p.layout, err = p.store.events.Look(ctx, p.event); err != nil {
			return false, err
		}
		moved := to != 0 && to != p.journal
		p.journal = to
		return moved || p.layout.Generation != before, nil
	}
	var l *lack
	if !errors.As(refused, &l) {
		return false, refused
	}
	supplies, err := p.store.quotas.Gather(ctx, p.event, lane, l.needs)
	if err != nil {
		return false, err
	}
	if err := p.store.refuse(ctx, p.event, p.request, supplies); err != nil {
		return false, err
	}
	for _, s := range supplies {
		if s.Of(lane)+s.Moved < s.Quantity { // the rest is on its way, or others were first
			return false, nil
		}
	}
	return true, nil
}

// Supply brings to the lane of a hold what lines of it would take of free tickets and of its
// code's uses, as far as other lanes have it. Errors are those of quota.Store.Gather.
func (s *Store) Supply(ctx context.Context, event string, hold Hold, items []Item) error {
	lane, _ := ledger.JournalOf(hold.ID)
	var needs []quota.Need
	for _, item := range items {
		needs = append(needs, quota.Need{Account: ledger.FreeOf(item.Allotment), Unit: item.Tier, Quantity: item.Quantity})
		if item.Allotment != "" { // whose tickets are everybody's if it has ended
			needs = append(needs, quota.Need{Account: ledger.Available, Unit: item.Tier, Quantity: item.Quantity})
		}
	}
	if hold.Code != "" {
		needs = append(needs, quota.Need{Account: ledger.FreeUses(hold.Code), Unit: ledger.Uses, Quantity: 1})
	}
	_, err := s.quotas.Gather(ctx, event, lane, needs)
	return err
}

// refuse tells why all lanes together can't serve a request; nil when they can, or may now
// that holds of other lanes have been found to be due.
func (s *Store) refuse(ctx context.Context, event string, r Request, supplies []quota.Supply) error {
	var short, lost *quota.Supply
	for i := range supplies {
		switch supply := &supplies[i]; {
		case supply.Enough():
		case supply.Unit != ledger.Uses && supply.Hopeless():
			lost = supply
		default:
			short = supply
		}
	}
	switch {
	case lost != nil:
		allotment, _ := ledger.Free(lost.Account)
		return soldOut(lost.Unit, allotment, lost.Total, lost.Quantity)
	case short == nil:
		return nil
	}
	next, err := s.nextDue(ctx, event, short.Free)
	switch {
	case err != nil || next.expired:
		return err
	case short.Unit == ledger.Uses:
		return codeUsedUp(r.Code)
	}
	allotment, _ := ledger.Free(short.Account)
	return temporarilyHeld(short.Unit, allotment, short.Total, short.Quantity, next.at, next.now)
}

// nextDue is when the next hold runs out, and the time at which that was read. expired
// tells that some were due, which a batch of their lanes has expired since.
type nextDue struct {
	at, now time.Time
	expired bool
}

// nextDue finds the earliest time at which a hold of any lane runs out. A lane's own batches
// expire its holds, so lanes where some are due are woken: what they had is for the next
// buyer of any lane. Those who ask at one time share this.
func (s *Store) nextDue(ctx context.Context, event string, free buckets.Free) (nextDue, error) {
	found, err, _ := s.nexts.Do(event, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		journals := make([]ledger.JournalID, len(free.Lanes))
		for i, l := range free.Lanes {
			journals[i] = l.Journal
		}
		var n nextDue
		var due []ledger.JournalID
		err := s.reads.QueryRow(ctx, sqlNextDue, journals).Scan(&n.at, &n.now, &due)
		if err != nil {
			return n, pg.Fault(fmt.Errorf("find the next hold to run out: %w", err))
		}
		for _, journal := range due {
			if err := s.ledger.Wake(ctx, journal); err != nil {
				return n, err
			}
		}
		return nextDue{n.at.UTC(), n.now.UTC(), len(due) > 0}, nil
	})
	return found.(nextDue), err
}
