package sale

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// finishFor bounds the wait for the orders whose outcome was still open when the
	// last buyer went home: it takes a first attempt of the service to find it out, and
	// mostly a second one.
	finishFor = 15 * time.Second
	// actFor bounds the wait for what others must do and don't: what comes of itself,
	// such as a webhook, comes sooner.
	actFor     = 8 * time.Second
	finishEach = 500 * time.Millisecond
	// giveUpFor is what the service may take to give an order up when its time is over.
	giveUpFor = 3 * time.Second
	// settleTimeout bounds the wait for the last overdue hold to be expired.
	settleTimeout = 10 * time.Second
)

// finish waits until no order is left of which more comes to be known soon. What stays
// open is open by design: the report names it.
func (s *sale) finish(ctx context.Context) error {
	began := time.Now()
	ticker := time.NewTicker(finishEach)
	defer ticker.Stop()
	for time.Since(began) < finishFor {
		waits, err := s.finishOnce(ctx, began)
		if err != nil {
			return err
		}
		if !waits {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.waitsUntil(time.Time{})
	return nil
}

// finishOnce looks at every unsettled order, lets late banks act, and tells whether to
// wait for any.
func (s *sale) finishOnce(ctx context.Context, began time.Time) (waits bool, err error) {
	list := s.book.unsettled()
	err = each(list, func(p *purchase) error {
		if !s.look(ctx, p, p.order.ID) {
			return errors.Join(ctx.Err(), errors.New("an order can't be read"))
		}
		if p.buyer.wallet.bank == late && !p.acted && p.order.Status == "cancelled" && p.order.payment() != "" {
			p.acted = true
			return s.act(ctx, p.order.payment(), "complete")
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	due := time.Time{}
	for _, p := range list {
		at, ok := p.waitFor(began)
		if ok && at.After(due) {
			due = at
		}
		waits = waits || ok
	}
	s.waitsUntil(due)
	return waits, nil
}

// waitFor tells whether to wait for an order, and until when about.
func (p *purchase) waitFor(began time.Time) (at time.Time, ok bool) {
	end, soon := began.Add(finishFor), began.Add(actFor)
	switch {
	case p.order.Settled():
		return at, false
	case p.acted:
		return end, true // the money is there: the order will tell
	case p.order.watched():
		return at, false
	}
	at, due := p.order.next()
	until := p.order.PayUntil
	switch {
	case p.order.Status == "pending" && until.Before(end) && time.Now().Before(until.Add(giveUpFor)):
		return until, true // something happens then
	case due && at.Before(end):
		return at, true
	case time.Now().Before(soon):
		return soon, true
	}
	return at, false
}

// waitsUntil notes until when the sale waits for orders, for whoever watches.
func (s *sale) waitsUntil(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = t
}

// settle waits until every hold has ended but those whose payment is open.
func (s *sale) settle(ctx context.Context) error {
	last := s.book.lastDeadline()
	latest := time.Now().Add(max(0, time.Until(last)) + settleTimeout)
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		kept, err := s.keptOpen(ctx)
		if err != nil {
			return fmt.Errorf("wait for the last holds to end: %w", err)
		}
		a, err := s.read(ctx)
		if err != nil {
			return fmt.Errorf("wait for the last holds to end: %w", err)
		}
		// A hold that ran out may count as held until somebody looks at the event.
		if a.held() <= kept && time.Now().After(last) {
			return nil
		}
		if time.Now().After(latest) {
			return fmt.Errorf("%d tickets are still held, %d of them by open payments, %v after the last hold ran out",
				a.held(), kept, settleTimeout)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// keptOpen is the number of tickets that payments keep whose outcome is open.
func (s *sale) keptOpen(ctx context.Context) (n int64, err error) {
	for _, p := range s.book.unsettled() {
		var h hold
		if err := s.api.read(ctx, "/v1/holds/"+p.receipt.hold.ID, &h); err != nil {
			return 0, err
		}
		n += h.open()
	}
	return n, nil
}
