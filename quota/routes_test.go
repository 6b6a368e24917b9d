package quota_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
)

// The event was split twice since a process looked: it doesn't know the lane in between, in
// which its customer has something.
func TestAProcessThatMissedAChange(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := open(t, 100, limited(4))
	two := d.split(2)
	stale := &desk{t, d.process(), d.db, d.owner, d.event}
	_, err := stale.Events.Layout(ctx, d.event) // which it then remembers
	d.must(err)
	four := d.split(4)
	customer := ""
	for i := 0; customer == ""; i++ {
		if name := fmt.Sprint("c", i); two.LaneOf(name) == 2 && four.LaneOf(name) > 2 {
			customer = name
		}
	}
	first, err := d.hold(customer, 3)
	d.must(err)
	d.split(2)
	_, err = stale.hold(customer, 2)
	d.refused(err, holds.ErrLimitExceeded)
	second, err := stale.hold(customer, 1)
	if d.must(err); d.laneOf(second) != d.laneOf(first) || d.laneOf(first) != four.LaneOf(customer) {
		t.Errorf("in lane %d, and before in %d", d.laneOf(second), d.laneOf(first))
	}
}

// A lane that doesn't know yet that it isn't in use any more accepts a customer, and is slow
// to write it. The lane that's the customer's from now on waits for it to know.
func TestALaneWaitsForThoseThatAreBehind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := open(t, 100, limited(4))
	layout := d.split(2)
	customer := d.of(2, 0)
	stale := &desk{t, d.process(), d.db, d.owner, d.event}
	_, err := stale.Events.Layout(ctx, d.event)
	d.must(err)
	_, err = d.Events.Split(ctx, "op", "merge", d.event, 1, "a test", nil, false) // the home's decision alone
	d.must(err)
	_, err = d.Events.Look(ctx, d.event)
	d.must(err)
	tx, err := d.owner.Begin(ctx)
	d.must(err)
	// Whoever writes this account waits for us; who reads doesn't see it.
	_, err = tx.Exec(ctx, `INSERT INTO accounts (journal_id, code, unit, type, control, balance, version)
		VALUES ($1, 'held:' || $2, 'ga', 'inventory', 'held', 0, 1)`, layout.Journals[1], customer)
	d.must(err)
	type answer struct {
		hold holds.Hold
		err  error
	}
	answers := make(chan answer)
	go func() {
		h, err := stale.holdOnce(customer, 3)
		answers <- answer{h, err}
	}()
	d.blocked()
	_, err = d.holdOnce(customer, 3)
	d.refused(err, buckets.ErrLaneChanging)
	d.must(tx.Rollback(ctx))
	slow := <-answers
	d.must(slow.err)
	d.must(d.patiently(func() error { return d.Events.FollowLanes(ctx) }))
	_, err = d.hold(customer, 3)
	d.refused(err, holds.ErrLimitExceeded)
	after, err := d.hold(customer, 1)
	if d.must(err); d.laneOf(after) != 2 || d.laneOf(slow.hold) != 2 {
		t.Errorf("in lanes %d and %d", d.laneOf(slow.hold), d.laneOf(after))
	}
}
