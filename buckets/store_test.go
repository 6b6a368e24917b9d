package buckets_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t testing.TB) *buckets.Store {
	t.Helper()
	return pgtest.Stores(t, pgtest.New(t), nil).Events
}

func usd(amount ledger.Amount) buckets.Money { return buckets.Money{Amount: amount, Currency: "USD"} }

func gig(event string) buckets.Spec {
	return buckets.Spec{Event: event, Name: "Gig", Currency: "USD",
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 100, Price: usd(5000)}}}
}

func TestOneNameOneEvent(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := context.Background()
	const rivals = 10
	errs := make([]error, rivals)
	var wg sync.WaitGroup
	for i := range rivals {
		wg.Go(func() { _, errs[i] = s.Create(ctx, "p", fmt.Sprint(i), gig("gig")) })
	}
	wg.Wait()
	won := 0
	for i, err := range errs {
		switch {
		case err == nil:
			won++
			if r, err := s.Create(ctx, "p", fmt.Sprint(i), gig("gig")); err != nil || !r.Replayed {
				t.Errorf("the winner's repeat: %+v %v", r, err)
			}
		case !errors.Is(err, buckets.ErrEventExists):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d created it", won)
	}
	other := gig("gig")
	other.Name = "Another"
	if _, err := s.Create(ctx, "p", "0", other); errs[0] == nil && !errors.Is(err, ledger.ErrIdempotencyMismatch) {
		t.Errorf("the key with another event: %v", err)
	}
}

func TestAnEventHalfCreatedIsFinished(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, finish := range map[string]func(*buckets.Store) error{
		"by a repeat":    func(s *buckets.Store) error { _, err := s.Create(ctx, "p", "k", gig("gig")); return err },
		"by the sweeper": func(s *buckets.Store) error { return errors.Join(s.OpenCreated(ctx), s.OpenCreated(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			if err := s.CreateOnly(ctx, "p", "k", gig("gig")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(ctx, "gig"); !errors.Is(err, buckets.ErrEventNotFound) {
				t.Errorf("before it's open: %v", err)
			}
			if err := finish(s); err != nil {
				t.Fatal(err)
			}
			first, err := s.Create(ctx, "p", "k", gig("gig"))
			if err != nil || !first.Replayed {
				t.Errorf("a repeat: %+v %v", first, err)
			}
			a, err := s.Availability(ctx, "gig")
			if err != nil || len(a.Tiers) != 1 || a.Tiers[0].Available != 100 || a.Tiers[0].Capacity != 100 {
				t.Errorf("%+v %v", a, err)
			}
		})
	}
}

// pgx gives times in the machine's zone; ours are in UTC on every machine.
func TestAnEventsTimesAreInUTC(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := context.Background()
	spec := gig("gig")
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	spec.SaleOpensAt, spec.SaleClosesAt = &buckets.Instant{Time: at}, &buckets.Instant{Time: at.Add(time.Hour)}
	spec.HonourUntil = &buckets.Instant{Time: at.Add(2 * time.Hour)}
	created, err := s.Create(ctx, "p", "k", spec)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Get(ctx, "gig")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []*time.Time{e.SaleOpensAt, e.SaleClosesAt, e.HonourUntil, &e.CreatedAt} {
		if at.Location() != time.UTC {
			t.Errorf("%v is in the zone %v", at, at.Location())
		}
	}
	if read, err := json.Marshal(e); err != nil || string(read) != string(created.Data) {
		t.Errorf("created %s\nread %s %v", created.Data, read, err)
	}
}

// An event that can't be opened keeps no other closed.
func TestAnEventThatCantBeOpenedStopsNoOther(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := pgtest.Stores(t, db, nil).Events
	ctx := context.Background()
	for _, name := range []string{"first", "second"} {
		if err := s.CreateOnly(ctx, "p", name, gig(name)); err != nil {
			t.Fatal(err)
		}
	}
	// Somebody is making the first one's journal and doesn't come to an end.
	owner, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close(ctx) })
	tx, err := owner.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `INSERT INTO journals (journal_id) VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	pgtest.Until(t, "the second is opened", func() bool { // in one round, if there's time enough for it
		if err := s.OpenCreated(ctx); err == nil {
			t.Fatal("nobody hears of the first")
		}
		_, err := s.Get(ctx, "second")
		return err == nil
	})
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	pgtest.Until(t, "the first is opened", func() bool { return s.OpenCreated(ctx) == nil })
	if _, err := s.Get(ctx, "first"); err != nil {
		t.Error(err)
	}
}

func TestTiersChange(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := context.Background()
	if _, err := s.Create(ctx, "p", "k", gig("gig")); err != nil {
		t.Fatal(err)
	}
	n := 0
	change := func(c buckets.TierChange, ifMatch *ledger.Seq, dryRun bool) error {
		n++
		_, err := s.ChangeTier(ctx, "p", fmt.Sprint("change", n), "gig", "ga", c, ifMatch, dryRun)
		return err
	}
	tier := func() buckets.TierView {
		t.Helper()
		e, err := s.Get(ctx, "gig")
		if err != nil {
			t.Fatal(err)
		}
		return e.Tiers[0]
	}
	before := tier()
	if err := change(buckets.TierChange{Price: new(usd(6000)), Quantity: new(ledger.Amount(150))}, &before.Version, false); err != nil {
		t.Fatal(err)
	}
	if after := tier(); after.PriceVersion != 2 || after.Price.Amount != 6000 || after.Quantity != 150 {
		t.Errorf("%+v", after)
	}
	if err := change(buckets.TierChange{Quantity: new(ledger.Amount(1))}, &before.Version, false); !errors.Is(err, buckets.ErrVersionConflict) {
		t.Errorf("a stale version: %v", err)
	}
	if err := change(buckets.TierChange{Quantity: new(ledger.Amount(0))}, nil, true); err != nil {
		t.Errorf("dry run: %v", err)
	}
	if err := change(buckets.TierChange{Price: new(usd(6000))}, nil, false); err != nil || tier().PriceVersion != 2 {
		t.Errorf("the same price isn't a new version: %v, version %d", err, tier().PriceVersion)
	}
	if err := change(buckets.TierChange{Quantity: new(ledger.Amount(0))}, nil, false); err != nil || tier().Quantity != 0 {
		t.Errorf("nothing is committed, so it may go to 0: %v", err)
	}
	if _, err := s.AddTier(ctx, "p", "add", "gig", buckets.TierSpec{Tier: "vip", Quantity: 5, Price: usd(1)}); err != nil {
		t.Error(err)
	}
	if _, err := s.AddTier(ctx, "p", "again", "gig", buckets.TierSpec{Tier: "vip", Quantity: 5, Price: usd(1)}); !errors.Is(err, buckets.ErrTierExists) {
		t.Error(err)
	}
}

func TestWhatCantBeAnEvent(t *testing.T) {
	t.Parallel()
	s := open(t)
	for field, spoil := range map[string]func(*buckets.Spec){
		"event":                       func(s *buckets.Spec) { s.Event = "a b" },
		"name":                        func(s *buckets.Spec) { s.Name = "" },
		"currency":                    func(s *buckets.Spec) { s.Currency = "usd" },
		"hold_seconds":                func(s *buckets.Spec) { s.HoldSeconds = -1 },
		"limit_per_customer":          func(s *buckets.Spec) { s.LimitPerCustomer = new(int64(0)) },
		"late_payment_policy":         func(s *buckets.Spec) { s.LatePaymentPolicy = "keep" },
		"tiers":                       func(s *buckets.Spec) { s.Tiers = nil },
		"tiers[0].tier":               func(s *buckets.Spec) { s.Tiers[0].Tier = "USD" },
		"tiers[0].quantity":           func(s *buckets.Spec) { s.Tiers[0].Quantity = 0 },
		"tiers[0].price.currency":     func(s *buckets.Spec) { s.Tiers[0].Price.Currency = "EUR" },
		"tiers[0].price.amount":       func(s *buckets.Spec) { s.Tiers[0].Price.Amount = -1 },
		"tiers[1].tier":               func(s *buckets.Spec) { s.Tiers = append(s.Tiers, s.Tiers[0]) },
		"tiers[0].limit_per_customer": func(s *buckets.Spec) { s.Tiers[0].LimitPerCustomer = new(int64(-3)) },
	} {
		spec := gig("gig")
		spoil(&spec)
		_, err := s.Create(context.Background(), "p", field, spec)
		f := fault.As(err)
		if !errors.Is(err, fault.ErrInvalidRequest) || len(f.Fields) == 0 || f.Fields[0].Value != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestStatementsFitTheSchema(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), buckets.Statements, "sql.go")
}
