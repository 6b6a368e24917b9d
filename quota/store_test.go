package quota_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// desk is a test's stores with one event.
type desk struct {
	t testing.TB
	service.Stores
	db    *pgtest.DB
	owner *pgx.Conn
	event string
}

const day = 24 * 3600

func open(t testing.TB, quantity ledger.Amount, change ...func(*buckets.Spec)) *desk {
	t.Helper()
	db := pgtest.New(t)
	return openWith(t, db, pgtest.Stores(t, db, nil), quantity, change...)
}

func openWith(t testing.TB, db *pgtest.DB, stores service.Stores, quantity ledger.Amount, change ...func(*buckets.Spec)) *desk {
	t.Helper()
	d := &desk{t: t, Stores: stores, db: db, event: "gig"}
	spec := buckets.Spec{Event: d.event, Name: "Gig", Currency: "USD", HoldSeconds: day, Tiers: []buckets.TierSpec{
		{Tier: "ga", Quantity: quantity, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}}
	for _, f := range change {
		f(&spec)
	}
	var err error
	d.owner, err = pgx.Connect(context.Background(), db.URL())
	d.must(err)
	t.Cleanup(func() { d.owner.Close(context.Background()) })
	_, err = d.Events.Create(context.Background(), "op", "create", spec)
	d.must(err)
	return d
}

// process gives the stores that another process would have.
func (d *desk) process() service.Stores {
	d.t.Helper()
	return pgtest.Stores(d.t, d.db, nil)
}

// exec changes what only time, or another program, could.
func (d *desk) exec(sql string, args ...any) {
	d.t.Helper()
	_, err := d.owner.Exec(context.Background(), sql, args...)
	d.must(err)
}

// count reads one number.
func (d *desk) count(sql string, args ...any) (n int) {
	d.t.Helper()
	d.must(d.owner.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

// blocked waits until somebody waits for a lock in the database. The owner's connection is
// in a transaction, in which the view would stay as it is.
func (d *desk) blocked() {
	d.t.Helper()
	ctx := context.Background()
	watch, err := pgx.Connect(ctx, d.db.URL())
	d.must(err)
	defer watch.Close(ctx)
	pgtest.Until(d.t, "a session that waits for a lock", func() (waits bool) {
		d.must(watch.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits))
		return waits
	})
}

// entries counts what was ever written, in all journals.
func (d *desk) entries() int { return d.count(`SELECT count(*) FROM entries`) }

// runOut makes every open hold due now, as time would.
func (d *desk) runOut() {
	d.t.Helper()
	d.db.Except("holds_recorded") // their entries have the deadlines that they were given
	d.exec(`UPDATE holds SET expires_at = clock_timestamp() WHERE status = 'held'`)
}

// late tells that the time for a request, or for a round, was over before its end, as it may
// be on a busy machine: it's to be repeated.
func late(err error) bool {
	return errors.Is(err, ledger.ErrOverloaded) || errors.Is(err, buckets.ErrLaneChanging) ||
		errors.Is(err, ledger.ErrOutcomeUnknown) || errors.Is(err, context.DeadlineExceeded)
}

// patiently repeats what came too late, as it's told to. What was left half done meanwhile is
// finished as by a sweeper.
func (d *desk) patiently(do func() error) (err error) {
	d.t.Helper()
	pgtest.Until(d.t, "an answer in time", func() bool {
		if err = do(); !late(err) {
			return true
		}
		ctx := context.Background()
		_ = errors.Join(d.Events.FollowLanes(ctx), d.Quotas.Resume(ctx)) // the next ones go on
		return false
	})
	return err
}

// balance does a round of the rebalancer.
func (d *desk) balance() {
	d.t.Helper()
	d.must(d.patiently(func() error { return d.Quotas.Balance(context.Background()) }))
}

// settle does what sweepers and rebalancers do, until nothing is half done.
func (d *desk) settle() {
	d.t.Helper()
	ctx := context.Background()
	d.must(d.patiently(func() error {
		return errors.Join(d.Events.FollowLanes(ctx), d.Quotas.Resume(ctx), d.Quotas.Resume(ctx), d.Quotas.Release(ctx), d.Quotas.Balance(ctx))
	}))
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) refused(err error, def *fault.Def) *fault.Error {
	d.t.Helper()
	if !errors.Is(err, def) {
		d.t.Fatalf("got %v, want %s", err, def.Code)
	}
	return fault.As(err)
}

func (d *desk) split(lanes int) buckets.Layout {
	d.t.Helper()
	key := uuid.NewString()
	d.must(d.patiently(func() error {
		_, err := d.Quotas.Split(context.Background(), "op", key, d.event, lanes, "a test", nil, false)
		return err
	}))
	layout, err := d.Events.Look(context.Background(), d.event)
	d.must(err)
	if layout.Lanes() != lanes {
		d.t.Fatalf("%d lanes are in use", layout.Lanes())
	}
	return layout
}

func (d *desk) hold(customer string, n ledger.Amount) (holds.Hold, error) {
	return d.place(uuid.NewString(), holds.Request{Customer: customer, Items: []holds.Line{{Tier: "ga", Quantity: n}}})
}

func (d *desk) place(key string, r holds.Request) (h holds.Hold, err error) {
	err = d.patiently(func() error {
		h, err = d.placeOnce(key, r)
		return err
	})
	return h, err
}

// holdOnce and placeOnce are hold and place for those who don't ask again.
func (d *desk) holdOnce(customer string, n ledger.Amount) (holds.Hold, error) {
	return d.placeOnce(uuid.NewString(), holds.Request{Customer: customer, Items: []holds.Line{{Tier: "ga", Quantity: n}}})
}

func (d *desk) placeOnce(key string, r holds.Request) (holds.Hold, error) {
	receipt, err := d.Holds.Place(context.Background(), "shop", key, d.event, r)
	if err != nil {
		return holds.Hold{}, err
	}
	var h holds.Hold
	return h, json.Unmarshal(receipt.Data, &h)
}

// customers names n customers of a lane.
func (d *desk) customers(lane, n int) (names []string) {
	d.t.Helper()
	layout, err := d.Events.Look(context.Background(), d.event)
	d.must(err)
	for i := 0; len(names) < n; i++ {
		if name := fmt.Sprint("c", i); layout.LaneOf(name) == lane {
			names = append(names, name)
		}
	}
	return names
}

// of names one of them.
func (d *desk) of(lane, i int) string { return d.customers(lane, i+1)[i] }

// move asks for a move under a new key.
func (d *desk) move(principal string, r quota.Request) (quota.Move, error) {
	return d.moveUnder(principal, uuid.NewString(), r)
}

func (d *desk) moveUnder(principal, key string, r quota.Request) (m quota.Move, err error) {
	if r.Reason == "" {
		r.Reason = "a test"
	}
	var receipt ledger.Receipt
	err = d.patiently(func() error {
		receipt, err = d.Quotas.Move(context.Background(), principal, key, d.event, r, nil, false)
		return err
	})
	if err == nil {
		err = json.Unmarshal(receipt.Data, &m)
	}
	return m, err
}

// allot makes an allotment with tickets.
func (d *desk) allot(spec buckets.AllotmentSpec, n ledger.Amount) {
	d.t.Helper()
	_, moves, err := d.Quotas.Allot(context.Background(), "op", uuid.NewString(), d.event, quota.AllotRequest{
		AllotmentSpec: spec, Tiers: []quota.TierQuantity{{Tier: "ga", Quantity: n}}, Reason: "a test"})
	d.must(err)
	if len(moves) != 1 || moves[0].Kind != quota.KindMoved {
		d.t.Fatalf("got %+v", moves)
	}
}

// free lists what's everybody's in each lane.
func (d *desk) free() []ledger.Amount { return d.freeOn(ledger.Available, "ga") }

func (d *desk) freeOn(account string, unit ledger.Unit) []ledger.Amount {
	d.t.Helper()
	f, err := d.Events.Free(context.Background(), d.event, account, unit)
	d.must(err)
	var list []ledger.Amount
	for _, l := range f.Lanes {
		list = append(list, l.Free)
	}
	return list
}

func TestStatementsFitTheSchema(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), quota.Statements, "sql.go")
}

