package bench

import (
	"fmt"
	"strings"

	"github.com/tierledger/tierledger/internal/load"
)

// RelayReport is the outcome of a run, and its JSON. What wasn't measured is absent.
type RelayReport struct {
	Bench           string  `json:"bench"`
	Clients         int     `json:"clients"`
	Rounds          int     `json:"rounds"`
	DurationSeconds float64 `json:"duration_seconds"`
	SyncAlways      bool    `json:"sync_always"` // of the stream
	CPUs            int     `json:"cpus"`
	PostgreSQL      string  `json:"postgresql"`
	Fsync           string  `json:"fsync"`

	*RelaySteady
	*RelayCost
	*RelayBacklog
	*RelayLoss

	Audited StreamAudit `json:"stream"`
	Errors  int64       `json:"errors"`

	VerifySeconds float64  `json:"verify_seconds"`
	Verified      bool     `json:"verified"`
	Violations    []string `json:"violations,omitempty"`
	Failures      []string `json:"failures,omitempty"` // what the errors were
}

// StreamAudit is what was found when the whole stream was read, over all times.
type StreamAudit struct {
	Messages int64 `json:"messages"`
	Missing  int64 `json:"missing"` // entries that weren't there, or not in their place
	Doubled  int64 `json:"doubled"` // messages beyond an entry's first, or of no entry
}

// RelaySteady is how an even load went with publisher and consumers.
type RelaySteady struct {
	Rate      float64 `json:"steady_rate"`
	HoldsPerS float64 `json:"steady_holds_per_s"`
	HoldP50   float64 `json:"steady_hold_p50_ms"`
	HoldP99   float64 `json:"steady_hold_p99_ms"`
	Late      int64   `json:"steady_late"`
	Dropped   int64   `json:"steady_dropped"`
	LagP50    float64 `json:"steady_lag_p50_ms"` // from an entry's time until the stream has stored it
	LagP99    float64 `json:"steady_lag_p99_ms"`
	LagMax    float64 `json:"steady_lag_max_ms"`
	AckedMean float64 `json:"steady_acked_mean_ms"` // until it's acknowledged, as the service says
	AckedP99  float64 `json:"steady_acked_p99_ms"`  // at most: the bound of a histogram
	BatchMean float64 `json:"steady_batch_mean"`    // entries of a published batch
	RSSMB     float64 `json:"steady_rss_mb,omitempty"`
}

// RelayCost is what publisher and consumers take from a load that never rests.
type RelayCost struct {
	OffPerS   float64     `json:"off_holds_per_s"`
	OnPerS    float64     `json:"on_holds_per_s"`
	Cost      float64     `json:"cost"` // share of the holds that are fewer
	LagP50    float64     `json:"cost_lag_p50_ms"`
	LagP99    float64     `json:"cost_lag_p99_ms"`
	LagMax    float64     `json:"cost_lag_max_ms"`
	Behind    int64       `json:"cost_behind"`      // entries unpublished when a round ended, at most
	CatchUpMS float64     `json:"cost_catch_up_ms"` // until they were published, at most
	Off       []CostRound `json:"off"`
	On        []CostRound `json:"on"`
}

// CostRound is a turn of one side.
type CostRound struct {
	HoldsPerS float64 `json:"holds_per_s"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
}

// RelayBacklog is how a backlog was published.
type RelayBacklog struct {
	Entries         int64   `json:"entries"`
	Seconds         float64 `json:"backlog_seconds"`
	EntriesPerS     float64 `json:"entries_per_s"`
	MBPerS          float64 `json:"mb_per_s"`         // that the stream grew by
	EventBytes      float64 `json:"event_bytes"`      // of an event in the stream, headers included
	BatchMean       float64 `json:"batch_mean"`       // entries of a published batch
	BarePerS        float64 `json:"bare_per_s"`       // the same messages, without order or fence
	OneByOnePerS    float64 `json:"one_by_one_per_s"` // each after the one before is acknowledged
	RatioToBare     float64 `json:"ratio_to_bare"`
	RatioToOneByOne float64 `json:"ratio_to_one_by_one"`
}

// RelayLoss is how a stream came back that had lost everything.
type RelayLoss struct {
	Lost            int64   `json:"lost"`
	NoticedMS       float64 `json:"noticed_ms"`       // from the server's return until the first is acknowledged again
	CompleteSeconds float64 `json:"complete_seconds"` // until the last
	AgainPerS       float64 `json:"again_per_s"`      // between them
}

// Err tells why the run can't be called a success; nil when it can.
func (r *RelayReport) Err() error {
	switch a := r.Audited; {
	case !r.Verified:
		return fmt.Errorf("an invariant of the ledger is broken: %s", strings.Join(r.Violations, "; "))
	case a.Missing > 0 || a.Doubled > 0:
		return fmt.Errorf("the stream isn't the journals: %d entries missing, %d messages too many", a.Missing, a.Doubled)
	case r.Errors > 0:
		return fmt.Errorf("%d requests failed: %s", r.Errors, strings.Join(r.Failures, "; "))
	}
	return nil
}

// fail counts what failed.
func (r *RelayReport) fail(to *load.Recorder) {
	r.Errors += to.Failures()
	r.Failures = append(r.Failures, to.FailureTexts()...)
}

// steady takes what an even load came to.
func (r *RelayReport) steady(rate float64, to *load.Recorder, pace load.Pace, lags *load.Recorder, a acked, rss float64) {
	r.RelaySteady = &RelaySteady{
		Rate: rate, HoldsPerS: round1(float64(to.Count(outcomeHeld)) / pace.Took.Seconds()),
		HoldP50: ms(to, 50), HoldP99: ms(to, 99), Late: pace.Late, Dropped: pace.Dropped,
		LagP50: ms(lags, 50), LagP99: ms(lags, 99), LagMax: ms(lags, 100),
		AckedMean: round1(per(a.sum*1e3, int64(a.entries))), AckedP99: round(a.most(.99)*1e3, 2),
		BatchMean: round1(per(a.entries, int64(a.batches))), RSSMB: rss,
	}
	r.fail(to)
}

// take takes what both sides came to.
func (c *RelayCost) take(off, on *relaySide, lags *load.Recorder) {
	c.OffPerS = round1(float64(off.held) / off.took.Seconds())
	c.OnPerS = round1(float64(on.held) / on.took.Seconds())
	c.Cost = round(1-c.OnPerS/c.OffPerS, 4)
	c.LagP50, c.LagP99, c.LagMax = ms(lags, 50), ms(lags, 99), ms(lags, 100)
	c.Off, c.On = off.rounds, on.rounds
}
