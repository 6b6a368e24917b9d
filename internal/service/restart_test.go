package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
)

// tries are what somebody does again and again while the database goes away and comes back:
// every command under its key until it's answered.
type tries struct {
	mu      sync.Mutex
	answers map[string]ledger.Receipt
	repeats map[string]func() (ledger.Receipt, error)
	wrong   []string
}

// do does a command until it's done; false when it's refused for a reason that doesn't pass.
func (a *tries) do(key string, command func() (ledger.Receipt, error)) (ledger.Receipt, bool) {
	for {
		r, err := command()
		if passes(err) {
			continue
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if err != nil {
			a.wrong = append(a.wrong, fmt.Sprint(key, ": ", err))
			return r, false
		}
		a.answers[key], a.repeats[key] = r, command
		return r, true
	}
}

func (a *tries) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.answers)
}

// passes tells whether an error says that the command is to be repeated.
func passes(err error) bool {
	for _, def := range []error{pg.ErrUnavailable, ledger.ErrOutcomeUnknown, ledger.ErrOverloaded, buckets.ErrLaneChanging} {
		if errors.Is(err, def) {
			return true
		}
	}
	return false
}

// buy takes up to 12 tickets and gives them back, again and again, and then keeps what it
// has.
func (a *tries) buy(s *service.Service, name string, stop context.Context) {
	ctx := context.Background()
	luck := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[len(name)-1])))
	for n := 0; ; n++ {
		key := fmt.Sprint(name, " ", n)
		request := holds.Request{Customer: name, Items: []holds.Line{{Tier: "ga", Quantity: ledger.Amount(1 + luck.IntN(12))}}}
		placed, ok := a.do(key, func() (ledger.Receipt, error) { return s.Holds.Place(ctx, "shop", key, "gig", request) })
		if !ok || stop.Err() != nil {
			return
		}
		var h holds.Hold
		if err := json.Unmarshal(placed.Data, &h); err != nil {
			panic(err) // a hold's receipt has the hold
		}
		if _, ok = a.do(key+" back", func() (ledger.Receipt, error) {
			return s.Holds.Release(ctx, "shop", key+" back", h.ID, nil)
		}); !ok {
			return
		}
	}
}

// PostgreSQL dies and comes back while an event is split and merged and its lanes get tickets
// from each other: whoever asks again gets what was asked for, all moves end, and nobody is
// told that it's sold out, as there's always enough for all.
func TestPostgresDiesDuringASplitAndPulls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.Private(t, nil)
	c := config(db)
	c.SweepEvery = 50 * time.Millisecond
	s, err := service.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Events.Create(ctx, "op", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD",
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 100, Price: buckets.Money{Amount: 1, Currency: "USD"}}}}); err != nil {
		t.Fatal(err)
	}
	a := &tries{answers: make(map[string]ledger.Receipt), repeats: make(map[string]func() (ledger.Receipt, error))}
	selling, stop := context.WithCancel(ctx)
	var people sync.WaitGroup
	for i := range 8 {
		people.Go(func() { a.buy(s, fmt.Sprint("c", i), selling) })
	}
	people.Go(func() {
		for n := 0; selling.Err() == nil; n++ {
			key := fmt.Sprint("split ", n)
			a.do(key, func() (ledger.Receipt, error) {
				return s.Quotas.Split(ctx, "op", key, "gig", []int{4, 2, 3, 1}[n%4], "a test", nil, false)
			})
		}
	})
	for n := range 4 {
		pgtest.Until(t, "answers", func() bool { return a.count() >= 60*n })
		awaitNumber(t, db, "tickets under way", `SELECT (coalesce(sum(balance), 0) > 0)::integer FROM accounts WHERE code LIKE 'transit%'`, 1)
		if err := db.Server().Kill(); err != nil {
			t.Fatal(err)
		}
		if err := db.Server().Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	pgtest.Until(t, "answers", func() bool { return a.count() >= 240 })
	stop()
	people.Wait()
	for _, w := range a.wrong {
		t.Errorf("refused: %s", w)
	}
	awaitNumber(t, db, "the end of all moves", `SELECT count(*) FROM quota_moves m WHERE status = 'moved' AND to_journal <> journal_id
		AND NOT EXISTS (SELECT FROM quota_arrivals a WHERE a.journal_id = m.to_journal AND a.move_id = m.move_id)`, 0)
	awaitNumber(t, db, "one layout", `SELECT count(DISTINCT generation) FROM lanes`, 1)
	for key, repeat := range a.repeats {
		first := a.answers[key]
		again, err := repeat()
		for passes(err) {
			again, err = repeat()
		}
		if err != nil || !again.Replayed || string(again.Data) != string(first.Data) {
			t.Errorf("%s: first %s, then %s (%v)", key, first.Data, again.Data, err)
		}
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// awaitNumber waits until a query gives a number.
func awaitNumber(t *testing.T, db *pgtest.DB, what, sql string, want int) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	pgtest.Until(t, what, func() bool {
		var n int
		err := conn.QueryRow(ctx, sql).Scan(&n)
		return err == nil && n == want
	})
}
