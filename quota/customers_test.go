package quota_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

// laneOf tells in which lane a hold is.
func (d *desk) laneOf(h holds.Hold) int {
	d.t.Helper()
	layout, err := d.Events.Look(context.Background(), d.event)
	d.must(err)
	journal, _ := ledger.JournalOf(h.ID)
	return layout.Of(journal)
}

func limited(n int64) func(*buckets.Spec) {
	return func(s *buckets.Spec) { s.LimitPerCustomer = &n }
}

// Whoever has something in a lane stays there, however the event is split; others go where
// the layout says, and back there when they have nothing left.
func TestACustomersLaneIsStable(t *testing.T) {
	t.Parallel()
	d := open(t, 5000)
	first := make(map[string]holds.Hold)
	buy := func(name string) holds.Hold {
		t.Helper()
		h, err := d.hold(name, 1)
		d.must(err)
		return h
	}
	for i := range 20 {
		first[fmt.Sprint("a", i)] = buy(fmt.Sprint("a", i))
	}
	for _, lanes := range []int{4, 2, 8, 1} {
		layout := d.split(lanes)
		for i := range 20 {
			name := fmt.Sprint("n", lanes, "-", i)
			h := buy(name)
			if first[name] = h; d.laneOf(h) != layout.LaneOf(name) {
				t.Errorf("%s is in lane %d of %d, not in %d", name, d.laneOf(h), lanes, layout.LaneOf(name))
			}
		}
		for name, h := range first {
			if again := buy(name); d.laneOf(again) != d.laneOf(h) {
				t.Errorf("with %d lanes %s has lanes %d and %d", lanes, name, d.laneOf(h), d.laneOf(again))
			}
		}
	}
	d.split(8)
	d.runOut()
	for name := range first { // the lane that they leave needn't have been swept
		if h := buy(name); d.laneOf(h) != d.lane(name) {
			t.Errorf("%s is in lane %d, not in %d", name, d.laneOf(h), d.lane(name))
		}
	}
}

// lane is that of a customer who has nothing.
func (d *desk) lane(customer string) int {
	d.t.Helper()
	layout, err := d.Events.Layout(context.Background(), d.event)
	d.must(err)
	return layout.LaneOf(customer)
}

// The same key gives the same hold, whatever has become of it and of the customer's lane.
func TestAKeyGivesTheSameHold(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*desk, holds.Hold){
		"held":    func(*desk, holds.Hold) {},
		"expired": func(d *desk, _ holds.Hold) { d.runOut() },
		"expired and swept": func(d *desk, _ holds.Hold) {
			d.runOut()
			_, err := d.Holds.Sweep(context.Background())
			d.must(err)
		},
		"released": func(d *desk, h holds.Hold) {
			_, err := d.Holds.Release(context.Background(), "shop", "release "+h.ID.String(), h.ID, nil)
			d.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, 1000)
			stores := []*desk{d, {t, d.process(), d.db, d.owner, d.event}} // one of them learns of changes late
			type asked struct {
				key     string
				request holds.Request
				id      uuid.UUID
			}
			var all []asked
			ask := func(key string, r holds.Request) {
				t.Helper()
				h, err := d.place(key, r)
				d.must(err)
				all = append(all, asked{key, r, h.ID})
				end(d, h)
			}
			again := func() {
				t.Helper()
				for _, a := range all {
					for _, s := range stores {
						if h, err := s.place(a.key, a.request); err != nil || h.ID != a.id {
							t.Errorf("%s: %s became %s: %v", a.key, a.id, h.ID, err)
						}
					}
					other := a.request
					other.Items = []holds.Line{{Tier: "ga", Quantity: 3}}
					_, err := d.place(a.key, other)
					d.refused(err, ledger.ErrIdempotencyMismatch)
				}
			}
			for _, lanes := range []int{1, 4, 2, 8, 1} {
				d.split(lanes)
				again()
				for i := range 6 {
					customer := fmt.Sprint("c", i)
					ask(fmt.Sprint(customer, " ", lanes, " ", len(all)),
						holds.Request{Customer: customer, Items: []holds.Line{{Tier: "ga", Quantity: 1}}})
				}
				again()
			}
		})
	}
}

// overLimit finds customers who have more than the limit, or something in two lanes, at
// one instant.
const overLimit = `
SELECT format('%s has %s in journals %s', customer, sum(balance), array_agg(journal_id))
FROM (SELECT journal_id, balance, substr(code, length(control) + 2) AS customer
      FROM accounts
      WHERE control IN ('held', 'sold') AND balance > 0) a
GROUP BY customer
HAVING sum(balance) > $1 OR count(DISTINCT journal_id) > 1`

