package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/bench"
)

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure the ledger on this machine",
		Long: `bench loads the ledger and tells how it did, beside other ways to do the same work on
the same PostgreSQL. Without --database-url it runs on a private PostgreSQL, which is
removed at the end.`,
		Example: `  tierledger bench hot-tier --baseline --floor
  tierledger bench lanes --sellout
  tierledger bench seats --baseline
  tierledger bench sale
  tierledger bench relay`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(hotTierCommand(), benchLanesCommand(), seatsCommand(), saleCommand(), benchRelayCommand(), benchServerCommand())
	return c
}

func hotTierCommand() *cobra.Command {
	h := bench.DefaultHotTier()
	var asJSON bool
	c := &cobra.Command{
		Use:   "hot-tier",
		Short: "Everybody wants tickets of one tier",
		Long: `hot-tier loads one tier of one event with requests for holds, each under a key of its
own, and measures what the service answers over HTTP. Each client has one request under
way and sends the next at once (closed loop); with --rate requests come at their time
whatever comes back, and latencies count from that time (open loop).

  --baseline  measures two other ways on the same PostgreSQL, over HTTP too, with the
              same rows written: a transaction a request with SELECT … FOR UPDATE on the
              tier, and a transaction a request in one hand-tuned statement
  --floor     measures the same rows in bare multi-row inserts: what the database needs
  --engine    measures the ledger in this process, without HTTP; from 1,024 callers,
              which fill its batches as the floor fills its own, unless --clients says
  --sold-out  measures refusals too, and what they write to the database's log

Everything is measured in this one run, one after the other, on a checkpoint each. At
the end every invariant is recomputed.

Exit codes: 0 done, 1 a request failed or an invariant is violated, 2 wrong usage.`,
		Example: `  tierledger bench hot-tier --baseline --floor --sold-out
  tierledger bench hot-tier --engine --floor --json
  tierledger bench hot-tier --rate 2000 --duration 60s
  tierledger bench hot-tier --holds 1000000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if h.Engine && !c.Flags().Changed("clients") {
				h.Clients = bench.EngineClients
			}
			if err := h.Validate(); err != nil {
				return usageError{err}
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			h.Server = []string{program, "bench", "server"}
			h.Stderr = c.ErrOrStderr()
			var end func()
			h.Progress, end = tellProgress(c.ErrOrStderr())
			report, err := h.Run(c.Context())
			end()
			if err != nil {
				return err
			}
			if err := tellBench(c.OutOrStdout(), report, benchTable, asJSON); err != nil {
				return err
			}
			return report.Err()
		},
	}
	hotTierFlags(c, &h)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func hotTierFlags(c *cobra.Command, h *bench.HotTier) {
	f := c.Flags()
	f.IntVar(&h.Clients, "clients", h.Clients, "`N` connections, each with one request under way")
	f.DurationVar(&h.Duration, "duration", h.Duration, "`TIME` of each measurement, such as 10s")
	f.Int64Var(&h.Holds, "holds", 0, "measure the service for `N` requests, however long they take")
	f.Float64Var(&h.Rate, "rate", 0, "open loop: `N` requests a second, on at most --clients connections")
	f.Int64Var(&h.Quantity, "quantity", h.Quantity, "`N` tickets of the tier")
	f.Int64Var(&h.Customers, "customers", 0, "requests come from `N` customers (default: each from another)")
	f.Int64Var(&h.Limit, "limit", 0, "a customer may have `N` tickets (default: any number)")
	f.Int64Var(&h.PerHold, "per-hold", h.PerHold, "`N` tickets in each request")
	f.Uint64Var(&h.Seed, "seed", h.Seed, "`N` that picks the customers; the same picks the same")
	f.BoolVar(&h.Baseline, "baseline", false, "measure a transaction a request too")
	f.BoolVar(&h.Floor, "floor", false, "measure bare inserts too")
	f.BoolVar(&h.Engine, "engine", false, "measure the ledger without HTTP")
	f.BoolVar(&h.SoldOut, "sold-out", false, "measure refusals too")
	f.StringVar(&h.DatabaseURL, "database-url", "", "PostgreSQL `URL` of a database for benchmarks (default: a private server)")
	f.StringVar(&h.Profile, "profile", "", "write the service's CPU profile to `FILE`")
}

// benchServerCommand is the child process of a benchmark.
func benchServerCommand() *cobra.Command {
	var s bench.Server
	var system string
	c := &cobra.Command{
		Use:     "server",
		Short:   "Serve a system under load; bench starts it",
		Long:    "server is the process that bench puts load on. It ends with its standard input.",
		Example: "  " + bench.EnvDatabaseURL + "=… tierledger bench server --system product",
		Hidden:  true,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s.System, s.DatabaseURL = bench.System(system), os.Getenv(bench.EnvDatabaseURL)
			return s.Serve(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&system, "system", string(bench.Product), "product, publishing, selling, row-lock, single-statement or seat-lock")
	c.Flags().StringVar(&s.Profile, "profile", "", "write a CPU profile to `FILE`")
	c.Flags().StringVar(&s.Lanes, "lanes", "", "`LANES` that the product prefers, such as 2/3")
	c.Flags().StringVar(&s.NATSDir, "nats-dir", "", "`DIR` of the stream that publishing publishes to")
	c.Flags().BoolVar(&s.SyncAlways, "sync-always", false, "the stream flushes before it acknowledges")
	return c
}

// tellBench prints a report, for people as a table or as one JSON object.
func tellBench[R any](w io.Writer, r R, table func(R) string, asJSON bool) error {
	if !asJSON {
		_, err := io.WriteString(w, table(r))
		return err
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(r)
}

// tellProgress keeps one line up to date on a terminal; end clears it.
func tellProgress(w io.Writer) (tell func(bench.Progress), end func()) {
	if !isTerminal(w) {
		return nil, func() {}
	}
	const clear = "\r\x1b[K"
	tell = func(p bench.Progress) {
		fmt.Fprintf(w, clear+"%s: %s held, %s refused, %s failed, %.0f s", p.System,
			thousands(p.Held), thousands(p.Refused), thousands(p.Failed), p.Elapsed.Seconds())
	}
	return tell, func() { fmt.Fprint(w, clear) }
}
