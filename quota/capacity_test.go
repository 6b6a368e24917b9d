package quota_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/quota"
)

// capacity asks for another capacity of ga.
func (d *desk) capacity(n ledger.Amount, dryRun bool) error {
	key := uuid.NewString()
	return d.patiently(func() error {
		_, err := d.Quotas.ChangeTier(context.Background(), "op", key, d.event, "ga", buckets.TierChange{Quantity: &n}, nil, dryRun)
		return err
	})
}

// tier reads where the tickets are.
func (d *desk) tier() buckets.TierAvailability {
	d.t.Helper()
	a, err := d.Events.Availability(context.Background(), d.event)
	d.must(err)
	for _, t := range a.Tiers {
		if t.Tier == "ga" {
			return t
		}
	}
	d.t.Fatalf("no ga in %+v", a)
	return buckets.TierAvailability{}
}

// T5: the operator shrinks a bucket between hold and confirm. What's held stays, the
// operator gets what's free, and the purchase succeeds.
func TestT5AShrunkBucketKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	stores, _ := pgtest.Selling(t, db, 10*time.Second, nil)
	d := openWith(t, db, stores, 10)
	d.split(2)
	hold, err := d.hold(d.of(2, 0), 3)
	d.must(err)
	_, err = d.move("op", request(lane(2), lane(1), 3))
	if d.refused(err, ledger.ErrInsufficientFree); said(err, "free") != ledger.Amount(2) {
		t.Error(err)
	}
	m, err := d.move("op", quota.Request{Tier: "ga", From: lane(2), To: lane(1), UpTo: amount(5)})
	if d.must(err); m.Quantity != 2 {
		t.Errorf("%+v", m)
	}
	if err := d.capacity(2, false); said(d.refused(err, buckets.ErrBelowCommitted), "minimum") != ledger.Amount(3) {
		t.Error(err)
	}
	d.must(d.capacity(3, false))
	_, err = d.Orders.Checkout(context.Background(), "shop", "pay", hold.ID, orders.CheckoutRequest{PaymentMethod: "sim_ok"})
	d.must(err)
	d.Orders.Idle()
	if ga := d.tier(); ga.Sold != 3 || ga.Held != 0 || ga.Available != 0 || ga.Capacity != 3 {
		t.Errorf("%+v", ga)
	}
}

// T58: a capacity below what's committed in all lanes is refused with the minimum, in a
// dry run too; there's no way to force it.
func TestT58TheSmallestCapacityIsNamed(t *testing.T) {
	t.Parallel()
	for _, lanes := range []int{1, 4} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			t.Parallel()
			d := open(t, 40)
			if lanes > 1 {
				d.split(lanes)
			}
			d.allot(buckets.AllotmentSpec{Allotment: "fans"}, 5)
			for i := range 10 {
				_, err := d.hold(fmt.Sprint("c", i), 1)
				d.must(err)
			}
			before := d.entries()
			for _, n := range []ledger.Amount{0, 1, 14} {
				for _, dryRun := range []bool{true, false} {
					err := d.capacity(n, dryRun)
					if said(d.refused(err, buckets.ErrBelowCommitted), "minimum") != ledger.Amount(15) {
						t.Errorf("%d, dry run %v: %v", n, dryRun, err)
					}
				}
			}
			d.must(d.capacity(15, true))
			if ga := d.tier(); ga.Capacity != 40 || d.entries() != before {
				t.Errorf("a dry run or a refusal left %+v, %d entries became %d", ga, before, d.entries())
			}
			d.must(d.capacity(15, false))
			if ga := d.tier(); ga.Capacity != 15 || ga.Available != 0 || ga.Held != 10 || ga.Allotments["fans"] != 5 {
				t.Errorf("%+v", ga)
			}
			if err := d.capacity(14, false); said(d.refused(err, buckets.ErrBelowCommitted), "minimum") != ledger.Amount(15) {
				t.Error(err)
			}
			d.must(d.capacity(41, false))
			if ga := d.tier(); ga.Available != 26 {
				t.Errorf("%+v", ga)
			}
		})
	}
}

// The capacity shrinks while people buy: whatever is decided first, no ticket is held that
// there isn't, and only those are refused who come too late.
func TestT58TheCapacityShrinksDuringTheSale(t *testing.T) {
	t.Parallel()
	d := open(t, 200)
	d.split(4)
	granted, refused := pgtest.Rush(130, func(i int) error {
		if i%13 == 0 {
			return d.capacity(ledger.Amount(200-10*(i/13)), false)
		}
		_, err := d.hold(fmt.Sprint("c", i), 1)
		return err
	})
	if granted+refused["below_committed"]+refused["temporarily_held"] != 130 {
		t.Errorf("%d granted, %v", granted, refused)
	}
	if ga := d.tier(); ga.Available+ga.Held != ga.Capacity || ga.Held != ledger.Amount(120-refused["temporarily_held"]) || ga.InTransit != 0 {
		t.Errorf("%v: %+v", refused, ga)
	}
}
