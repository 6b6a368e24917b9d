package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/outbox"
)

// dlqCommand makes the dlq command, which only has commands below it.
func dlqCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "dlq",
		Short: "See, replay and discard what couldn't be done",
		Long: `The commands below show dead letters and do them again, over the API of a service that
runs anywhere. docs/operating-dead-letters.md is their runbook.

A DEAD LETTER is an entry whose effect failed for a consumer (tickets, webhooks) after all
attempts, or a message that names no entry. A REPLAY does letters again, or discards them;
it has its letters for itself, from when it's asked for until it has done them.

replay and discard first show what they would do; with --yes they do it. What is about
money waits for approval by another person of finance. With --json a command prints what
the API answers. Every change is made once under its key, which is made up unless you give
one; when it isn't known whether a change was made, the error tells the key to repeat it
with.

The API key needs a role to read: finance, operator or auditor; to replay and discard:
finance or operator; to approve and reject: finance. An admin may do everything.`,
		Example: `  tierledger dlq list --consumer tickets
  tierledger dlq replay --consumer tickets --reason "printer mended"
  tierledger dlq replay --consumer tickets --reason "printer mended" --yes --follow`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(listLettersCommand(), showLetterCommand(), againCommand(outbox.ActReplay), againCommand(outbox.ActDiscard),
		replayStatusCommand(), approveReplayCommand(), rejectReplayCommand(), stopReplayCommand(), resumeReplayCommand())
	return c
}

// dlqOptions are the flags that dlq commands share.
type dlqOptions struct{ apiOptions }

const (
	lettersPath = "/v1/dead-letters"
	replaysPath = lettersPath + "/replays"
)

func replayPath(id, rest string) string { return replaysPath + "/" + url.PathEscape(id) + rest }

// call sends a request as send does; what refusals say to do next is about letters.
func (o *dlqOptions) call(c *cobra.Command, q ask, dst any) ([]byte, error) {
	show, end := tellSending(c.ErrOrStderr())
	defer end()
	got, unknown, err := o.service.deliver(c.Context(), q, func(state string) { show("%s", state) })
	var refused *refusal
	switch {
	case err == nil:
	case !unknown && errors.As(err, &refused) && letterSteps[refused.Code] != "":
		return nil, fmt.Errorf("%w; %s", err, letterSteps[refused.Code])
	default:
		return nil, advise(c.Context(), err, nil, q, unknown)
	}
	if err := json.Unmarshal(got.body, dst); err != nil {
		return nil, fmt.Errorf("the answer isn't the API's: %w", err)
	}
	return got.body, nil
}

// letterSteps says what to do after a refusal, by its code.
var letterSteps = map[string]string{
	"forbidden":             "ask for a key with the role operator, or finance to approve",
	"not_found":             "is that a service of a release without dead letters?",
	"dead_letter_not_found": "`tierledger dlq list` lists them",
	"replay_not_found":      "`tierledger dlq status` lists the replays",
	"letter_taken":          "`tierledger dlq status` shows the replay that has it",
	"nothing_chosen":        "`tierledger dlq list` lists what's dead, `tierledger dlq status` the replays that have letters",
	"letter_not_replayable": "`tierledger dlq discard` ends it",
	"too_many_letters":      "narrow it with --since and --until, and ask again for the rest",
	"wrong_replay_status":   "`tierledger dlq status` shows how it stands",
	"same_person":           "somebody else of finance must decide, with a key of their own",
}

