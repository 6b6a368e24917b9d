package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/internal/bench"
)

func TestBenchLanes(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := execute(t, "bench", "lanes", "--processes", "2", "--lanes", "2", "--clients", "4",
		"--duration", "200ms", "--rounds", "1", "--sellout", "--sellout-tickets", "60", "--sellout-lanes", "3", "--json")
	var report bench.LanesReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if report.Processes != 2 || len(report.Systems) != 3 || report.SelloutSold != 60 || !report.Verified {
		t.Errorf("%s", stdout)
	}
}

func TestBenchLanesTable(t *testing.T) {
	t.Parallel()
	waits := bench.LockWaits{BatchMean: 123.4, BatchesWaited: 0.78, LockWaitSeconds: 1234.5, LockWaitMeanMS: 12.34, LockWaitShare: 0.571}
	table := benchLanesTable(bench.LanesReport{
		Processes: 3, Lanes: 4, Clients: 64, Rounds: 10, Routing: bench.ByLane, Ratio: 1.64, RatioToOneProcess: 0.75,
		Readings: 12_345, Unconserved: 6, DryMS: 78, Verified: true,
		LanesSellout: &bench.LanesSellout{
			SelloutTickets: 100_000, SelloutSold: 99_999, SelloutLeft: 1, SelloutLanes: 8, SelloutHolds: 28_479, SelloutP99: 175.5,
			SelloutMax: 1277.2, SelloutP50: 127.7, SelloutP95: 155.5, SelloutRefusalP99: 349.9, SelloutBuyP99: 179.9,
			SelloutRefused: map[string]int64{"sold_out": 307}, SelloutFalse: 9, SelloutDryMS: 77,
			SelloutMoves: map[string]bench.Moves{"pull": {Moves: 22, Tickets: 1156}},
		},
		Systems: []bench.LanesResult{
			{System: "one lane", HoldsPerS: 13_087, P50: 117.5, P95: 144.9, P99: 163.5, LockWaits: waits},
			{System: "one lane, one process", HoldsPerS: 6808, LockWaits: waits},
			{System: "64 lanes", HoldsPerS: 5076, LockWaits: waits},
		},
	})
	for _, text := range []string{"3 processes on one database", "4 lanes sent by lane", "10 rounds", "13,087", "57.1 %", "x 1.64", "x 0.75",
		"78 % (12.34 ms)", "99,999 of 100,000 tickets in 8 lanes", "1 left", "refused 307 sold_out", "moved 1,156 by pull in 22 moves",
		"9 refused while there were enough", "12,345 readings", "too many in 6", "dry for 78 ms", "every invariant holds"} {
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
