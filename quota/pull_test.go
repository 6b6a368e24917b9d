package quota_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// 100 buyers ask a lane that has nothing: a few moves serve them all. Too few tickets are
// in one place for any to be moved ahead of demand.
func TestPullsCoalesce(t *testing.T) {
	t.Parallel()
	d := open(t, 112)
	d.split(2)
	_, err := d.move("op", request(lane(1), lane(2), 56))
	d.must(err)
	names := d.customers(1, 100)
	granted, refused := pgtest.Rush(100, func(i int) error { _, err := d.hold(names[i], 1); return err })
	if granted != 100 {
		t.Errorf("%d granted, %v", granted, refused)
	}
	if moves := d.count(`SELECT count(*) FROM quota_moves WHERE cause = 'pull'`); moves < 1 || moves > 20 {
		t.Errorf("%d moves", moves)
	}
	if got := fmt.Sprint(d.free()); got != "[0 12]" {
		t.Error(got)
	}
}

// A lane that sells dry gets more than it asks for, once there's plenty.
func TestAPullBringsSomeAhead(t *testing.T) {
	t.Parallel()
	d := open(t, 1000)
	d.split(2)
	_, err := d.move("op", request(lane(1), lane(2), 500))
	d.must(err)
	for _, name := range d.customers(1, 20) {
		_, err := d.hold(name, 5)
		d.must(err)
	}
	if moves := d.count(`SELECT count(*) FROM quota_moves WHERE cause = 'pull'`); moves != 1 {
		t.Errorf("%d moves", moves)
	}
}

// A lane that isn't in use gets what its customers want, and no more.
func TestAClosedLaneGetsWhatIsWanted(t *testing.T) {
	t.Parallel()
	d := open(t, 1000)
	layout := d.split(2)
	stays := d.of(2, 0)
	_, err := d.hold(stays, 1)
	d.must(err)
	d.split(1)
	d.balance()
	hold, err := d.hold(stays, 3)
	d.must(err)
	if journal, _ := ledger.JournalOf(hold.ID); layout.Of(journal) != 2 || fmt.Sprint(d.free()) != "[996 0]" {
		t.Errorf("in lane %d, %v", layout.Of(journal), d.free())
	}
}

// The process that moved tickets died in between. They aren't lost, nobody is told that the
// event is sold out, and another process finishes the move, once.
func TestAMoveThatWasLeftHalfDoneIsFinishedOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := open(t, 20)
	d.split(2)
	_, err := d.hold(d.of(2, 1), 1)
	d.must(err)
	id, err := d.Quotas.SendOnly(ctx, d.event, "ga", 1, 2, 10)
	d.must(err)
	if ga := d.tier(); ga.Available != 9 || ga.InTransit != 10 {
		t.Errorf("%+v", ga)
	}
	buyers := []string{d.of(1, 0), d.of(2, 0)}
	for _, name := range buyers {
		_, err := d.holdOnce(name, 11)
		if f := d.refused(err, ledger.ErrOverloaded); f.RetryAfter <= 0 {
			t.Error(err)
		}
		_, err = d.hold(name, 20)
		d.refused(err, holds.ErrTemporarilyHeld)
		_, err = d.hold(name, 21)
		d.refused(err, holds.ErrSoldOut)
	}
	got, other := make(chan error), d.process()
	go func() {
		for { // who's told that they're on their way asks again
			_, err := d.holdOnce(buyers[1], 15)
			if !errors.Is(err, ledger.ErrOverloaded) {
				got <- err
				return
			}
		}
	}()
	d.must(other.Quotas.Resume(ctx)) // a process that sees it for the first time lets its owner finish it
	if n := d.count(`SELECT count(*) FROM quota_arrivals WHERE move_id = $1`, id); n != 0 {
		t.Error("it was finished at first sight")
	}
	granted, refused := pgtest.Rush(4, func(i int) error {
		if i%2 == 0 {
			return d.patiently(func() error { return other.Quotas.Resume(ctx) })
		}
		return d.patiently(func() error { return d.Quotas.Resume(ctx) })
	})
	if granted != 4 {
		t.Error(refused)
	}
	d.must(<-got)
	for range 2 {
		d.must(d.patiently(func() error { return other.Quotas.Resume(ctx) }))
	}
	if n := d.count(`SELECT count(*) FROM quota_arrivals WHERE move_id = $1`, id); n != 1 {
		t.Errorf("it arrived %d times", n)
	}
	if ga := d.tier(); ga.Available != 4 || ga.Held != 16 || ga.InTransit != 0 {
		t.Errorf("%+v", ga)
	}
}

// The operator's request ended between the halves of the move: it's decided, and the repeat
// finishes it, once.
func TestAnOperatorsRepeatFinishesTheMove(t *testing.T) {
	t.Parallel()
	d := open(t, 20)
	d.split(2)
	r := request(lane(1), lane(2), 4)
	r.Reason = "a test"
	ctx, cancel := context.WithCancel(context.Background())
	d.Quotas.Observe = func(quota.Move) { cancel() }
	receipt, err := d.Quotas.Move(ctx, "op", "k", d.event, r, nil, false)
	if d.must(err); receipt.Kind != quota.KindSent {
		t.Errorf("%+v", receipt)
	}
	if got := fmt.Sprint(d.free()); got != "[6 10]" {
		t.Error(got)
	}
	for range 2 {
		_, err := d.Quotas.Move(context.Background(), "op", "k", d.event, r, nil, false)
		if d.must(err); fmt.Sprint(d.free()) != "[6 14]" {
			t.Error(d.free())
		}
	}
}

// The rebalancers of two processes at the same time bring a lane its share once.
func TestTwoRebalancersBringAShareOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := open(t, 2000, func(s *buckets.Spec) { s.ApproveMovesFrom = new(int64(5000)) })
	d.split(4)
	other := d.process()
	for lane := 2; lane <= 4; lane++ {
		_, err := d.move("op", quota.Request{Tier: "ga", From: quota.Bucket{Lane: lane}, To: quota.Bucket{Lane: 1}, UpTo: amount(2000)})
		d.must(err)
	}
	granted, refused := pgtest.Rush(8, func(i int) error {
		if i%2 == 0 {
			return d.patiently(func() error { return other.Quotas.Balance(ctx) })
		}
		return d.patiently(func() error { return d.Quotas.Balance(ctx) })
	})
	if granted != 8 {
		t.Error(refused)
	}
	moves, err := d.Quotas.History(ctx, d.event, quota.Filter{Cause: quota.Rebalance, Limit: 50})
	if d.must(err); len(moves) < 3 || sum(d.free()) != 2000 {
		t.Errorf("%d moves, %v", len(moves), d.free())
	}
	for i, free := range d.free() {
		if free < 250 {
			t.Errorf("lane %d has %d: %v", i+1, free, d.free())
		}
	}
	before := d.entries()
	for range 3 {
		d.must(d.patiently(func() error { return errors.Join(d.Quotas.Balance(ctx), other.Quotas.Balance(ctx)) }))
	}
	if after := d.entries(); after != before {
		t.Errorf("nobody buys and %d entries became %d: %v", before, after, d.free())
	}
}
