package quota

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// Batch is a quantity that's worth moving ahead of demand. With fewer in all, tickets
	// only move to who wants them.
	Batch = 64
	// roundTimeout bounds one round of a pull.
	roundTimeout = 2 * time.Second
)

// Need is what a buyer wants to find in a bucket of a lane.
type Need struct {
	Account  string
	Unit     ledger.Unit
	Quantity ledger.Amount
}

// Supply is what there was for a need when its pull began, in all lanes.
type Supply struct {
	Need
	buckets.Free
	Moved ledger.Amount // to the lane, by the pull
}

// Enough tells whether the need could be met, now or as soon as what's under way arrives.
func (s Supply) Enough() bool { return s.Total+s.UnderWay >= s.Quantity }

// Hopeless tells whether the need couldn't be met even if every hold ended.
func (s Supply) Hopeless() bool { return s.Total+s.UnderWay+s.Held < s.Quantity }

// bucketKey is a bucket of a lane.
type bucketKey struct {
	journal ledger.JournalID
	account string
	unit    ledger.Unit
}

// puller gathers for one bucket. One pull is under way at a time; who comes meanwhile goes
// with the next.
type puller struct {
	event   string
	waiting []*want
	pulling bool
}

// want is a need that waits for a pull.
type want struct {
	quantity ledger.Amount
	cause    Cause
	done     chan struct{}
	free     buckets.Free
	moved    ledger.Amount
	err      error
}

// Gather brings to buckets of a lane what they lack for the needs, as far as other lanes
// have it, and tells what there was. Requests for the same bucket share a pull, which
// begins after they asked. Errors are those of reads, and of a ctx that ended.
func (s *Store) Gather(ctx context.Context, event string, lane ledger.JournalID, needs []Need) ([]Supply, error) {
	return s.gather(ctx, event, lane, needs, Pull)
}

func (s *Store) gather(ctx context.Context, event string, lane ledger.JournalID, needs []Need, cause Cause) ([]Supply, error) {
	wants := make([]*want, len(needs))
	for i, n := range needs {
		wants[i] = s.join(event, bucketKey{lane, n.Account, n.Unit}, n.Quantity, cause)
	}
	supplies := make([]Supply, len(needs))
	for i, w := range wants {
		select {
		case <-w.done:
		case <-ctx.Done():
			return nil, ledger.ErrOverloaded.Because("tickets from other lanes didn't come in time").
				After(time.Second).From(ctx.Err())
		}
		if w.err != nil {
			return nil, w.err
		}
		supplies[i] = Supply{needs[i], w.free, w.moved}
	}
	return supplies, nil
}

