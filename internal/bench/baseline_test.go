package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/verify"
)

// The baselines are worth comparing with only if they do it right: they are put
// under load, with repeats of keys, limits and too few tickets, and then keep
// every invariant of the ledger within their journal, but for the form of the hash.
func TestBaselinesAreRight(t *testing.T) {
	for _, system := range []System{RowLock, SingleStatement} {
		t.Run(string(system), func(t *testing.T) {
			db := pgtest.New(t)
			b := newBaseline(t, db, system, 140, 3)
			const clients, customers = 8, 60
			var held, replayed, limited, soldOut atomic.Int64
			server := httptest.NewServer(b)
			defer server.Close()
			connections := make([]*load.Client, clients)
			for i := range connections {
				c, err := load.NewClient(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				connections[i] = c
			}
			load.Closed(t.Context(), clients, load.Bound{Turns: 600}, func(client int, n int64) {
				request := n / 2 // every key is used twice, about at once
				body := fmt.Appendf(nil, `{"customer":"c-%d","items":[{"tier":"ga","quantity":%d}]}`, request%customers, 1+request%2)
				a, err := connections[client].Do(t.Context(), "POST", "/v1/events/"+b.event+"/holds", fmt.Sprintf("k-%d", request), body)
				switch {
				case err != nil:
					t.Error(err)
				case a.Status == http.StatusCreated && a.Replayed():
					replayed.Add(1)
				case a.Status == http.StatusCreated:
					held.Add(1 + request%2)
				case a.Code() == "limit_exceeded":
					limited.Add(1)
				case a.Code() == "sold_out":
					soldOut.Add(1)
				default:
					t.Errorf("%d: %s", a.Status, a.Body)
				}
			})
			if held.Load() != 140 || replayed.Load() == 0 || limited.Load() == 0 || soldOut.Load() == 0 {
				t.Errorf("held %d, replayed %d, over the limit %d, sold out %d",
					held.Load(), replayed.Load(), limited.Load(), soldOut.Load())
			}
			wantInvariants(t, db)
		})
	}
}

func TestBaselineRefusesWhatTheProductRefuses(t *testing.T) {
	b := newBaseline(t, pgtest.New(t), RowLock, 10, 0)
	const good = `{"customer":"c","items":[{"tier":"ga","quantity":1}]}`
	for _, x := range []struct {
		key, body string
		status    int
	}{
		{"k", good, 201},
		{"k", good, 201},
		{"k", `{"customer":"d","items":[{"tier":"ga","quantity":1}]}`, 422},
		{"", good, 400},
		{"l", good + good, 400},
		{"l", `{"customer":"c","items":[]}`, 400},
		{"l", `{"customer":"c","items":[{"tier":"ga","quantity":0}]}`, 400},
		{"l", `{"customer":"c","items":[{"tier":"vip","quantity":1}]}`, 404},
		{"l", `{"customer":"c","items":[],"more":1}`, 400},
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

// newBaseline makes an event, the clones and a baseline on them.
func newBaseline(t *testing.T, db *pgtest.DB, system System, quantity, limit int64) *baseline {
	t.Helper()
	ctx := t.Context()
	e, err := openEngine(ctx, db.URL(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	h := DefaultHotTier()
	h.Limit = limit
	r := &run{HotTier: h, name: eventPrefix + "test"}
	if err := e.create(ctx, r.spec(blankEvent, quantity)); err != nil {
		t.Fatal(err)
	}
	bench, err := openDatabase(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer bench.pool.Close() // the clones stay
	if err := bench.clone(ctx, r.event(blankEvent)); err != nil {
		t.Fatal(err)
	}
	b, err := openBaseline(ctx, system, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.pool.Close)
	return b
}

// wantInvariants verifies the clones as if they were the ledger.
func wantInvariants(t *testing.T, db *pgtest.DB) {
	t.Helper()
	var known int
	_, err := verify.Run(t.Context(), db.URL()+"&search_path="+schema+",public", verify.Options{Report: func(r verify.Result) {
		switch {
		case r.Check == "hash_chain":
			known++
		case r.Check == "events_listed": // the system journal isn't cloned
		case r.Count > 0:
			t.Errorf("%s: %q", r.Check, r.Violations)
		}
	}})
	if err != nil || known != 1 {
		t.Errorf("verify: %v, hash chain checked %d times", err, known)
	}
}
