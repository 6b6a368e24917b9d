package quota_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

func TestWhatCantBeSplit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := open(t, 100)
	before := d.entries()
	for _, lanes := range []int{0, -1, 65, 10_000} {
		for _, dryRun := range []bool{false, true} {
			_, err := d.Quotas.Split(ctx, "op", uuid.NewString(), d.event, lanes, "a test", nil, dryRun)
			if d.refused(err, fault.ErrInvalidRequest); said(err, "field") != "lanes" {
				t.Errorf("%d: %v", lanes, err)
			}
		}
	}
	_, err := d.Quotas.Split(ctx, "op", "k", "no", 4, "a test", nil, false)
	d.refused(err, buckets.ErrEventNotFound)
	seated := buckets.TierSpec{Tier: "stalls", Seated: true, Price: buckets.Money{Amount: 1, Currency: "USD"}}
	_, err = d.Events.Create(ctx, "op", "hall", buckets.Spec{Event: "hall", Name: "Hall", Currency: "USD", Tiers: []buckets.TierSpec{seated}})
	d.must(err)
	_, err = d.Quotas.Split(ctx, "op", "k", "hall", 4, "a test", nil, false)
	if d.refused(err, buckets.ErrNotSplittable); said(err, "tier") != ledger.Unit("stalls") {
		t.Error(err)
	}
	if n := d.entries(); n != before+2 || d.count(`SELECT count(*) FROM lanes`) != 0 {
		t.Errorf("%d entries became %d", before, n)
	}
	d.split(2)
	_, err = d.Events.AddTier(ctx, "op", "k", d.event, seated)
	d.refused(err, buckets.ErrNotSplittable)
	d.split(1)
	_, err = d.Events.AddTier(ctx, "op", "k", d.event, seated) // what it has sold may be in other lanes
	d.refused(err, buckets.ErrNotSplittable)
}

// Lanes come and go: every ticket that's free is in a lane in use, and none gets lost.
func TestSplitsAndMerges(t *testing.T) {
	t.Parallel()
	d := open(t, 1001)
	d.allot(buckets.AllotmentSpec{Allotment: "fans", Codes: []buckets.CodeSpec{{Code: "EARLY", MaxUses: 9}}}, 101)
	for _, lanes := range []int{4, 2, 8, 1, 64, 3, 3, 1} {
		d.split(lanes)
		d.balance()
		for account, want := range map[string]ledger.Amount{"available": 900, "available:fans": 101, "code:EARLY": 9} {
			unit := ledger.Unit("ga")
			if account == "code:EARLY" {
				unit = ledger.Uses
			}
			list := d.freeOn(account, unit)
			used, closed := list[:lanes], list[lanes:]
			if sum(list) != want || unit != ledger.Uses && (sum(closed) != 0 || slices.Max(used)-slices.Min(used) > ledger.Amount(lanes)) {
				t.Errorf("%d lanes: %s has %v", lanes, account, list)
			}
		}
	}
}

func TestASplitIsDecidedOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := open(t, 100)
	before := d.entries()
	receipt, err := d.Quotas.Split(ctx, "op", "k", d.event, 4, "a test", nil, true)
	if d.must(err); decoded[buckets.LanesView](d, receipt).Lanes != 4 || d.entries() != before {
		t.Errorf("a dry run: %s, %d entries became %d", receipt.Data, before, d.entries())
	}
	home, err := d.Events.Journal(ctx, d.event)
	d.must(err)
	view, err := d.Events.LanesView(ctx, d.event, home)
	d.must(err)
	granted, refused := pgtest.Rush(2, func(i int) error {
		_, err := d.Quotas.Split(ctx, "op", fmt.Sprint("op", i), d.event, 3+i, "a test", &view.Version, false)
		return err
	})
	if granted != 1 || refused["version_conflict"] != 1 {
		t.Errorf("%d granted, %v", granted, refused)
	}
	first, err := d.Quotas.Split(ctx, "op", "same", d.event, 8, "a test", nil, false)
	d.must(err)
	d.split(2)
	again, err := d.Quotas.Split(ctx, "op", "same", d.event, 8, "a test", nil, false)
	if d.must(err); !again.Replayed || string(again.Data) != string(first.Data) {
		t.Errorf("%+v", again)
	}
	_, err = d.Quotas.Split(ctx, "op", "same", d.event, 7, "a test", nil, false)
	d.refused(err, ledger.ErrIdempotencyMismatch)
	layout, err := d.Events.Look(ctx, d.event)
	if d.must(err); layout.Lanes() != 2 || sum(d.free()) != 100 {
		t.Errorf("%+v %v", layout, d.free())
	}
	_, err = d.move("op", request(lane(2), lane(1), 30))
	d.must(err)
	before = d.entries()
	_, err = d.Quotas.Split(ctx, "op", "dry", d.event, 4, "a test", nil, true)
	if d.must(err); d.entries() != before {
		t.Errorf("a dry run of lanes that there are: %d entries became %d", before, d.entries())
	}
}

