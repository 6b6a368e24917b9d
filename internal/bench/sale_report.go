package bench

import (
	"fmt"
	"strings"

	"github.com/tierledger/tierledger/internal/load"
)

// SaleReport is the outcome of a sale, and its JSON. The warm-up counts nowhere but in
// the provider's report.
type SaleReport struct {
	Bench       string  `json:"bench"`
	Clients     int     `json:"clients"`
	Readers     int     `json:"readers"`
	Rate        float64 `json:"rate,omitempty"` // of an open loop
	Faults      float64 `json:"faults"`
	AuthorizeMS float64 `json:"authorize_ms"` // of the provider
	CPUs        int     `json:"cpus"`
	PostgreSQL  string  `json:"postgresql"`
	Fsync       string  `json:"fsync"`

	DurationSeconds float64 `json:"duration_seconds"`
	Purchases       int64   `json:"purchases"` // seen to be captured while it was measured
	PurchasesPerS   float64 `json:"purchases_per_s"`
	HoldP50         float64 `json:"hold_p50_ms"`
	HoldP99         float64 `json:"hold_p99_ms"`
	CheckoutP50     float64 `json:"checkout_p50_ms"` // until the first answer, the provider's time included
	CheckoutP95     float64 `json:"checkout_p95_ms"`
	CheckoutP99     float64 `json:"checkout_p99_ms"`
	BeyondP50       float64 `json:"checkout_p50_beyond_provider_ms"` // less the provider's own time
	BeyondP95       float64 `json:"checkout_p95_beyond_provider_ms"`
	BeyondP99       float64 `json:"checkout_p99_beyond_provider_ms"`
	CompleteP50     float64 `json:"complete_p50_ms"` // from the hold until the money was seen to be captured
	CompleteP99     float64 `json:"complete_p99_ms"`
	StatusP50       float64 `json:"status_p50_ms"`
	StatusP99       float64 `json:"status_p99_ms"`
	StatusPerS      float64 `json:"status_per_s"`
	Errors          int64   `json:"errors"`
	Late            *int64  `json:"late,omitempty"`    // purchases that began over 5 ms behind their time
	Dropped         *int64  `json:"dropped,omitempty"` // purchases that never began

	EntriesPerPurchase  float64 `json:"entries_per_purchase"`
	WALBytesPerPurchase float64 `json:"wal_bytes_per_purchase"`
	BatchMean           float64 `json:"batch_mean"` // entries a database transaction
	RSSMB               float64 `json:"rss_mb,omitempty"`

	SettleSeconds    float64          `json:"settle_seconds"` // until every outcome was known
	Captured         int64            `json:"captured"`       // orders
	Declined         int64            `json:"declined"`
	Cancelled        int64            `json:"cancelled"`
	Unsettled        int64            `json:"unsettled"`
	Refused          map[string]int64 `json:"refused,omitempty"` // requests, by code
	DoubleCharges    int64            `json:"double_charges"`
	LostPayments     int64            `json:"lost_payments"` // that the provider took and the ledger doesn't know
	Oversold         int64            `json:"oversold"`      // tickets
	Webhooks         int64            `json:"webhooks"`      // stored
	ReportLines      int64            `json:"report_lines"`  // of the provider's settlement report
	UnexplainedLines int64            `json:"unexplained_lines"`

	VerifySeconds float64  `json:"verify_seconds"`
	Verified      bool     `json:"verified"`
	Violations    []string `json:"violations,omitempty"`
	Failures      []string `json:"failures,omitempty"` // what the errors were

	unsettledLines int64 // unexplained, as the outcome isn't known yet
}

// take makes what was measured the report's own.
func (r *SaleReport) take(to *saleRecorders, pace load.Pace) {
	took := pace.Took.Seconds()
	r.DurationSeconds = seconds(pace.Took)
	r.Purchases = to.complete.Count(outcomeCaptured)
	r.PurchasesPerS = round(float64(r.Purchases)/took, 1)
	r.HoldP50, r.HoldP99 = ms(to.holds, 50), ms(to.holds, 99)
	r.CheckoutP50, r.CheckoutP95, r.CheckoutP99 = ms(to.checkouts, 50), ms(to.checkouts, 95), ms(to.checkouts, 99)
	r.BeyondP50, r.BeyondP95, r.BeyondP99 = ms(to.beyond, 50), ms(to.beyond, 95), ms(to.beyond, 99)
	r.CompleteP50, r.CompleteP99 = ms(to.complete, 50), ms(to.complete, 99)
	r.StatusP50, r.StatusP99 = ms(to.status, 50), ms(to.status, 99)
	r.StatusPerS = round(float64(to.status.Count(outcomeAnswered))/took, 1)
	r.Errors, r.Failures = to.failed(), to.failures()
	if r.Rate > 0 {
		r.Late, r.Dropped = &pace.Late, &pace.Dropped
	}
	for outcome, n := range to.ends.Outcomes() {
		switch outcome {
		case outcomeCaptured, outcomeDeclined, outcomeOpen:
			continue
		}
		if r.Refused == nil {
			r.Refused = map[string]int64{}
		}
		r.Refused[outcome] = n
	}
}

// Err tells why the run can't be called a success; nil when it can. With faults some
// outcomes may stay unknown for longer than anybody waits: those are only counted.
func (r *SaleReport) Err() error {
	switch {
	case !r.Verified:
		return fmt.Errorf("an invariant of the ledger is broken: %s", strings.Join(r.Violations, "; "))
	case r.DoubleCharges > 0:
		return fmt.Errorf("%d orders were charged more than once", r.DoubleCharges)
	case r.LostPayments > 0:
		return fmt.Errorf("%d payments were taken that the ledger doesn't know", r.LostPayments)
	case r.Oversold > 0:
		return fmt.Errorf("%d tickets too many were sold", r.Oversold)
	case r.UnexplainedLines > r.unsettledLines || r.UnexplainedLines > 0 && r.Unsettled == 0:
		return fmt.Errorf("%d lines of the provider's report aren't explained", r.UnexplainedLines)
	case r.Errors > 0:
		return fmt.Errorf("%d requests failed: %s", r.Errors, strings.Join(r.Failures, "; "))
	case r.Unsettled > 0 && r.Faults == 0:
		return fmt.Errorf("%d orders have no outcome, though nothing went wrong", r.Unsettled)
	}
	return nil
}
