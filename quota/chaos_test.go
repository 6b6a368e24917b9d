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
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// likely are the refusals that anybody may get while everything happens at once.
var likely = []string{"limit_exceeded", "temporarily_held", "sold_out", "code_used_up", "allotment_closed", "allotment_not_found",
	"insufficient_free", "below_committed", "lane_not_found", "invalid_code", "allotment_exists", "move_decided"}

// crowd is a desk at which everybody does anything.
type crowd struct {
	*desk
	random *rand.Rand
	name   string
	held   []uuid.UUID
	asked  []uuid.UUID
}

func (c *crowd) pick(names ...string) string { return names[c.random.IntN(len(names))] }

func (c *crowd) bucket() quota.Bucket {
	return quota.Bucket{Lane: c.random.IntN(7), Allotment: c.pick("", "fans", "press", "day-0", "day-1")}
}

// act does one thing.
func (c *crowd) act(round int) (err error) {
	ctx, n := context.Background(), ledger.Amount(1+c.random.IntN(4))
	key := uuid.NewString()
	switch c.random.IntN(16) {
	case 0:
		_, err = c.Quotas.Split(ctx, c.name, key, c.event, 1+c.random.IntN(6), "a test", nil, c.random.IntN(4) == 0)
	case 1, 2:
		var m quota.Move
		if m, err = c.move(c.name, quota.Request{Tier: "ga", From: c.bucket(), To: c.bucket(), UpTo: amount(5 * n)}); err == nil {
			c.asked = append(c.asked, m.ID)
		}
	case 3:
		for _, id := range c.asked {
			_, err = c.decide("boss", id, c.random.IntN(2) == 0, "a test")
		}
		c.asked = nil
	case 4:
		err = c.Quotas.Balance(ctx)
	case 5:
		err = c.capacity(280+10*n, false)
	case 6:
		_, _, err = c.Quotas.Allot(ctx, c.name, key, c.event, quota.AllotRequest{Reason: "a test",
			AllotmentSpec: buckets.AllotmentSpec{Allotment: fmt.Sprint("day-", round%2)},
			Tiers:         []quota.TierQuantity{{Tier: "ga", Quantity: n}}})
	case 7:
		_, err = c.Quotas.CloseAllotment(ctx, c.name, key, c.event, fmt.Sprint("day-", round%2), "a test", nil)
	case 8, 9:
		for _, id := range c.held {
			if _, err = c.Holds.Release(ctx, c.name, uuid.NewString(), id, nil); err != nil {
				return err
			}
		}
		c.held = nil
	default:
		h, placeErr := c.from(fmt.Sprint("c", c.random.IntN(30)), c.pick("", "", "press", "day-0"), c.pick("", "", "", "early"), n)
		if err = placeErr; err == nil {
			c.held = append(c.held, h.ID)
		}
	}
	return err
}

// Two processes with buyers and operators who do everything at once. In the end every
// ticket is where the books say, nothing is on its way, and all that's free can be had.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	d := open(t, 300, limited(6), fourEyes(12))
	d.allot(buckets.AllotmentSpec{Allotment: "press"}, 10)
	_, _, err := d.Quotas.Allot(ctx, "op", "fans", d.event, quota.AllotRequest{Reason: "a test", AllotmentSpec: buckets.AllotmentSpec{
		Allotment: "fans", ReleasesAt: instant(time.Now().Add(time.Hour)), Codes: []buckets.CodeSpec{{Code: "EARLY", MaxUses: 20}}},
		Tiers: []quota.TierQuantity{{Tier: "ga", Quantity: 11}}})
	d.must(err)
	stores := []*desk{d, {t, d.process(), d.db, d.owner, d.event}}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			c := &crowd{desk: stores[i%2], random: rand.New(rand.NewPCG(11, uint64(i))), name: fmt.Sprint("op", i)}
			for round := range 60 {
				if err := c.act(round); err != nil && !late(err) {
					if f := fault.As(err); f == nil || !slices.Contains(likely, f.Code) && said(err, "field") != "to" {
						t.Errorf("%s: %v", c.name, err)
					}
				}
			}
		})
	}
	all.Wait()
	other := stores[1]
	other.settle()
	ga := d.tier()
	sum := ga.Available + ga.Held
	for _, n := range ga.Allotments {
		sum += n
	}
	if ga.InTransit != 0 || sum != ga.Capacity {
		t.Errorf("%+v", ga)
	}
	for i := 0; ga.Available > 0; i++ {
		n := min(6, ga.Available)
		_, err := d.hold(fmt.Sprint("last", i), n)
		d.must(err)
		ga.Available -= n
	}
}
