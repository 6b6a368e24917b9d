package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pgtest"
)

func TestHotTierMeasuresEverySystem(t *testing.T) {
	db := pgtest.New(t)
	h := small(t, db.URL())
	h.Holds, h.Customers, h.Limit, h.PerHold = 400, 50, 1000, 2
	h.Baseline, h.Floor, h.SoldOut = true, true, true
	report, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	var names []string
	for _, s := range report.Systems {
		names = append(names, s.System)
	}
	if got := strings.Join(names, ", "); got != "sold out, product, row-lock, single-statement, floor" {
		t.Errorf("systems %s", got)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"holds_per_s", "refused_per_s", "p50_ms", "p95_ms", "p99_ms", "batch_mean",
		"wal_bytes_per_hold", "ratio_to_baseline", "ratio_to_single_statement",
		"ratio_to_floor", "throughput_start", "throughput_end", "start_seconds", "verify_seconds"} {
		if n, ok := fields[name].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	// An entry, two postings and a hold; a share in the journal's and the accounts' rows.
	if r := report.RowsPerHold; r < 4.1 || r > 9 {
		t.Errorf("%v rows a hold", r)
	}
	if report.Holds != 400 || fields["errors"] != 0.0 || fields["wal_bytes_per_refusal"] == nil {
		t.Errorf("%s", text)
	}
	wantNoSchema(t, db)
}

func TestEngineInAnOpenLoop(t *testing.T) {
	h := small(t, pgtest.New(t).URL())
	h.Engine, h.Rate = true, 200
	var told []Progress
	h.Duration = progressEvery + 250*time.Millisecond
	h.Progress = func(p Progress) { told = append(told, p) }
	report, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := report.Holds + *report.Dropped; report.Err() != nil || n != 150 || report.Mode != "engine" {
		t.Errorf("%d held or dropped, %v: %+v", n, report.Err(), report)
	}
	if len(told) == 0 || told[0].System != "engine" || told[len(told)-1].Held == 0 {
		t.Errorf("progress %+v", told)
	}
}

func TestLimitAndQuantityAreRefusals(t *testing.T) {
	h := small(t, pgtest.New(t).URL())
	h.Customers, h.Limit, h.Quantity, h.Holds = 5, 2, 1000, 100
	report, err := h.Run(t.Context())
	if err != nil || report.Err() != nil {
		t.Fatal(err, report.Err())
	}
	// Five customers may have two each, the warm-up's included.
	if report.Holds > 5*2 || report.RefusedPerS == 0 || report.Errors != 0 {
		t.Errorf("%+v", report)
	}
}

func TestDatabaseOfOthersIsRefused(t *testing.T) {
	db := pgtest.New(t)
	e, err := openEngine(t.Context(), db.URL(), "")
	if err != nil {
		t.Fatal(err)
	}
	err = e.create(t.Context(), (&run{HotTier: DefaultHotTier(), name: "arena"}).spec("2027", 10))
	if err := errors.Join(err, e.close()); err != nil {
		t.Fatal(err)
	}
	_, err = small(t, db.URL()).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), `"arena-2027"`) {
		t.Errorf("got %v", err)
	}
}

func TestServerThatEndsIsSaid(t *testing.T) {
	h := small(t, pgtest.New(t).URL())
	h.Server = append(h.Server, "--system", "none") // the first one counts here
	_, err := h.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "start product: it ended before it served") {
		t.Errorf("got %v", err)
	}
}

func TestRunEndsWithContext(t *testing.T) {
	db := pgtest.New(t)
	h := small(t, db.URL())
	h.Duration = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	h.Progress = func(Progress) { cancel() }
	if _, err := h.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantNoSchema(t, db)
}

// wantNoSchema fails when a run left its clones behind.
func wantNoSchema(t *testing.T, db *pgtest.DB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var left bool
	if err := conn.QueryRow(t.Context(), `SELECT to_regnamespace($1) IS NOT NULL`, schema).Scan(&left); err != nil || left {
		t.Errorf("schema left: %t, %v", left, err)
	}
}

// broken is a system that fails, every time or after some holds.
type broken struct{ after int64 }

func (b *broken) create(context.Context, buckets.Spec) error { return nil }
func (b *broken) peakMB() float64                            { return 0 }
func (b *broken) close() error                               { return nil }

func (b *broken) place(context.Context, int, ask) (string, error) {
	if b.after--; b.after >= 0 {
		return outcomeHeld, nil
	}
	return "", errBroken
}

func TestFailuresEndAMeasurement(t *testing.T) {
	h := DefaultHotTier()
	h.Clients, h.Duration = 1, time.Hour
	r := &run{HotTier: h}
	m := r.measure(t.Context(), &broken{after: 10}, "product", hotEvent)
	report := Report{Verified: true}
	report.take(m)
	if report.Holds != 10 || report.Errors != maxFailed {
		t.Errorf("%+v", report)
	}
	if err := report.Err(); err == nil || err.Error() != fmt.Sprintf("%d requests failed: %[1]d x broken", maxFailed) {
		t.Errorf("got %v", err)
	}
}

func TestViolationsFailAReport(t *testing.T) {
	r := Report{Violations: []string{"balances: journal 1"}}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "journal 1") {
		t.Errorf("got %v", err)
	}
}

func TestAsksAreRepeatable(t *testing.T) {
	r := &run{HotTier: HotTier{Customers: 10, PerHold: 1, Seed: 7}, name: "bench-x"}
	seen := make(map[string]bool)
	for n := range int64(200) {
		a := r.ask(hotEvent, "run", n)
		if a != r.ask(hotEvent, "run", n) || seen[a.key] {
			t.Fatalf("ask %d: %+v", n, a)
		}
		seen[a.key], seen[a.customer] = true, true
	}
	if len(seen) != 210 {
		t.Errorf("%d keys and customers, want 210", len(seen))
	}
}

func TestValidateNamesTheFlag(t *testing.T) {
	for flag, change := range map[string]func(*HotTier){
		"--clients":   func(h *HotTier) { h.Clients = 0 },
		"--duration":  func(h *HotTier) { h.Duration = time.Millisecond },
		"--holds":     func(h *HotTier) { h.Holds = -1 },
		"--rate":      func(h *HotTier) { h.Rate = maxRate + 1 },
		"--quantity":  func(h *HotTier) { h.Quantity = -1 },
		"--customers": func(h *HotTier) { h.Customers = -1 },
		"--limit":     func(h *HotTier) { h.Limit = -1 },
		"--per-hold":  func(h *HotTier) { h.PerHold = 0 },
		"--engine":    func(h *HotTier) { h.Engine, h.Baseline = true, true },
	} {
		h := DefaultHotTier()
		if err := h.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&h)
		if err := h.Validate(); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}

func TestPeakMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the system doesn't tell")
	}
	if mb := peakMB("self"); mb < 1 {
		t.Errorf("%v MB", mb)
	}
	if mb := peakMB("0"); mb != 0 {
		t.Errorf("no process has %v MB", mb)
	}
}
