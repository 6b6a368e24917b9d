package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/quota"
)

// moveOptions are the flags of quota move.
type moveOptions struct {
	apiOptions
	tier, from, to string
	quantity, upTo int64
}

// moveCommand makes the quota move command.
func moveCommand() *cobra.Command {
	o := &moveOptions{}
	c := &cobra.Command{
		Use:   "move EVENT",
		Short: "Move free tickets between lanes and allotments",
		Long: `move takes free tickets of a tier from one bucket to another. With --quantity all of
them move or none; with --up-to as many as are free. Without a lane in --from all lanes
give, through the first; without one in --to the tickets stay in the lane they're in.

Nobody's hold is touched, and nobody who has a ticket loses it. A move of as many tickets
as the event's approve_moves_from (1,000 unless it says otherwise) waits until another
person approves it. ` + "`tierledger help quota`" + ` says how a BUCKET is written.

Exit codes: 0 moved, or waits for approval, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota move hall --tier ga --from 1 --to 2 --up-to 500 --reason short --dry-run
  tierledger quota move hall --tier ga --from any --to /sponsor --quantity 300 --reason "contract 7"
  tierledger quota move hall --tier ga --from 3/sponsor --to 3 --up-to 50 --reason no --if-match 41`,
		Args: cobra.ExactArgs(1),
	}
	flags := c.Flags()
	flags.StringVar(&o.tier, "tier", "", "`TIER` of the tickets")
	flags.StringVar(&o.from, "from", "", "`BUCKET` that they leave")
	flags.StringVar(&o.to, "to", "", "`BUCKET` that they come to")
	flags.Int64Var(&o.quantity, "quantity", 0, "`N` tickets, all or none")
	flags.Int64Var(&o.upTo, "up-to", 0, "as many as are free, `N` at most")
	c.MarkFlagsMutuallyExclusive("quantity", "up-to")
	c.MarkFlagsOneRequired("quantity", "up-to")
	o.reasonFlag(c)
	o.dryRunFlag(c)
	o.ifMatchFlag(c, "the bucket that they leave")
	required(c, "tier", "from", "to", "reason")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		body, err := o.request(c.Flags().Changed("up-to"))
		if err != nil {
			return err
		}
		return o.move(c, args[0], body)
	})
}

// request makes what the flags ask for.
func (o *moveOptions) request(upTo bool) (r moveBody, err error) {
	if r.From, err = parseBucket("from", o.from); err != nil {
		return r, err
	}
	if r.To, err = parseBucket("to", o.to); err != nil {
		return r, err
	}
	if o.ifMatch != nil && r.From.Lane == 0 {
		return r, usagef("--if-match needs a lane in --from: each lane's bucket has a version of its own")
	}
	r.Tier, r.Reason, r.Quantity = o.tier, o.reason, &o.quantity
	if upTo {
		r.Quantity, r.UpTo = nil, &o.upTo
	}
	return r, nil
}

// moveBody is a move as the API takes it.
type moveBody struct {
	Tier     string       `json:"tier"`
	From     quota.Bucket `json:"from"`
	To       quota.Bucket `json:"to"`
	Quantity *int64       `json:"quantity,omitempty"`
	UpTo     *int64       `json:"up_to,omitempty"`
	Reason   string       `json:"reason"`
}

// move asks for a move and tells what came of it.
func (o *apiOptions) move(c *cobra.Command, event string, body moveBody) error {
	var m quota.Move
	answer, err := o.send(c, o.change(http.MethodPost, event, eventPath(event, "/quota-moves"), body), &m)
	if err != nil {
		return err
	}
	return o.tellText(c.OutOrStdout(), answer, movedText(m, o.dryRun))
}

