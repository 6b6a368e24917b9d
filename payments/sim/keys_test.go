package sim

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierledger/tierledger/payments"
)

func TestKeys(t *testing.T) {
	w := newWorld(t, Options{})
	ctx := t.Context()
	a := payments.Authorization{Operation: w.operation(), Amount: usd106, Method: "sim_requires_action", Metadata: map[string]string{"order": "7"}}
	first, err := w.Authorize(ctx, a)
	w.is(first, err, payments.RequiresAction, "")
	if got := w.bank(first.Payment.Reference, "complete", ""); got != "ok" {
		t.Fatal(got)
	}
	// A repeat gets the first answer, not today's state.
	w.pass(24*time.Hour - time.Second)
	repeat, err := w.Authorize(ctx, a)
	w.is(repeat, err, payments.RequiresAction, "")
	if repeat.Payment != first.Payment {
		t.Errorf("%+v, want %+v", repeat.Payment, first.Payment)
	}
	// P13: one field of the metadata differs.
	b := a
	b.Metadata = map[string]string{"order": "8"}
	r, err := w.Authorize(ctx, b)
	if r.Outcome != payments.Unknown || r.Reason != "idempotency_mismatch" || err == nil {
		t.Errorf("%+v, %v", r, err)
	}
	w.is(w.lookup(a.Operation), nil, payments.Succeeded, "")

	// A key is forgotten after 24 h: the same call is a new one, and makes a second
	// payment. Whoever repeats so late finds both, and can't say which is meant.
	w.pass(time.Second)
	second, err := w.Authorize(ctx, a)
	if w.is(second, err, payments.RequiresAction, ""); second.Payment.Reference == first.Payment.Reference {
		t.Error("the key was remembered")
	}
	if _, err := w.Lookup(ctx, a.Operation); !errors.Is(err, payments.ErrUnknownOutcome) {
		t.Errorf("lookup: %v", err)
	}
	if _, text := w.send("GET", "/payments?reference="+a.Operation.String(), "", ""); strings.Count(text, `"id":"pay_`) != 2 {
		t.Error(text)
	}
}

func TestLookupLag(t *testing.T) {
	w := newWorld(t, Options{})
	w.control(`{"lookup_lag_ms": 5000, "clock_offset_ms": 60000}`)
	a := w.authorize("sim_ok")
	f, err := w.Lookup(t.Context(), a.Operation)
	if err != nil || f.Found || !f.AsOf.Equal(testStart.Add(time.Minute)) {
		t.Errorf("right after: %+v, %v", f, err)
	}
	w.pass(5 * time.Second)
	w.is(w.lookup(a.Operation), nil, payments.Succeeded, "")
}

// TestSameKeyAtOnce: cases T49 and P7. However many submits come at the same instant,
// there's one payment.
func TestSameKeyAtOnce(t *testing.T) {
	w := newWorld(t, Options{})
	a := payments.Authorization{Operation: w.operation(), Amount: usd106, Method: "sim_ok"}
	results := make([]payments.Result, 16)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			r, err := w.Authorize(t.Context(), a)
			if err != nil {
				t.Error(err)
			}
			results[i] = r
		})
	}
	all.Wait()
	for _, r := range results {
		if r != results[0] || r.Payment.Reference != "pay_00000001" {
			t.Errorf("%+v", r)
		}
	}
}
