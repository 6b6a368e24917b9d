package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/internal/bench"
)

func TestBenchSeats(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := execute(t, "bench", "seats", "--seats", "400", "--clients", "4", "--duration", "300ms",
		"--map-readers", "100", "--followers", "3", "--json")
	var report bench.SeatsReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if report.Attempts == 0 || report.MapReport == nil || report.DeltaReport == nil || !report.Verified {
		t.Errorf("%s", stdout)
	}
}

func TestSeatsTable(t *testing.T) {
	t.Parallel()
	table := seatsTable(bench.SeatsReport{
		Clients: 64, Rate: 2000, Seats: 50_000, Sections: 50, HoldSeconds: 20, Followers: 1000, Late: new(int64(5)), Dropped: new(int64(6)),
		Refused: map[string]int64{"seat_unavailable": 7}, Verified: true,
		MapReport:     &bench.MapReport{MapBytesGzip: 123_456, MapNotModified: 0.95, MapReadsPerS: 2000, MapDropped: 8},
		DeltaReport:   &bench.DeltaReport{Deltas: 50_000, DeltaP99: 250, FollowersCut: 9},
		SelloutReport: &bench.SelloutReport{SelloutSeats: 8000, SelloutHeld: 7999, SelloutAttempts: 2400, SelloutRefusedEarly: 12, SelloutRefusedEarlyShare: 0.005},
		Systems: []bench.SeatsResult{
			{System: "product", AttemptsPerS: 12_345.6, HoldsPerS: 2345, P99: 123.4},
			{System: "seat-lock", AttemptsPerS: 1234, Ratio: new(10.0)},
		},
	})
	for _, text := range []string{"open loop of 2000 attempts/s", "50,000 seats in 50 sections", "5 began late, 6 were dropped",
		"refused: 7 seat_unavailable", "12,345", "x 10.00", "95 % not modified", "8 reads were dropped", "50,000 events to 1,000 followers",
		"9 cut", "7,999 of 8,000 seats", "12 of 2,400 attempts", "(0.50 %)", "every invariant holds"} {
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
