package main

import (
	"io"
	"strconv"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// quotaCommand makes the quota command, which only has commands below it.
func quotaCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "quota",
		Short: "See and move the tickets of a running sale",
		Long: `The commands below show where an event's tickets are and move them, over the API of a
service that runs anywhere. docs/operating-quotas.md is their runbook.

A BUCKET is where free tickets are sold from: a lane, an allotment, or an allotment in a
lane.
  2             lane 2, everybody's tickets
  2/sponsor     lane 2, the allotment sponsor
  /sponsor      the allotment sponsor, in whatever lane
  any           everybody's tickets, in whatever lane

With --dry-run a command tells what it would do, and changes nothing. With --json it
prints what the API answers. Every change is made once under its key, which is made up
unless you give one; when it isn't known whether a change was made, the error tells the
key to repeat it with.

The API key needs the role operator or admin to change anything, and to read moves
auditor or finance will do too.`,
		Example: `  tierledger quota show hall --watch
  tierledger quota lanes hall 8 --reason "sale opens at ten" --dry-run
  tierledger quota move hall --tier ga --from any --to /sponsor --quantity 300 --reason "contract 7"`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(showQuotaCommand(), lanesCommand(), moveCommand(), movesCommand(), approveCommand(), rejectCommand(),
		undoCommand(), allotCommand(), codesCommand(), closeCommand(), capacityCommand())
	return c
}

// apiOptions are the flags that commands of the API share. Each has those that mean
// something to it.
type apiOptions struct {
	service remote
	asJSON  bool
	key     string // under which a change is made
	reason  string
	dryRun  bool
	ifMatch *int64 // version that must still be there; nil: any
}

// reading makes a command of one that only reads.
func (o *apiOptions) reading(c *cobra.Command, run func(c *cobra.Command, args []string) error) *cobra.Command {
	c.Flags().BoolVar(&o.asJSON, "json", false, "print what the API answers")
	o.service.flags(c)
	configFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := settle(c.Flags()); err != nil {
			return err
		}
		if err := o.service.prepare(); err != nil {
			return err
		}
		return run(c, args)
	}
	return c
}

// changing makes a command of one that changes something.
func (o *apiOptions) changing(c *cobra.Command, run func(c *cobra.Command, args []string) error) *cobra.Command {
	c.Flags().StringVar(&o.key, "idempotency-key", "", "`KEY` of this change; the same for a repeat (default: made up)")
	return o.reading(c, func(c *cobra.Command, args []string) error {
		if !c.Flags().Changed("if-match") {
			o.ifMatch = nil
		}
		switch {
		case o.ifMatch != nil && *o.ifMatch < 0:
			return usagef("--if-match must be a version, such as 7; `tierledger quota show` tells it")
		case o.key == "" && c.Flags().Changed("idempotency-key"): // an unset variable in a script
			return usagef("--idempotency-key must not be empty; leave it out and a key is made up")
		case o.key == "":
			o.key = uuid.NewString()
		}
		return run(c, args)
	})
}

func (o *apiOptions) reasonFlag(c *cobra.Command) {
	c.Flags().StringVar(&o.reason, "reason", "", "`TEXT` that says why, for the history")
}

func (o *apiOptions) dryRunFlag(c *cobra.Command) {
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "tell what would happen, and change nothing")
}

func (o *apiOptions) ifMatchFlag(c *cobra.Command, of string) {
	o.ifMatch = new(int64)
	c.Flags().Int64Var(o.ifMatch, "if-match", 0, "only if "+of+" still has this `VERSION`")
}

// reasonBody is a change that only has a reason.
type reasonBody struct {
	Reason string `json:"reason"`
}

// required marks flags without which a command makes no sense.
func required(c *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err) // a flag that the command doesn't have
		}
	}
}

// number reads an argument that counts something.
func number(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, usagef("%s: %q isn't a number from 1 on, such as 8", name, text)
	}
	return n, nil
}

// tellJSON prints an answer of the API as one line.
func tellJSON(w io.Writer, body []byte) error {
	_, err := w.Write(append(body, '\n'))
	return err
}

// tellText prints what a command made, or what the API answered.
func (o *apiOptions) tellText(w io.Writer, answer []byte, text string) error {
	if o.asJSON {
		return tellJSON(w, answer)
	}
	_, err := io.WriteString(w, text)
	return err
}

// dryRunSays begins what a dry run tells.
const dryRunSays = "dry run, nothing was changed: "
