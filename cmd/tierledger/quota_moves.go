package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/quota"
)

// movesCommand makes the quota moves command.
func movesCommand() *cobra.Command {
	o := &apiOptions{}
	var status, cause, tier, cursor string
	var limit int
	c := &cobra.Command{
		Use:   "moves EVENT",
		Short: "List what was moved, by whom and why",
		Long: `moves lists the moves of an event, the newest first: those that people asked for, and
those that the service made for buyers.

Causes: operator (somebody asked), pull (a buyer asked for more than the lane had),
rebalance (the lane would have run dry), split and merge (lanes were changed), collect
(all lanes gave to the first, for a move or a smaller capacity), release (an allotment
was closed, or its time had come).

Exit codes: 0 listed, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota moves hall --status awaiting_approval
  tierledger quota moves hall --cause pull --tier ga --limit 100
  tierledger quota moves hall --json`,
		Args: cobra.ExactArgs(1),
	}
	flags := c.Flags()
	flags.StringVar(&status, "status", "", "only of this `STATUS`: moved, awaiting_approval or rejected")
	flags.StringVar(&cause, "cause", "", "only of this `CAUSE`")
	flags.StringVar(&tier, "tier", "", "only of this `TIER`")
	flags.IntVar(&limit, "limit", 20, "`N` moves at most, up to 500")
	flags.StringVar(&cursor, "cursor", "", "go on at this `CURSOR`, the next_cursor of an answer before")
	return o.reading(c, func(c *cobra.Command, args []string) error {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		for name, value := range map[string]string{"status": status, "cause": cause, "tier": tier, "cursor": cursor} {
			if value != "" {
				query.Set(name, value)
			}
		}
		var page movesPage
		answer, err := o.send(c, read(args[0], eventPath(args[0], "/quota-moves"), query), &page)
		if err != nil {
			return err
		}
		return o.tellText(c.OutOrStdout(), answer, movesList(page, "there are older ones: raise --limit, or go on with --json and --cursor"))
	})
}

// movesPage is a page of the history.
type movesPage struct {
	Data       []quota.Move `json:"data"`
	NextCursor *string      `json:"next_cursor"`
}

// movesList lays moves out, two lines or more for each; more is said when there are others.
func movesList(page movesPage, more string) string {
	if len(page.Data) == 0 {
		return "no moves\n"
	}
	var b strings.Builder
	for _, m := range page.Data {
		status := string(m.Status)
		if m.Status == quota.Awaiting {
			status = "awaiting"
		}
		fmt.Fprintf(&b, "%s  %s  %-8s  %-9s %10s\n", instant(m.AskedAt), m.ID, status, m.Cause, thousands(int64(m.Quantity)))
		says := fmt.Sprintf("  %s from %s to %s", m.Tier, bucketName(m.From, m.AnyLane), bucketName(m.To, false))
		if m.UpTo && m.Status != quota.Moved {
			says += ", up to so many"
		}
		if m.Cause == quota.ByOperator {
			says += ", asked by " + m.AskedBy
		}
		switch {
		case m.DecidedBy != "" && m.Status == quota.Rejected:
			says += ", rejected by " + m.DecidedBy
		case m.DecidedBy != "":
			says += ", approved by " + m.DecidedBy
		}
		if m.Reason != "" {
			says += ": " + m.Reason
		}
		b.WriteString(wrap(says, "    "))
	}
	if page.NextCursor != nil {
		b.WriteString(more + "\n")
	}
	return b.String()
}

// undoCommand makes the quota undo command.
func undoCommand() *cobra.Command {
	o := &apiOptions{}
	var upTo, anyLane bool
	c := &cobra.Command{
		Use:   "undo MOVE_ID",
		Short: "Move a move's tickets back",
		Long: `undo makes the reverse move: a new one, whose reason names the first. The history keeps
both. What was sold or is held meanwhile doesn't come back; with --up-to what's still free
does. What was moved from one lane is taken from the lane that it came to, unless --any-lane
says that all give; what was moved from any lane is taken from any. As with any move, many
tickets wait for another person's approval. What wasn't approved yet is rejected, not undone.

Exit codes: 0 moved back, or waits for approval, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota undo 01891f3a-7c1e-8000-8000-000000000007 --reason "wrong partner" --dry-run
  tierledger quota undo 01891f3a-7c1e-8000-8000-000000000007 --reason mistake --up-to --any-lane`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().BoolVar(&upTo, "up-to", false, "as many as are still free")
	c.Flags().BoolVar(&anyLane, "any-lane", false, "from whatever lanes the tickets are in now")
	o.reasonFlag(c)
	o.dryRunFlag(c)
	required(c, "reason")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		var m quota.Move
		if _, err := o.send(c, read("", movePath(args[0]), nil), &m); err != nil {
			return err
		}
		switch m.Status {
		case quota.Awaiting:
			return fmt.Errorf("move %s waits for approval, and nothing was moved; `tierledger quota reject %s` ends it", m.ID, m.ID)
		case quota.Rejected:
			return fmt.Errorf("move %s was rejected: there's nothing to undo", m.ID)
		}
		return o.move(c, m.Event, reverse(m, o.reason, upTo, anyLane))
	})
}

// reverse makes the move back. What all lanes gave all lanes give back: in an allotment it
// goes from lane to lane too.
func reverse(m quota.Move, reason string, upTo, anyLane bool) moveBody {
	n := int64(m.Quantity)
	r := moveBody{Tier: string(m.Tier), From: m.To, To: m.From, Quantity: &n, Reason: fmt.Sprintf("undo of %s: %s", m.ID, reason)}
	if upTo {
		r.Quantity, r.UpTo = nil, &n
	}
	if anyLane || m.AnyLane {
		r.From.Lane = 0
	}
	return r
}

// instant writes a time for people: UTC, to the second.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
