package holds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// box is an event on sale, on a database of its own. No sweeper runs.
type box struct {
	*holds.Store
	db     *pgtest.DB
	events *buckets.Store
	owner  *pgx.Conn
	keys   atomic.Int64
}

const day = 24 * 3600

func open(t testing.TB, spec buckets.Spec) *box {
	t.Helper()
	return openOn(t, pgtest.New(t), spec)
}

func openOn(t testing.TB, db *pgtest.DB, spec buckets.Spec) *box {
	t.Helper()
	ctx := context.Background()
	stores := pgtest.Stores(t, db, nil)
	b := &box{Store: stores.Holds, db: db, events: stores.Events}
	var err error
	if b.owner, err = pgx.Connect(ctx, db.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.owner.Close(ctx) })
	spec.Event, spec.Name, spec.Currency = "gig", "Gig", "USD"
	if _, err := b.events.Create(ctx, "tester", "event", spec); err != nil {
		t.Fatal(err)
	}
	return b
}

func tier(name ledger.Unit, quantity ledger.Amount) buckets.TierSpec {
	return buckets.TierSpec{Tier: name, Quantity: quantity, Price: buckets.Money{Amount: 5000, Currency: "USD"}}
}

// take asks for tickets under a new key.
func (b *box) take(customer string, lines ...holds.Line) (uuid.UUID, error) {
	r, err := b.Place(context.Background(), "tester", fmt.Sprint("k", b.keys.Add(1)), "gig",
		holds.Request{Customer: customer, Items: lines})
	if err != nil {
		return uuid.Nil, err
	}
	var h holds.Hold
	err = json.Unmarshal(r.Data, &h)
	return h.ID, err
}

// runOut makes every open hold due now, as time would.
func (b *box) runOut(t testing.TB) {
	t.Helper()
	b.db.Except("holds_recorded") // their entries have the deadlines that they were given
	_, err := b.owner.Exec(context.Background(),
		`UPDATE holds SET expires_at = clock_timestamp() WHERE status = 'held'`)
	if err != nil {
		t.Fatal(err)
	}
}

func (b *box) tiers(t testing.TB) map[ledger.Unit]buckets.TierAvailability {
	t.Helper()
	a, err := b.events.Availability(context.Background(), "gig")
	if err != nil {
		t.Fatal(err)
	}
	tiers := map[ledger.Unit]buckets.TierAvailability{}
	for _, t := range a.Tiers {
		tiers[t.Tier] = t
	}
	return tiers
}

// T1, T2, T20: the first rush on an untouched tier grants what there is, no more.
func TestRushes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		capacity, each ledger.Amount
		callers, want  int
	}{
		"T1 one ticket, fifty callers":     {1, 1, 50, 1},
		"T2 two tickets, pairs":            {2, 2, 40, 1},
		"T4 six and six of ten":            {10, 6, 2, 1},
		"T20 the first two of many":        {1000, 1, 2, 2},
		"every ticket, by more than there": {100, 3, 80, 33},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", c.capacity)}})
			granted, refused := pgtest.Rush(c.callers, func(i int) error {
				_, err := b.take(fmt.Sprint("c", i), holds.Line{Tier: "ga", Quantity: c.each})
				return err
			})
			if granted != c.want || refused["temporarily_held"] != c.callers-c.want {
				t.Errorf("%d granted, %v refused", granted, refused)
			}
			ga := b.tiers(t)["ga"]
			if held := ledger.Amount(c.want) * c.each; ga.Held != held || ga.Available != c.capacity-held {
				t.Errorf("%+v", ga)
			}
		})
	}
}

// T11 as a limit: ten at once by one customer who may have three.
func TestALimitHoldsInARush(t *testing.T) {
	t.Parallel()
	b := open(t, buckets.Spec{HoldSeconds: day, LimitPerCustomer: new(int64(3)),
		Tiers: []buckets.TierSpec{tier("ga", 100), tier("vip", 100)}})
	granted, refused := pgtest.Rush(10, func(i int) error {
		_, err := b.take("ann", holds.Line{Tier: []ledger.Unit{"ga", "vip"}[i%2], Quantity: 1})
		return err
	})
	if granted != 3 || refused["limit_exceeded"] != 7 {
		t.Errorf("%d granted, %v", granted, refused)
	}
}