// movedText says what became of a move, or what would.
func movedText(m quota.Move, dryRun bool) string {
	what := fmt.Sprintf("%s of %s from %s to %s", thousands(int64(m.Quantity)), m.Tier, bucketName(m.From, m.AnyLane), bucketName(m.To, false))
	if m.UpTo && m.Status != quota.Moved {
		what = "up to " + what
	}
	switch {
	case dryRun && m.Status == quota.Awaiting:
		return wrap(dryRunSays+what+" would wait for another person's approval", "  ")
	case dryRun:
		return wrap(dryRunSays+what+" would be moved", "  ")
	case m.Status == quota.Awaiting:
		return wrap(what+" wait for another person's approval; nothing is set aside for them until then", "  ") +
			fmt.Sprintf("  tierledger quota approve %s\n", m.ID)
	case m.Status == quota.Rejected:
		return wrap("rejected by "+m.DecidedBy+": "+what+" stay where they are", "  ")
	}
	return wrap("moved "+what, "  ") + fmt.Sprintf("  move %s, version %d\n", m.ID, m.Version)
}

// parseBucket reads a bucket as people write it.
func parseBucket(flag, text string) (b quota.Bucket, err error) {
	lane, allotment, named := strings.Cut(text, "/")
	lane = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lane), "lane"))
	switch lane {
	case "any", "any lane":
	case "":
		if !named {
			return b, usagef("--%s %q: not a bucket such as 2, 2/sponsor, /sponsor or any", flag, text)
		}
	default:
		if b.Lane, err = strconv.Atoi(lane); err != nil || b.Lane < 1 {
			return b, usagef("--%s %q: %q isn't a lane; lanes are numbered from 1, and an allotment comes after a /", flag, text, lane)
		}
	}
	if b.Allotment = strings.TrimSpace(allotment); named && b.Allotment == "" {
		return b, usagef("--%s %q: which allotment? Leave the / out for everybody's tickets", flag, text)
	}
	return b, nil
}

// bucketName writes a bucket for people, as parseBucket reads it.
func bucketName(b quota.Bucket, anyLane bool) string {
	name := "any lane"
	if b.Lane != 0 && !anyLane {
		name = "lane " + strconv.Itoa(b.Lane)
	}
	if b.Allotment != "" {
		name += "/" + b.Allotment
	}
	return name
}

// approveCommand makes the quota approve command.
func approveCommand() *cobra.Command {
	o := &apiOptions{}
	c := &cobra.Command{
		Use:   "approve MOVE_ID",
		Short: "Approve a move that waits for it",
		Long: `approve makes a move that somebody else asked for, if its tickets are still free. With
--up-to that was asked for, as many move as are.

Exit codes: 0 moved, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota approve 01891f3a-7c1e-8000-8000-000000000007 --key-file second.key`,
		Args:    cobra.ExactArgs(1),
	}
	return o.changing(c, func(c *cobra.Command, args []string) error { return o.decide(c, args[0], "approve", struct{}{}) })
}

// rejectCommand makes the quota reject command.
func rejectCommand() *cobra.Command {
	o := &apiOptions{}
	c := &cobra.Command{
		Use:   "reject MOVE_ID",
		Short: "Reject a move that waits for approval",
		Long: `reject ends a move that somebody else asked for. Nothing moves, and the history keeps who
said no, and why.

Exit codes: 0 rejected, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota reject 01891f3a-7c1e-8000-8000-000000000007 --reason "wrong tier"`,
		Args:    cobra.ExactArgs(1),
	}
	o.reasonFlag(c)
	required(c, "reason")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		return o.decide(c, args[0], "reject", reasonBody{o.reason})
	})
}

// decide approves or rejects a move.
func (o *apiOptions) decide(c *cobra.Command, id, verdict string, body any) error {
	var m quota.Move
	answer, err := o.send(c, o.change(http.MethodPost, "", movePath(id)+"/"+verdict, body), &m)
	if err != nil {
		return err
	}
	return o.tellText(c.OutOrStdout(), answer, movedText(m, o.dryRun))
}

// movePath is the path of a move.
func movePath(id string) string { return "/v1/quota-moves/" + url.PathEscape(id) }
