package sim

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/payments"
)

func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "provider.jsonl")
	w := newWorld(t, Options{File: path})
	a := payments.Authorization{Operation: w.operation(), Amount: usd106, Method: "sim_ok"}
	first, err := w.Authorize(t.Context(), a)
	w.is(first, err, payments.Succeeded, "")
	c := w.step(first.Payment.Reference, 10600)
	r, err := w.Capture(t.Context(), c)
	w.is(r, err, payments.Succeeded, "")
	w.received()
	if err := w.sim.Close(); err != nil {
		t.Fatal(err)
	}
	if resp, _ := w.send("GET", "/control", "", ""); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("closed, and answers %d", resp.StatusCode)
	}
	// A line that a crash cut short was never answered.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"at":"2026-11-30T12:00:00Z","paym` + strings.Repeat("e", 5000)); err != nil {
		t.Fatal(err)
	}
	f.Close()

	w.start()
	again, err := w.Authorize(t.Context(), a)
	w.is(again, err, payments.Succeeded, "")
	if again.Payment != first.Payment {
		t.Errorf("%+v, want %+v", again.Payment, first.Payment)
	}
	w.is(w.lookup(c.Operation), nil, payments.Succeeded, "")
	if next := w.authorize("sim_ok"); next.Payment.Reference == first.Payment.Reference {
		t.Error("an id was used twice")
	}
	w.received()
	if err := w.sim.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 3 || !strings.HasSuffix(string(text), "}\n") {
		t.Errorf("the file isn't three changes: %s, %v", text, err)
	}
	w.start()

	if err := os.WriteFile(path, []byte("{}x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{File: path}); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestFileFails: what can't be written hasn't happened, and isn't said to have.
func TestFileFails(t *testing.T) {
	w := newWorld(t, Options{File: filepath.Join(t.TempDir(), "provider.jsonl")})
	good := w.sim.file.f
	broken, err := os.Open(os.DevNull) // not for writing
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	w.sim.file.f = broken
	a := payments.Authorization{Operation: w.operation(), Amount: usd106, Method: "sim_ok"}
	r, err := w.Authorize(t.Context(), a)
	if r.Outcome != payments.Unknown || !errors.Is(err, payments.ErrUnknownOutcome) {
		t.Errorf("%+v, %v", r, err)
	}
	if f, err := w.Lookup(t.Context(), a.Operation); err != nil || f.Found {
		t.Errorf("%+v, %v", f, err)
	}
	w.sim.file.f = good
	r, err = w.Authorize(t.Context(), a)
	w.is(r, err, payments.Succeeded, "")

	if _, err := New(Options{File: t.TempDir()}); err == nil {
		t.Error("a folder served as file")
	}
}
