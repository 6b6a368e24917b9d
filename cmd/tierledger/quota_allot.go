package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/quota"
)

// allotOptions are the flags of quota allot.
type allotOptions struct {
	apiOptions
	tiers    []string
	name     string
	opens    string
	releases string
	needCode bool
	codes    codeFlags
}

// allotCommand makes the quota allot command.
func allotCommand() *cobra.Command {
	o := &allotOptions{}
	c := &cobra.Command{
		Use:   "allot EVENT ALLOTMENT",
		Short: "Set tickets aside for a partner, a presale or a door",
		Long: `allot makes an allotment and moves tickets of one tier or more to it. Who buys from it names
it, or one of its access codes; each code is good for as many holds as it has uses. Made with
codes, or with --code-required, it sells to nobody without one; codes that are added to another
are only a way in. What isn't sold at --releases becomes everybody's again.

Times are RFC 3339 with an offset, and better with the zone's name behind it in brackets: then
an offset that the zone doesn't have on that day is refused.

The allotment, its codes and the tickets of each tier are made one after the other. When one
of them is refused the ones before it stand, and a repeat under the same key goes on.

Exit codes: 0 made, or tickets wait for approval, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota allot hall sponsor --tier ga=300 --tier vip=20 --reason "contract 7"
  tierledger quota allot hall fans --tier ga=5000 --codes-file fans.codes --reason presale \
    --opens "2027-03-27T10:00:00+01:00[Europe/Berlin]" \
    --releases "2027-03-28T10:00:00+02:00[Europe/Berlin]"
  tierledger quota allot hall press --code PRESS-1=50 --reason "no tickets yet"`,
		Args: cobra.ExactArgs(2),
	}
	flags := c.Flags()
	flags.StringArrayVar(&o.tiers, "tier", nil, "`TIER=N` tickets to move to it; may be repeated")
	flags.StringVar(&o.name, "name", "", "`TEXT` that people know it by (default: ALLOTMENT)")
	flags.StringVar(&o.opens, "opens", "", "`TIME` from which it sells (default: with the event's sale)")
	flags.StringVar(&o.releases, "releases", "", "`TIME` at which what's left becomes everybody's (default: never)")
	flags.BoolVar(&o.needCode, "code-required", false, "sell to nobody without a code, though there are none yet")
	o.codes.flags(c)
	o.reasonFlag(c)
	required(c, "reason")
	return o.changing(c, func(c *cobra.Command, args []string) error { return o.run(c, args[0], args[1]) })
}

// tierCount is tickets of a tier as the API takes them.
type tierCount struct {
	Tier     string `json:"tier"`
	Quantity int64  `json:"quantity"`
}

// allotBody is an allotment as the API takes it.
type allotBody struct {
	Allotment    string      `json:"allotment"`
	Name         string      `json:"name,omitempty"`
	OpensAt      string      `json:"opens_at,omitempty"`
	ReleasesAt   string      `json:"releases_at,omitempty"`
	CodeRequired bool        `json:"code_required,omitempty"`
	Codes        []codeUses  `json:"codes,omitempty"`
	Tiers        []tierCount `json:"tiers,omitempty"`
	Reason       string      `json:"reason"`
}

// allotted is what the API answers.
type allotted struct {
	buckets.Allotment
	Moves []quota.Move `json:"moves"`
}

// run makes the allotment, and adds the codes that didn't fit in the first request.
func (o *allotOptions) run(c *cobra.Command, event, allotment string) error {
	body := allotBody{
		Allotment: allotment, Name: o.name, OpensAt: o.opens, ReleasesAt: o.releases, CodeRequired: o.needCode, Reason: o.reason,
	}
	for _, text := range o.tiers {
		tier, n, err := pair("--tier", text, "ga=300")
		if err != nil {
			return err
		}
		body.Tiers = append(body.Tiers, tierCount{tier, n})
	}
	codes, err := o.codes.read(c.InOrStdin())
	if err != nil {
		return err
	}
	first := codes[:min(len(codes), codesAtOnce)]
	body.Codes = first
	var a allotted
	answer, err := o.send(c, o.change(http.MethodPost, event, eventPath(event, "/allotments"), body), &a)
	if err != nil {
		return o.goesOn(err)
	}
	if err := o.tellText(c.OutOrStdout(), answer, allottedText(event, a, len(first))); err != nil {
		return err
	}
	if len(codes) == len(first) {
		return nil
	}
	if err := o.addCodes(c, event, allotment, codes, len(first)); err != nil {
		return fmt.Errorf("allotment %s was made: %w", allotment, err)
	}
	return nil
}

// goesOn says how to go on with what's done in steps, the first of which may stand.
func (o *apiOptions) goesOn(err error) error {
	var refused *refusal
	switch {
	case errors.As(err, &openOutcome{}):
		return err
	case !decided(err):
		return fmt.Errorf("%w; what was done before it stands, and a repeat with --idempotency-key %s goes on", err, o.key)
	case errors.As(err, &refused) && refused.Code == "insufficient_free":
		return fmt.Errorf("%w; if the allotment is there, it was made, and `tierledger quota move` gives it tickets", err)
	}
	return err
}

// allottedText says what was made.
func allottedText(event string, a allotted, codes int) string {
	text := fmt.Sprintf("allotment %s of event %s opens %s and releases %s", a.Allotment.Allotment, event,
		instantOr(a.OpensAt, "with the sale"), instantOr(a.ReleasesAt, "never"))
	if a.CodeRequired {
		text += ", with " + counted(codes, "access code")
	}
	text = wrap(text+fmt.Sprintf("; version %d", a.Version), "  ")
	for _, m := range a.Moves {
		text += movedText(m, false)
	}
	return text
}

// closeCommand makes the quota close command.
func closeCommand() *cobra.Command {
	o := &apiOptions{}
	c := &cobra.Command{
		Use:   "close EVENT ALLOTMENT",
		Short: "End an allotment; what's free becomes everybody's",
		Long: `close ends an allotment for good: nobody buys from it any more, and what's free in it
becomes everybody's at once. Holds that were placed from it go on: they may be paid, and
when they end otherwise their tickets become everybody's too. An allotment that was closed
stays as it is.

Exit codes: 0 closed, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota close hall sponsor --reason "they have enough"
  tierledger quota close hall fans --reason "presale is over" --if-match 57`,
		Args: cobra.ExactArgs(2),
	}
	o.reasonFlag(c)
	o.ifMatchFlag(c, "the allotment")
	required(c, "reason")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		event, allotment := args[0], args[1]
		var a buckets.Allotment
		path := eventPath(event, "/allotments/%s/close", url.PathEscape(allotment))
		answer, err := o.send(c, o.change(http.MethodPost, event, path, reasonBody{o.reason}), &a)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("allotment %s of event %s has been closed since %s; version %d", allotment, event,
			instantOr(a.ClosedAt, "now"), a.Version)
		return o.tellText(c.OutOrStdout(), answer, wrap(text, "  "))
	})
}
