package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/bench"
)

func benchRelayCommand() *cobra.Command {
	o := bench.DefaultRelay()
	var asJSON bool
	c := &cobra.Command{
		Use:   "relay",
		Short: "Publish the journals, and see what that costs",
		Long: `relay measures the publisher, which puts every entry of the journals into a JetStream
stream, once and in order, with the consumers beside it. Its parts, which --parts chooses:

  steady   --rate holds a second of one event, open loop. The lag of publishing is from an
           entry's time until the stream has stored it, by the stream's own stamps; until it
           was acknowledged is told by the service's metrics
  cost     clients that never rest, by turns with publisher and consumers and without; how
           many holds fewer there are with them, and how far the publisher is behind
  backlog  --entries entries wait: real holds, placed by the ledger itself before. Beside it
           the same messages from memory, into another stream: bare, thousands at a time
           unacknowledged, with neither order nor fence; and one by one, each after the one
           before is acknowledged
  loss     the stream's server loses all its files and comes back. Noticed is until the
           first entry is acknowledged again, complete until the last

JetStream runs in the process that publishes, its files in a temporary store. By default it
acknowledges what the system has, and flushes every two minutes; with --sync-always it
flushes every batch before it acknowledges.

After each part the stream is read whole: every entry of every journal must be there, once
and in order. At the end every invariant is recomputed. A million entries take some 4 GB of
disk meanwhile.

Exit codes: 0 done, 1 a request failed, the stream isn't what the journals are, or an
invariant is violated, 2 wrong usage.`,
		Example: `  tierledger bench relay
  tierledger bench relay --parts backlog --entries 200000 --sync-always
  tierledger bench relay --parts steady,cost --duration 60s --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			o.Server = []string{program, "bench", "server"}
			o.Stderr = c.ErrOrStderr()
			var end func()
			o.Progress, end = tellRelayProgress(c.ErrOrStderr())
			report, err := o.Run(c.Context())
			end()
			if err != nil {
				return err
			}
			if err := tellBench(c.OutOrStdout(), report, benchRelayTable, asJSON); err != nil {
				return err
			}
			return report.Err()
		},
	}
	benchRelayFlags(c, &o)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func benchRelayFlags(c *cobra.Command, o *bench.Relay) {
	f := c.Flags()
	f.StringSliceVar(&o.Parts, "parts", o.Parts, "`PARTS` to measure, several with a comma")
	f.Int64Var(&o.Entries, "entries", o.Entries, "`N` entries of the backlog")
	f.Float64Var(&o.Rate, "rate", o.Rate, "`N` holds a second of the even load")
	f.IntVar(&o.Clients, "clients", o.Clients, "`N` clients, each with one request under way")
	f.DurationVar(&o.Duration, "duration", o.Duration, "`TIME` of the even load, and of each side of the cost, such as 60s")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "`N` turns of each side of the cost, which share its time")
	f.BoolVar(&o.SyncAlways, "sync-always", false, "JetStream flushes before it acknowledges")
	f.StringVar(&o.DatabaseURL, "database-url", "", "PostgreSQL `URL` of a database for benchmarks (default: a private server)")
	f.StringVar(&o.Profile, "profile", "", "write the CPU profile of what publishes to `FILE`; of the last part that does")
}

// tellRelayProgress keeps one line up to date on a terminal; end clears it.
func tellRelayProgress(w io.Writer) (tell func(bench.RelayProgress), end func()) {
	if !isTerminal(w) {
		return nil, func() {}
	}
	const clear = "\r\x1b[K"
	return func(p bench.RelayProgress) { fmt.Fprint(w, clear, relayLine(p)) }, func() { fmt.Fprint(w, clear) }
}

// relayLine is how far a part is, with a bar where that's known.
func relayLine(p bench.RelayProgress) string {
	share := 0.0
	switch {
	case p.Of > 0:
		share = float64(p.Done) / float64(p.Of)
	case p.Long > 0:
		share = p.Elapsed.Seconds() / p.Long.Seconds()
	}
	const width = 24
	full := int(min(max(share, 0), 1) * width)
	return fmt.Sprintf("%-22s [%s%s] %s, %s/s, %.0f s", p.Doing, strings.Repeat("#", full), strings.Repeat("-", width-full),
		thousands(p.Done), thousands(int64(float64(p.Done)/max(p.Elapsed.Seconds(), 0.001))), p.Elapsed.Seconds())
}

// benchRelayTable lays a report out in less than 100 columns.
func benchRelayTable(r bench.RelayReport) string {
	var b strings.Builder
	sync := "flushed every two minutes"
	if r.SyncAlways {
		sync = "flushed before it acknowledges"
	}
	fmt.Fprintf(&b, "relay: %d clients, %d processors, PostgreSQL %s with fsync %s, stream %s\n\n",
		r.Clients, r.CPUs, r.PostgreSQL, r.Fsync, sync)
	if s := r.RelaySteady; s != nil {
		fmt.Fprintf(&b, "steady: %s of %s holds/s, open loop; %s began late, %s were dropped\n", thousands(int64(s.HoldsPerS)),
			thousands(int64(s.Rate)), thousands(s.Late), thousands(s.Dropped))
		fmt.Fprintf(&b, "steady: hold p50 %s, p99 %s\n", latency(s.HoldP50), latency(s.HoldP99))
		fmt.Fprintf(&b, "steady: lag until stored p50 %s, p99 %s, at most %s\n", latency(s.LagP50), latency(s.LagP99), latency(s.LagMax))
		fmt.Fprintf(&b, "steady: until acknowledged %s in the mean, p99 %s at most; batches of %.0f; %.0f MB\n\n",
			latency(s.AckedMean), latency(s.AckedP99), s.BatchMean, s.RSSMB)
	}
	if c := r.RelayCost; c != nil {
		relayCostTable(&b, r.Rounds, c)
	}
	if s := r.RelayBacklog; s != nil {
		fmt.Fprintf(&b, "backlog: %s entries of %.0f bytes in %.1f s, batches of %.0f\n", thousands(s.Entries), s.EventBytes,
			s.Seconds, s.BatchMean)
		fmt.Fprintf(&b, "%-32s%12s%10s%12s\n", "", "entries/s", "MB/s", "the relay")
		for _, row := range []struct {
			name      string
			perS, mbS float64
			ratio     *float64
		}{
			{"relay", s.EntriesPerS, s.MBPerS, nil},
			{"bare: no order, no fence", s.BarePerS, s.BarePerS * s.EventBytes / 1e6, &s.RatioToBare},
			{"one by one", s.OneByOnePerS, s.OneByOnePerS * s.EventBytes / 1e6, &s.RatioToOneByOne},
		} {
			fmt.Fprintf(&b, "%-32s%12s%10.1f%12s\n", row.name, thousands(int64(row.perS)), row.mbS, times(row.ratio))
		}
		b.WriteByte('\n')
	}
	if s := r.RelayLoss; s != nil {
		fmt.Fprintf(&b, "loss: %s entries; published again after %.1f s, complete after %.1f s: %s/s\n\n",
			thousands(s.Lost), s.NoticedMS/1e3, s.CompleteSeconds, thousands(int64(s.AgainPerS)))
	}
	fmt.Fprintf(&b, "stream: %s messages read; %s entries missing, %s doubled\n", thousands(r.Audited.Messages),
		thousands(r.Audited.Missing), thousands(r.Audited.Doubled))
	if r.Verified {
		fmt.Fprintf(&b, "verified in %.1f s: every invariant holds\n", r.VerifySeconds)
	}
	return b.String()
}

func relayCostTable(b *strings.Builder, rounds int, c *bench.RelayCost) {
	fmt.Fprintf(b, "cost, closed loop, %d rounds%*s%12s%12s\n", rounds, 9-len(fmt.Sprint(rounds)), "holds/s", "lowest", "highest")
	for _, side := range []struct {
		name   string
		perS   float64
		rounds []bench.CostRound
	}{{"without publisher", c.OffPerS, c.Off}, {"with it and consumers", c.OnPerS, c.On}} {
		low, high := side.perS, side.perS
		for _, round := range side.rounds {
			low, high = min(low, round.HoldsPerS), max(high, round.HoldsPerS)
		}
		fmt.Fprintf(b, "%-28s%9s%12s%12s\n", side.name, thousands(int64(side.perS)), thousands(int64(low)), thousands(int64(high)))
	}
	fmt.Fprintf(b, "cost: %.1f %% of the holds; lag p50 %s, p99 %s, at most %s\n", c.Cost*100,
		latency(c.LagP50), latency(c.LagP99), latency(c.LagMax))
	fmt.Fprintf(b, "cost: %s entries behind at the end of a round at most, published %s later\n\n", thousands(c.Behind), latency(c.CatchUpMS))
}
