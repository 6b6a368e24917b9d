package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// capacityCommand makes the quota capacity command.
func capacityCommand() *cobra.Command {
	o := &apiOptions{}
	c := &cobra.Command{
		Use:   "capacity EVENT TIER N",
		Short: "Change how many tickets a tier has",
		Long: `capacity makes a tier have N tickets in all. New ones are everybody's, and free at once. To
have fewer, free tickets that are everybody's are taken from all lanes; what is held, sold,
blocked or in an allotment stays, and when that's more than N nothing is changed and the
answer names the least that's possible. There's no overbooking.

Exit codes: 0 changed, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota capacity hall ga 120000 --dry-run
  tierledger quota capacity hall ga 118500`,
		Args: cobra.ExactArgs(3),
	}
	o.dryRunFlag(c)
	o.ifMatchFlag(c, "the tier")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		n, err := number("N", args[2])
		if err != nil {
			return err
		}
		return o.resize(c, args[0], args[1], n)
	})
}

// resize changes a tier's capacity.
func (o *apiOptions) resize(c *cobra.Command, event, tier string, n int64) error {
	body := struct {
		Quantity int64 `json:"quantity"`
	}{n}
	var v struct{ Quantity, Version int64 }
	path := eventPath(event, "/tiers/%s", url.PathEscape(tier))
	answer, err := o.send(c, o.change(http.MethodPatch, event, path, body), &v)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("tier %s of event %s has %s tickets; version %d", tier, event, thousands(v.Quantity), v.Version)
	if o.dryRun {
		text = dryRunSays + fmt.Sprintf("tier %s of event %s would have %s tickets", tier, event, thousands(v.Quantity))
	}
	return o.tellText(c.OutOrStdout(), answer, wrap(text, "  "))
}
