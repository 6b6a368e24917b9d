package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/buckets"
)

// lanesCommand makes the quota lanes command.
func lanesCommand() *cobra.Command {
	o := &apiOptions{}
	c := &cobra.Command{
		Use:   "lanes EVENT [N]",
		Short: "Split an event into N lanes, or merge it back",
		Long: `lanes puts N lanes in use, more than now or fewer, from 1 to 64; without N it tells how many
are. It may be done before a sale or during one. Customers who have tickets stay where they
are; others are spread evenly. New lanes get even shares of what's free; lanes that aren't
in use any more give away what they have free, and what is held or sold there stays theirs.

Nobody notices but by a lane_changing now and then, which clients repeat. An event with a
tier that's sold by seat has one lane.

Exit codes: 0 done, or told, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota lanes hall
  tierledger quota lanes hall 8 --reason "sale opens at ten" --dry-run
  tierledger quota lanes hall 1 --reason "the rush is over" --if-match 7`,
		Args: cobra.RangeArgs(1, 2),
	}
	o.reasonFlag(c)
	o.dryRunFlag(c)
	o.ifMatchFlag(c, "the event's split")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return o.tellLanes(c, args[0])
		}
		n, err := number("N", args[1])
		if err != nil {
			return err
		}
		if o.reason == "" {
			return usagef("--reason is required: say why, for the history")
		}
		return o.split(c, args[0], n)
	})
}

// tellLanes reads how an event is split.
func (o *apiOptions) tellLanes(c *cobra.Command, event string) error {
	for _, flag := range []string{"reason", "dry-run", "if-match", "idempotency-key"} {
		if c.Flags().Changed(flag) {
			return usagef("--%s is for a change: give the number of lanes too", flag)
		}
	}
	var v buckets.LanesView
	answer, err := o.send(c, read(event, eventPath(event, "/lanes"), nil), &v)
	if err != nil {
		return err
	}
	return o.tellText(c.OutOrStdout(), answer, wrap(lanesText(v, event), "  "))
}

// split changes the number of lanes in use.
func (o *apiOptions) split(c *cobra.Command, event string, n int64) error {
	body := struct {
		Lanes  int64  `json:"lanes"`
		Reason string `json:"reason"`
	}{n, o.reason}
	var v buckets.LanesView
	answer, err := o.send(c, o.change(http.MethodPost, event, eventPath(event, "/lanes"), body), &v)
	if err != nil {
		return err
	}
	text := lanesText(v, event)
	if o.dryRun {
		text = dryRunSays + fmt.Sprintf("event %s would have %s in use", event, counted(v.Lanes, "lane")) + before(v)
	}
	return o.tellText(c.OutOrStdout(), answer, wrap(text, "  "))
}

// lanesText says how an event is split.
func lanesText(v buckets.LanesView, event string) string {
	text := fmt.Sprintf("event %s has %s in use", event, counted(v.Lanes, "lane"))
	if v.Generation == 0 {
		return text + "; it was never split, version 0"
	}
	text += before(v)
	switch closed := len(v.Journals) - v.Lanes; {
	case closed == 1:
		text += fmt.Sprintf("; lane %d takes nobody new", len(v.Journals))
	case closed > 1:
		text += fmt.Sprintf("; lanes %d to %d take nobody new", v.Lanes+1, len(v.Journals))
	}
	return text + fmt.Sprintf("; generation %d, version %d", v.Generation, v.Version)
}

// before says how many lanes were in use before the newest change; "" when there was none.
// A first split may leave the one lane out of the counts: nobody had been in it.
func before(v buckets.LanesView) string {
	switch n := len(v.Counts); {
	case v.Generation == 1:
		return " (1 before)"
	case n > 1:
		return fmt.Sprintf(" (%d before)", v.Counts[n-2])
	}
	return ""
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return thousands(int64(n)) + " " + thing
}
