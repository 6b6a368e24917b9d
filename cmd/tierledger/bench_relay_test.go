package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/bench"
)

func TestBenchRelay(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := execute(t, "bench", "relay", "--parts", "cost,backlog", "--entries", "300", "--clients", "4",
		"--duration", "200ms", "--rounds", "1", "--sync-always", "--json")
	var report bench.RelayReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if report.RelayCost == nil || report.RelayBacklog == nil || report.RelaySteady != nil || report.Entries != 300 ||
		!report.SyncAlways || !report.Verified {
		t.Errorf("%s", stdout)
	}
}

func TestBenchRelayKnowsItsParts(t *testing.T) {
	t.Parallel()
	code, _, stderr := execute(t, "bench", "relay", "--parts", "backlog,everything")
	if code != exitUsage || !strings.Contains(stderr, `"everything" is none of steady, cost, backlog, loss`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestBenchRelayTable(t *testing.T) {
	t.Parallel()
	table := benchRelayTable(bench.RelayReport{
		Clients: 64, Rounds: 10, SyncAlways: true, Verified: true,
		RelaySteady: &bench.RelaySteady{Rate: 2000, HoldsPerS: 1999.9, Late: 12, Dropped: 3, HoldP50: 2.1, HoldP99: 8.27,
			LagP50: 135.8, LagP99: 269.6, LagMax: 333.3, AckedMean: 140.7, AckedP99: 500, BatchMean: 484, RSSMB: 260},
		RelayCost: &bench.RelayCost{OffPerS: 11_626, OnPerS: 10_543, Cost: 0.093, LagP50: 222, LagP99: 447, LagMax: 532, Behind: 3128,
			CatchUpMS: 281, Off: []bench.CostRound{{HoldsPerS: 9000}, {HoldsPerS: 12_000}}, On: []bench.CostRound{{HoldsPerS: 8111}}},
		RelayBacklog: &bench.RelayBacklog{Entries: 1_000_000, Seconds: 20, EntriesPerS: 50_000, MBPerS: 44, EventBytes: 880, BatchMean: 1000,
			BarePerS: 100_000, OneByOnePerS: 25_000, RatioToBare: 0.5, RatioToOneByOne: 2},
		RelayLoss: &bench.RelayLoss{Lost: 1_234_567, NoticedMS: 2922, CompleteSeconds: 25.5, AgainPerS: 54_321},
		Audited:   bench.StreamAudit{Messages: 3_000_000, Missing: 7, Doubled: 8},
	})
	for _, text := range []string{"stream flushed before it acknowledges", "1,999 of 2,000 holds/s", "12 began late, 3 were dropped", "8.27 ms",
		"269.6 ms, at most 333.3 ms", "500.0 ms at most; batches of 484; 260 MB", "10 rounds", "11,626", "9,000", "12,000", "8,111",
		"9.3 % of the holds", "3,128 entries behind", "1,000,000 entries of 880 bytes in 20.0 s", "50,000", "x 0.50", "x 2.00",
		"1,234,567 entries; published again after 2.9 s", "complete after 25.5 s: 54,321/s", "3,000,000 messages read; 7 entries missing, 8 doubled",
		"every invariant holds"} {
		if !strings.Contains(table, text) {
			t.Errorf("the table doesn't say %q:\n%s", text, table)
		}
	}
	for line := range strings.Lines(table) {
		if len(line) > 100 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestBenchRelayLine(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]bench.RelayProgress{
		"the relay publishes    [############------------] 5,000, 2,500/s, 2 s": {Doing: "the relay publishes", Done: 5000, Of: 10_000, Elapsed: 2 * time.Second},
		"steady                 [######------------------] 3,000, 1,000/s, 3 s": {Doing: "steady", Done: 3000, Elapsed: 3 * time.Second, Long: 12 * time.Second},
		"a                      [########################] 9, 9/s, 1 s":         {Doing: "a", Done: 9, Of: 8, Elapsed: time.Second},
		"b                      [------------------------] 0, 0/s, 0 s":         {Doing: "b"},
	} {
		if got := relayLine(p); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