// Few customers ask for much more than they may have, by many requests at once, while the
// event is split and merged, and holds end in every way. At no time has one more than the
// limit, or something in two lanes; in the end everybody can have all of it.
func TestLimitsAreExactWhileLanesChange(t *testing.T) {
	t.Parallel()
	const limit, customers = 4, 12
	ctx := context.Background()
	d := open(t, 100, limited(limit))
	d.db.Except("holds_recorded")
	stores := []*desk{d, {t, d.process(), d.db, d.owner, d.event}}
	watch, err := pgx.Connect(ctx, d.db.URL())
	d.must(err)
	defer watch.Close(ctx)
	var done atomic.Bool
	var granted, refused, readings atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	defer done.Store(true)
	for worker := range 24 {
		all.Go(func() {
			b := &buyer{desk: stores[worker%2], random: rand.New(rand.NewPCG(3, uint64(worker))), granted: &granted, refused: &refused}
			for !done.Load() {
				b.ask(fmt.Sprint("c", b.random.IntN(customers)))
			}
		})
	}
	all.Go(func() {
		for !done.Load() {
			rows, err := watch.Query(ctx, overLimit, limit)
			if err != nil {
				t.Error(err)
				return
			}
			found, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil || len(found) > 0 {
				t.Error(found, err)
			}
			readings.Add(1)
		}
	})
	for i, lanes := range []int{4, 2, 8, 1, 3, 1, 64, 2} {
		stores[i%2].must(stores[i%2].patiently(func() error {
			_, err := stores[i%2].Quotas.Split(ctx, "op", fmt.Sprint(i), d.event, lanes, "a test", nil, false)
			return err
		}))
		stores[1-i%2].balance()
		d.exec(`UPDATE holds SET expires_at = clock_timestamp() WHERE status = 'held' AND customer = $1`, fmt.Sprint("c", i))
		seen, read := granted.Load(), readings.Load()
		pgtest.Until(t, "buyers and readings between two changes", func() bool {
			return t.Failed() || granted.Load() > seen+50 && readings.Load() > read+2
		})
	}
	done.Store(true)
	all.Wait()
	if refused.Load() == 0 {
		t.Error("nobody asked for too much")
	}
	for i := range customers {
		for {
			_, err := d.hold(fmt.Sprint("c", i), 1)
			if err == nil {
				continue
			}
			if d.refused(err, holds.ErrLimitExceeded); said(err, "used") != ledger.Amount(limit) {
				t.Error(err)
			}
			break
		}
	}
	d.settle()
	if ga := d.tier(); ga.Held != limit*customers || ga.Available != 100-limit*customers {
		t.Errorf("%+v", ga)
	}
}

// buyer asks for tickets and keeps some, until somebody is refused.
type buyer struct {
	*desk
	random           *rand.Rand
	granted, refused *atomic.Int64
	kept             []uuid.UUID
}

// ask asks for tickets, twice under the same key at once.
func (b *buyer) ask(customer string) {
	key := uuid.NewString()
	r := holds.Request{Customer: customer, Items: []holds.Line{{Tier: "ga", Quantity: ledger.Amount(1 + b.random.IntN(3))}}}
	var got [2]holds.Hold
	var errs [2]error
	var both sync.WaitGroup
	for i := range got {
		both.Go(func() { got[i], errs[i] = b.place(key, r) })
	}
	both.Wait()
	if errs[0] == nil && errs[1] == nil && got[0].ID != got[1].ID {
		b.t.Errorf("%s: %s and %s under one key", customer, got[0].ID, got[1].ID)
	}
	for i, err := range errs {
		if f := fault.As(err); err == nil {
			b.granted.Add(1)
			b.kept = append(b.kept, got[i].ID)
		} else if f != nil && f.Def == holds.ErrLimitExceeded {
			b.refused.Add(1)
			b.drop()
		} else {
			b.t.Errorf("%s: %v", customer, err)
		}
	}
	if b.random.IntN(2) == 0 {
		b.drop()
	}
}

// drop gives back what was kept; some of it has run out, or was given back.
func (b *buyer) drop() {
	for _, id := range b.kept {
		if _, err := b.Holds.Release(context.Background(), "shop", uuid.NewString(), id, nil); err != nil {
			b.t.Error(err)
		}
	}
	b.kept = nil
}