// T19: a refused hold leaves no entry, no row, and its key free.
func TestARefusalLeavesNothing(t *testing.T) {
	t.Parallel()
	b := open(t, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 5)}})
	ctx := context.Background()
	ask := func() (ledger.Receipt, error) {
		return b.Place(ctx, "tester", "same", "gig", holds.Request{Customer: "ann", Items: []holds.Line{{Tier: "ga", Quantity: 6}}})
	}
	if _, err := ask(); !errors.Is(err, holds.ErrSoldOut) {
		t.Fatal(err)
	}
	var rows int
	if err := b.owner.QueryRow(ctx, `SELECT (SELECT count(*) FROM holds) + (SELECT count(*) FROM entries WHERE kind = 'hold.placed')
		+ (SELECT count(*) FROM accounts WHERE code LIKE 'held%')`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows were left: %v", rows, err)
	}
	if _, err := b.events.ChangeTier(ctx, "tester", "more", "gig", "ga", buckets.TierChange{Quantity: new(ledger.Amount(6))}, nil, false); err != nil {
		t.Fatal(err)
	}
	if r, err := ask(); err != nil || r.Replayed {
		t.Errorf("the same request, now that it can be served: %+v %v", r, err)
	}
}

// The process's clock decides nothing: whatever it says, the database's does. The
// window and the deadline are hours away in the one, long past in the other.
func TestSaleWindowsByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *buckets.Instant {
		return &buckets.Instant{Time: time.Now().Add(d).UTC().Truncate(time.Microsecond)}
	}
	for name, c := range map[string]struct {
		opens, closes *buckets.Instant
		open          bool
	}{
		"open":       {at(-time.Hour), at(time.Hour), true},
		"not yet":    {at(time.Hour), nil, false},
		"over":       {nil, at(-time.Hour), false},
		"no window":  {nil, nil, true},
		"opened now": {at(0), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, buckets.Spec{HoldSeconds: day, SaleOpensAt: c.opens, SaleClosesAt: c.closes,
				Tiers: []buckets.TierSpec{tier("ga", 5)}})
			_, err := b.take("ann", holds.Line{Tier: "ga", Quantity: 1})
			if c.open && err != nil || !c.open && !errors.Is(err, holds.ErrNotOnSale) {
				t.Error(err)
			}
		})
	}
}

