package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
)

// Split puts a number of lanes in use and gives them shares of what's free, even ones unless a
// rebalancer moves tickets at the same moment; lanes that
// aren't in use any more give what they have. With as many as are in use already it only
// shares out anew. The receipt's data is a buckets.LanesView.
// Errors are those of buckets.Store.Split. After an error, or when a process dies in
// between, what was decided is finished by any process's sweeper and rebalancer.
func (s *Store) Split(ctx context.Context, principal, key, event string, lanes int, reason string, ifMatch *ledger.Seq, dryRun bool) (ledger.Receipt, error) {
	receipt, err := s.Events.Split(ctx, principal, key, event, lanes, reason, ifMatch, dryRun)
	if err != nil || dryRun || receipt.Replayed {
		return receipt, err
	}
	err = s.Events.Follow(ctx, event)
	if err == nil {
		err = s.share(ctx, event)
	}
	if err != nil { // it's decided: who asked is told so, and the rest is done by the sweeper
		s.Log.Warn("a change of lanes isn't finished", slog.String("event", event), slog.Any("error", err))
	}
	return receipt, nil
}

// share gives the lanes in use even shares of what's free.
func (s *Store) share(ctx context.Context, event string) error {
	layout, err := s.Events.Look(ctx, event)
	if err != nil {
		return err
	}
	return s.spread(ctx, event, layout, Split, func(stocks []stock) []transfer {
		for i := range stocks {
			stocks[i].rate = 0 // of other customers
		}
		return level(stocks, math.Inf(1), 0)
	})
}

// AllotRequest is an allotment as an operator asks for it: with tickets from what's
// everybody's.
type AllotRequest struct {
	buckets.AllotmentSpec
	Tiers  []TierQuantity `json:"tiers,omitempty"`
	Reason string         `json:"reason"`
}

// TierQuantity is tickets of a tier.
type TierQuantity struct {
	Tier     ledger.Unit   `json:"tier"`
	Quantity ledger.Amount `json:"quantity"`
}

// Allot makes an allotment and moves tickets to it, a move for each tier: under keys made
// of the key. It gives the receipt of the allotment and of the moves, some of which may
// await approval. When a move is refused, the allotment and the moves before it stand; a
// repeat under the same key goes on. Errors: those of buckets.Store.Allot and of Move, with
// the field.
func (s *Store) Allot(ctx context.Context, principal, key, event string, r AllotRequest) (ledger.Receipt, []ledger.Receipt, error) {
	if r.Reason == "" || len(r.Reason) > buckets.MaxReason {
		return ledger.Receipt{}, nil, fault.BadField("reason", "must have 1 to %d bytes", buckets.MaxReason)
	}
	seen := make(map[ledger.Unit]bool)
	for i, t := range r.Tiers {
		field := fmt.Sprintf("tiers[%d].", i)
		switch {
		case seen[t.Tier]:
			return ledger.Receipt{}, nil, fault.BadField(field+"tier", "%q is given twice", t.Tier)
		case t.Quantity < 1 || t.Quantity > maxMove:
			return ledger.Receipt{}, nil, fault.BadField(field+"quantity", "must be 1 to %d", maxMove)
		}
		seen[t.Tier] = true
	}
	if err := s.couldAllot(ctx, event, r); err != nil {
		return ledger.Receipt{}, nil, err
	}
	made, err := s.Events.Allot(ctx, principal, key, event, r.AllotmentSpec)
	if err != nil {
		return ledger.Receipt{}, nil, err
	}
	var moves []ledger.Receipt
	for _, t := range r.Tiers {
		moved, err := s.Move(ctx, principal, key+" "+string(t.Tier), event, Request{
			Tier: t.Tier, To: Bucket{Allotment: r.Allotment}, Quantity: &t.Quantity, Reason: r.Reason,
		}, nil, false)
		if err != nil {
			return made, moves, err
		}
		moves = append(moves, moved)
	}
	return made, moves, nil
}

// couldAllot refuses an allotment of what the event doesn't have, before anything is made;
// one that exists was asked for before.
func (s *Store) couldAllot(ctx context.Context, event string, r AllotRequest) error {
	made, err := s.Events.Allotments(ctx, event)
	if err != nil || slices.ContainsFunc(made, func(a *buckets.Allotment) bool { return a.Allotment == r.Allotment }) {
		return err
	}
	for _, t := range r.Tiers {
		if err := s.couldMove(ctx, event, t); err != nil {
			return err
		}
	}
	return nil
}

// couldMove refuses tickets of a tier that the event doesn't have free.
func (s *Store) couldMove(ctx context.Context, event string, t TierQuantity) error {
	e, err := s.Events.Get(ctx, event)
	if err != nil {
		return err
	}
	for _, tier := range e.Tiers {
		if tier.Tier != t.Tier {
			continue
		}
		if tier.Seated {
			return fault.BadField("tier", "%s is sold by seat: its seats are set aside by name", t.Tier)
		}
		free, err := s.Events.Free(ctx, event, ledger.Available, t.Tier)
		if err == nil && free.Total < t.Quantity {
			err = insufficient(t.Tier, free.Total, t.Quantity)
		}
		return err
	}
	return buckets.TierNotFound(t.Tier)
}

