package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// subscriptionsCommand makes the subscriptions command, which only has commands below it.
func subscriptionsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "subscriptions",
		Short: "Tell others of what happens, by webhook",
		Long: `The commands below make and change subscriptions, and show what was sent to whom, over the
API of a service that runs anywhere. docs/webhooks.md is for whoever receives the webhooks.

A subscription's secret is shown once, when it's made or rotated: give it to the subscriber,
who verifies with it that a webhook is genuine. Nobody can read it later.

With --json a command prints what the API answers. Every change is made once under its key,
which is made up unless you give one.

The API key needs the role operator or admin to change anything, and to read auditor or
finance will do too.`,
		Example: `  tierledger subscriptions create https://partner.example.com/hooks --kind "order.*" --event hall
  tierledger subscriptions deliveries SUBSCRIPTION_ID --status dead
  tierledger subscriptions resend SUBSCRIPTION_ID --since 2027-03-01T09:00:00Z --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(listSubscriptionsCommand(), createSubscriptionCommand(), showSubscriptionCommand(), rotateCommand(),
		enableCommand(), disableCommand(), testSubscriptionCommand(), deliveriesCommand(), resendCommand())
	return c
}

const subscriptionsPath = "/v1/subscriptions"

// subscriptionPath is the path of something of a subscription.
func subscriptionPath(id, rest string) string {
	return subscriptionsPath + "/" + url.PathEscape(id) + rest
}

// createSubscriptionCommand makes the subscriptions create command.
func createSubscriptionCommand() *cobra.Command {
	o := &apiOptions{}
	var body struct {
		URL         string   `json:"url"`
		Kinds       []string `json:"kinds,omitempty"`
		Event       string   `json:"event,omitempty"`
		Description string   `json:"description,omitempty"`
	}
	c := &cobra.Command{
		Use:   "create URL",
		Short: "Make a subscription, and show its secret once",
		Long: `create has every entry from now on, or those of some kinds or of one event, POSTed to a URL,
signed with a secret that's shown this once. When the answer is lost, a repeat under the
same key shows the subscription without it, and rotate makes another.

Exit codes: 0 made, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger subscriptions create https://partner.example.com/hooks --kind "order.*" --kind hold.placed
  tierledger subscriptions create https://partner.example.com/hooks --event hall --description "box office"`,
		Args: cobra.ExactArgs(1),
	}
	flags := c.Flags()
	flags.StringArrayVar(&body.Kinds, "kind", nil, "only entries of this `KIND`, such as order.captured, or \"order.*\"; may be repeated")
	flags.StringVar(&body.Event, "event", "", "only of this `EVENT`, in all its lanes")
	flags.StringVar(&body.Description, "description", "", "`TEXT` for people")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		body.URL = args[0]
		return o.changeSubscription(c, subscriptionsPath, body, "made")
	})
}

// rotateCommand makes the subscriptions rotate command.
func rotateCommand() *cobra.Command {
	o := &apiOptions{}
	var overlap int64
	c := &cobra.Command{
		Use:   "rotate SUBSCRIPTION_ID",
		Short: "Give a subscription another secret, and show it once",
		Long: `rotate makes another secret. For a while the old one signs too, so that the subscriber can
change over without losing a webhook; with --overlap 0 it doesn't, for one that has leaked.

Exit codes: 0 rotated, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger subscriptions rotate SUBSCRIPTION_ID
  tierledger subscriptions rotate SUBSCRIPTION_ID --overlap 0`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().Int64Var(&overlap, "overlap", 24*60*60, "`SECONDS` for which the old secret signs too, a week at most")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		body := struct {
			OverlapSeconds int64 `json:"overlap_seconds"`
		}{overlap}
		return o.changeSubscription(c, subscriptionPath(args[0], "/rotate-secret"), body, "rotated the secret of")
	})
}

// enableCommand makes the subscriptions enable command.
func enableCommand() *cobra.Command {
	o := &apiOptions{}
	c := &cobra.Command{
		Use:   "enable SUBSCRIPTION_ID",
		Short: "Send to a subscription again",
		Long: `enable has what happens from now on sent again. What happened while the subscription was
disabled isn't; what was dropped when it was disabled can be resent.

Exit codes: 0 enabled, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger subscriptions enable SUBSCRIPTION_ID
  tierledger subscriptions resend SUBSCRIPTION_ID --status dropped`,
		Args: cobra.ExactArgs(1),
	}
	return o.changing(c, func(c *cobra.Command, args []string) error {
		return o.changeSubscription(c, subscriptionPath(args[0], "/enable"), struct{}{}, "enabled")
	})
}

// disableCommand makes the subscriptions disable command.
func disableCommand() *cobra.Command {
	o := &apiOptions{}
	c := &cobra.Command{
		Use:   "disable SUBSCRIPTION_ID",
		Short: "Send no more to a subscription",
		Long: `disable ends what's sent to a subscription, and drops what's pending.

Exit codes: 0 disabled, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger subscriptions disable SUBSCRIPTION_ID --reason "the partner moves house"`,
		Args:    cobra.ExactArgs(1),
	}
	o.reasonFlag(c)
	required(c, "reason")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		return o.changeSubscription(c, subscriptionPath(args[0], "/disable"), reasonBody{o.reason}, "disabled")
	})
}

// changeSubscription makes a change and tells how the subscription is then.
func (o *apiOptions) changeSubscription(c *cobra.Command, path string, body any, did string) error {
	var s subscription
	answer, err := o.send(c, o.change(http.MethodPost, "", path, body), &s)
	if err != nil {
		return err
	}
	return o.tellText(c.OutOrStdout(), answer, did+" "+s.text())
}
