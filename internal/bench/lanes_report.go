package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// LanesReport is the outcome of a run, and its JSON. What wasn't measured is absent.
type LanesReport struct {
	Bench           string  `json:"bench"`
	Processes       int     `json:"processes"`
	Lanes           int     `json:"lanes"`
	Clients         int     `json:"clients"`
	Routing         Routing `json:"routing"` // of the event that's split
	Rounds          int     `json:"rounds"`
	DurationSeconds float64 `json:"duration_seconds"` // of each way, over all rounds
	CPUs            int     `json:"cpus"`
	PostgreSQL      string  `json:"postgresql"`
	Fsync           string  `json:"fsync"`

	HoldsPerS float64 `json:"holds_per_s"` // of the event that's split
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	P99       float64 `json:"p99_ms"`
	Errors    int64   `json:"errors"`
	// Ratio is its holds a second to those of the event that isn't split, with as many
	// processes; RatioToOneProcess with one.
	Ratio             float64 `json:"ratio"`
	RatioToOneProcess float64 `json:"ratio_to_one_process"`

	Readings    int64    `json:"readings"`        // of all buckets, each at one instant
	Unconserved int64    `json:"unconserved"`     // readings in which tickets were missing or too many
	DryMS       float64  `json:"dry_ms"`          // the longest that a lane had none while another had plenty, at most
	Wrong       []string `json:"wrong,omitempty"` // what readings found, the first few

	*LanesSellout

	RSSMB         float64       `json:"rss_mb,omitempty"` // the processes' highest; 0 where the system doesn't tell
	VerifySeconds float64       `json:"verify_seconds"`
	Verified      bool          `json:"verified"`
	Violations    []string      `json:"violations,omitempty"`
	Failures      []string      `json:"failures,omitempty"` // what the errors were
	Systems       []LanesResult `json:"systems"`
}

