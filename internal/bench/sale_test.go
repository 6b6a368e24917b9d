package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/sale"
)

// smallSale is a run that takes a second or two.
func smallSale(t *testing.T, databaseURL string) Sale {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := DefaultSale()
	s.DatabaseURL = databaseURL
	s.Clients, s.Readers, s.Duration, s.Authorize = 8, 2, minDuration, 5*time.Millisecond
	s.Server = []string{program, asServer}
	s.Stderr = t.Output()
	return s
}

func TestSaleMeasuresPurchases(t *testing.T) {
	s := smallSale(t, pgtest.New(t).URL())
	s.Purchases, s.PerHold = 100, 2
	report, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"purchases_per_s", "hold_p99_ms", "checkout_p50_ms", "checkout_p95_ms", "checkout_p99_ms",
		"checkout_p99_beyond_provider_ms", "complete_p50_ms", "complete_p99_ms", "status_p99_ms",
		"wal_bytes_per_purchase", "batch_mean", "webhooks", "captured", "report_lines", "verify_seconds"} {
		if n, ok := fields[name].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	for _, name := range []string{"declined", "cancelled", "unsettled", "double_charges", "lost_payments", "oversold", "unexplained_lines", "errors"} {
		if fields[name] != 0.0 {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	// hold.placed, order.created, order.confirmed, order.captured; a webhook's own entry
	// where it says nothing new.
	if n := report.EntriesPerPurchase; n < 4 || n > 6.5 {
		t.Errorf("%v entries a purchase", n)
	}
	if report.Purchases != 100 || report.Captured < 100 || report.CheckoutP50 < 5 || report.BeyondP50 > report.CheckoutP50-4.9 {
		t.Errorf("%s", text)
	}
}

func TestSaleWithFaultsInAnOpenLoop(t *testing.T) {
	s := smallSale(t, "")
	s.Faults, s.Rate, s.Duration, s.Quantity, s.Clients = 0.3, 100, 2*time.Second, 70, 200
	s.Settle = 2 * time.Second // what takes longer is left without outcome
	var phases []string
	s.Progress = func(p SaleProgress) {
		if !slices.Contains(phases, p.Phase) {
			phases = append(phases, p.Phase)
		}
	}
	var report SaleReport
	// If the machine stood still, there may have been too few buyers, who give tickets back too,
	// or nothing left to settle.
	pgtest.Until(t, "there are buyers enough, and what's left is waited for", func() bool {
		s.DatabaseURL, phases = pgtest.New(t).URL(), nil
		var err error
		if report, err = s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := report.Err(); err != nil {
			t.Error(err)
		}
		return report.Dropped != nil && 200-*report.Dropped > 2*s.Quantity && len(phases) > 1
	})
	if report.Captured == 0 || report.Declined == 0 || report.Dropped == nil || report.Refused["sold_out"]+report.Refused["temporarily_held"] == 0 {
		t.Errorf("something didn't happen: %+v", report)
	}
	if fmt.Sprint(phases) != "[selling settling]" {
		t.Errorf("phases %v", phases)
	}
}

func TestSaleValidateNamesTheFlag(t *testing.T) {
	for flag, change := range map[string]func(*Sale){
		"--clients":      func(s *Sale) { s.Clients = 0 },
		"--readers":      func(s *Sale) { s.Readers = -1 },
		"--duration":     func(s *Sale) { s.Duration = time.Millisecond },
		"--purchases":    func(s *Sale) { s.Purchases = -1 },
		"--rate":         func(s *Sale) { s.Rate = maxRate + 1 },
		"--quantity":     func(s *Sale) { s.Quantity = 0 },
		"--per-hold":     func(s *Sale) { s.PerHold = 0 },
		"--authorize-ms": func(s *Sale) { s.Authorize = -1 },
		"--faults":       func(s *Sale) { s.Faults = 1.1 },
		"--settle":       func(s *Sale) { s.Settle = -1 },
	} {
		s := DefaultSale()
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&s)
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}

func TestSaleReportNamesWhatIsWrong(t *testing.T) {
	for says, change := range map[string]func(*SaleReport){
		"an invariant":           func(r *SaleReport) { r.Verified = false },
		"2 orders were charged":  func(r *SaleReport) { r.DoubleCharges = 2 },
		"3 payments were taken":  func(r *SaleReport) { r.LostPayments = 3 },
		"4 tickets too many":     func(r *SaleReport) { r.Oversold = 4 },
		"5 lines":                func(r *SaleReport) { r.UnexplainedLines = 5 },
		"6 requests failed":      func(r *SaleReport) { r.Errors = 6 },
		"7 orders have no outco": func(r *SaleReport) { r.Unsettled = 7 },
	} {
		r := SaleReport{Verified: true}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		change(&r)
		if err := r.Err(); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
	if err := (&SaleReport{Verified: true, Unsettled: 1, Faults: 0.1, UnexplainedLines: 1, unsettledLines: 1}).Err(); err != nil {
		t.Errorf("faults may leave outcomes unknown: %v", err)
	}
}

func TestSaleReportTakesWhatWasMeasured(t *testing.T) {
	to := newSaleRecorders()
	for range 10 {
		to.end(outcomeCaptured, 40*time.Millisecond)
	}
	to.end(outcomeDeclined, time.Second)
	to.end("sold_out", time.Second)
	to.ends.Failed("broken")
	var r SaleReport
	r.take(to, load.Pace{Took: 2 * time.Second})
	if r.Purchases != 10 || r.PurchasesPerS != 5 || r.CompleteP99 > 41 || r.Errors != 1 || len(r.Refused) != 1 || r.Refused["sold_out"] != 1 {
		t.Errorf("%+v", r)
	}
}

func TestRecentOrders(t *testing.T) {
	var r recent
	chance := rand.New(rand.NewPCG(1, 1))
	if id := r.pick(chance); id != "" {
		t.Errorf("there's no order yet, and it picks %q", id)
	}
	for n := range recentOrders + 10 {
		r.add(fmt.Sprint(n))
	}
	seen := map[string]bool{}
	for range 20 * recentOrders {
		seen[r.pick(chance)] = true
	}
	if len(seen) != recentOrders || seen["9"] || !seen["10"] || !seen[fmt.Sprint(recentOrders+9)] {
		t.Errorf("%d orders seen", len(seen))
	}
}

func TestUnsettled(t *testing.T) {
	open := []sale.Operation{{Kind: "authorize", Status: "unknown"}}
	for name, c := range map[string]struct {
		order sale.Order
		want  bool
	}{
		"captured":          {sale.Order{Status: "captured"}, false},
		"confirmed":         {sale.Order{Status: "confirmed"}, true},
		"declined":          {sale.Order{Status: "pending", PaymentStatus: "declined"}, false},
		"unknown":           {sale.Order{Status: "pending", PaymentStatus: "unknown", Operations: open}, true},
		"cancelled":         {sale.Order{Status: "cancelled"}, false},
		"cancelled, a void": {sale.Order{Status: "cancelled", Operations: open}, true},
		"case for a person": {sale.Order{Status: "cancelled", Reconciling: true}, false},
	} {
		if got := unsettled(&c.order); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
