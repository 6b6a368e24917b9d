package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// deliveriesCommand makes the subscriptions deliveries command.
func deliveriesCommand() *cobra.Command {
	o := &apiOptions{}
	var status, cursor string
	var limit int
	c := &cobra.Command{
		Use:   "deliveries SUBSCRIPTION_ID",
		Short: "Show what was sent to a subscriber, and what it answered",
		Long: `deliveries lists what was and is to be sent to a subscriber, the newest first, each with
its last attempt.

Exit codes: 0 listed, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger subscriptions deliveries SUBSCRIPTION_ID
  tierledger subscriptions deliveries SUBSCRIPTION_ID --status dead --limit 100`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&status, "status", "", "only of this `STATUS`: pending, delivered, dead or dropped")
	pageFlags(c, &limit, &cursor, "deliveries")
	return o.reading(c, func(c *cobra.Command, args []string) error {
		query := pageQuery(limit, cursor)
		if status != "" {
			query.Set("status", status)
		}
		var page deliveriesPage
		answer, err := o.send(c, read("", subscriptionPath(args[0], "/deliveries"), query), &page)
		if err != nil {
			return err
		}
		return o.tellText(c.OutOrStdout(), answer, page.text())
	})
}

// deliveriesPage is a page of a subscription's log.
type deliveriesPage struct {
	Data []struct {
		Journal       int64      `json:"journal"`
		Seq           int64      `json:"seq"`
		Kind          string     `json:"kind"`
		Status        string     `json:"status"`
		Attempts      int        `json:"attempts"`
		CreatedAt     time.Time  `json:"created_at"`
		NextAttemptAt *time.Time `json:"next_attempt_at"`
		Log           []struct {
			StatusCode   int    `json:"status_code"`
			Milliseconds int64  `json:"milliseconds"`
			Error        string `json:"error"`
		} `json:"log"`
	} `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// text lays the page out, a line or two for each delivery.
func (p *deliveriesPage) text() string {
	if len(p.Data) == 0 {
		return "no deliveries\n"
	}
	var b strings.Builder
	for _, d := range p.Data {
		fmt.Fprintf(&b, "%s  %d/%d  %s  %s after %d attempts\n", instant(d.CreatedAt), d.Journal, d.Seq, d.Kind, d.Status, d.Attempts)
		says := ""
		if n := len(d.Log); n > 0 {
			last := d.Log[n-1]
			says = fmt.Sprintf("  status %d after %d ms", last.StatusCode, last.Milliseconds)
			if last.Error != "" {
				says += ": " + last.Error
			}
		}
		if d.NextAttemptAt != nil {
			says += "  next attempt " + instant(*d.NextAttemptAt)
		}
		if says != "" {
			b.WriteString(wrap(says, "    "))
		}
	}
	return b.String() + others(p.NextCursor)
}

// resendCommand makes the subscriptions resend command.
func resendCommand() *cobra.Command {
	o := &apiOptions{}
	var body struct {
		Journal *int64   `json:"journal,omitempty"`
		Seq     *int64   `json:"seq,omitempty"`
		Status  []string `json:"status,omitempty"`
		Since   string   `json:"since,omitempty"`
		Until   string   `json:"until,omitempty"`
	}
	var journal, seq int64
	c := &cobra.Command{
		Use:   "resend SUBSCRIPTION_ID",
		Short: "Send deliveries again",
		Long: `resend makes deliveries due now, under their webhook-ids, with all attempts before them. It
sends one, or those that were made in a time; unless --status says otherwise, those that
were given up or dropped. 10,000 at most: repeat it without --idempotency-key for more.

Exit codes: 0 they're due, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger subscriptions resend SUBSCRIPTION_ID --since 2027-03-01T09:00:00Z --dry-run
  tierledger subscriptions resend SUBSCRIPTION_ID --status delivered --since 2027-03-01T09:00:00Z
  tierledger subscriptions resend SUBSCRIPTION_ID --journal 9 --seq 57`,
		Args: cobra.ExactArgs(1),
	}
	flags := c.Flags()
	flags.Int64Var(&journal, "journal", 0, "`JOURNAL` of the one entry")
	flags.Int64Var(&seq, "seq", 0, "`SEQ` of the one entry")
	flags.StringArrayVar(&body.Status, "status", nil, "of this `STATUS`: pending, delivered, dead or dropped; may be repeated")
	flags.StringVar(&body.Since, "since", "", "made at this `TIME` or later")
	flags.StringVar(&body.Until, "until", "", "made before this `TIME`")
	o.dryRunFlag(c)
	c.MarkFlagsRequiredTogether("journal", "seq")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("seq") {
			body.Journal, body.Seq = &journal, &seq
		}
		var done struct {
			Deliveries int64 `json:"deliveries"`
			More       bool  `json:"more"`
		}
		answer, err := o.send(c, o.change(http.MethodPost, "", subscriptionPath(args[0], "/deliveries/resend"), body), &done)
		if err != nil {
			return err
		}
		text := thousands(done.Deliveries) + " deliveries are due now"
		if o.dryRun {
			text = dryRunSays + thousands(done.Deliveries) + " deliveries would be sent again"
		}
		if done.More {
			text += "; there are others"
		}
		return o.tellText(c.OutOrStdout(), answer, text+"\n")
	})
}
