package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/outbox"
)

// replayStatusCommand makes the dlq status command.
func replayStatusCommand() *cobra.Command {
	o := &dlqOptions{}
	var status string
	var limit int
	var follow bool
	var every time.Duration
	c := &cobra.Command{
		Use:   "status [REPLAY_ID]",
		Short: "Show how replays stand",
		Long: `status shows how far a replay is, and what was done with it by whom; without an id it lists
the replays, the newest first. With --follow it looks again and again until the replay has
ended or stopped, or until Ctrl-C: the replay goes on all the same.

Exit codes: 0 shown, or with --follow done; 1 it was refused or failed, or with --follow it
stopped, was rejected, or letters died again; 2 wrong usage.`,
		Example: `  tierledger dlq status --status awaiting_approval
  tierledger dlq status 00000000-6e1f-8d02-b3c5-2a90f7d84e16 --follow`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := c.Flags()
	flags.StringVar(&status, "status", "", "only of this `STATUS`: awaiting_approval, rejected, running, stopped or done")
	flags.IntVar(&limit, "limit", 20, "`N` replays at most, up to 500")
	flags.BoolVar(&follow, "follow", false, "wait until it has ended, and show how far it is")
	flags.DurationVar(&every, "every", time.Second, "how often to look with --follow")
	return o.reading(c, func(c *cobra.Command, args []string) error {
		switch {
		case every <= 0:
			return usagef("--every must be above 0")
		case len(args) == 0 && follow:
			return usagef("--follow needs a replay's id")
		case len(args) == 1 && c.Flags().Changed("status"):
			return usagef("--status is for the list: leave it out, or the id")
		case len(args) == 0:
			return o.listReplays(c, status, limit)
		case follow:
			return o.followReplay(c, args[0], every)
		}
		var r outbox.Replay
		answer, err := o.call(c, read("", replayPath(args[0], ""), nil), &r)
		if err != nil {
			return err
		}
		return o.tellText(c.OutOrStdout(), answer, replayText(&r)+stepsText(&r))
	})
}

func (o *dlqOptions) listReplays(c *cobra.Command, status string, limit int) error {
	query := url.Values{"limit": {fmt.Sprint(limit)}}
	if status != "" {
		query.Set("status", status)
	}
	var page struct {
		Data       []outbox.Replay `json:"data"`
		NextCursor *string         `json:"next_cursor"`
	}
	answer, err := o.call(c, read("", replaysPath, query), &page)
	if err != nil {
		return err
	}
	text := ""
	for i := range page.Data {
		text += replayText(&page.Data[i])
	}
	switch {
	case text == "":
		text = "no replays\n"
	case page.NextCursor != nil:
		text += "there are older ones: raise --limit\n"
	}
	return o.tellText(c.OutOrStdout(), answer, text)
}

// followReplay looks at a replay again and again until it has ended or stopped, or until
// it's interrupted, which is no failure. A service that's away is waited for.
func (o *dlqOptions) followReplay(c *cobra.Command, id string, every time.Duration) error {
	ctx := c.Context()
	show, end := tellSending(c.ErrOrStderr())
	defer end()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		var r outbox.Replay
		answer, err := o.call(c, read("", replayPath(id, ""), nil), &r)
		var refused *refusal
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && refused.status < 500:
			return err
		case err != nil:
			complain(c.ErrOrStderr(), err)
		case r.Status != outbox.ReplayRunning && r.Status != outbox.ReplayAwaiting:
			end()
			if err := o.tellText(c.OutOrStdout(), answer, replayText(&r)+stepsText(&r)); err != nil {
				return err
			}
			if r.Status != outbox.ReplayDone || r.Failed > 0 {
				return errTold
			}
			return nil
		default:
			show("%s", progress(&r))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// progress says in one line how far a replay is.
func progress(r *outbox.Replay) string {
	text := fmt.Sprintf("%s of %s done", thousands(int64(r.Done)), thousands(int64(r.Letters)))
	if r.Failed > 0 {
		text += fmt.Sprintf(", %s died again", thousands(int64(r.Failed)))
	}
	if r.Freed > 0 {
		text += fmt.Sprintf(", %s let go of", thousands(int64(r.Freed)))
	}
	if r.Status == outbox.ReplayRunning {
		text += fmt.Sprintf(", about %s left", lasts(r.Left, r.Rate))
	}
	return text
}

// replayText is a replay in three lines or more.
func replayText(r *outbox.Replay) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %-8s %s\n", instant(r.RequestedAt), r.ID, r.Action, strings.ReplaceAll(string(r.Status), "_", " "))
	b.WriteString(wrap("  "+progress(r)+"; of "+chosenText(r.Chosen), "    "))
	says := "  asked by " + r.RequestedBy + ": " + r.Reason
	if r.Note != "" {
		says += "; " + r.Note
	}
	b.WriteString(wrap(says, "    "))
	switch r.Status {
	case outbox.ReplayAwaiting:
		b.WriteString(wrap(fmt.Sprintf("  %s about money: another person of finance decides", counted(r.Money, "letter")), "    "))
		fmt.Fprintf(&b, "  tierledger dlq approve %s\n", r.ID)
	case outbox.ReplayStopped:
		fmt.Fprintf(&b, "  tierledger dlq resume %s\n", r.ID)
	}
	return b.String()
}

// chosenText says by what a replay's letters were chosen.
func chosenText(chosen json.RawMessage) string {
	var by struct {
		Filter  map[string]any `json:"filter"`
		Letters []string       `json:"letters"`
	}
	if json.Unmarshal(chosen, &by) != nil {
		return string(chosen)
	}
	if len(by.Letters) > 0 {
		return counted(len(by.Letters), "letter") + " by id"
	}
	if len(by.Filter) == 0 {
		return "all that were dead"
	}
	var parts []string
	for _, name := range []string{"consumer", "kind", "event", "journal", "target", "reason", "replay_id", "since", "until"} {
		if value, ok := by.Filter[name]; ok {
			parts = append(parts, fmt.Sprintf("%s %v", strings.TrimSuffix(name, "_id"), value))
		}
	}
	return strings.Join(parts, ", ")
}

// stepsText says what was done with a replay.
func stepsText(r *outbox.Replay) string {
	var b strings.Builder
	for _, s := range r.Steps {
		says := fmt.Sprintf("  %s %s by %s", instant(s.At), strings.ReplaceAll(s.Step, "_", " "), s.By)
		if s.Reason != "" {
			says += ": " + s.Reason
		}
		b.WriteString(wrap(says, "    "))
	}
	return b.String()
}

// approveReplayCommand makes the dlq approve command.
func approveReplayCommand() *cobra.Command {
	return stepCommand("approve", "Approve a replay that waits for it", `approve lets a replay begin that somebody else asked for. Its letters are those that were
dead when it was asked for.

Exit codes: 0 approved, 1 it was refused or failed, 2 wrong usage.`, false)
}

// rejectReplayCommand makes the dlq reject command.
func rejectReplayCommand() *cobra.Command {
	return stepCommand("reject", "Reject a replay that waits for approval", `reject ends a replay that somebody else asked for. Its letters stay dead and are free
again, and the replay keeps who said no, and why.

Exit codes: 0 rejected, 1 it was refused or failed, 2 wrong usage.`, true)
}

// stopReplayCommand makes the dlq stop command.
func stopReplayCommand() *cobra.Command {
	return stepCommand("stop", "Stop a replay that's running", `stop stops a replay between two letters. It keeps the letters that it hasn't done: resume
goes on with them, and a replay or a discard --of-replay takes them over.

Exit codes: 0 stopped, 1 it was refused or failed, 2 wrong usage.`, true)
}

// resumeReplayCommand makes the dlq resume command.
func resumeReplayCommand() *cobra.Command {
	return stepCommand("resume", "Go on with a replay that was stopped", `resume goes on with a stopped replay. Nothing that it did is done again; when no letter has
gone well yet, the next one goes alone again.

Exit codes: 0 it's running, 1 it was refused or failed, 2 wrong usage.`, false)
}

// stepCommand makes a command that changes a replay's status.
func stepCommand(name, short, long string, reasoned bool) *cobra.Command {
	o := &dlqOptions{}
	example := "  tierledger dlq " + name + " 00000000-6e1f-8d02-b3c5-2a90f7d84e16"
	if reasoned {
		example += ` --reason "the printer still smokes"`
	}
	c := &cobra.Command{Use: name + " REPLAY_ID", Short: short, Long: long, Example: example, Args: cobra.ExactArgs(1)}
	if reasoned {
		o.reasonFlag(c)
		required(c, "reason")
	}
	return o.changing(c, func(c *cobra.Command, args []string) error {
		var body any = struct{}{}
		if reasoned {
			body = reasonBody{o.reason}
		}
		var r outbox.Replay
		answer, err := o.call(c, o.change(http.MethodPost, "", replayPath(args[0], "/"+name), body), &r)
		if err != nil {
			return err
		}
		return o.tellText(c.OutOrStdout(), answer, replayText(&r))
	})
}