// letterFlags are those that select letters.
type letterFlags struct {
	Consumer string  `json:"consumer,omitempty"`
	Kind     string  `json:"kind,omitempty"`
	Event    string  `json:"event,omitempty"`
	Journal  *uint32 `json:"journal,omitempty"`
	Target   string  `json:"target,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	ReplayID string  `json:"replay_id,omitempty"`
	Since    string  `json:"since,omitempty"`
	Until    string  `json:"until,omitempty"`

	journal string
}

func (f *letterFlags) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.Consumer, "consumer", "", "only those of a `CONSUMER`: tickets or webhooks")
	flags.StringVar(&f.Kind, "kind", "", "only those of a `KIND` of entry, such as order.captured")
	flags.StringVar(&f.Event, "event", "", "only those of an `EVENT`, in all its lanes")
	flags.StringVar(&f.journal, "journal", "", "only those of a journal's `NUMBER`")
	flags.StringVar(&f.Target, "target", "", "only those for a `TARGET`, such as a subscription's id")
	flags.StringVar(&f.Reason, "error", "", "only those whose reason has this `TEXT` in it")
	flags.StringVar(&f.ReplayID, "of-replay", "", "only those that a replay's `ID` has, or had last")
	flags.StringVar(&f.Since, "since", "", "only those that died at this `TIME` or later, such as 2027-03-01T10:00:00Z")
	flags.StringVar(&f.Until, "until", "", "only those that died before this `TIME`")
	c.MarkFlagsMutuallyExclusive("event", "journal")
}

// settle reads the flags; given tells whether there's any.
func (f *letterFlags) settle() (given bool, err error) {
	if f.journal != "" {
		n, err := strconv.ParseUint(f.journal, 10, 32)
		if err != nil {
			return false, usagef("--journal: %q isn't a journal's number", f.journal)
		}
		f.Journal = new(uint32(n))
	}
	for flag, text := range map[string]string{"since": f.Since, "until": f.Until} {
		if _, err := time.Parse(time.RFC3339Nano, text); text != "" && err != nil {
			return false, usagef("--%s: %q isn't a time such as 2027-03-01T10:00:00Z", flag, text)
		}
	}
	return *f != letterFlags{}, nil
}

// query gives the flags as the parameters of a list.
func (f *letterFlags) query() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{"consumer": f.Consumer, "kind": f.Kind, "event": f.Event, "journal": f.journal, "target": f.Target,
		"reason": f.Reason, "replay_id": f.ReplayID, "since": f.Since, "until": f.Until} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// shownLetter is a dead letter as the API gives it.
type shownLetter struct {
	outbox.DeadLetter
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
	Coded   []byte          `json:"payload_base64"`
}

// listLettersCommand makes the dlq list command.
func listLettersCommand() *cobra.Command {
	o := &dlqOptions{}
	var f letterFlags
	var status, cursor string
	var limit int
	c := &cobra.Command{
		Use:   "list",
		Short: "List dead letters",
		Long: `list shows dead letters, the newest first: those that nobody has seen to, unless --status
says otherwise. Letters are never removed.

Exit codes: 0 listed, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger dlq list --consumer tickets --error "out of paper"
  tierledger dlq list --status all --event hall --limit 100
  tierledger dlq list --json | jq -r '.data[].letter_id'`,
		Args: cobra.NoArgs,
	}
	f.flags(c)
	flags := c.Flags()
	flags.StringVar(&status, "status", "dead", "only of this `STATUS`: dead, replayed, discarded, or all")
	flags.IntVar(&limit, "limit", 20, "`N` letters at most, up to 500")
	flags.StringVar(&cursor, "cursor", "", "go on at this `CURSOR`, the next_cursor of an answer before")
	return o.reading(c, func(c *cobra.Command, _ []string) error {
		if _, err := f.settle(); err != nil {
			return err
		}
		query := f.query()
		query.Set("limit", strconv.Itoa(limit))
		if status != "all" {
			query.Set("status", status)
		}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		var page struct {
			Data       []shownLetter `json:"data"`
			NextCursor *string       `json:"next_cursor"`
		}
		answer, err := o.call(c, read("", lettersPath, query), &page)
		if err != nil {
			return err
		}
		return o.tellText(c.OutOrStdout(), answer, lettersList(page.Data, page.NextCursor != nil))
	})
}

// lettersList lays letters out, two lines or more for each.
func lettersList(letters []shownLetter, more bool) string {
	if len(letters) == 0 {
		return "no dead letters\n"
	}
	var b strings.Builder
	for i := range letters {
		b.WriteString(letterText(&letters[i]))
	}
	if more {
		b.WriteString("there are older ones: raise --limit, or go on with --json and --cursor\n")
	}
	return b.String()
}

// letterText is a letter in two lines or more.
func letterText(l *shownLetter) string {
	status := string(l.Status)
	if l.Taken {
		status = "taken"
	}
	text := strings.TrimRight(fmt.Sprintf("%s  %s  %-9s  %s", instant(l.DiedAt), l.ID, status, l.Consumer), " ") + "\n"
	return text + wrap("  "+about(l)+", "+counted(l.Attempts, "attempt")+": "+firstLine(l.Reason), "    ")
}

// about says what a letter is about.
func about(l *shownLetter) string {
	what := "a message that names no entry"
	if l.Seq > 0 {
		what = fmt.Sprintf("%s, entry %d of journal %d", l.Kind, l.Seq, l.Journal)
	}
	if l.Event != "" {
		what += " (event " + l.Event + ")"
	}
	if l.Target != "" {
		what += ", for " + l.Target
	}
	if l.Money {
		what += ", money"
	}
	return what
}

// firstLine is a text up to the end of its line.
func firstLine(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if more {
		line += " …"
	}
	return line
}

// showLetterCommand makes the dlq show command.
func showLetterCommand() *cobra.Command {
	o := &dlqOptions{}
	c := &cobra.Command{
		Use:   "show LETTER_ID",
		Short: "Show a dead letter with its payload",
		Long: `show tells everything that's kept of a dead letter: whose it is, why it died, which replay
has it or had it last, and the message as it came.

Exit codes: 0 shown, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger dlq show 00000009-41b7-8a3e-9c10-7fd2e6085b94
  tierledger dlq show 00000009-41b7-8a3e-9c10-7fd2e6085b94 --json | jq .payload.data`,
		Args: cobra.ExactArgs(1),
	}
	return o.reading(c, func(c *cobra.Command, args []string) error {
		var l shownLetter
		answer, err := o.call(c, ask{method: http.MethodGet, path: lettersPath + "/" + url.PathEscape(args[0])}, &l)
		if err != nil {
			return err
		}
		return o.tellText(c.OutOrStdout(), answer, wholeLetter(&l))
	})
}

// wholeLetter lays out everything of a letter.
func wholeLetter(l *shownLetter) string {
	text := letterText(l)
	switch {
	case l.Taken:
		text += fmt.Sprintf("  replay %s has it\n", l.Replay)
	case l.EndedAt != nil:
		text += fmt.Sprintf("  %s %s by replay %s\n", l.Status, instant(*l.EndedAt), l.Replay)
	case l.Replay != nil:
		text += fmt.Sprintf("  replay %s had it last\n", l.Replay)
	}
	if rest := strings.TrimPrefix(l.Reason, strings.TrimSuffix(firstLine(l.Reason), " …")); strings.TrimSpace(rest) != "" {
		text += strings.TrimLeft(rest, "\n") + "\n"
	}
	if l.Payload != nil {
		return text + string(l.Payload) + "\n"
	}
	return text + fmt.Sprintf("%q\n", l.Coded)
}
