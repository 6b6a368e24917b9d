package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/verify"
)

// verifyCommand makes the verify command.
func verifyCommand() *cobra.Command {
	var d database
	var event string
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "Recompute every invariant from the journals",
		Long: `verify recomputes the books from the journals, on one snapshot and without changing
anything, and compares: entries balance, balances are the sums of their postings, no
number is missing, the hash chain is unbroken, every ticket is in one place. It prints
a line per check; what is violated is named with journal, entry and account. It may
run while the service works, but its snapshot slows a busy primary down: during a sale
run it on a standby.

Exit codes: 0 all hold, 1 a violation, or it couldn't be verified, 2 wrong usage.`,
		Example: `  tierledger verify                                  the store of dev in this folder
  tierledger verify --event arena-2027 --json --database-url postgres://auditor@db/tickets`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			url, done, err := d.migrated(c)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			w := c.OutOrStdout()
			o := verify.Options{Event: event, Report: func(r verify.Result) { tellResult(w, r) }}
			if asJSON {
				o.Report = nil
			}
			summary, err := verify.Run(c.Context(), url, o)
			if err != nil {
				return err
			}
			return tellVerified(w, summary, asJSON)
		},
	}
	c.Flags().StringVar(&event, "event", "", "verify this `EVENT` only, in all its lanes")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	databaseFlags(c, &d)
	return c
}

// tellResult prints one check's line, and a line per violation below it.
func tellResult(w io.Writer, r verify.Result) {
	// Both verdicts are as wide, so that the columns stay in line.
	verdict := "ok  "
	if r.Count > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s  %-30s %12s  %9s  %s\n", verdict, r.Check, count(r.Count, "violation"), duration(r.Took), r.Says)
	for _, v := range r.Violations {
		fmt.Fprintf(w, "      %s\n", v)
	}
	if more := r.Count - len(r.Violations); more > 0 {
		fmt.Fprintf(w, "      and %d more\n", more)
	}
}

// tellVerified ends the report; the error is errTold when something is violated.
func tellVerified(w io.Writer, s verify.Summary, asJSON bool) error {
	if asJSON {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		if err := out.Encode(s); err != nil {
			return err
		}
	} else if s.OK {
		fmt.Fprintf(w, "all %d checks hold\n", len(s.Checks))
	}
	if !s.OK {
		return errTold
	}
	return nil
}

// duration is short: milliseconds below ten seconds, else tenths of a second.
func duration(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
