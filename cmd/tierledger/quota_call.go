package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// read makes the request of a reading.
func read(event, path string, query url.Values) ask {
	return ask{method: http.MethodGet, path: path, query: query, event: event}
}

// change makes the request of a change, or of its dry run.
func (o *apiOptions) change(method, event, path string, body any) ask {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // the bodies have nothing that can't be JSON
	}
	q := ask{method: method, path: path, key: o.key, ifMatch: o.ifMatch, body: text, event: event}
	if o.dryRun {
		q.query, q.key = url.Values{"dry_run": {"true"}}, ""
	}
	return q
}

// eventPath is the path of something of an event.
func eventPath(event, rest string, args ...any) string {
	return "/v1/events/" + url.PathEscape(event) + fmt.Sprintf(rest, args...)
}

// send sends a request until it's answered, again if need be, and gives the answer's body;
// what it says is also read into the struct that dst points to, unless that's nil. Errors
// say what to do next: after a change whose outcome isn't known, under which key to repeat
// it.
func (o *apiOptions) send(c *cobra.Command, q ask, dst any) ([]byte, error) {
	show, end := tellSending(c.ErrOrStderr())
	defer end()
	got, unknown, err := o.service.deliver(c.Context(), q, func(state string) { show("%s", state) })
	if err != nil {
		return nil, advise(c.Context(), err, got.body, q, unknown)
	}
	if dst == nil {
		return got.body, nil
	}
	if err := json.Unmarshal(got.body, dst); err != nil {
		return nil, fmt.Errorf("the answer isn't the API's: %w", err)
	}
	return got.body, nil
}

// openOutcome is an error after which nobody knows whether a change was made. It tells the
// key to repeat it with.
type openOutcome struct{ error }

// Unwrap lets errors.As find what happened.
func (o openOutcome) Unwrap() error { return o.error }

// advise adds to an error what to do next.
func advise(ctx context.Context, err error, problem []byte, q ask, unknown bool) error {
	var refused *refusal
	switch {
	case unknown && ctx.Err() != nil: // not as ctx's error, which would be told without the key
		return openOutcome{fmt.Errorf("interrupted; %s", repeat(q.key))}
	case unknown:
		return openOutcome{fmt.Errorf("%w; %s", err, repeat(q.key))}
	case !errors.As(err, &refused):
		return err
	}
	next := nextSteps[refused.Code]
	var facts struct{ Minimum, Free *int64 }
	_ = json.Unmarshal(problem, &facts) // what isn't there stays nil
	switch {
	case refused.Code == "below_committed" && facts.Minimum != nil:
		next = fmt.Sprintf("%d is the least that it can have now; tickets that are held come back when their holds end", *facts.Minimum)
	case refused.Code == "insufficient_free" && facts.Free != nil && *facts.Free > 0:
		next = fmt.Sprintf("ask for %d at most; %s", *facts.Free, next)
	case next == "":
		return err
	}
	if q.event != "" {
		next = strings.ReplaceAll(next, "EVENT", q.event)
	}
	return fmt.Errorf("%w; %s", err, next)
}

// repeat says how to learn what became of a change, and to make it if nothing did.
func repeat(key string) string {
	return "it isn't known whether it was done: repeat the same command with --idempotency-key " + key + ", and it's done once"
}

// nextSteps says what to do after a refusal, by its code.
var nextSteps = map[string]string{
	"unauthenticated":      "give a key with --key-file or in TIERLEDGER_KEY",
	"forbidden":            "ask for a key with the role operator",
	"not_found":            "is that a service of a release without quotas?",
	"event_not_found":      "check its name, and --url",
	"tier_not_found":       "`tierledger quota show EVENT` lists the tiers",
	"insufficient_free":    "`tierledger quota show EVENT` tells where tickets are; those that are held come back when their holds end",
	"version_conflict":     "look at it with `tierledger quota show EVENT`, then decide again and repeat with its version now",
	"move_not_found":       "`tierledger quota moves EVENT` lists the moves",
	"move_decided":         "`tierledger quota moves EVENT` tells what came of it",
	"same_person":          "somebody else must decide, with a key of their own",
	"lane_not_found":       "`tierledger quota lanes EVENT` tells which lanes are in use",
	"allotment_not_found":  "`tierledger quota show EVENT` lists the allotments",
	"allotment_exists":     "give it tickets with `tierledger quota move EVENT --to /NAME`, and codes with `tierledger quota codes`",
	"allotment_closed":     "make another one with `tierledger quota allot EVENT`",
	"code_exists":          "a code is given once in an event, whatever its case: leave it out, or choose another",
	"not_splittable":       "an event with a tier that's sold by seat has one lane, for good",
	"lane_changing":        "repeat it in a second",
	"idempotency_mismatch": "that key was another request's: leave --idempotency-key out and one is made up",
}
