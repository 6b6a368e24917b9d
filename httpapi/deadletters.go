package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// letterFilters are the parameters of a list of dead letters.
var letterFilters = []string{
	"consumer", "kind", "event", "journal", "target", "status", "reason", "replay_id", "since", "until",
}

// letterFilter selects dead letters, as callers write it.
type letterFilter struct {
	Consumer string  `json:"consumer,omitempty"`
	Kind     string  `json:"kind,omitempty"`
	Event    string  `json:"event,omitempty"`
	Journal  *uint32 `json:"journal,omitempty"`
	Target   string  `json:"target,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	ReplayID string  `json:"replay_id,omitempty"`
	Since    string  `json:"since,omitempty"`
	Until    string  `json:"until,omitempty"`
}

// selects reads a filter. An event stands for all its lanes. within is what the names of
// its fields begin with.
func (a *api) selects(ctx context.Context, within string, f letterFilter) (selected outbox.LetterFilter, err error) {
	selected = outbox.LetterFilter{
		Consumer: f.Consumer, Kind: f.Kind, Event: f.Event, Journal: (*ledger.JournalID)(f.Journal), Target: f.Target, Reason: f.Reason,
	}
	if f.Event != "" && f.Journal != nil {
		return selected, fault.BadField(within+"journal", "give one of event and journal")
	}
	if f.ReplayID != "" {
		id, err := parseID(within+"replay_id", f.ReplayID)
		if err != nil {
			return selected, err
		}
		selected.Replay = &id
	}
	for _, t := range []struct {
		field, text string
		to          *time.Time
	}{{"since", f.Since, &selected.Since}, {"until", f.Until, &selected.Until}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = time.Parse(time.RFC3339Nano, t.text); err != nil || t.to.Year() < 1 || t.to.Year() > 9999 {
			return selected, fault.BadField(within+t.field, "must be a time such as 2027-03-01T10:00:00Z")
		}
		*t.to = t.to.UTC()
	}
	if f.Event != "" {
		selected.Journals, err = a.Events.Lanes(ctx, f.Event)
	}
	return selected, err
}

// parseID reads an id that isn't the path's.
func parseID(field, text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len(uuid.UUID{}.String()) {
		return id, fault.BadField(field, "must be an id such as %s", uuid.UUID{})
	}
	return id, nil
}

func (a *api) listLetters(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	given := letterFilter{
		Consumer: c.query.Get("consumer"), Kind: c.query.Get("kind"), Event: c.query.Get("event"), Target: c.query.Get("target"),
		Reason: c.query.Get("reason"), ReplayID: c.query.Get("replay_id"), Since: c.query.Get("since"), Until: c.query.Get("until"),
	}
	if text := c.query.Get("journal"); text != "" {
		number, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return answer{}, fault.BadField("journal", "must be a journal's number")
		}
		given.Journal = new(uint32(number))
	}
	asked := outbox.LetterPage{Status: outbox.LetterStatus(c.query.Get("status")), Limit: page.Limit + 1}
	if asked.Status != "" && !slices.Contains(outbox.LetterStatuses(), asked.Status) {
		return answer{}, oneOf("status", outbox.LetterStatuses())
	}
	if asked.Before, asked.Last, err = page.beforeTime(); err != nil {
		return answer{}, err
	}
	if asked.LetterFilter, err = a.selects(ctx, "", given); err != nil {
		return answer{}, err
	}
	letters, err := a.Letters.List(ctx, asked)
	if err != nil {
		return answer{}, err
	}
	views := make([]letterView, len(letters))
	for i := range letters {
		if views[i], err = a.letterView(ctx, letters[i]); err != nil {
			return answer{}, err
		}
	}
	return listed(page, views, func(v letterView) string { return timePosition(v.DiedAt, v.ID) })
}

// letterView is a dead letter as callers see it. Only one that's read alone has its payload:
// as it came when that's JSON, else coded.
type letterView struct {
	outbox.DeadLetter
	Event   string          `json:"event,omitempty"` // whose journal it is
	Payload json.RawMessage `json:"payload,omitempty"`
	Coded   []byte          `json:"payload_base64,omitempty"`
}

func (a *api) letterView(ctx context.Context, l outbox.DeadLetter) (letterView, error) {
	name, err := a.Events.Named(ctx, l.Journal)
	if errors.Is(err, buckets.ErrEventNotFound) {
		err = nil // the system's journal
	}
	return letterView{DeadLetter: l, Event: name.Event}, err
}

func (a *api) getLetter(ctx context.Context, c *call) (answer, error) {
	id, err := c.named("letter_id", outbox.ErrLetterNotFound)
	if err != nil {
		return answer{}, err
	}
	letter, err := a.Letters.Get(ctx, id)
	if err != nil {
		return answer{}, err
	}
	view, err := a.letterView(ctx, letter)
	if err != nil {
		return answer{}, err
	}
	if json.Valid(letter.Payload) {
		view.Payload = letter.Payload
	} else {
		view.Coded = letter.Payload
	}
	return found(view)
}

// replayBody asks for a replay or a discard.
type replayBody struct {
	Action  outbox.Action `json:"action"`
	Filter  *letterFilter `json:"filter,omitempty"`
	Letters []string      `json:"letters,omitempty"`
	Rate    *int          `json:"rate,omitempty"`
	Canary  *bool         `json:"canary,omitempty"`
	Reason  string        `json:"reason"`
}

// request makes what the body asks for.
func (a *api) request(ctx context.Context, b *replayBody) (outbox.Request, error) {
	r := outbox.Request{Action: b.Action, Canary: b.Canary, Reason: b.Reason}
	if b.Rate != nil {
		if r.Rate = *b.Rate; r.Rate < 1 {
			return r, fault.BadField("rate", "must be 1 to %d", outbox.MaxReplayRate)
		}
	}
	if b.Filter != nil {
		filter, err := a.selects(ctx, "filter.", *b.Filter)
		if err != nil {
			return r, err
		}
		r.Filter = &filter
	}
	for _, text := range b.Letters {
		id, err := parseID("letters", text)
		if err != nil {
			return r, err
		}
		r.Letters = append(r.Letters, id)
	}
	return r, nil
}

// requestReplay answers with a replay that runs, or that awaits approval: as it was made, in
// its status, whatever it has come to since.
func (a *api) requestReplay(ctx context.Context, c *call) (answer, error) {
	dryRun, key, err := c.maybeDry()
	if err == nil {
		err = c.unconditional()
	}
	if err != nil {
		return answer{}, err
	}
	var body replayBody
	if err := c.body(&body); err != nil {
		return answer{}, err
	}
	request, err := a.request(ctx, &body)
	if err != nil {
		return answer{}, err
	}
	if dryRun {
		return a.previewReplay(ctx, request)
	}
	made, replayed, err := a.Letters.Request(ctx, c.caller.principal, key, request)
	status := http.StatusCreated
	if made.Money > 0 {
		status = http.StatusAccepted
	}
	return changed(status, made, replayed, err)
}

func (a *api) previewReplay(ctx context.Context, request outbox.Request) (answer, error) {
	preview, err := a.Letters.Preview(ctx, request)
	if err != nil {
		return answer{}, err
	}
	first, err := a.letterView(ctx, preview.First)
	if err != nil {
		return answer{}, err
	}
	return found(struct {
		outbox.Preview
		First letterView `json:"first"`
	}{preview, first})
}

// changed answers a change with the replay.
func changed(status int, r outbox.Replay, replayed bool, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	ans, err := found(r)
	ans.status, ans.replayed = status, replayed
	return ans, err
}

func (a *api) listReplays(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	asked := outbox.ReplayPage{
		Status: outbox.ReplayStatus(c.query.Get("status")), Action: outbox.Action(c.query.Get("action")), Limit: page.Limit + 1,
	}
	if asked.Before, asked.Last, err = page.beforeTime(); err != nil {
		return answer{}, err
	}
	switch {
	case asked.Status != "" && !slices.Contains(outbox.ReplayStatuses(), asked.Status):
		return answer{}, oneOf("status", outbox.ReplayStatuses())
	case asked.Action != "" && !slices.Contains(outbox.Actions(), asked.Action):
		return answer{}, oneOf("action", outbox.Actions())
	}
	replays, err := a.Letters.Replays(ctx, asked)
	if err != nil {
		return answer{}, err
	}
	return listed(page, replays, func(r outbox.Replay) string { return timePosition(r.RequestedAt, r.ID) })
}

func (a *api) getReplay(ctx context.Context, c *call) (answer, error) {
	id, err := c.replayID()
	if err != nil {
		return answer{}, err
	}
	replay, err := a.Letters.Replay(ctx, id)
	if err != nil {
		return answer{}, err
	}
	return found(replay)
}

func (a *api) approveReplay(ctx context.Context, c *call) (answer, error) {
	return a.plainStep(ctx, c, a.Letters.Approve)
}

func (a *api) resumeReplay(ctx context.Context, c *call) (answer, error) {
	return a.plainStep(ctx, c, a.Letters.Resume)
}

func (a *api) rejectReplay(ctx context.Context, c *call) (answer, error) {
	return a.reasonedStep(ctx, c, a.Letters.Reject)
}

func (a *api) stopReplay(ctx context.Context, c *call) (answer, error) {
	return a.reasonedStep(ctx, c, a.Letters.Stop)
}

// plainStep changes a replay's status.
func (a *api) plainStep(ctx context.Context, c *call, do func(context.Context, string, string, uuid.UUID) (outbox.Replay, bool, error)) (answer, error) {
	key, err := c.key()
	if err == nil {
		err = c.unconditional()
	}
	if err == nil {
		err = c.noBody()
	}
	if err != nil {
		return answer{}, err
	}
	id, err := c.replayID()
	if err != nil {
		return answer{}, err
	}
	replay, replayed, err := do(ctx, c.caller.principal, key, id)
	return changed(http.StatusOK, replay, replayed, err)
}

// reasonedStep changes a replay's status for a reason.
func (a *api) reasonedStep(ctx context.Context, c *call, do func(context.Context, string, string, uuid.UUID, string) (outbox.Replay, bool, error)) (answer, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	key, err := c.command(&body)
	if err != nil {
		return answer{}, err
	}
	id, err := c.replayID()
	if err != nil {
		return answer{}, err
	}
	replay, replayed, err := do(ctx, c.caller.principal, key, id, body.Reason)
	return changed(http.StatusOK, replay, replayed, err)
}

// replayID reads the replay of the path. What can't be an id is no replay's.
func (c *call) replayID() (uuid.UUID, error) { return c.named("replay_id", outbox.ErrReplayNotFound) }
