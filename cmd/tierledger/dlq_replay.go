package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/outbox"
)

// againOptions are the flags of dlq replay and dlq discard.
type againOptions struct {
	dlqOptions
	letterFlags
	action outbox.Action
	all    bool
	rate   int
	canary bool
	yes    bool
	follow bool
	every  time.Duration
}

// againBody asks for a replay as the API takes it.
type againBody struct {
	Action  outbox.Action `json:"action"`
	Filter  *letterFlags  `json:"filter,omitempty"`
	Letters []string      `json:"letters,omitempty"`
	Rate    int           `json:"rate,omitempty"`
	Canary  bool          `json:"canary"`
	Reason  string        `json:"reason"`
}

const replayLong = `replay does dead letters again: those whose ids are given, or those that the flags select.
It does each once, in the order of its journal, at a rate that disturbs nobody, the first
one alone: when that dies again, the replay stops. What dies again later is counted, and
stays dead.
`

const discardLong = `discard ends dead letters for which nothing is to be done: those whose ids are given, or
those that the flags select. They stay in the list, with who discarded them and why.
`

const againLong = `
Without --yes it only shows what it would do. Letters about money wait until another person
of finance approves. With --of-replay a stopped replay's letters are taken over.

Exit codes: 0 shown, asked for, or with --follow done; 1 it was refused or failed, or with
--follow it stopped or letters died again; 2 wrong usage.`

// againCommand makes the dlq replay or the dlq discard command.
func againCommand(action outbox.Action) *cobra.Command {
	o := &againOptions{action: action}
	name, short, long := string(action), "Do dead letters again", replayLong+againLong
	if action == outbox.ActDiscard {
		short, long = "End dead letters without doing anything", discardLong+againLong
	}
	c := &cobra.Command{
		Use: name + " [LETTER_ID…]", Short: short, Long: long,
		Example: strings.ReplaceAll(`  tierledger dlq ACTION --consumer tickets --since 2027-03-01T10:00:00Z --reason "ticket 7"
  tierledger dlq ACTION --all --reason "ticket 7" --rate 50 --yes --follow
  tierledger dlq ACTION 00000009-41b7-8a3e-9c10-7fd2e6085b94 --reason "ticket 7" --yes`, "ACTION", name),
	}
	o.letterFlags.flags(c)
	flags := c.Flags()
	flags.BoolVar(&o.all, "all", false, "all that are dead and that no other replay has")
	flags.IntVar(&o.rate, "rate", 10, "`N` letters a second, 1 to 1000")
	flags.BoolVar(&o.canary, "canary", true, "the first letter alone, the rest only if it went well")
	flags.BoolVar(&o.yes, "yes", false, "do it; without it, only show what would be done")
	flags.BoolVar(&o.follow, "follow", false, "wait until it's done, and show how far it is")
	flags.DurationVar(&o.every, "every", time.Second, "how often to look with --follow")
	o.reasonFlag(c)
	required(c, "reason")
	return o.changing(c, func(c *cobra.Command, args []string) error {
		body, err := o.body(args)
		if err != nil {
			return err
		}
		return o.run(c, body)
	})
}

// body makes what the flags ask for.
func (o *againOptions) body(ids []string) (b againBody, err error) {
	selected, err := o.settle()
	switch {
	case err != nil:
		return b, err
	case o.rate < 1 || o.rate > outbox.MaxReplayRate:
		return b, usagef("--rate must be 1 to %d", outbox.MaxReplayRate)
	case o.every <= 0:
		return b, usagef("--every must be above 0")
	case o.follow && !o.yes:
		return b, usagef("--follow is for what's done: give --yes too")
	case len(ids) > 0 && (selected || o.all):
		return b, usagef("give letters' ids, or flags that select letters, not both")
	case selected && o.all:
		return b, usagef("--all is for all of them: leave the flags out that select")
	case len(ids) == 0 && !selected && !o.all:
		return b, usagef("which letters? Give ids, flags that select, such as --consumer, or --all")
	}
	b = againBody{Action: o.action, Letters: ids, Rate: o.rate, Canary: o.canary, Reason: o.reason}
	if len(ids) == 0 {
		b.Filter = &o.letterFlags
	}
	return b, nil
}

// run shows what would be done, and with --yes does it.
func (o *againOptions) run(c *cobra.Command, body againBody) error {
	if !o.yes {
		dry := o.change(http.MethodPost, "", replaysPath, body)
		dry.query, dry.key = url.Values{"dry_run": {"true"}}, ""
		var p shownPreview
		answer, err := o.call(c, dry, &p)
		if err != nil {
			return err
		}
		return o.tellText(c.OutOrStdout(), answer, previewText(&p))
	}
	var r outbox.Replay
	answer, err := o.call(c, o.change(http.MethodPost, "", replaysPath, body), &r)
	if err != nil {
		return err
	}
	if o.follow && r.Status != outbox.ReplayAwaiting {
		return o.followReplay(c, r.ID.String(), o.every)
	}
	return o.tellText(c.OutOrStdout(), answer, replayText(&r))
}

// shownPreview is what a dry run tells.
type shownPreview struct {
	outbox.Preview
	First shownLetter `json:"first"`
}

// previewText says what a request would do.
func previewText(p *shownPreview) string {
	would := "replayed"
	if p.Action == outbox.ActDiscard {
		would = "discarded"
	}
	var b strings.Builder
	how := fmt.Sprintf(", %d a second, in about %s", p.Rate, lasts(p.Letters, p.Rate))
	if p.Canary && p.Letters > 1 {
		how += ", the first one alone"
	}
	b.WriteString(wrap(dryRunSays+counted(p.Letters, "letter")+" would be "+would+how, "  "))
	for _, g := range p.Groups {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%10s  %-10s %s", thousands(int64(g.Letters)), g.Consumer, g.Kind), " ") + "\n")
	}
	b.WriteString("the first:\n" + letterText(&p.First))
	if p.Taken > 0 {
		b.WriteString(wrap(fmt.Sprintf("%s more are other replays': `tierledger dlq status` shows them", thousands(int64(p.Taken))), "  "))
	}
	if p.NotReplayable > 0 {
		b.WriteString(wrap(fmt.Sprintf("%s more can only be discarded", thousands(int64(p.NotReplayable))), "  "))
	}
	if p.NeedsApproval {
		b.WriteString(wrap(fmt.Sprintf("%s about money: another person of finance must approve", thousands(int64(p.Money))), "  "))
	}
	b.WriteString("add --yes to do it\n")
	return b.String()
}

// lasts is how long letters take at a rate.
func lasts(letters, rate int) time.Duration {
	rate = max(rate, 1) // whatever is answered
	return time.Duration((letters+rate-1)/rate) * time.Second
}