// CloseAllotment ends an allotment and returns what it has free, in every lane. What's
// claimed by holds returns when they end otherwise than by a purchase. The receipt's data
// is the allotment. Errors are those of buckets.Store.CloseAllotment.
func (s *Store) CloseAllotment(ctx context.Context, principal, key, event, allotment, reason string, ifMatch *ledger.Seq) (ledger.Receipt, error) {
	receipt, err := s.Events.CloseAllotment(ctx, principal, key, event, allotment, reason, ifMatch)
	if err != nil {
		return ledger.Receipt{}, err
	}
	if err := s.wake(ctx, event); err != nil { // it's decided; any batch or sweeper returns them
		s.Log.Warn("a closed allotment's tickets aren't returned yet", slog.String("event", event), slog.Any("error", err))
	}
	return receipt, nil
}

// wake runs a batch in every lane of an event, so that what is due there happens.
func (s *Store) wake(ctx context.Context, event string) error {
	journals, err := s.Events.Lanes(ctx, event)
	if err != nil {
		return err
	}
	var failed []error
	for _, j := range journals {
		failed = append(failed, s.Ledger.Wake(ctx, j))
	}
	return errors.Join(failed...)
}

// Release returns the tickets of allotments that have ended, in lanes that nobody asks
// anything of. It's idempotent; any number may run at once.
func (s *Store) Release(ctx context.Context) error {
	journals, err := s.Events.Leftovers(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, j := range journals {
		ctx, cancel := context.WithTimeout(ctx, eventTimeout)
		failed = append(failed, s.Ledger.Wake(ctx, j))
		cancel()
	}
	return errors.Join(failed...)
}

// ChangeTier is buckets.Store.ChangeTier for an event that may be split: a smaller capacity
// takes free tickets from all lanes. Errors are the same; ErrBelowCommitted names the
// minimum for the whole event.
func (s *Store) ChangeTier(ctx context.Context, principal, key, event string, tier ledger.Unit, change buckets.TierChange, ifMatch *ledger.Seq, dryRun bool) (ledger.Receipt, error) {
	for attempt := 1; ; attempt++ {
		var elsewhere ledger.Amount
		if dryRun {
			free, err := s.Events.Free(ctx, event, ledger.Available, tier)
			if err != nil {
				return ledger.Receipt{}, err
			}
			if len(free.Lanes) > 0 { // what's under way is waited for
				elsewhere = free.Total + free.UnderWay - free.Lanes[0].Free
			}
		}
		receipt, err := s.Events.ChangeTierIn(ctx, principal, key, event, tier, change, ifMatch, dryRun, elsewhere)
		if !errors.Is(err, buckets.ErrBelowCommitted) || dryRun {
			return receipt, err
		}
		again, shrinkErr := s.shrink(ctx, event, tier, *change.Quantity)
		if shrinkErr != nil {
			return ledger.Receipt{}, shrinkErr
		}
		switch {
		case !again:
			return ledger.Receipt{}, err
		case attempt == maxShrinks:
			return ledger.Receipt{}, ledger.ErrOverloaded.Because("buyers were always first").After(time.Second)
		}
	}
}

// shrink brings to the first lane the tickets that a smaller capacity takes; false when
// there's no other lane. Its error is ErrBelowCommitted when all lanes together have too few.
func (s *Store) shrink(ctx context.Context, event string, tier ledger.Unit, capacity ledger.Amount) (again bool, err error) {
	free, err := s.Events.Free(ctx, event, ledger.Available, tier)
	if err != nil || len(free.Lanes) < 2 {
		return false, err
	}
	home := free.Lanes[0].Journal
	stock, err := s.Reader.Stock(ctx, home)
	if err != nil {
		return false, err
	}
	goes := -stock.Tiers[tier][ledger.Capacity].Balance - capacity
	if missing := goes - free.Total - free.UnderWay; missing > 0 {
		return false, buckets.BelowCommitted(tier, capacity+missing, capacity)
	}
	// The first lane is to have all that goes.
	supplies, err := s.gather(ctx, event, home, []Need{{ledger.Available, tier, min(goes, free.Total)}}, Collect)
	if err == nil && supplies[0].Moved == 0 {
		err = pause(ctx) // what's missing is under way
	}
	return true, err
}

// pause waits for what's under way.
func pause(ctx context.Context) error {
	if wait.For(ctx, shrinkPause) {
		return nil
	}
	return ledger.ErrOverloaded.Because("tickets are on their way between lanes").After(time.Second).From(ctx.Err())
}

// maxShrinks bounds how often a change of capacity gathers tickets that buyers, or the
// rebalancer, take away again.
const maxShrinks = 20

// shrinkPause is the wait between two looks for tickets that are under way.
const shrinkPause = 50 * time.Millisecond
