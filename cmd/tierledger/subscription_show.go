package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// subscription is one as the API tells it.
type subscription struct {
	ID             uuid.UUID  `json:"subscription_id"`
	URL            string     `json:"url"`
	Kinds          []string   `json:"kinds"`
	Event          string     `json:"event"`
	Description    string     `json:"description"`
	Status         string     `json:"status"`
	Reason         string     `json:"reason"`
	Secret         string     `json:"secret"`
	OldSecretUntil *time.Time `json:"old_secret_until"`
}

// text tells a subscription in some lines, with its secret where there is one.
func (s *subscription) text() string {
	what := "all entries"
	if len(s.Kinds) > 0 {
		what = strings.Join(s.Kinds, ", ")
	}
	if s.Event != "" {
		what += " of " + s.Event
	}
	if s.Description != "" {
		what += " (" + s.Description + ")"
	}
	status := s.Status
	if s.Reason != "" {
		status += ": " + s.Reason
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  %s\n", s.ID, s.URL)
	b.WriteString(wrap("  "+what, "    "))
	b.WriteString(wrap("  "+status, "    "))
	if s.OldSecretUntil != nil {
		fmt.Fprintf(&b, "  the old secret signs too, until %s\n", instant(*s.OldSecretUntil))
	}
	if s.Secret != "" {
		fmt.Fprintf(&b, "  its secret, which can't be shown again:\n  %s\n", s.Secret)
	}
	return b.String()
}

// listSubscriptionsCommand makes the subscriptions list command.
func listSubscriptionsCommand() *cobra.Command {
	o := &apiOptions{}
	var limit int
	var cursor string
	c := &cobra.Command{
		Use:   "list",
		Short: "List subscriptions",
		Long: `list shows who is told of what, and which subscriptions are disabled, and why.

Exit codes: 0 listed, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger subscriptions list
  tierledger subscriptions list --json`,
		Args: cobra.NoArgs,
	}
	pageFlags(c, &limit, &cursor, "subscriptions")
	return o.reading(c, func(c *cobra.Command, _ []string) error {
		var page struct {
			Data       []subscription `json:"data"`
			NextCursor *string        `json:"next_cursor"`
		}
		answer, err := o.send(c, read("", subscriptionsPath, pageQuery(limit, cursor)), &page)
		if err != nil {
			return err
		}
		text := ""
		for i := range page.Data {
			text += page.Data[i].text()
		}
		if text == "" {
			text = "no subscriptions\n"
		}
		return o.tellText(c.OutOrStdout(), answer, text+others(page.NextCursor))
	})
}

func pageFlags(c *cobra.Command, limit *int, cursor *string, what string) {
	c.Flags().IntVar(limit, "limit", 20, "`N` "+what+" at most, up to 500")
	c.Flags().StringVar(cursor, "cursor", "", "go on at this `CURSOR`, the next_cursor of an answer before")
}

func pageQuery(limit int, cursor string) url.Values {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return query
}

// others says that a list goes on.
func others(cursor *string) string {
	if cursor == nil {
		return ""
	}
	return "there are others: raise --limit, or go on with --json and --cursor\n"
}

// showSubscriptionCommand makes the subscriptions show command.
func showSubscriptionCommand() *cobra.Command {
	o := &apiOptions{}
	c := &cobra.Command{
		Use:   "show SUBSCRIPTION_ID",
		Short: "Show a subscription",
		Long: `show tells where a subscription's webhooks go, and what they're about. It can't show the
secret: rotate makes another.

Exit codes: 0 shown, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger subscriptions show SUBSCRIPTION_ID`,
		Args:    cobra.ExactArgs(1),
	}
	return o.reading(c, func(c *cobra.Command, args []string) error {
		var s subscription
		answer, err := o.send(c, read("", subscriptionPath(args[0], ""), nil), &s)
		if err != nil {
			return err
		}
		return o.tellText(c.OutOrStdout(), answer, s.text())
	})
}

// testSubscriptionCommand makes the subscriptions test command.
func testSubscriptionCommand() *cobra.Command {
	o := &apiOptions{}
	c := &cobra.Command{
		Use:   "test SUBSCRIPTION_ID",
		Short: "Send a made-up event to a subscriber at once",
		Long: `test sends an event of the kind subscription.test, which no entry has, and tells what the
subscriber answered.

Exit codes: 0 delivered, 1 it wasn't, or was refused, 2 wrong usage.`,
		Example: `  tierledger subscriptions test SUBSCRIPTION_ID`,
		Args:    cobra.ExactArgs(1),
	}
	return o.changing(c, func(c *cobra.Command, args []string) error {
		var t struct {
			Delivered    bool   `json:"delivered"`
			Milliseconds int64  `json:"milliseconds"`
			StatusCode   int    `json:"status_code"`
			Error        string `json:"error"`
		}
		answer, err := o.send(c, o.change(http.MethodPost, "", subscriptionPath(args[0], "/test"), struct{}{}), &t)
		if err != nil {
			return err
		}
		if err := o.tellText(c.OutOrStdout(), answer, fmt.Sprintf("status %d after %d ms\n", t.StatusCode, t.Milliseconds)); err != nil {
			return err
		}
		if !t.Delivered {
			return fmt.Errorf("not delivered: %s", t.Error)
		}
		return nil
	})
}
