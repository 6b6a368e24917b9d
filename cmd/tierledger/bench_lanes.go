package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/bench"
)

func benchLanesCommand() *cobra.Command {
	l := bench.DefaultLanes()
	var asJSON bool
	routing := string(l.Routing)
	c := &cobra.Command{
		Use:   "lanes",
		Short: "Everybody wants tickets of one tier, of several processes",
		Long: `lanes loads one tier with requests for holds, each of another customer, over HTTP, in
several service processes on one database. By turns, so that whatever else changes is the
same for all, an event that isn't split is loaded through all processes and through one,
and an event that is split over lanes through all. Each client has one request under way
and sends the next at once (closed loop). How long batches waited for their journal's
lock is told by the processes' metrics.

  --routing   lane: clients send a customer's request to the process that prefers the
              customer's lane, as a balancer would that knows them; random: to any
  --sellout   sells an event out too, to parties of 1 to 6 that hold and buy, until one
              person is told that it's sold out; refusals while there were enough tickets
              are counted

Meanwhile all buckets are read again and again, each time at one instant: no ticket may be
missing or there twice. At the end every invariant is recomputed.

Exit codes: 0 done, 1 a request failed, a ticket was missing or refused falsely, or an
invariant is violated, 2 wrong usage.`,
		Example: `  tierledger bench lanes
  tierledger bench lanes --clients 256 --routing random
  tierledger bench lanes --sellout --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l.Routing = bench.Routing(routing)
			if err := l.Validate(); err != nil {
				return usageError{err}
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			l.Server = []string{program, "bench", "server"}
			l.Stderr = c.ErrOrStderr()
			var end func()
			l.Progress, end = tellProgress(c.ErrOrStderr())
			report, err := l.Run(c.Context())
			end()
			if err != nil {
				return err
			}
			if err := tellBench(c.OutOrStdout(), report, benchLanesTable, asJSON); err != nil {
				return err
			}
			return report.Err()
		},
	}
	benchLanesFlags(c, &l)
	c.Flags().StringVar(&routing, "routing", routing, "`WAY` of requests to processes: lane or random")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func benchLanesFlags(c *cobra.Command, l *bench.Lanes) {
	f := c.Flags()
	f.IntVar(&l.Processes, "processes", l.Processes, "`N` service processes")
	f.IntVar(&l.Split, "lanes", l.Split, "`N` lanes of the event that's split")
	f.IntVar(&l.Clients, "clients", l.Clients, "`N` clients, each with one request under way")
	f.DurationVar(&l.Duration, "duration", l.Duration, "`TIME` of each measurement, such as 10s")
	f.IntVar(&l.Rounds, "rounds", l.Rounds, "`N` turns of each measurement, which share its time")
	f.Uint64Var(&l.Seed, "seed", l.Seed, "`N` that picks parties and random ways; the same picks the same")
	f.BoolVar(&l.Sellout, "sellout", false, "sell an event out too")
	f.Int64Var(&l.SelloutTickets, "sellout-tickets", l.SelloutTickets, "`N` tickets of that")
	f.IntVar(&l.SelloutLanes, "sellout-lanes", l.SelloutLanes, "`N` lanes of that")
	f.StringVar(&l.DatabaseURL, "database-url", "", "PostgreSQL `URL` of a database for benchmarks (default: a private server)")
}

// benchLanesTable lays a report out in less than 100 columns.
func benchLanesTable(r bench.LanesReport) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lanes: %d processes on one database, customers of %d lanes sent by %s\n", r.Processes, r.Lanes, r.Routing)
	fmt.Fprintf(&b, "%d clients, closed loop, %d rounds, %d processors, PostgreSQL %s with fsync %s\n\n",
		r.Clients, r.Rounds, r.CPUs, r.PostgreSQL, r.Fsync)
	fmt.Fprintf(&b, "%-23s%9s%10s%10s%10s%8s%8s%9s%9s\n",
		"", "holds/s", "p50", "p95", "p99", "errors", "a batch", "waited", "of time")
	for _, s := range r.Systems {
		fmt.Fprintf(&b, "%-23s%9s%10s%10s%10s%8s%8.1f%7.1f s%7.1f %%\n", s.System, thousands(int64(s.HoldsPerS)),
			latency(s.P50), latency(s.P95), latency(s.P99), thousands(s.Errors), s.BatchMean, s.LockWaitSeconds, s.LockWaitShare*100)
	}
	fmt.Fprintf(&b, "\n%d lanes to one: x %.2f; to one through one process: x %.2f\n", r.Lanes, r.Ratio, r.RatioToOneProcess)
	fmt.Fprintf(&b, "batches that waited for their journal's lock: ")
	for i, s := range r.Systems {
		fmt.Fprintf(&b, "%s%.0f %% (%.2f ms)", []string{"", ", "}[min(i, 1)], s.BatchesWaited*100, s.LockWaitMeanMS)
	}
	b.WriteByte('\n')
	if s := r.LanesSellout; s != nil {
		selloutTable(&b, s)
	}
	fmt.Fprintf(&b, "%s readings of all buckets: tickets missing or too many in %s; a lane was dry for %.0f ms at most\n",
		thousands(r.Readings), thousands(r.Unconserved), r.DryMS)
	if r.RSSMB > 0 {
		fmt.Fprintf(&b, "memory of the processes: %.0f MB at most\n", r.RSSMB)
	}
	if r.Verified {
		fmt.Fprintf(&b, "verified in %.1f s: every invariant holds\n", r.VerifySeconds)
	}
	return b.String()
}

func selloutTable(b *strings.Builder, s *bench.LanesSellout) {
	fmt.Fprintf(b, "sellout: %s of %s tickets in %d lanes sold in %.1f s, %s holds, %s left\n", thousands(s.SelloutSold),
		thousands(s.SelloutTickets), s.SelloutLanes, s.SelloutSeconds, thousands(s.SelloutHolds), thousands(s.SelloutLeft))
	fmt.Fprintf(b, "sellout: hold p50 %s, p95 %s, p99 %s, at most %s\n", latency(s.SelloutP50), latency(s.SelloutP95),
		latency(s.SelloutP99), latency(s.SelloutMax))
	fmt.Fprintf(b, "sellout: refusal p99 %s, purchase p99 %s\n", latency(s.SelloutRefusalP99), latency(s.SelloutBuyP99))
	byNumber(s.SelloutRefused, func(code string, n int64) { fmt.Fprintf(b, "sellout: refused %s %s\n", thousands(n), code) })
	causes := make(map[string]int64, len(s.SelloutMoves))
	for cause, m := range s.SelloutMoves {
		causes[cause] = m.Moves
	}
	byNumber(causes, func(cause string, n int64) {
		fmt.Fprintf(b, "sellout: moved %s by %s in %s moves\n", thousands(s.SelloutMoves[cause].Tickets), cause, thousands(n))
	})
	fmt.Fprintf(b, "sellout: %s refused while there were enough tickets; a lane was dry for %.0f ms at most\n",
		thousands(s.SelloutFalse), s.SelloutDryMS)
}