// Whoever split the event died before the lanes knew: another process tells them, and buyers
// who wait for it are served.
func TestASplitIsFinishedByAnotherProcess(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := open(t, 100)
	_, err := d.Events.Split(ctx, "op", "k", d.event, 4, "a test", nil, false) // the home's decision alone
	d.must(err)
	layout, err := d.Events.Look(ctx, d.event)
	d.must(err)
	got, customer, other := make(chan error), d.of(3, 0), d.process()
	go func() {
		key := uuid.NewString()
		for { // who's told that it isn't done yet asks again
			_, err := d.placeOnce(key, holds.Request{Customer: customer, Items: []holds.Line{{Tier: "ga", Quantity: 2}}})
			if !late(err) {
				got <- err
				return
			}
		}
	}()
	follow := func() error { return other.Events.FollowLanes(ctx) }
	d.must(d.patiently(follow))
	d.must(<-got)
	d.must(d.patiently(follow))
	if n := d.count(`SELECT count(*) FROM lanes WHERE generation = $1`, layout.Generation); n != 4 {
		t.Errorf("%d lanes have followed", n)
	}
}

// 160 buyers want parties of 1 to 6 of 1,000 tickets in 8 lanes, until there's none. Nobody
// is refused what a reading before and after the request had free, and every ticket goes.
func TestEveryTicketOfEightLanesIsTaken(t *testing.T) {
	t.Parallel()
	d := open(t, 1000)
	d.split(8)
	ctx := context.Background()
	free := func() ledger.Amount {
		f, err := d.Events.Free(ctx, d.event, ledger.Available, "ga")
		if err != nil {
			t.Error(err)
		}
		return f.Total + f.UnderWay
	}
	var all sync.WaitGroup
	for buyer := range 160 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(buyer)))
			for n := 0; ; n++ {
				party := ledger.Amount(1 + random.IntN(6))
				before := free()
				_, err := d.hold(fmt.Sprint("b", buyer, "-", n), party)
				if err == nil {
					continue
				}
				after := free() // nothing comes back, so it was free all the time
				if f := fault.As(err); f == nil || f.Def != holds.ErrTemporarilyHeld || after >= party {
					t.Errorf("%d asked, %d free before, %d after: %v", party, before, after, err)
					return
				}
				if after == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	if ga := d.tier(); ga.Held != 1000 || ga.Available != 0 || ga.InTransit != 0 {
		t.Errorf("%+v", ga)
	}
}

// What's held may come back: it's said when, by the first deadline of any lane. What's gone
// for good is sold out.
func TestRetryAtIsTheFirstDeadlineOfAnyLane(t *testing.T) {
	t.Parallel()
	d := open(t, 40)
	d.split(4)
	var last holds.Hold
	for lane := 1; lane <= 4; lane++ {
		var err error
		last, err = d.hold(d.of(lane, 0), 10)
		d.must(err)
	}
	first := last.ExpiresAt.Add(-time.Hour)
	d.db.Except("holds_recorded")
	d.exec(`UPDATE holds SET expires_at = $1 WHERE hold_id = $2`, first, last.ID)
	for lane := 1; lane <= 4; lane++ {
		_, err := d.hold(d.of(lane, 1), 3)
		if f := d.refused(err, holds.ErrTemporarilyHeld); said(err, "retry_at") != first.Format(time.RFC3339Nano) || f.RetryAfter <= 0 {
			t.Errorf("lane %d: %v, want %v", lane, err, first)
		}
		_, err = d.hold(d.of(lane, 1), 41)
		if d.refused(err, holds.ErrSoldOut); said(err, "asked") != ledger.Amount(41) {
			t.Error(err)
		}
	}
	d.exec(`UPDATE holds SET expires_at = clock_timestamp() WHERE hold_id = $1`, last.ID)
	// Nobody sweeps: what has run out in one lane is free for the next buyer of another.
	_, err := d.hold(d.of(1, 1), 10)
	d.must(err)
	if moves, err := d.Quotas.History(context.Background(), d.event, quota.Filter{Cause: quota.Pull, Limit: 9}); err != nil || len(moves) != 1 {
		t.Errorf("%+v %v", moves, err)
	}
}
