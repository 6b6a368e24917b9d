package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/seats"
)

// The baseline is worth comparing with only if it's right: it's put under the load of the
// benchmark, with holds that run out, and then keeps every invariant of the ledger within
// its journal, but for the form of the hash.
func TestSeatLockIsRight(t *testing.T) {
	db := pgtest.New(t)
	b := newSeatLock(t, db.URL(), minSeats, 2)
	sweeping, stop := context.WithCancel(t.Context())
	wait := b.sweep(sweeping)
	web := httptest.NewServer(b)
	defer web.Close()
	s := DefaultSeats()
	s.Clients, s.Customers = 8, 50
	o := &office{
		Seats: &s, event: b.event, house: newHouse(minSeats, true), server: stagedServer(web.URL), answered: moments{started: time.Now()},
	}
	for range s.Clients {
		c, err := load.NewClient(web.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		o.server.clients = append(o.server.clients, c)
	}
	o.server.bodies = make([][]byte, s.Clients)
	missing := []string{outcomeHeld, "seat_unavailable", "temporarily_held"}
	pgtest.Until(t, "seats are held, and refused for both reasons", func() bool { // on a slow machine not at once
		m, err := o.load(t.Context(), "seat-lock", fmt.Sprint("run-", len(o.book.claims)), load.Bound{For: 2500 * time.Millisecond}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if m.doubled != 0 || m.failed() != 0 {
			t.Fatalf("%d seats twice, %q", m.doubled, m.failures())
		}
		missing = slices.DeleteFunc(missing, func(outcome string) bool { return m.recorder.Count(outcome) > 0 })
		return len(missing) == 0
	})
	stop()
	wait()
	wantInvariants(t, db)
}

func TestSeatLockRefusesWhatTheProductRefuses(t *testing.T) {
	b := newSeatLock(t, pgtest.New(t).URL(), 100, 300)
	const good = `{"customer":"c","items":[{"seats":["S01-1-2","S01-1-1"]}]}`
	const best = `{"customer":"c","items":[{"best_available":{"quantity":%d,"section":"S02"%s}}]}`
	for _, x := range []struct {
		key, body string
		status    int
	}{
		{"k", good, 201},
		{"k", good, 201},
		{"k", strings.Replace(good, "1-2", "1-3", 1), 422},
		{"l", good, 409},
		{"l", `{"customer":"c","items":[{"seats":["S09-1-1"]}]}`, 409},
		{"l", `{"customer":"c","items":[{"seats":[]}]}`, 400},
		{"l", fmt.Sprintf(best, 7, ""), 400},
		{"m", fmt.Sprintf(best, 6, ""), 201},
		{"n", fmt.Sprintf(best, 6, ""), 201},
		{"o", fmt.Sprintf(best, 6, ""), 201},
		{"p", fmt.Sprintf(best, 6, ""), 201},
		{"q", fmt.Sprintf(best, 6, ""), 201},
		{"r", fmt.Sprintf(best, 6, ""), 201},
		{"s", fmt.Sprintf(best, 6, ""), 201},
		{"t", fmt.Sprintf(best, 6, ""), 201}, // 1 is left of either row
		{"u", fmt.Sprintf(best, 2, ""), 409},
		{"u", fmt.Sprintf(best, 2, `,"accept_split":true`), 201},
		{"v", fmt.Sprintf(best, 1, ""), 409},
	} {
		r := httptest.NewRequest("POST", "/v1/events/"+b.event+"/holds", strings.NewReader(x.body))
		r.Header.Set("Idempotency-Key", x.key)
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		if w.Code != x.status {
			t.Errorf("%s %s: %d %s", x.key, x.body, w.Code, w.Body)
		}
	}
}

func TestDoubleHoldsAreFound(t *testing.T) {
	b := newSeatLock(t, pgtest.New(t).URL(), 100, 300)
	db := &database{pool: b.pool} // its sessions see the clones
	r := httptest.NewRequest("POST", "/v1/events/"+b.event+"/holds",
		strings.NewReader(`{"customer":"c","items":[{"seats":["S01-1-1","S01-1-2"]}]}`))
	r.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	if n, err := db.doubleHolds(t.Context()); n != 0 || err != nil || w.Code != 201 {
		t.Fatalf("%d: %d seats, %v", w.Code, n, err)
	}
	const again = `
INSERT INTO holds (journal_id, hold_id, customer, status, created_at, expires_at, items, total, version)
SELECT journal_id, gen_random_uuid(), customer, $1, created_at, expires_at, items, total, version
FROM holds
WHERE status = 'held'
LIMIT 1`
	for _, x := range []struct {
		status string
		want   int64
	}{{"expired", 0}, {"held", 2}, {"confirmed", 4}} {
		if _, err := b.pool.Exec(t.Context(), again, x.status); err != nil {
			t.Fatal(err)
		}
		if n, err := db.doubleHolds(t.Context()); n != x.want || err != nil {
			t.Errorf("another that's %s: %d seats, want %d, %v", x.status, n, x.want, err)
		}
	}
}

// newSeatLock makes an event with seats, the clones and the baseline on them.
func newSeatLock(t *testing.T, databaseURL string, size, holdSeconds int) *baseline {
	t.Helper()
	ctx := t.Context()
	e, err := openEngine(ctx, databaseURL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	event := eventPrefix + "test"
	price := buckets.Money{Amount: 5000, Currency: "USD"}
	err = e.create(ctx, buckets.Spec{
		Event: event, Name: "Seats", Currency: "USD", HoldSeconds: holdSeconds,
		Tiers: []buckets.TierSpec{{Tier: frontTier, Seated: true, Price: price}, {Tier: backTier, Seated: true, Price: price}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var chart seats.Chart
	if err := json.Unmarshal(newHouse(size, true).chart, &chart); err != nil {
		t.Fatal(err)
	}
	if _, err := e.service.Seats.Load(ctx, principal, "chart", event, chart); err != nil {
		t.Fatal(err)
	}
	bench, err := openDatabase(ctx, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer bench.pool.Close() // the clones stay
	if err := bench.clone(ctx, event, clonedSeats...); err != nil {
		t.Fatal(err)
	}
	b, err := openBaseline(ctx, SeatLock, databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.pool.Close)
	return b
}
