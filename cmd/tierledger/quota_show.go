package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/quota"
)

// showOptions are the flags of quota show.
type showOptions struct {
	apiOptions
	tier  string
	moves int
	watch bool
	every time.Duration
}

// showQuotaCommand makes the quota show command.
func showQuotaCommand() *cobra.Command {
	o := &showOptions{}
	c := &cobra.Command{
		Use:   "show EVENT",
		Short: "Show where an event's tickets are",
		Long: `show tells what each lane has of each tier, all of one instant: what's free for everybody
and in allotments, held, sold and on the move; then the allotments, the moves that wait for
approval, and the last ones that were made.

With --watch it looks again and again, until Ctrl-C; a service that's away is waited for.
--json prints what GET /v1/events/EVENT/buckets answers, and nothing else.

Exit codes: 0 shown, or ended by Ctrl-C, 1 it was refused or failed, 2 wrong usage.`,
		Example: `  tierledger quota show hall
  tierledger quota show hall --tier ga --watch
  tierledger quota show hall --json | jq '.buckets[] | select(.free == 0)'`,
		Args: cobra.ExactArgs(1),
	}
	flags := c.Flags()
	flags.StringVar(&o.tier, "tier", "", "only this `TIER`")
	flags.IntVar(&o.moves, "moves", 5, "the last `N` moves, 0 to 500")
	flags.BoolVar(&o.watch, "watch", false, "look again and again")
	flags.DurationVar(&o.every, "every", 2*time.Second, "how often with --watch")
	return o.reading(c, func(c *cobra.Command, args []string) error {
		switch {
		case o.moves < 0 || o.moves > maxMovesPage:
			return usagef("--moves must be 0 to %d", maxMovesPage)
		case o.every <= 0:
			return usagef("--every must be above 0")
		case o.watch:
			return o.follow(c, args[0])
		}
		text, err := o.look(c, args[0])
		if err == nil {
			_, err = c.OutOrStdout().Write(text)
		}
		return err
	})
}

// maxMovesPage is as many moves as the API lists at once.
const maxMovesPage = 500

// follow looks again and again until it's interrupted, which is no failure. What a service
// that's there refuses ends it too.
func (o *showOptions) follow(c *cobra.Command, event string) error {
	const home = "\x1b[H\x1b[2J" // a clear screen
	ctx, out := c.Context(), c.OutOrStdout()
	ticker := time.NewTicker(o.every)
	defer ticker.Stop()
	for {
		text, err := o.look(c, event)
		var refused *refusal
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && refused.status < 500:
			return err
		case err != nil:
			complain(c.ErrOrStderr(), err)
		default:
			if isTerminal(out) && !o.asJSON {
				text = append([]byte(home), text...)
			}
			if _, err := out.Write(text); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look reads everything once and lays it out.
func (o *showOptions) look(c *cobra.Command, event string) ([]byte, error) {
	var v quota.View
	answer, err := o.send(c, read(event, eventPath(event, "/buckets"), nil), &v)
	switch {
	case err != nil:
		return nil, err
	case o.asJSON:
		return append(answer, '\n'), nil
	case o.tier != "" && !only(&v, o.tier):
		return nil, fmt.Errorf("event %s has no tier %s; without --tier all are shown", event, o.tier)
	}
	waiting, allowed, err := o.moved(c, event, maxMovesPage, quota.Awaiting)
	var last movesPage
	if err == nil && allowed && o.moves > 0 {
		last, _, err = o.moved(c, event, o.moves, "")
	}
	if err != nil {
		return nil, err
	}
	text := quotaTables(v)
	if !allowed {
		return append(text, "\nmoves: this key's roles don't allow to read them\n"...), nil
	}
	if len(waiting.Data) > 0 {
		text = append(text, "\nwaiting for approval: `tierledger quota approve` or `reject` by another person\n"...)
		text = append(text, movesList(waiting, "there are more: `tierledger quota moves` lists them")...)
	}
	if o.moves > 0 {
		text = append(text, "\nlast moves\n"...)
		last.NextCursor = nil
		text = append(text, movesList(last, "")...)
	}
	return text, nil
}

// moved reads the newest moves of a status; "" for all. allowed is false when the key
// doesn't allow it: whoever may see tickets needn't see who moved them.
func (o *showOptions) moved(c *cobra.Command, event string, limit int, status quota.Status) (page movesPage, allowed bool, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if status != "" {
		query.Set("status", string(status))
	}
	if o.tier != "" {
		query.Set("tier", o.tier)
	}
	_, err = o.send(c, read(event, eventPath(event, "/quota-moves"), query), &page)
	var refused *refusal
	if errors.As(err, &refused) && refused.status == http.StatusForbidden {
		return page, false, nil
	}
	return page, true, err
}
