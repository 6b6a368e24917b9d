package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/bench"
)

func seatsCommand() *cobra.Command {
	s := bench.DefaultSeats()
	var asJSON bool
	c := &cobra.Command{
		Use:   "seats",
		Short: "Everybody wants seats of a few sections",
		Long: `seats loads one event of assigned seats with requests for holds, 80 % of them for 2 % of
the sections: groups of 1 to 6 that name neighbouring seats, in any order, and parties of
1 to 6 that take the best available. Most holds are released at once; the others run out
after --hold-seconds. Each client has one request under way and sends the next at once
(closed loop); with --rate requests come at their time whatever comes back, and latencies
count from that time (open loop).

Beside them shoppers read the map, most of them to hear that it hasn't changed, and others
follow its changes: their latency counts from the answer to the first hold that an event
tells of.

  --baseline  measures another way on the same PostgreSQL, over HTTP too, with the same
              rows written: a transaction a request with SELECT … FOR UPDATE on the seats
              in order, SKIP LOCKED for the best available. Both have clients that never
              rest, and nobody beside them
  --sellout   fills an event of 8,000 seats with parties that take the best available,
              and counts those that were refused while enough seats were free

At the end no seat may have been two customers' at one time, by the holds in the database
and by those that clients were told of; a map that one follower kept by the changes alone
must be what the journal says; and every invariant is recomputed.

Exit codes: 0 done, 1 a request failed, a seat was given away twice or told wrong, or an
invariant is violated, 2 wrong usage.`,
		Example: `  tierledger bench seats
  tierledger bench seats --rate 2000 --duration 60s
  tierledger bench seats --baseline --sellout --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.Validate(); err != nil {
				return usageError{err}
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			s.Server = []string{program, "bench", "server"}
			s.Stderr = c.ErrOrStderr()
			var end func()
			s.Progress, end = tellProgress(c.ErrOrStderr())
			report, err := s.Run(c.Context())
			end()
			if err != nil {
				return err
			}
			if err := tellBench(c.OutOrStdout(), report, seatsTable, asJSON); err != nil {
				return err
			}
			return report.Err()
		},
	}
	seatsFlags(c, &s)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func seatsFlags(c *cobra.Command, s *bench.Seats) {
	f := c.Flags()
	f.IntVar(&s.Clients, "clients", s.Clients, "`N` connections, each with one request under way")
	f.DurationVar(&s.Duration, "duration", s.Duration, "`TIME` of each measurement, such as 10s")
	f.Float64Var(&s.Rate, "rate", 0, "open loop: `N` attempts a second, on at most --clients connections")
	f.IntVar(&s.Size, "seats", s.Size, "`N` seats of the event")
	f.IntVar(&s.HoldSeconds, "hold-seconds", s.HoldSeconds, "`N` seconds until a hold runs out")
	f.Float64Var(&s.Release, "release", s.Release, "`SHARE` of the holds that are released at once, 0 to 1")
	f.Int64Var(&s.Customers, "customers", 0, "attempts come from `N` customers (default: each from another)")
	f.Int64Var(&s.Limit, "limit", 0, "a customer may have `N` tickets (default: any number)")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "`N` that picks what is asked for; the same picks the same")
	f.Float64Var(&s.MapReads, "map-readers", s.MapReads, "`N` reads of the map a second beside the load; 0: none")
	f.IntVar(&s.Followers, "followers", s.Followers, "`N` connections that follow the changes beside the load; 0: none")
	f.BoolVar(&s.Baseline, "baseline", false, "measure a transaction a request too")
	f.BoolVar(&s.Sellout, "sellout", false, "sell an event of best available seats out too")
	f.BoolVar(&s.AcceptSplit, "accept-split", s.AcceptSplit,
		"parties of the sellout sit apart from the start; false: when they're refused side by side")
	f.StringVar(&s.DatabaseURL, "database-url", "", "PostgreSQL `URL` of a database for benchmarks (default: a private server)")
	f.StringVar(&s.Profile, "profile", "", "write the service's CPU profile to `FILE`")
}

// seatsTable lays a report out in less than 100 columns.
func seatsTable(r bench.SeatsReport) string {
	var b strings.Builder
	loop := "closed loop"
	if r.Rate > 0 {
		loop = fmt.Sprintf("open loop of %.0f attempts/s", r.Rate)
	}
	fmt.Fprintf(&b, "seats: %s seats in %d sections, holds of %d s\n", thousands(int64(r.Seats)), r.Sections, r.HoldSeconds)
	fmt.Fprintf(&b, "%d clients, %s, %d processors, PostgreSQL %s with fsync %s\n\n",
		r.Clients, loop, r.CPUs, r.PostgreSQL, r.Fsync)
	fmt.Fprintf(&b, "%-16s%11s%10s%11s%11s%11s%8s%8s%10s\n",
		"", "attempts/s", "holds/s", "p50", "p95", "p99", "double", "errors", "product")
	for _, s := range r.Systems {
		fmt.Fprintf(&b, "%-16s%11s%10s%11s%11s%11s%8s%8s%10s\n", s.System, thousands(int64(s.AttemptsPerS)),
			thousands(int64(s.HoldsPerS)), latency(s.P50), latency(s.P95), latency(s.P99),
			thousands(s.DoubleHolds), thousands(s.Errors), times(s.Ratio))
	}
	b.WriteByte('\n')
	byNumber(r.Refused, func(code string, n int64) { fmt.Fprintf(&b, "refused: %s %s\n", thousands(n), code) })
	if r.Dropped != nil {
		fmt.Fprintf(&b, "open loop: %s began late, %s were dropped\n", thousands(*r.Late), thousands(*r.Dropped))
	}
	fmt.Fprintf(&b, "releases: %s/s, p99 %s\n", thousands(int64(r.ReleasesPerS)), latency(r.ReleaseP99))
	fmt.Fprintf(&b, "a hold: %.0f bytes of WAL, its release too; %.1f entries a transaction\n", r.WALBytesPerHold, r.BatchMean)
	if m := r.MapReport; m != nil {
		fmt.Fprintf(&b, "map: %s reads/s, %.0f %% not modified, p50 %s, p99 %s; %s bytes gzipped\n",
			thousands(int64(m.MapReadsPerS)), m.MapNotModified*100, latency(m.MapP50), latency(m.MapP99), thousands(m.MapBytesGzip))
		if m.MapDropped > 0 {
			fmt.Fprintf(&b, "map: %s reads were dropped\n", thousands(m.MapDropped))
		}
	}
	if d := r.DeltaReport; d != nil {
		fmt.Fprintf(&b, "changes: %s events to %s followers, p50 %s, p99 %s; %s cut, %s gaps\n",
			thousands(d.Deltas), thousands(int64(r.Followers)), latency(d.DeltaP50), latency(d.DeltaP99),
			thousands(d.FollowersCut), thousands(d.FollowerGaps))
		fmt.Fprintf(&b, "seats that the changes told wrong: %s\n", thousands(d.DeltaWrong))
	}
	if s := r.SelloutReport; s != nil {
		fmt.Fprintf(&b, "sellout: %s of %s seats held in %.1f s, %s holds, %s of them apart\n",
			thousands(int64(s.SelloutHeld)), thousands(int64(s.SelloutSeats)), s.SelloutSeconds,
			thousands(s.SelloutHolds), thousands(s.SelloutSplit))
		fmt.Fprintf(&b, "sellout: %s of %s attempts were refused while enough seats were free (%.2f %%)\n",
			thousands(s.SelloutRefusedEarly), thousands(s.SelloutAttempts), s.SelloutRefusedEarlyShare*100)
	}
	fmt.Fprintf(&b, "seats given away twice: %s\n", thousands(r.DoubleHolds))
	if r.RSSMB > 0 {
		fmt.Fprintf(&b, "memory of the service: %.0f MB at most\n", r.RSSMB)
	}
	if r.Verified {
		fmt.Fprintf(&b, "verified in %.1f s: every invariant holds\n", r.VerifySeconds)
	}
	return b.String()
}
