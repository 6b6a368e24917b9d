package holds_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

// T22: everything held, abandoned, and all of it free again; without a sweeper
// the next buyer gets it, with one it's free before anyone asks.
func TestAbandonedTicketsComeBack(t *testing.T) {
	t.Parallel()
	for _, swept := range []bool{false, true} {
		t.Run(fmt.Sprint("swept ", swept), func(t *testing.T) {
			t.Parallel()
			b := open(t, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 12)}})
			for round := range 5 {
				granted, refused := pgtest.Rush(12, func(i int) error {
					_, err := b.take(fmt.Sprint("c", i), holds.Line{Tier: "ga", Quantity: 1})
					return err
				})
				if granted != 12 {
					t.Fatalf("round %d: %d granted, %v", round, granted, refused)
				}
				b.runOut(t)
				if !swept {
					continue
				}
				if oldest, err := b.Sweep(context.Background()); err != nil || oldest <= 0 {
					t.Fatalf("sweep: %v %v", oldest, err)
				}
				if ga := b.tiers(t)["ga"]; ga.Available != 12 || ga.Held != 0 {
					t.Fatalf("after the sweep: %+v", ga)
				}
			}
		})
	}
}

// T28, T29: holds that have run out, with releases and sweeps at once. Each ends
// once, and the answers agree with what was written; verify counts the endings.
func TestEverythingThatEndsAHoldAtOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	b := openOn(t, db, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 1000)}})
	ctx := context.Background()
	const n = 600 // more than a batch expires
	ids := make([]uuid.UUID, n)
	if granted, refused := pgtest.Rush(n, func(i int) (err error) {
		ids[i], err = b.take(fmt.Sprint("c", i%7), holds.Line{Tier: "ga", Quantity: 1})
		return err
	}); granted != n {
		t.Fatal(refused)
	}
	if _, err := b.owner.Exec(ctx, `UPDATE holds SET expires_at = clock_timestamp()
		WHERE customer <> 'c0'`); err != nil {
		t.Fatal(err)
	}
	answers := make([][2]string, n)
	if done, refused := pgtest.Rush(2*n+4, func(i int) error {
		if i >= 2*n {
			_, err := b.Sweep(ctx)
			return err
		}
		r, err := b.Release(ctx, "tester", fmt.Sprint("release", i), ids[i/2], nil)
		if err != nil {
			return err
		}
		var h holds.Hold
		err = json.Unmarshal(r.Data, &h)
		answers[i/2][i%2] = string(h.Status)
		return err
	}); done != 2*n+4 {
		t.Fatal(refused)
	}
	for i, id := range ids {
		h, err := b.Get(ctx, id)
		if err != nil || answers[i][0] != answers[i][1] || string(h.Status) != answers[i][0] {
			t.Errorf("hold %s is %s, its releases were answered %v: %v", id, h.Status, answers[i], err)
		}
	}
	if ga := b.tiers(t)["ga"]; ga.Available != 1000 || ga.Held != 0 {
		t.Errorf("%+v", ga)
	}
}

func TestADueHoldReadsAsExpiredBeforeItIsWritten(t *testing.T) {
	t.Parallel()
	b := open(t, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 5)}})
	ctx := context.Background()
	id, err := b.take("ann", holds.Line{Tier: "ga", Quantity: 5})
	if err != nil {
		t.Fatal(err)
	}
	b.runOut(t)
	if h, err := b.Get(ctx, id); err != nil || h.Status != holds.Expired {
		t.Errorf("%+v %v", h, err)
	}
	for status, want := range map[holds.Status]int{holds.Held: 0, holds.Expired: 1, "": 1} {
		list, err := b.List(ctx, "gig", holds.Filter{Customer: "ann", Status: status, Limit: 10})
		if err != nil || len(list) != want {
			t.Errorf("status %q: %d holds, %v", status, len(list), err)
		}
	}
	if ga := b.tiers(t)["ga"]; ga.Held != 5 {
		t.Errorf("nothing has asked yet, so nothing is written: %+v", ga)
	}
	for _, id := range []uuid.UUID{uuid.New(), uuid.Nil, ledger.NewID(77, "x"), ledger.NewID(1, "x")} {
		if _, err := b.Get(ctx, id); !errors.Is(err, holds.ErrHoldNotFound) {
			t.Errorf("hold %s: %v", id, err)
		}
		if _, err := b.Release(ctx, "tester", id.String(), id, nil); !errors.Is(err, holds.ErrHoldNotFound) {
			t.Errorf("release of %s: %v", id, err)
		}
	}
}

// More holds have run out than one batch expires: the buyer who comes next is judged
// when all of them have, also one whose own hold was the last of them.
func TestMoreIsDueThanABatchTakes(t *testing.T) {
	t.Parallel()
	const n = 700
	for name, ask := range map[string]func(*box) error{
		"every ticket": func(b *box) error {
			_, err := b.take("buyer", holds.Line{Tier: "ga", Quantity: n})
			return err
		},
		"a customer's limit": func(b *box) error {
			_, err := b.take("last", holds.Line{Tier: "vip", Quantity: 1})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vip := tier("vip", n)
			vip.LimitPerCustomer = new(int64(1))
			b := open(t, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", n), vip}})
			both := []holds.Line{{Tier: "ga", Quantity: 1}, {Tier: "vip", Quantity: 1}}
			if granted, refused := pgtest.Rush(n-1, func(i int) error {
				_, err := b.take(fmt.Sprint("c", i), both...)
				return err
			}); granted != n-1 {
				t.Fatal(refused)
			}
			if _, err := b.take("last", both...); err != nil {
				t.Fatal(err)
			}
			b.runOut(t)
			if err := ask(b); err != nil {
				t.Error(err)
			}
		})
	}
}

// A journal whose lock hangs keeps no other from being swept, and the alarm sees it.
func TestAHungJournalStopsNoOther(t *testing.T) {
	t.Parallel()
	b := open(t, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 10)}})
	ctx := context.Background()
	second := buckets.Spec{Event: "second", Name: "Gig", Currency: "USD", HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 10)}}
	if _, err := b.events.Create(ctx, "tester", "second", second); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"gig", "second"} {
		request := holds.Request{Customer: "c", Items: []holds.Line{{Tier: "ga", Quantity: 1}}}
		if _, err := b.Place(ctx, "tester", "k", event, request); err != nil {
			t.Fatal(err)
		}
	}
	b.runOut(t)
	tx, err := b.owner.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT FROM journals WHERE journal_id = 1 FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	pgtest.Until(t, "the other event is swept", func() bool { // in one round, if there's time enough for it
		if oldest, err := b.Sweep(ctx); err == nil || oldest <= 0 {
			t.Fatalf("the sweep says %v, %v", oldest, err)
		}
		a, err := b.events.Availability(ctx, "second")
		if err != nil {
			t.Fatal(err)
		}
		return a.Tiers[0].Held == 0
	})
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
}
