package bench

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// smallRelay is a run that takes a few seconds.
func smallRelay(t *testing.T, databaseURL string) Relay {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultRelay()
	o.DatabaseURL = databaseURL
	o.Entries, o.Rate, o.Clients, o.Duration, o.Rounds = 3000, 300, 8, 600*time.Millisecond, 2
	o.Server = []string{program, asServer}
	o.Stderr = t.Output()
	return o
}

func TestRelayMeasuresEveryPart(t *testing.T) {
	o := smallRelay(t, pgtest.New(t).URL())
	var doing []string
	o.Progress = func(p RelayProgress) { doing = append(doing, p.Doing) }
	report, err := o.Run(t.Context())
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
	for _, name := range []string{"steady_holds_per_s", "steady_hold_p99_ms", "steady_lag_p50_ms", "steady_lag_p99_ms",
		"steady_lag_max_ms", "steady_acked_mean_ms", "steady_acked_p99_ms", "steady_batch_mean", "off_holds_per_s",
		"on_holds_per_s", "cost_lag_p99_ms", "entries_per_s", "mb_per_s", "event_bytes", "batch_mean", "bare_per_s",
		"one_by_one_per_s", "ratio_to_bare", "ratio_to_one_by_one", "noticed_ms", "complete_seconds", "again_per_s"} {
		if n, ok := fields[name].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	if report.Entries != 3000 || len(report.On) != 2 || len(report.Off) != 2 || len(doing) == 0 {
		t.Errorf("%s", text)
	}
	// What was lost is all there is: the backlog, and what the parts before it have left.
	if report.Lost < 3000+180 || report.Audited.Messages < 2*report.Lost || report.Audited.Missing+report.Audited.Doubled != 0 {
		t.Errorf("%d lost, %+v", report.Lost, report.Audited)
	}
}

func TestRelayWithSyncAlways(t *testing.T) {
	o := smallRelay(t, pgtest.New(t).URL())
	o.Parts, o.Entries, o.SyncAlways = []string{BacklogPart}, 1200, true
	report, err := o.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if report.RelayBacklog == nil || report.Entries != 1200 || report.RelaySteady != nil || report.RelayLoss != nil {
		t.Errorf("%+v", report)
	}
}

func TestLossWithoutABacklogBefore(t *testing.T) {
	o := smallRelay(t, pgtest.New(t).URL())
	o.Parts, o.Entries = []string{LossPart}, 50
	report, err := o.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil || report.Lost != 50 {
		t.Errorf("%v, %d lost", err, report.Lost)
	}
}

func TestRelayValidateNamesTheFlag(t *testing.T) {
	for flag, change := range map[string]func(*Relay){
		"--entries":  func(o *Relay) { o.Entries = 0 },
		"--rate":     func(o *Relay) { o.Rate = 0 },
		"--clients":  func(o *Relay) { o.Clients = 0 },
		"--duration": func(o *Relay) { o.Duration = time.Millisecond },
		"--rounds":   func(o *Relay) { o.Rounds = 0 },
		"--parts":    func(o *Relay) { o.Parts = nil },
		"--parts: ":  func(o *Relay) { o.Parts = []string{"all"} },
	} {
		o := DefaultRelay()
		if err := o.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&o)
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}

func TestRelayReportNamesWhatIsWrong(t *testing.T) {
	failed := load.NewRecorder()
	failed.Failed("x")
	for says, change := range map[string]func(*RelayReport){
		"an invariant":           func(r *RelayReport) { r.Verified = false },
		"the stream isn't":       func(r *RelayReport) { r.Audited.Missing = 1 },
		"the stream isn't the":   func(r *RelayReport) { r.Audited.Doubled = 1 },
		"1 requests failed: 1 x": func(r *RelayReport) { r.fail(failed) },
	} {
		r := RelayReport{Verified: true}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		change(&r)
		if err := r.Err(); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
}

// TestStreamRead reads streams with a gap, a repetition, a wrong order and what no journal
// has; journal 1 has 4 entries, journal 2 has 2.
func TestStreamRead(t *testing.T) {
	heads := map[int64]int64{1: 4, 2: 2}
	type message struct{ journal, seq int64 }
	for name, test := range map[string]struct {
		messages         []message
		missing, doubled int64
	}{
		"as it should be": {[]message{{1, 1}, {2, 1}, {1, 2}, {1, 3}, {2, 2}, {1, 4}}, 0, 0},
		"a gap":           {[]message{{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}}, 1, 0},
		"no end":          {[]message{{1, 1}, {1, 2}, {2, 1}, {2, 2}}, 2, 0},
		"no journal 2":    {[]message{{1, 1}, {1, 2}, {1, 3}, {1, 4}}, 2, 0},
		"twice":           {[]message{{1, 1}, {1, 2}, {1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 2}}, 0, 1},
		"out of order":    {[]message{{1, 1}, {1, 3}, {1, 2}, {1, 4}, {2, 1}, {2, 2}}, 1, 1},
		"beyond the end":  {[]message{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {2, 1}, {2, 2}}, 0, 1},
		"unknown":         {[]message{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 2}, {3, 1}}, 0, 1},
	} {
		s := &streamRead{last: make(map[int64]int64), lags: load.NewRecorder(), spans: []span{{1, 1, 3}}}
		for _, m := range test.messages {
			e := outbox.Event{
				Journal: ledger.JournalID(m.journal), Seq: ledger.Seq(m.seq), Kind: "hold.placed", At: at(100), Data: []byte("{}")}
			s.take(e.Subject(), nats.Header{"Tierledger-Seq": {strconv.FormatInt(m.seq, 10)}}, e.Append(nil), at(140))
		}
		if a := s.audit(heads); a.Missing != test.missing || a.Doubled != test.doubled || s.malformed != nil {
			t.Errorf("%s: %+v, %v", name, a, s.malformed)
		}
		if lag := s.lags.Latency(100); name == "as it should be" && (s.lags.Count("") != 2 || lag < 39*time.Millisecond || lag > 41*time.Millisecond) {
			t.Errorf("%d lags of %s at most", s.lags.Count(""), lag)
		}
	}
	s := &streamRead{last: make(map[int64]int64), lags: load.NewRecorder()}
	if s.take("tierledger.journal.x.y", nil, nil, at(0)); s.malformed == nil {
		t.Error("a message that isn't ours is taken")
	}
}

func TestAckedOfMetrics(t *testing.T) {
	const text = `# HELP tierledger_publish_lag_seconds Time from an entry to the stream's acknowledgement.
tierledger_publish_lag_seconds_bucket{le="0.025"} 10
tierledger_publish_lag_seconds_bucket{le="0.05"} 109
tierledger_publish_lag_seconds_bucket{le="0.1"} 110
tierledger_publish_lag_seconds_bucket{le="+Inf"} 110
tierledger_publish_lag_seconds_sum 4
tierledger_publish_lag_seconds_count 110
tierledger_published_batch_entries_count 12
`
	a, err := parseAcked(text)
	if err != nil {
		t.Fatal(err)
	}
	a = a.since(acked{batches: 2, entries: 10, sum: 1, within: map[string]float64{"0.025": 10, "0.05": 10, "0.1": 10, "+Inf": 10}})
	if a.batches != 10 || a.entries != 100 || a.sum != 3 || a.most(.99) != 0.05 || a.most(1) != 0.1 {
		t.Errorf("%+v: %v, %v", a, a.most(.99), a.most(1))
	}
	if _, err := parseAcked(strings.ReplaceAll(text, "publish_lag", "other")); err == nil {
		t.Error("metrics that are missing aren't missed")
	}
}
