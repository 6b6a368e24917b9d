package main

import (
	"fmt"
	"strings"

	"github.com/tierledger/tierledger/internal/bench"
)

// benchTable lays a report out in less than 100 columns.
func benchTable(r bench.Report) string {
	var b strings.Builder
	loop := "closed loop"
	if r.Rate > 0 {
		loop = fmt.Sprintf("open loop of %.0f requests/s", r.Rate)
	}
	fmt.Fprintf(&b, "hot-tier: %d clients, %s, %d processors, PostgreSQL %s with fsync %s\n\n",
		r.Clients, loop, r.CPUs, r.PostgreSQL, r.Fsync)
	fmt.Fprintf(&b, "%-20s%10s%12s%11s%11s%11s%8s%10s\n",
		"", "holds/s", "refused/s", "p50", "p95", "p99", "errors", "product")
	for _, s := range r.Systems {
		fmt.Fprintf(&b, "%-20s%10s%12s%11s%11s%11s%8s%10s\n", s.System,
			thousands(int64(s.HoldsPerS)), thousands(int64(s.RefusedPerS)),
			latency(s.P50), latency(s.P95), latency(s.P99), thousands(s.Errors), times(s.Ratio))
	}
	b.WriteByte('\n')
	fmt.Fprintf(&b, "a hold: %.1f rows, %.0f bytes of WAL; %.1f holds a transaction\n",
		r.RowsPerHold, r.WALBytesPerHold, r.BatchMean)
	if r.WALBytesPerRefusal != nil {
		fmt.Fprintf(&b, "a refusal: %.2f bytes of WAL\n", *r.WALBytesPerRefusal)
	}
	if r.Dropped != nil {
		fmt.Fprintf(&b, "open loop: %s began late, %s were dropped\n", thousands(*r.Late), thousands(*r.Dropped))
	}
	if r.ThroughputEnd != nil {
		fmt.Fprintf(&b, "%s holds: the first tenth at %s/s, the last at %s/s\n", thousands(r.Holds),
			thousands(int64(*r.ThroughputStart)), thousands(int64(*r.ThroughputEnd)))
	}
	if r.StartSeconds != nil {
		fmt.Fprintf(&b, "the service starts on this store in %.2f s\n", *r.StartSeconds)
	}
	if r.RSSMB > 0 {
		fmt.Fprintf(&b, "memory of the service: %.0f MB at most\n", r.RSSMB)
	}
	if r.Verified {
		fmt.Fprintf(&b, "verified in %.1f s: every invariant holds\n", r.VerifySeconds)
	}
	return b.String()
}

// latency is a latency in milliseconds, with the digits that mean something.
func latency(ms float64) string {
	switch {
	case ms == 0:
		return ""
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

// times is how many times as fast the product is; "" when it isn't compared.
func times(ratio *float64) string {
	if ratio == nil {
		return ""
	}
	return fmt.Sprintf("x %.2f", *ratio)
}
