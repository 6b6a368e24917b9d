package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/bench"
)

func saleCommand() *cobra.Command {
	s := bench.DefaultSale()
	var asJSON bool
	authorize := s.Authorize.Milliseconds()
	c := &cobra.Command{
		Use:   "sale",
		Short: "Everybody buys: hold, payment, capture",
		Long: `sale loads one event with complete purchases over HTTP: a hold, its payment with the
simulated provider, and looks at the order until the money is captured. Each client has
one purchase under way and begins the next at once (closed loop); with --rate purchases
come at their time whatever comes back, and latencies count from that time (open loop).
Beside them, readers look at the status of recent orders.

The provider runs in the service's process and takes --authorize-ms for an authorization;
the latency of a payment is told with that time and without.

  --faults F  a share F of the provider's calls ends in a timeout or an error, done or not,
              or is slow; the same share of decisions, captures and webhooks goes wrong.
              Outcomes that aren't known are waited for at the end, as the service's own
              schedule brings them, for --settle at most

At the end the orders are held against the provider's settlement report: nothing may be
charged twice, lost or unexplained; and every invariant is recomputed.

Exit codes: 0 done, 1 a request failed, the money or an invariant is wrong, 2 wrong usage.`,
		Example: `  tierledger bench sale
  tierledger bench sale --rate 300 --duration 60s
  tierledger bench sale --faults 0.2 --purchases 5000 --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s.Authorize = time.Duration(authorize) * time.Millisecond
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
			s.Progress, end = tellSaleProgress(c.ErrOrStderr())
			report, err := s.Run(c.Context())
			end()
			if err != nil {
				return err
			}
			if err := tellBench(c.OutOrStdout(), report, saleTable, asJSON); err != nil {
				return err
			}
			return report.Err()
		},
	}
	saleFlags(c, &s)
	c.Flags().Int64Var(&authorize, "authorize-ms", authorize, "`MS` that the provider takes for an authorization")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func saleFlags(c *cobra.Command, s *bench.Sale) {
	f := c.Flags()
	f.IntVar(&s.Clients, "clients", s.Clients, "`N` connections, each with one purchase under way")
	f.IntVar(&s.Readers, "readers", s.Readers, "`N` connections that read the status of recent orders")
	f.DurationVar(&s.Duration, "duration", s.Duration, "`TIME` of the measurement, such as 10s")
	f.Int64Var(&s.Purchases, "purchases", 0, "measure `N` purchases, however long they take")
	f.Float64Var(&s.Rate, "rate", 0, "open loop: `N` purchases a second, on at most --clients connections")
	f.Int64Var(&s.Quantity, "quantity", s.Quantity, "`N` tickets of the event")
	f.Int64Var(&s.PerHold, "per-hold", s.PerHold, "`N` tickets in each purchase")
	f.Float64Var(&s.Faults, "faults", 0, "`SHARE` of what goes wrong at the provider, 0 to 1")
	f.DurationVar(&s.Settle, "settle", s.Settle, "longest `TIME` to wait at the end for outcomes that aren't known")
	f.StringVar(&s.DatabaseURL, "database-url", "", "PostgreSQL `URL` of a database for benchmarks (default: a private server)")
	f.StringVar(&s.Profile, "profile", "", "write the service's CPU profile to `FILE`")
}

// tellSaleProgress keeps one line up to date on a terminal; end clears it. Elsewhere
// only the wait at the end is told, a line now and then.
func tellSaleProgress(w io.Writer) (tell func(bench.SaleProgress), end func()) {
	if isTerminal(w) {
		const clear = "\r\x1b[K"
		return func(p bench.SaleProgress) { fmt.Fprint(w, clear, saleLine(p)) }, func() { fmt.Fprint(w, clear) }
	}
	var next time.Duration
	tell = func(p bench.SaleProgress) {
		if p.Limit > 0 && p.Elapsed >= next {
			next = p.Elapsed + 5*lineEvery
			fmt.Fprintln(w, saleLine(p))
		}
	}
	return tell, func() {}
}

// saleLine is how far a sale is.
func saleLine(p bench.SaleProgress) string {
	if p.Limit > 0 {
		return fmt.Sprintf("%s: %s orders without outcome, %.0f s of %.0f s at most", p.Phase,
			thousands(p.Open), p.Elapsed.Seconds(), p.Limit.Seconds())
	}
	return fmt.Sprintf("%s: %s captured, %s declined, %s open, %s failed, %.0f s", p.Phase,
		thousands(p.Captured), thousands(p.Declined), thousands(p.Open), thousands(p.Failed), p.Elapsed.Seconds())
}

// saleTable lays a report out in less than 100 columns.
func saleTable(r bench.SaleReport) string {
	var b strings.Builder
	loop := "closed loop"
	if r.Rate > 0 {
		loop = fmt.Sprintf("open loop of %.0f purchases/s", r.Rate)
	}
	fmt.Fprintf(&b, "sale: %d clients, %s, %d readers, %d processors, PostgreSQL %s with fsync %s\n",
		r.Clients, loop, r.Readers, r.CPUs, r.PostgreSQL, r.Fsync)
	fmt.Fprintf(&b, "the provider takes %.0f ms to authorize; %.0f %% faults\n\n", r.AuthorizeMS, r.Faults*100)
	fmt.Fprintf(&b, "%s purchases in %.1f s: %s/s\n\n", thousands(r.Purchases), r.DurationSeconds,
		thousands(int64(r.PurchasesPerS)))
	fmt.Fprintf(&b, "%-28s%11s%11s%11s\n", "", "p50", "p95", "p99")
	for _, row := range []struct {
		name          string
		p50, p95, p99 float64
	}{
		{"hold", r.HoldP50, 0, r.HoldP99},
		{"checkout", r.CheckoutP50, r.CheckoutP95, r.CheckoutP99},
		{"  beyond the provider's time", r.BeyondP50, r.BeyondP95, r.BeyondP99},
		{"from hold to captured", r.CompleteP50, 0, r.CompleteP99},
		{"order status", r.StatusP50, 0, r.StatusP99},
	} {
		fmt.Fprintf(&b, "%-28s%11s%11s%11s\n", row.name, latency(row.p50), latency(row.p95), latency(row.p99))
	}
	b.WriteByte('\n')
	fmt.Fprintf(&b, "a purchase: %.1f entries, %.0f bytes of WAL; %.1f entries a transaction; %s status reads/s\n",
		r.EntriesPerPurchase, r.WALBytesPerPurchase, r.BatchMean, thousands(int64(r.StatusPerS)))
	if r.Dropped != nil {
		fmt.Fprintf(&b, "open loop: %s began late, %s were dropped\n", thousands(*r.Late), thousands(*r.Dropped))
	}
	byNumber(r.Refused, func(code string, n int64) { fmt.Fprintf(&b, "refused: %s %s\n", thousands(n), code) })
	fmt.Fprintf(&b, "orders: %s captured, %s declined, %s cancelled, %s without outcome after %.0f s\n",
		thousands(r.Captured), thousands(r.Declined), thousands(r.Cancelled), thousands(r.Unsettled), r.SettleSeconds)
	fmt.Fprintf(&b, "money: %s lines of the provider's report, %s unexplained; %s double charges, %s lost payments\n",
		thousands(r.ReportLines), thousands(r.UnexplainedLines), thousands(r.DoubleCharges), thousands(r.LostPayments))
	fmt.Fprintf(&b, "webhooks: %s stored; tickets oversold: %s\n", thousands(r.Webhooks), thousands(r.Oversold))
	if r.RSSMB > 0 {
		fmt.Fprintf(&b, "memory of the service and the provider: %.0f MB at most\n", r.RSSMB)
	}
	if r.Verified {
		fmt.Fprintf(&b, "verified in %.1f s: every invariant holds\n", r.VerifySeconds)
	}
	return b.String()
}
