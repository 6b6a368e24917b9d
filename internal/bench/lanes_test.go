package bench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/pgtest"
)

// smallLanes is a run that takes a few seconds.
func smallLanes(t *testing.T, databaseURL string) Lanes {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := DefaultLanes()
	l.DatabaseURL = databaseURL
	l.Processes, l.Split, l.Clients, l.Duration, l.Rounds = 2, 3, 8, 400*time.Millisecond, 2
	l.Sellout, l.SelloutTickets, l.SelloutLanes = true, 600, 4
	l.Server = []string{program, asServer}
	l.Stderr = t.Output()
	return l
}

func TestLanesMeasureEveryWay(t *testing.T) {
	l := smallLanes(t, pgtest.New(t).URL())
	var systems []string
	l.Progress = func(p Progress) { systems = append(systems, p.System) }
	report, err := l.Run(t.Context())
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
	for _, name := range []string{"holds_per_s", "p50_ms", "p95_ms", "p99_ms", "ratio", "ratio_to_one_process", "readings",
		"sellout_holds", "sellout_p50_ms", "sellout_p99_ms", "sellout_readings", "verify_seconds"} {
		if n, ok := fields[name].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	for _, name := range []string{"errors", "unconserved", "sellout_left", "sellout_false"} {
		if fields[name] != 0.0 {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	for _, s := range report.Systems {
		if s.Holds == 0 || s.Batches == 0 || len(s.ByProcess) != 2 || s.ByProcess[0].Batches+s.ByProcess[1].Batches != s.Batches {
			t.Errorf("%+v", s)
		}
	}
	if len(report.Systems) != 3 || len(systems) == 0 || report.SelloutSold != 600 || report.SelloutRefused[codeSoldOut] == 0 ||
		report.SelloutMoves["split"].Tickets == 0 {
		t.Errorf("%s", text)
	}
}

func TestLanesAtRandom(t *testing.T) {
	l := smallLanes(t, pgtest.New(t).URL())
	l.Routing, l.Rounds, l.SelloutTickets = AtRandom, 1, 50
	report, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	split := report.Systems[2]
	if split.ByProcess[0].Batches == 0 || split.ByProcess[1].Batches == 0 || report.SelloutSold != 50 {
		t.Errorf("%+v", report)
	}
}

func TestLanesValidateNamesTheFlag(t *testing.T) {
	for flag, change := range map[string]func(*Lanes){
		"--processes":       func(l *Lanes) { l.Processes = 0 },
		"--lanes":           func(l *Lanes) { l.Split = 1 },
		"--clients":         func(l *Lanes) { l.Clients = 0 },
		"--duration":        func(l *Lanes) { l.Duration = time.Millisecond },
		"--rounds":          func(l *Lanes) { l.Rounds = 0 },
		"--routing":         func(l *Lanes) { l.Routing = "elsewhere" },
		"--sellout-tickets": func(l *Lanes) { l.SelloutTickets = 0 },
		"--sellout-lanes":   func(l *Lanes) { l.SelloutLanes = 65 },
	} {
		l := DefaultLanes()
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&l)
		if err := l.Validate(); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}

func TestLanesReportNamesWhatIsWrong(t *testing.T) {
	failed := load.NewRecorder()
	failed.Failed("x")
	for says, change := range map[string]func(*LanesReport){
		"an invariant":           func(r *LanesReport) { r.Verified = false },
		"tickets weren't":        func(r *LanesReport) { r.Unconserved = 1 },
		"2 parties were refused": func(r *LanesReport) { r.SelloutFalse = 2 },
		"1 requests failed: 1 x": func(r *LanesReport) { r.fail(failed) },
		"7 of 8 tickets":         func(r *LanesReport) { r.SelloutSold, r.SelloutLeft = 7, 1 },
	} {
		r := LanesReport{Verified: true, LanesSellout: &LanesSellout{SelloutTickets: 8, SelloutSold: 8}}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		change(&r)
		if err := r.Err(); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
}

// at is a time in the test, in milliseconds.
func at(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }

func TestAuditor(t *testing.T) {
	a := newAuditor(nil, "e", 1000)
	plenty := laneStock{Lane: 1, Free: 600, Capacity: -1000}
	for i, free := range []int64{5, 0, 0, 0, 5, 0} {
		a.judge([]laneStock{plenty, {Lane: 2, Free: free}}, at(100*i))
	}
	if a.dryFor != 300*time.Millisecond || a.wrong != 0 {
		t.Errorf("dry for %s, want 300 ms at most; %v", a.dryFor, a.broken)
	}
	plenty.Free = 64
	for i := range 20 { // a batch isn't plenty
		a.judge([]laneStock{plenty, {Lane: 2}}, at(1000+100*i))
	}
	if a.dryFor != 300*time.Millisecond {
		t.Errorf("dry for %s", a.dryFor)
	}
	// A ticket under way is one that may come.
	a.judge([]laneStock{{Lane: 1, Transit: 4, Sold: 996, Capacity: -1000}, {Lane: 2, Transit: -1}}, at(5000))
	for _, x := range []struct {
		answered, quantity int
		falsely            bool
	}{{4990, 3, true}, {4990, 4, false}, {5000, 3, true}, {5001, 1, false}} {
		if got := a.refusedFalsely(at(x.answered), x.quantity); got != x.falsely {
			t.Errorf("%d refused at %d: %t", x.quantity, x.answered, got)
		}
	}
	for says, lanes := range map[string][]laneStock{
		"lane 2 comes to 1":     {plenty, {Lane: 2, Sum: 1}},
		"-1 tickets are under":  {{Lane: 1, Capacity: -1000, Transit: -1}},
		"there are 999 tickets": {{Lane: 1, Capacity: -999}},
	} {
		a := newAuditor(nil, "e", 1000)
		if a.judge(lanes, at(0)); a.wrong != 1 || !strings.HasPrefix(a.broken[0], says) {
			t.Errorf("%s: got %v", says, a.broken)
		}
	}
}

func TestWaitsOfMetrics(t *testing.T) {
	const text = `# HELP tierledger_lock_wait_seconds Time a batch waited for its journal's lock.
tierledger_batch_commands_sum 90
tierledger_batch_duration_seconds_sum{phase="read"} 2
tierledger_batch_duration_seconds_sum{phase="write"} 2e+00
tierledger_lock_wait_seconds_bucket{le="0.0005"} 7
tierledger_lock_wait_seconds_bucket{le="0.001"} 8
tierledger_lock_wait_seconds_sum 1
tierledger_lock_wait_seconds_count 10
`
	w, err := parseWaits(text)
	if err != nil {
		t.Fatal(err)
	}
	want := LockWaits{Batches: 10, BatchMean: 9, BatchesWaited: 0.3, LockWaitSeconds: 1, LockWaitMeanMS: 100, LockWaitShare: 0.25,
		ReadMS: 100, WriteMS: 200}
	if got := w.result(); got != want {
		t.Errorf("got %+v", got)
	}
	if _, err := parseWaits(strings.ReplaceAll(text, "_count", "_number")); err == nil {
		t.Error("a metric that's missing isn't missed")
	}
}
