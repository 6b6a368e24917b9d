package bench

import (
	"fmt"
	"strings"
)

// SeatsReport is the outcome of a run, and its JSON. What wasn't measured is absent.
type SeatsReport struct {
	Bench       string  `json:"bench"`
	Clients     int     `json:"clients"`
	Rate        float64 `json:"rate,omitempty"` // of an open loop
	Seats       int     `json:"seats"`
	Sections    int     `json:"sections"`
	HoldSeconds int     `json:"hold_seconds"`
	Followers   int     `json:"followers"`
	CPUs        int     `json:"cpus"`
	PostgreSQL  string  `json:"postgresql"`
	Fsync       string  `json:"fsync"`

	DurationSeconds float64          `json:"duration_seconds"`
	Attempts        int64            `json:"attempts"` // answered, yes or no, while it was measured
	AttemptsPerS    float64          `json:"attempts_per_s"`
	Holds           int64            `json:"holds"`
	HoldsPerS       float64          `json:"holds_per_s"`
	ReleasesPerS    float64          `json:"releases_per_s"`    // beside the attempts
	Refused         map[string]int64 `json:"refused,omitempty"` // by code
	P50             float64          `json:"p50_ms"`            // of all attempts
	P95             float64          `json:"p95_ms"`
	P99             float64          `json:"p99_ms"`
	ReleaseP99      float64          `json:"release_p99_ms"`
	DoubleHolds     int64            `json:"double_holds"` // seats given away while they were another's
	Errors          int64            `json:"errors"`
	Late            *int64           `json:"late,omitempty"`    // attempts that began over 5 ms behind their time
	Dropped         *int64           `json:"dropped,omitempty"` // attempts that never began

	BatchMean       float64 `json:"batch_mean"`         // entries a database transaction
	WALBytesPerHold float64 `json:"wal_bytes_per_hold"` // its release or end included
	RSSMB           float64 `json:"rss_mb,omitempty"`   // the service's highest; 0 where the system doesn't tell

	*MapReport
	*DeltaReport
	*SelloutReport

	RatioToBaseline *float64 `json:"ratio_to_baseline,omitempty"` // attempts a second, of clients that never rest

	VerifySeconds float64       `json:"verify_seconds"`
	Verified      bool          `json:"verified"`
	Violations    []string      `json:"violations,omitempty"`
	Failures      []string      `json:"failures,omitempty"` // what the errors were
	Systems       []SeatsResult `json:"systems"`
}

// MapReport is how the map was read beside the load.
type MapReport struct {
	MapBytesGzip   int64   `json:"map_bytes_gzip"` // the last that was read
	MapBytes       int64   `json:"map_bytes"`      // the first, unpacked
	MapP50         float64 `json:"map_p50_ms"`
	MapP99         float64 `json:"map_p99_ms"`
	MapReadsPerS   float64 `json:"map_reads_per_s"`
	MapNotModified float64 `json:"map_not_modified"` // share of the answers
	MapDropped     int64   `json:"map_dropped"`      // reads that never began
}

// DeltaReport is how changes came to those who follow them: from the answer to the first
// hold that an event tells of until the event has come, whole.
type DeltaReport struct {
	DeltaP50     float64 `json:"delta_p50_ms"`
	DeltaP99     float64 `json:"delta_p99_ms"`
	Deltas       int64   `json:"deltas"`        // events of changes that came, to all followers
	DeltaBytes   int64   `json:"delta_bytes"`   // that came, to all followers
	FollowersCut int64   `json:"followers_cut"` // connections that the server ended
	FollowerGaps int64   `json:"follower_gaps"` // that had to begin anew from the map
	DeltaWrong   int64   `json:"delta_wrong"`   // seats of which the changes told another state than the journal
}

// SelloutReport is how parties filled an event.
type SelloutReport struct {
	SelloutSeats             int     `json:"sellout_seats"`
	SelloutHeld              int     `json:"sellout_held"`
	SelloutSeconds           float64 `json:"sellout_seconds"`
	SelloutAttempts          int64   `json:"sellout_attempts"`
	SelloutHolds             int64   `json:"sellout_holds"`
	SelloutSplit             int64   `json:"sellout_split"`         // holds whose seats aren't side by side
	SelloutRefusedEarly      int64   `json:"sellout_refused_early"` // while enough seats were free
	SelloutRefusedEarlyShare float64 `json:"sellout_refused_early_share"`
}

// SeatsResult is how one system did.
type SeatsResult struct {
	System       string   `json:"system"`
	AttemptsPerS float64  `json:"attempts_per_s"`
	HoldsPerS    float64  `json:"holds_per_s"`
	P50          float64  `json:"p50_ms"`
	P95          float64  `json:"p95_ms"`
	P99          float64  `json:"p99_ms"`
	DoubleHolds  int64    `json:"double_holds"`
	Errors       int64    `json:"errors"`
	Ratio        *float64 `json:"ratio,omitempty"` // the product's attempts a second to this system's
}

// add adds a system's measurement.
func (r *SeatsReport) add(m *seatsMeasured, ratio *float64) {
	r.Systems = append(r.Systems, SeatsResult{
		System: m.system, AttemptsPerS: round(m.attemptsPerS(), 1), HoldsPerS: round(m.holdsPerS(), 1),
		P50: ms(m.recorder, 50), P95: ms(m.recorder, 95), P99: ms(m.recorder, 99),
		DoubleHolds: m.doubled, Errors: m.failed(), Ratio: ratio,
	})
	r.DoubleHolds += m.doubled
	r.fail(m.failed(), m.failures())
}

// fail counts what failed.
func (r *SeatsReport) fail(n int64, texts []string) {
	r.Errors += n
	r.Failures = append(r.Failures, texts...)
}

// take makes a measurement of the product the report's own.
func (r *SeatsReport) take(m *seatsMeasured) {
	r.add(m, nil)
	s := &r.Systems[len(r.Systems)-1]
	r.DurationSeconds = seconds(m.pace.Took)
	r.Attempts, r.AttemptsPerS = m.attempts(), s.AttemptsPerS
	r.Holds, r.HoldsPerS = m.held(), s.HoldsPerS
	r.P50, r.P95, r.P99 = s.P50, s.P95, s.P99
	r.ReleasesPerS = round(float64(m.releases.Count(outcomeReleased))/m.pace.Took.Seconds(), 1)
	r.ReleaseP99 = ms(m.releases, 99)
	if r.Rate > 0 {
		r.Late, r.Dropped = &m.pace.Late, &m.pace.Dropped
	}
	r.Refused = m.recorder.Outcomes()
	delete(r.Refused, outcomeHeld)
}

// Err tells why the run can't be called a success; nil when it can.
func (r *SeatsReport) Err() error {
	switch {
	case !r.Verified:
		return fmt.Errorf("an invariant of the ledger is broken: %s", strings.Join(r.Violations, "; "))
	case r.DoubleHolds > 0:
		return fmt.Errorf("%d seats were given away while they were another's", r.DoubleHolds)
	case r.DeltaReport != nil && r.DeltaWrong > 0:
		return fmt.Errorf("the changes told %d seats wrong to those who followed them", r.DeltaWrong)
	case r.Errors > 0:
		return fmt.Errorf("%d requests failed: %s", r.Errors, strings.Join(r.Failures, "; "))
	}
	return nil
}
