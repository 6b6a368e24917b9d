package quota_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// drawStocks draws lanes: the first of them are in use.
func drawStocks(r *rapid.T) []quota.Stock {
	n := rapid.IntRange(1, 10).Draw(r, "lanes")
	used := rapid.IntRange(1, n).Draw(r, "used")
	list := make([]quota.Stock, n)
	for i := range list {
		list[i] = quota.Stock{InUse: i < used,
			Free: ledger.Amount(rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 200), rapid.Int64Range(0, 100_000)).Draw(r, "free")),
			Rate: rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 5000)).Draw(r, "rate")}
	}
	return list
}

// carryOut makes the transfers one after the other, none of more than there is.
func carryOut(r *rapid.T, lanes []quota.Stock, list []quota.Carried) []quota.Stock {
	lanes = slices.Clone(lanes)
	for _, c := range list {
		from, to := &lanes[c.From-1], &lanes[c.To-1]
		if c.Quantity < 1 || c.Quantity > from.Free || c.From == c.To || !to.InUse {
			r.Fatalf("of %+v: %+v in %+v", lanes, c, list)
		}
		from.Free -= c.Quantity
		to.Free += c.Quantity
	}
	return lanes
}

func TestLevelGivesWhatThereIsOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		lanes := drawStocks(r)
		low, keep := 2.0, ledger.Amount(quota.Batch) // as the rebalancer asks
		if rapid.Bool().Draw(r, "split") {
			low, keep = math.Inf(1), 0
		}
		list := quota.Level(lanes, low, keep)
		after := carryOut(r, lanes, list)
		for i, l := range after {
			if !l.InUse && l.Free > 0 {
				r.Fatalf("lane %d isn't in use and has %d: %+v", i+1, l.Free, list)
			}
			if l.Free < lanes[i].Free && l.InUse && lanes[i].Free <= keep {
				r.Fatalf("lane %d gave of its last %d", i+1, lanes[i].Free)
			}
		}
		// What has been levelled rests: tickets don't wander.
		if again := quota.Level(after, low, keep); len(again) > 0 {
			r.Fatalf("%+v\nbecame %+v by %+v\nand then %+v", lanes, after, list, again)
		}
	})
}

// A split shares out evenly, but for what doesn't divide.
func TestLevelOfASplitIsEven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		lanes := drawStocks(r)
		for i := range lanes {
			lanes[i].Rate = 0
		}
		var used []ledger.Amount
		var total ledger.Amount
		for _, l := range carryOut(r, lanes, quota.Level(lanes, math.Inf(1), 0)) {
			total += l.Free
			if l.InUse {
				used = append(used, l.Free)
			}
		}
		if n := ledger.Amount(len(used)); slices.Min(used) < total/n || slices.Max(used) > (total+n-1)/n {
			r.Fatalf("%d tickets: %v", total, used)
		}
	})
}

func TestALaneThatSellsFasterGetsMore(t *testing.T) {
	t.Parallel()
	lanes := []quota.Stock{{true, 900, 10}, {true, 100, 90}}
	if got := fmt.Sprint(quota.Level(lanes, 2, quota.Batch)); got != "[{1 2 760}]" {
		t.Error(got)
	}
	lanes[1].Free = 200 // lasts for longer than two seconds
	if got := quota.Level(lanes, 2, quota.Batch); len(got) != 0 {
		t.Error(got)
	}
}

func TestFetchBringsWhatsWantedIfItsThere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		free := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) ledger.Amount {
			return ledger.Amount(rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1000)).Draw(r, "free"))
		}), 1, 10).Draw(r, "lanes")
		to := rapid.IntRange(1, len(free)).Draw(r, "to")
		wanted := ledger.Amount(rapid.Int64Range(0, 2000).Draw(r, "wanted"))
		ahead := rapid.Bool().Draw(r, "ahead")
		list := quota.Fetch(free, to, wanted, ahead)
		here, total, came := free[to-1], sum(free), ledger.Amount(0)
		from := make(map[int]bool)
		for _, c := range list {
			if c.To != to || c.From == to || from[c.From] || c.Quantity < 1 || c.Quantity > free[c.From-1] {
				r.Fatalf("to %d of %v: %+v", to, free, list)
			}
			from[c.From] = true
			came += c.Quantity
		}
		exact := max(0, min(wanted, total)-here)
		if came < exact || !ahead && came != exact || exact == 0 && came != 0 {
			r.Fatalf("%d wanted in lane %d of %v: %d came, %d were missing", wanted, to, free, came, exact)
		}
	})
}

// A customer's way leads to one lane and knows every other that was the customer's; with
// more lanes a customer moves to a new one, or not at all.
func TestRoutesKnowWhereACustomerMayHaveBeen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		customer := rapid.StringMatching(`[a-z0-9@.]{1,20}`).Draw(r, "customer")
		counts := rapid.SliceOfNDistinct(rapid.IntRange(1, buckets.MaxLanes), 1, 6, rapid.ID).Draw(r, "counts")
		journals := make([]ledger.JournalID, slices.Max(counts))
		for i := range journals {
			journals[i] = ledger.JournalID(100 + i)
		}
		layout := buckets.Layout{Generation: 1, Counts: counts, Journals: journals}
		route := layout.Route(0, customer, "shop", "k")
		known := map[ledger.JournalID]bool{route.Journal: true}
		for _, e := range route.Elsewhere {
			if known[e.Journal] || e.ID != ledger.NewID(e.Journal, "shop", "k") {
				r.Fatalf("%+v of %+v", route, layout)
			}
			known[e.Journal] = true
		}
		for _, n := range counts {
			lane := buckets.Layout{Counts: []int{n}}.LaneOf(customer)
			if lane < 1 || lane > n || !known[journals[lane-1]] {
				r.Fatalf("lane %d of %d isn't in %+v", lane, n, route)
			}
			if next := (buckets.Layout{Counts: []int{n + 1}}).LaneOf(customer); next != lane && next != n+1 {
				r.Fatalf("lane %d of %d becomes %d", lane, n, next)
			}
		}
	})
}