func TestSplitAndMerge(t *testing.T) {
	t.Parallel()
	d := open(t, 100)
	d.split(4)
	if got := fmt.Sprint(d.free()); got != "[25 25 25 25]" {
		t.Errorf("after the split: %s", got)
	}
	for i := range 20 {
		_, err := d.hold(fmt.Sprint("c", i), 4)
		d.must(err)
	}
	d.split(1)
	d.balance()
	if got := fmt.Sprint(d.free()); got != "[20 0 0 0]" {
		t.Errorf("after the merge: %s", got)
	}
	for i := range 20 {
		_, err := d.hold(fmt.Sprint("c", i), 1)
		d.must(err)
	}
	_, err := d.hold("late", 1)
	d.refused(err, holds.ErrTemporarilyHeld)
}

// sum adds up.
func sum(list []ledger.Amount) (n ledger.Amount) {
	for _, l := range list {
		n += l
	}
	return n
}

// decoded reads what a receipt tells.
func decoded[T any](d *desk, r ledger.Receipt) (v T) {
	d.t.Helper()
	d.must(json.Unmarshal(r.Data, &v))
	return v
}

// said gives a field of a refusal.
func said(err error, name string) any {
	if f := fault.As(err); f != nil {
		for _, field := range f.Fields {
			if field.Name == name {
				return field.Value
			}
		}
	}
	return nil
}

func TestPartyOfSixWithOneFreeInEachOfSixLanes(t *testing.T) {
	t.Parallel()
	d := open(t, 6)
	d.split(6)
	if got := fmt.Sprint(d.free()); got != "[1 1 1 1 1 1]" {
		t.Errorf("after the split: %s", got)
	}
	_, err := d.hold("ann", 6)
	d.must(err)
	_, err = d.hold("bob", 7)
	d.refused(err, holds.ErrSoldOut)
}