// join waits with others for the next pull of a bucket, and sees that there is one.
func (s *Store) join(event string, key bucketKey, quantity ledger.Amount, cause Cause) *want {
	w := &want{quantity: quantity, cause: cause, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pulls[key]
	if p == nil {
		p = &puller{event: event}
		s.pulls[key] = p
	}
	p.waiting = append(p.waiting, w)
	if !p.pulling {
		p.pulling = true
		s.active.Go(func() { s.work(key, p) })
	}
	return w
}

// work pulls until nobody waits.
func (s *Store) work(key bucketKey, p *puller) {
	for {
		s.mu.Lock()
		wants := p.waiting
		p.waiting = nil
		if len(wants) == 0 {
			delete(s.pulls, key)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		free, moved, err := s.pull(p.event, key, wants)
		for _, w := range wants {
			w.free, w.moved, w.err = free, moved, err
			close(w.done)
		}
	}
}

// pull looks where the tickets are and fetches what's wanted.
func (s *Store) pull(event string, key bucketKey, wants []*want) (free buckets.Free, moved ledger.Amount, err error) {
	ctx, cancel := context.WithTimeout(s.closed, roundTimeout)
	defer cancel()
	if free, err = s.Events.Free(ctx, event, key.account, key.unit); err != nil {
		return free, 0, err
	}
	for _, l := range free.Lanes {
		if l.Unreturned > 0 { // counted as under way: it's there when the wants look again
			if err := s.Ledger.Wake(ctx, l.Journal); err != nil {
				return free, 0, err
			}
		}
	}
	layout, err := s.Events.Layout(ctx, event)
	if err != nil {
		return free, 0, err
	}
	var wanted ledger.Amount
	cause := wants[0].cause
	for _, w := range wants {
		if w.quantity <= free.Total { // else it's refused anyway
			wanted += w.quantity
			if w.cause == Pull {
				cause = Pull
			}
		}
	}
	var transfers []transfer
	for _, t := range fetch(free, key.journal, wanted, layout.Of(key.journal) <= layout.Lanes()) {
		t.key = uuid.NewString()
		transfers = append(transfers, t)
	}
	moved, err = s.carry(ctx, key.account, key.unit, cause, transfers)
	return free, moved, err
}

// transfer is tickets to be carried from one lane to another.
type transfer struct {
	from, to ledger.JournalID
	toLane   int
	quantity ledger.Amount
	key      string
}

// fetch chooses where to take tickets from for a lane that wants so many: from the
// fullest first, and half of what that has more than the lane when that's plenty and the
// lane is one that may sell ahead.
func fetch(free buckets.Free, to ledger.JournalID, wanted ledger.Amount, ahead bool) (list []transfer) {
	here, lane := ledger.Amount(0), 0
	sources := make([]buckets.LaneFree, 0, len(free.Lanes))
	for _, l := range free.Lanes {
		if l.Journal == to {
			here, lane = l.Free, l.Lane
			continue
		}
		sources = append(sources, l)
	}
	slices.SortFunc(sources, func(a, b buckets.LaneFree) int {
		return cmp.Or(cmp.Compare(b.Free, a.Free), cmp.Compare(a.Lane, b.Lane))
	})
	missing := wanted - here
	for _, l := range sources {
		if missing <= 0 || l.Free <= 0 {
			break
		}
		n := missing
		if half := (l.Free - here) / 2; ahead && half >= Batch {
			n = max(n, half)
		}
		n = min(n, l.Free)
		list = append(list, transfer{from: l.Journal, to: to, toLane: lane, quantity: n})
		missing -= n
	}
	return list
}

// carry makes moves, up to what's free, side by side, and tells how many tickets went. That
// others were first is no error.
func (s *Store) carry(ctx context.Context, account string, unit ledger.Unit, cause Cause, transfers []transfer) (ledger.Amount, error) {
	moved, errs := make([]ledger.Amount, len(transfers)), make([]error, len(transfers))
	var each sync.WaitGroup
	for i, t := range transfers {
		each.Go(func() { moved[i], errs[i] = s.transfer(ctx, account, unit, cause, t) })
	}
	each.Wait()
	var sum ledger.Amount
	for _, n := range moved {
		sum += n
	}
	return sum, errors.Join(errs...)
}

// transfer makes one move between two lanes, both its entries, and tells how many tickets
// went.
func (s *Store) transfer(ctx context.Context, account string, unit ledger.Unit, cause Cause, t transfer) (ledger.Amount, error) {
	body := &send{
		principal: ledger.SystemPrincipal, unit: unit, account: account, to: account, toLane: t.toLane,
		quantity: t.quantity, upTo: true, cause: cause, reason: reasons[cause],
	}
	parameters := struct {
		Unit     ledger.Unit
		Account  string
		To       int
		Quantity ledger.Amount
	}{unit, account, t.toLane, t.quantity}
	c, err := ledger.NewCommand(t.from, ledger.SystemPrincipal, string(cause)+" "+t.key, KindSent, parameters, body)
	if err != nil {
		return 0, err
	}
	body.id = c.ID
	receipt, err := s.Ledger.Do(ctx, t.from, c)
	switch {
	case errors.Is(err, ledger.ErrInsufficientFree): // somebody else took them
		return 0, nil
	case errors.Is(err, ledger.ErrIdempotencyMismatch) || err == nil && receipt.Replayed: // another process saw to it
		return 0, nil
	case err != nil:
		return 0, err
	}
	m := s.observe(receipt)
	return m.Quantity, s.receive(ctx, c.ID, t.to)
}
