package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/sale"
	"github.com/tierledger/tierledger/internal/verify"
)

// demoEvent is the event that the demo creates.
const demoEvent = "one-night-only"

// demoOptions are the flags of demo.
type demoOptions struct {
	devOptions
	plan sale.Plan
	exit bool
}

// demoCommand makes the demo command.
func demoCommand() *cobra.Command {
	o := &demoOptions{plan: sale.Plan{Event: demoEvent}}
	o.ephemeral = true
	c := &cobra.Command{
		Use:   "demo",
		Short: "Play a whole ticket sale on this machine, then audit it",
		Long: `demo starts what dev does, on a temporary store, and plays a sale through the real HTTP
API: a crowd rushes for too few tickets; some walk away, so that their holds run out and
the tickets come back, some give them back, some repeat or alter a request, some want
more than they may have. Some choose seats on the map, which others may have taken, or
ask for the best side by side. Most pay, with a simulated provider that is as providers
are: it declines, answers late or not at all, fails to capture, and some transfers come
when their order has been given up. Then the demo compares what the API told, and what
the map told those who followed it, with what the buyers wrote down; compares the orders
with the provider's own report; verifies the ledger; and reports, with what stays open by
design. A hold ends after nine seconds.

Without --exit it goes on serving afterwards, for you to try things.

Exit codes: 0 every invariant held and the counts agree, 1 they don't, or it failed,
2 wrong usage.`,
		Example: `  tierledger demo
  tierledger demo --buyers 200 --quantity 100 --exit
  tierledger demo --seats 8000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.IntVar(&o.plan.Buyers, "buyers", 5000, "how many buyers (`N`) come")
	flags.IntVar(&o.plan.Quantity, "quantity", 3000, "how many tickets (`N`) the hot tier has")
	flags.IntVar(&o.plan.Seats, "seats", 600, "how many assigned seats (`N`) are on sale beside them; 0 for none")
	flags.Uint64Var(&o.plan.Seed, "seed", 1, "the same `SEED` makes the same crowd")
	flags.BoolVar(&o.exit, "exit", false, "exit after the report")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "loopback `ADDRESS` to serve on; port 0 takes a free one")
	logFlag(c, &o.level, slog.LevelWarn)
	return c
}

// check refuses what no machine could play, before anything is started.
func (o *demoOptions) check() error {
	switch {
	case o.plan.Buyers < 1 || o.plan.Buyers > sale.MaxBuyers:
		return usagef("--buyers must be 1 to %d", sale.MaxBuyers)
	case o.plan.Quantity < 1 || o.plan.Quantity > sale.MaxQuantity:
		return usagef("--quantity must be 1 to %d", sale.MaxQuantity)
	case o.plan.Seats < 0 || o.plan.Seats > sale.MaxSeats:
		return usagef("--seats must be 0 to %d", sale.MaxSeats)
	}
	return nil
}

// run plays the sale and, unless told to exit, serves until ctx ends. Whatever comes
// after it, a sale that went wrong makes the exit code 1.
func (o *demoOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	s, err := openSandbox(ctx, o.sandbox(stderr))
	if err != nil {
		return err
	}
	err = o.play(ctx, s, stdout, stderr)
	if !o.exit && (err == nil || errors.Is(err, errTold)) {
		tellTries(stderr, s.URL(), o.plan.Seats > 0)
		err = errors.Join(err, s.serve(ctx, stdout))
	}
	return errors.Join(err, s.Close())
}

// play plays the sale, audits it and reports. The error is errTold when something
// in it isn't as it must be.
func (o *demoOptions) play(ctx context.Context, s *sandbox, stdout, stderr io.Writer) error {
	plan := o.plan
	plan.URL = s.URL()
	seats := ""
	if plan.Seats > 0 {
		seats = fmt.Sprintf(", %d of them seats", plan.Seats)
	}
	fmt.Fprintf(stderr, "%d buyers rush for %d tickets%s\n\n", plan.Buyers, plan.Capacity(), seats)
	// Progress is for whoever watches, the report for whoever keeps it: they part ways.
	show := newShow(stderr, plan)
	report, err := sale.Run(ctx, plan, show.update)
	show.end()
	if err != nil {
		return err
	}
	tellSale(stdout, report)
	fmt.Fprintln(stdout, "\nthe ledger, recomputed from its journals:")
	summary, err := verify.Run(ctx, s.databaseURL(), verify.Options{
		Report: func(r verify.Result) { tellResult(stdout, r) },
	})
	if err != nil {
		return err
	}
	// Both must hold: the books by themselves, and the books against the buyers.
	err = tellVerified(stdout, summary, false)
	if !report.OK() {
		return errTold
	}
	return err
}

// tellTries says what to do with a sandbox that goes on.
func tellTries(w io.Writer, url string, seated bool) {
	seats := ""
	if seated {
		seats = fmt.Sprintf("The map of the seats, as it changes: %s/events/%s/map\n", url, demoEvent)
	}
	fmt.Fprintf(w, `
The event is still on sale; its holds last nine seconds, the first four to begin a payment. Try:
  curl %[1]s/v1/events/%[2]s/availability
  curl %[1]s/v1/events/%[2]s/holds -H 'Idempotency-Key: mine' --json '{"customer":"me","items":[{"tier":"ga","quantity":2}]}'
  curl '%[1]s/v1/orders?event=%[2]s&limit=3'
  curl '%[1]s/v1/events/%[2]s/entries?limit=3'
%[3]sCtrl-C stops it and removes everything.
`, url, demoEvent, seats)
}