// A storm of refusals and repeats writes nothing, not even a lock: no WAL record
// of the storm's own.
func TestRefusalsWriteNoWAL(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	b := openOn(t, db, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 3)}})
	ctx := context.Background()
	if _, err := b.take("ann", holds.Line{Tier: "ga", Quantity: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.owner.Exec(ctx, `CREATE EXTENSION pg_walinspect`); err != nil {
		t.Fatal(err)
	}
	storm := func() {
		granted, refused := pgtest.Rush(2000, func(i int) error {
			if i%10 == 0 { // and repeats of what was granted
				_, err := b.Place(ctx, "tester", "k1", "gig", holds.Request{Customer: "ann",
					Items: []holds.Line{{Tier: "ga", Quantity: 3}}})
				return err
			}
			_, err := b.take(fmt.Sprint("c", i), holds.Line{Tier: "ga", Quantity: 1})
			return err
		})
		if granted != 200 || refused["temporarily_held"] != 1800 {
			t.Fatalf("%d granted, %v", granted, refused)
		}
	}
	storm() // the first batch of a storm takes the lock, and tells the next
	var before, after string
	position := `SELECT pg_current_wal_insert_lsn()::text`
	if err := b.owner.QueryRow(ctx, position).Scan(&before); err != nil {
		t.Fatal(err)
	}
	storm()
	if err := b.owner.QueryRow(ctx, position).Scan(&after); err != nil {
		t.Fatal(err)
	}
	if before == after {
		return
	}
	// The server's own records (checkpoints, snapshots for standbys) may lie in
	// between; records of transactions and tables may not.
	rows, err := b.owner.Query(ctx, `
SELECT resource_manager || ' ' || record_type || ' ' || coalesce(description, '') || ' ' || coalesce(block_ref, '')
FROM pg_get_wal_records_info($1::pg_lsn, $2::pg_lsn)
WHERE resource_manager NOT IN ('XLOG', 'Standby')
  AND xid <> '0'`, before, after)
	if err != nil {
		t.Fatal(err)
	}
	records, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(records) > 0 {
		t.Errorf("%d records: %q %v", len(records), records, err)
	}
}

// The clock of the process may be wrong by a day or by decades: deadlines and
// windows are the database's. In the bubble it's the year 2000.
func TestTheProcessClockDecidesNothing(t *testing.T) {
	db := pgtest.New(t)
	today := time.Now().UTC()
	synctest.Test(t, func(t *testing.T) {
		if time.Since(today) > -24*time.Hour {
			t.Fatalf("the bubble's clock says %v", time.Now())
		}
		b := openOn(t, db, buckets.Spec{HoldSeconds: day,
			SaleOpensAt: &buckets.Instant{Time: today.Add(-time.Hour)}, SaleClosesAt: &buckets.Instant{Time: today.Add(time.Hour)},
			Tiers: []buckets.TierSpec{tier("ga", 5)}})
		ctx := context.Background()
		id, err := b.take("ann", holds.Line{Tier: "ga", Quantity: 5})
		if err != nil {
			t.Fatal(err)
		}
		h, err := b.Get(ctx, id)
		if err != nil || h.Status != holds.Held || h.CreatedAt.Before(today.Add(-time.Minute)) ||
			h.ExpiresAt.Sub(h.CreatedAt) != day*time.Second {
			t.Errorf("%+v %v", h, err)
		}
		if oldest, err := b.Sweep(ctx); err != nil || oldest != 0 {
			t.Errorf("nothing is due: %v %v", oldest, err)
		}
		if _, err := b.take("bob", holds.Line{Tier: "ga", Quantity: 1}); !errors.Is(err, holds.ErrTemporarilyHeld) {
			t.Errorf("nothing is free: %v", err)
		}
		b.runOut(t)
		if _, err := b.take("bob", holds.Line{Tier: "ga", Quantity: 5}); err != nil {
			t.Errorf("everything is: %v", err)
		}
	})
}

// While another process is in the middle of a batch, a storm's snapshot isn't enough
// to refuse by: that batch may be about the same command.
func TestARefusalWaitsForTheBatchUnderWay(t *testing.T) {
	t.Parallel()
	b := open(t, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 1)}})
	ctx := context.Background()
	for range 2 { // the second refusal is judged on a snapshot
		if _, err := b.take("ann", holds.Line{Tier: "ga", Quantity: 2}); !errors.Is(err, holds.ErrSoldOut) {
			t.Fatal(err)
		}
	}
	tx, err := b.owner.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT FROM journals WHERE journal_id = 1 FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() {
		_, err := b.take("ann", holds.Line{Tier: "ga", Quantity: 2})
		refused <- err
	}()
	for waits := false; !waits; { // pg_stat_activity can't be waited on
		select {
		case err := <-refused:
			t.Fatalf("it was answered beside the batch: %v", err)
		case <-time.After(time.Millisecond):
		}
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_get_activity(NULL) a
			WHERE a.datid = (SELECT oid FROM pg_database WHERE datname = current_database())
			  AND a.wait_event_type = 'Lock')`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, holds.ErrSoldOut) {
		t.Error(err)
	}
}

func TestStatementsFitTheSchema(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), holds.Statements, "sql.go")
}
