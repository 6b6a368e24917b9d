package bench

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// Report is the outcome of a run, and its JSON. What wasn't measured is absent.
type Report struct {
	Bench           string  `json:"bench"`
	Mode            string  `json:"mode"` // http or engine
	Clients         int     `json:"clients"`
	Rate            float64 `json:"rate,omitempty"` // of an open loop
	DurationSeconds float64 `json:"duration_seconds"`
	CPUs            int     `json:"cpus"`
	PostgreSQL      string  `json:"postgresql"`
	Fsync           string  `json:"fsync"`

	Holds       int64   `json:"holds"` // placed while it was measured
	HoldsPerS   float64 `json:"holds_per_s"`
	RefusedPerS float64 `json:"refused_per_s"` // with --sold-out: of the event without free tickets
	P50         float64 `json:"p50_ms"`
	P95         float64 `json:"p95_ms"`
	P99         float64 `json:"p99_ms"`
	Errors      int64   `json:"errors"`
	Late        *int64  `json:"late,omitempty"`    // requests that began over 5 ms behind their time
	Dropped     *int64  `json:"dropped,omitempty"` // requests that never began

	RatioToBaseline        *float64 `json:"ratio_to_baseline,omitempty"`
	RatioToSingleStatement *float64 `json:"ratio_to_single_statement,omitempty"`
	RatioToFloor           *float64 `json:"ratio_to_floor,omitempty"`

	BatchMean          float64  `json:"batch_mean"`    // holds a database transaction
	RowsPerHold        float64  `json:"rows_per_hold"` // inserted and updated
	WALBytesPerHold    float64  `json:"wal_bytes_per_hold"`
	WALBytesPerRefusal *float64 `json:"wal_bytes_per_refusal,omitempty"`
	RSSMB              float64  `json:"rss_mb,omitempty"` // the service's highest; 0 where the system doesn't tell

	ThroughputStart *float64 `json:"throughput_start,omitempty"` // holds a second, the first tenth
	ThroughputEnd   *float64 `json:"throughput_end,omitempty"`   // the last tenth
	StartSeconds    *float64 `json:"start_seconds,omitempty"`    // of the service, on the store at the end
	VerifySeconds   float64  `json:"verify_seconds"`

	Verified   bool     `json:"verified"`
	Violations []string `json:"violations,omitempty"`
	Failures   []string `json:"failures,omitempty"` // what the errors were
	Systems    []Result `json:"systems"`
}

// Result is how one system did.
type Result struct {
	System      string   `json:"system"`
	HoldsPerS   float64  `json:"holds_per_s"`
	RefusedPerS float64  `json:"refused_per_s"`
	P50         float64  `json:"p50_ms,omitempty"`
	P95         float64  `json:"p95_ms,omitempty"`
	P99         float64  `json:"p99_ms,omitempty"`
	Errors      int64    `json:"errors"`
	Ratio       *float64 `json:"ratio,omitempty"` // the product's holds a second to this system's
	failures    []string
}

// Err tells why the run can't be called a success; nil when it can.
func (r *Report) Err() error {
	if !r.Verified {
		return fmt.Errorf("an invariant of the ledger is broken: %s", strings.Join(r.Violations, "; "))
	}
	var errors int64
	var failures []string
	for _, s := range r.Systems {
		errors += s.Errors
		failures = append(failures, s.failures...)
	}
	if errors > 0 {
		return fmt.Errorf("%d requests failed: %s", errors, strings.Join(failures, "; "))
	}
	return nil
}

// result sums a measurement up.
func (m *measurement) result(ratio *float64) Result {
	return Result{
		System: m.system, HoldsPerS: round(m.holdsPerS(), 1), RefusedPerS: round(m.refusedPerS(), 1),
		P50: ms(m.recorder, 50), P95: ms(m.recorder, 95), P99: ms(m.recorder, 99),
		Errors: m.recorder.Failures(), Ratio: ratio, failures: m.recorder.FailureTexts(),
	}
}

// take makes a measurement of the product the report's own.
func (r *Report) take(m *measurement) {
	s := m.result(nil)
	r.Systems = append(r.Systems, s)
	r.Holds, r.HoldsPerS = m.held(), s.HoldsPerS
	r.P50, r.P95, r.P99 = s.P50, s.P95, s.P99
	r.Errors += s.Errors
	r.Failures = append(r.Failures, s.failures...)
	if r.WALBytesPerRefusal == nil {
		r.RefusedPerS = s.RefusedPerS
	}
	if r.Rate > 0 {
		r.Late, r.Dropped = &m.pace.Late, &m.pace.Dropped
	}
	if m.endPerS > 0 {
		r.ThroughputStart, r.ThroughputEnd = new(round(m.startPerS, 1)), new(round(m.endPerS, 1))
	}
}

// takeRefusals is take of the event without free tickets.
func (r *Report) takeRefusals(m *measurement, walBytes float64) {
	s := m.result(nil)
	r.Systems = append(r.Systems, s)
	r.RefusedPerS = s.RefusedPerS
	r.WALBytesPerRefusal = new(round(walBytes, 2))
	r.Errors += s.Errors
	r.Failures = append(r.Failures, s.failures...)
}

func ms(r *load.Recorder, percentile float64) float64 {
	return round(r.Latency(percentile).Seconds()*1e3, 2)
}

func seconds(d time.Duration) float64 { return round(d.Seconds(), 3) }

// per divides; by nothing it's nothing.
func per(total float64, n int64) float64 {
	if n == 0 {
		return 0
	}
	return total / float64(n)
}

// round keeps so many decimals: more than the noise would only look exact. What
// isn't a number, as a ratio to nothing, is 0.
func round(x float64, decimals int) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	scale := math.Pow10(decimals)
	return math.Round(x*scale) / scale
}