// LanesResult is how holds went on one way.
type LanesResult struct {
	System    string  `json:"system"`
	Holds     int64   `json:"holds"`
	HoldsPerS float64 `json:"holds_per_s"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	P99       float64 `json:"p99_ms"`
	Errors    int64   `json:"errors"`
	LockWaits
	ByProcess []LockWaits `json:"by_process"`
}

// LockWaits is how batches waited for the lock of their journal.
type LockWaits struct {
	Batches         int64   `json:"batches"`
	BatchMean       float64 `json:"batch_mean"`        // commands of a batch
	BatchesWaited   float64 `json:"batches_waited"`    // share of those that waited for over 0.5 ms
	LockWaitSeconds float64 `json:"lock_wait_seconds"` // of all batches
	LockWaitMeanMS  float64 `json:"lock_wait_mean_ms"`
	LockWaitShare   float64 `json:"lock_wait_share"` // of the time of batches
	ReadMS          float64 `json:"read_mean_ms"`    // of a batch, beside the wait
	WriteMS         float64 `json:"write_mean_ms"`   // the commit included
}

// LanesSellout is how an event was sold out.
type LanesSellout struct {
	SelloutTickets    int64            `json:"sellout_tickets"`
	SelloutLanes      int              `json:"sellout_lanes"`
	SelloutSold       int64            `json:"sellout_sold"`
	SelloutLeft       int64            `json:"sellout_left"` // free or under way at the end
	SelloutSeconds    float64          `json:"sellout_seconds"`
	SelloutHolds      int64            `json:"sellout_holds"`
	SelloutP50        float64          `json:"sellout_p50_ms"` // of a hold, pulls included
	SelloutP95        float64          `json:"sellout_p95_ms"`
	SelloutP99        float64          `json:"sellout_p99_ms"`
	SelloutMax        float64          `json:"sellout_max_ms"`
	SelloutRefusalP99 float64          `json:"sellout_refusal_p99_ms"`
	SelloutBuyP99     float64          `json:"sellout_buy_p99_ms"`
	SelloutRefused    map[string]int64 `json:"sellout_refused"`  // by code
	SelloutFalse      int64            `json:"sellout_false"`    // refusals while there were enough tickets
	SelloutReadings   int64            `json:"sellout_readings"` // of all buckets, each at one instant
	SelloutDryMS      float64          `json:"sellout_dry_ms"`
	SelloutMoves      map[string]Moves `json:"sellout_moves"` // by cause
}

// Moves are moves of one cause.
type Moves struct {
	Moves   int64 `json:"moves"`
	Tickets int64 `json:"tickets"`
}

// Err tells why the run can't be called a success; nil when it can.
func (r *LanesReport) Err() error {
	s := r.LanesSellout
	switch {
	case !r.Verified:
		return fmt.Errorf("an invariant of the ledger is broken: %s", strings.Join(r.Violations, "; "))
	case r.Unconserved > 0:
		return fmt.Errorf("tickets weren't conserved in %d readings: %s", r.Unconserved, strings.Join(r.Wrong, "; "))
	case s != nil && s.SelloutFalse > 0:
		return fmt.Errorf("%d parties were refused while there were enough tickets", s.SelloutFalse)
	case r.Errors > 0:
		return fmt.Errorf("%d requests failed: %s", r.Errors, strings.Join(r.Failures, "; "))
	case s != nil && s.SelloutSold != s.SelloutTickets:
		return fmt.Errorf("%d of %d tickets were sold, %d are left", s.SelloutSold, s.SelloutTickets, s.SelloutLeft)
	}
	return nil
}

// take takes what was measured: on all processes, on one, and over lanes.
func (r *LanesReport) take(ways []*lanesMeasured) {
	for _, m := range ways {
		s := LanesResult{
			System: m.system, Holds: m.held(), HoldsPerS: round(m.holdsPerS(), 1), Errors: m.recorder.Failures(),
			P50: ms(m.recorder, 50), P95: ms(m.recorder, 95), P99: ms(m.recorder, 99),
		}
		var all lockWaits
		for _, w := range m.waits {
			all.add(w, lockWaits{})
			s.ByProcess = append(s.ByProcess, w.result())
		}
		s.LockWaits = all.result()
		r.Systems = append(r.Systems, s)
		r.fail(m.recorder)
	}
	split := r.Systems[2]
	r.HoldsPerS, r.P50, r.P95, r.P99 = split.HoldsPerS, split.P50, split.P95, split.P99
	r.Ratio = round(split.HoldsPerS/r.Systems[0].HoldsPerS, 2)
	r.RatioToOneProcess = round(split.HoldsPerS/r.Systems[1].HoldsPerS, 2)
}

// result sums batches up.
func (w lockWaits) result() LockWaits {
	n := int64(w.batches)
	return LockWaits{
		Batches: n, BatchMean: round(per(w.commands, n), 1), BatchesWaited: round(per(w.batches-w.quick, n), 4),
		LockWaitSeconds: round(w.waited, 3), LockWaitMeanMS: round(per(w.waited*1e3, n), 3),
		LockWaitShare: round(w.waited/w.took(), 4),
		ReadMS:        round(per((w.read-w.waited)*1e3, n), 3), WriteMS: round(per(w.write*1e3, n), 3),
	}
}

// fail counts what failed.
func (r *LanesReport) fail(to *load.Recorder) {
	r.Errors += to.Failures()
	r.Failures = append(r.Failures, to.FailureTexts()...)
}

// audited takes what an auditor found.
func (r *LanesReport) audited(w *auditor) {
	r.Readings += int64(len(w.readings))
	r.Unconserved += w.wrong
	r.DryMS = max(r.DryMS, round(w.dryFor.Seconds()*1e3, 0))
	r.Wrong = append(r.Wrong, w.broken...)
}

// sold takes what a sellout came to.
func (r *LanesReport) sold(s *lanesSelling, w *auditor, end reading, moves map[string]Moves, took time.Duration) {
	r.LanesSellout = &LanesSellout{
		SelloutTickets: s.run.SelloutTickets, SelloutLanes: s.run.SelloutLanes, SelloutSold: end.sold, SelloutLeft: end.left,
		SelloutSeconds: seconds(took), SelloutHolds: s.holds.Count(outcomeHeld),
		SelloutP50: ms(s.holds, 50), SelloutP95: ms(s.holds, 95), SelloutP99: ms(s.holds, 99), SelloutMax: ms(s.holds, 100),
		SelloutRefusalP99: ms(s.refusals, 99), SelloutBuyP99: ms(s.purchases, 99), SelloutRefused: s.refusals.Outcomes(),
		SelloutReadings: int64(len(w.readings)), SelloutDryMS: round(w.dryFor.Seconds()*1e3, 0), SelloutMoves: moves,
	}
	for _, no := range s.said {
		if w.refusedFalsely(no.answered, no.quantity) {
			r.SelloutFalse++
		}
	}
	r.fail(s.holds)
	r.audited(w)
}
