package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// bury makes entries dead letters of the consumer "webhooks", as its inbox does after all
// attempts.
func (w *world) bury(journal ledger.JournalID, seqs ...ledger.Seq) (ids []string) {
	w.t.Helper()
	ctx := w.t.Context()
	conn, err := pgx.Connect(ctx, w.db.ServiceURL())
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, seq := range seqs {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			e := outbox.Event{Journal: journal, Seq: seq}
			err := tx.QueryRow(ctx, `SELECT id, kind, at, data FROM entries WHERE journal_id = $1 AND seq = $2`, int64(journal), seq).
				Scan(&e.ID, &e.Kind, &e.At, &e.Data)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `INSERT INTO inbox (consumer, journal_id, seq) VALUES ('webhooks', $1, $2)
				ON CONFLICT (consumer, journal_id) DO UPDATE SET seq = greatest(inbox.seq, excluded.seq)`, int64(journal), seq)
			if err != nil {
				return err
			}
			return outbox.Bury(ctx, tx, outbox.Letter{Consumer: "webhooks", Event: e, Reason: "out of paper", Attempts: outbox.MaxAttempts})
		})
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, outbox.LetterID("webhooks", journal, seq, "").String())
	}
	return ids
}

// paid makes an entry that moves money, and gives its number.
func (w *world) paid(event, key string) ledger.Seq {
	w.t.Helper()
	entry := w.post("/v1/events/"+event+"/entries", key, `{"description":"a payment","postings":[
		{"account":"bank:b","unit":"USD","amount":5},{"account":"organiser:o","unit":"USD","amount":-5}]}`).is(201)
	var version ledger.Seq
	if _, err := fmt.Sscan(entry.text("seq"), &version); err != nil {
		w.t.Fatalf("%v in %s", err, entry.body)
	}
	return version
}

// replayed does what's due of replays, whatever their rates.
func (w *world) replayed() {
	w.t.Helper()
	ctx := w.t.Context()
	conn, err := pgx.Connect(ctx, w.db.URL())
	if err == nil {
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, `UPDATE replays SET due_at = clock_timestamp() - interval '1 second' WHERE due_at IS NOT NULL`)
	}
	if err == nil {
		err = w.stores.Letters.Work(ctx)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

const (
	deadLetters = "/v1/dead-letters"
	replays     = deadLetters + "/replays"
	ofAll       = `{"action":"%s","filter":{},"reason":"mended"}`
)

func TestDeadLetters(t *testing.T) {
	w := serve(t, nil)
	w.event("gig", 10)
	w.event("gala", 10)
	plain := w.bury(1, 1)[0]
	money := w.bury(1, w.paid("gig", "p"))[0]
	other := w.bury(2, 1)[0]

	w.get(deadLetters).is(200).has("data.0.letter_id", other, "data.1.letter_id", money, "data.2.letter_id", plain,
		"data.0.event", "gala", "data.1.event", "gig", "data.1.money", true, "data.2.money", false, "data.2.attempts", 8,
		"data.2.status", "dead", "data.2.reason", "out of paper", "data.2.kind", "event.opened", "data.2.payload", "<nil>", "next_cursor", "<nil>")
	for query, want := range map[string]string{
		"event=gala": other, "journal=2": other, "kind=entry.posted": money, "target=x": "<nil>", "status=replayed": "<nil>",
		"reason=of+pap&event=gala": other, "consumer=tickets": "<nil>", "replay_id=" + uuid.NewString(): "<nil>",
		"since=2026-01-01T00:00:00Z&event=gala": other, "since=9000-01-01T00:00:00%2B01:00": "<nil>", "until=2020-01-01T00:00:00Z": "<nil>",
	} {
		w.get(deadLetters+"?"+query).is(200).has("data.0.letter_id", want)
	}
	first := w.get(deadLetters + "?limit=2&status=dead").is(200)
	w.get(deadLetters+"?cursor="+escape(first.text("next_cursor"))).is(200).has("data.0.letter_id", plain, "next_cursor", "<nil>")
	w.get(deadLetters+"/"+money).is(200).has("letter_id", money, "payload.kind", "entry.posted", "payload.specversion", "1.0", "event", "gig")

	w.get(deadLetters+"/"+uuid.NewString()).refused(404, "dead_letter_not_found")
	w.get(deadLetters+"/none").refused(404, "dead_letter_not_found").has("letter_id", "none")
	w.get(deadLetters+"?event=none").refused(404, "event_not_found")
	for _, wrong := range []string{"status=lost", "journal=x", "journal=-1", "replay_id=x", "since=today", "until=0000-01-01T00:00:00Z",
		"event=gig&journal=1", "since=2027-01-01T00:00:00Z&until=2026-01-01T00:00:00Z", "cursor=x", "limit=0", "consumers=x",
		"reason=" + strings.Repeat("x", 501)} {
		w.get(deadLetters+"?"+wrong).refused(400, "invalid_request")
	}
}

// What isn't JSON is given coded.
func TestDeadLetterOfJunk(t *testing.T) {
	w := serve(t, nil)
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, w.db.ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		return outbox.Bury(ctx, tx, outbox.Letter{Consumer: "tickets", Target: "TIERLEDGER 7", Payload: []byte("\x00\xff"), Reason: "names no entry"})
	}); err != nil {
		t.Fatal(err)
	}
	id := outbox.LetterID("tickets", 0, 0, "TIERLEDGER 7").String()
	w.get(deadLetters+"/"+id).is(200).has("payload_base64", "AP8=", "payload", "<nil>", "event", "<nil>", "seq", 0)
	w.post(replays, "k", fmt.Sprintf(`{"action":"replay","letters":[%q],"reason":"x"}`, id)).refused(422, "letter_not_replayable").has("letter_id", id)
	w.post(replays, "k", fmt.Sprintf(ofAll, "replay")).refused(409, "nothing_chosen").has("taken", 0, "not_replayable", 1)
	w.post(replays, "k", fmt.Sprintf(ofAll, "discard")).is(201)
	w.replayed()
	w.get(deadLetters+"/"+id).is(200).has("status", "discarded")
}

func TestReplays(t *testing.T) {
	w := serve(t, nil)
	w.event("gig", 10)
	ids := w.bury(1, 1)
	for n := range 2 {
		hold := w.hold("gig", fmt.Sprint("h", n), "ann", 1).is(201)
		var version ledger.Seq
		if err := json.Unmarshal([]byte(hold.text("version")), &version); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, w.bury(1, version)...)
	}
	preview := w.post(replays+"?dry_run=true", "dry", fmt.Sprintf(ofAll, "replay")).is(200)
	preview.has("letters", 3, "money", 0, "needs_approval", false, "rate", 10, "canary", true, "first.letter_id", ids[0], "first.event", "gig",
		"taken", 0, "not_replayable", 0, "groups.0.consumer", "webhooks", "groups.0.kind", "hold.placed", "groups.0.letters", 2)
	w.get(replays).is(200).has("data.0", "<nil>")

	made := w.post(replays, "k", fmt.Sprintf(ofAll, "replay")).is(201).has("status", "running", "letters", 3, "left", 3, "requested_by", "loopback",
		"chosen.filter", "map[]", "rate", 10, "canary", true, "reason", "mended")
	id := made.text("replay_id")
	if again := w.post(replays, "k", fmt.Sprintf(ofAll, "replay")).is(201); again.header.Get("Idempotency-Replayed") != "true" || again.text("replay_id") != id {
		t.Errorf("%v %s", again.header, again.body)
	}
	w.post(replays, "k", fmt.Sprintf(ofAll, "discard")).refused(422, "idempotency_mismatch")
	w.post(replays, "k2", fmt.Sprintf(`{"action":"replay","letters":[%q],"reason":"x"}`, ids[0])).refused(409, "letter_taken").
		has("letter_id", ids[0], "replay_id", id)
	w.get(deadLetters+"/"+ids[0]).is(200).has("taken", true, "replay_id", id)

	w.post(replays+"/"+id+"/resume", "r0", "").refused(409, "wrong_replay_status").has("replay_status", "running")
	w.post(replays+"/"+id+"/approve", "a0", "").refused(409, "wrong_replay_status")
	w.post(replays+"/"+id+"/stop", "s", `{"reason":"too hot"}`).is(200).has("status", "stopped", "note", "stopped by loopback: too hot", "left", 3)
	w.post(replays+"/"+id+"/resume", "r", `{}`).is(200).has("status", "running")
	w.replayed()
	w.get(replays+"/"+id).is(200).has("status", "done", "done", 3, "left", 0, "steps.0.step", "requested", "steps.1.step", "stopped",
		"steps.1.reason", "too hot", "steps.2.step", "resumed", "steps.3.step", "done", "steps.3.by", "system")
	w.get(deadLetters+"?status=replayed&replay_id="+id+"&limit=500").is(200).has("data.2.letter_id", ids[0], "data.3", "<nil>")
	w.get(replays+"?status=done&action=replay").is(200).has("data.0.replay_id", id, "data.1", "<nil>")
	w.get(replays+"?action=discard").is(200).has("data.0", "<nil>")
	w.post(replays, "k3", fmt.Sprintf(`{"action":"replay","letters":[%q],"reason":"x"}`, ids[0])).refused(409, "letter_ended").
		has("letter_status", "replayed")
}

// An operator asks, finance decides; whoever asked doesn't.
func TestReplayOfMoney(t *testing.T) {
	keys, secrets := keysFor(t, "o operator", "f finance", "g finance", "u auditor")
	w := serve(t, func(c *httpapi.Config) { c.Keys = keys })
	as := func(who string) (string, string) { return "Authorization", "Bearer " + secrets[who] }
	w.event("gig", 10)
	w.bury(1, 1, w.paid("gig", "p"))
	header, operator := as("o")
	_, finance := as("f")
	_, second := as("g")
	ask := func(key, who string) string {
		made := w.post(replays, key, fmt.Sprintf(ofAll, "replay"), header, who).is(202).has("status", "awaiting_approval", "money", 1, "letters", 2)
		return made.text("replay_id")
	}
	id := ask("k", operator)
	w.post(replays+"/"+id+"/approve", "a", "", header, operator).refused(403, "forbidden")
	w.post(replays+"/"+id+"/stop", "s", `{"reason":"x"}`, header, operator).refused(409, "wrong_replay_status")
	w.post(replays+"/"+id+"/reject", "a", `{"reason":"not now"}`, header, finance).is(200).has("status", "rejected", "freed", 2, "decided_by", "f")
	id = ask("k", finance)
	w.post(replays+"/"+id+"/approve", "b", "", header, finance).refused(403, "same_person")
	w.post(replays+"/"+id+"/reject", "b", `{"reason":"x"}`, header, finance).refused(403, "same_person")
	w.replayed()
	w.get(replays+"/"+id, header, finance).is(200).has("done", 0, "status", "awaiting_approval")
	w.post(replays+"/"+id+"/approve", "b", "", header, second).is(200).has("status", "running", "decided_by", "g")
	if again := w.post(replays+"/"+id+"/approve", "b", "", header, second).is(200); again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v", again.header)
	}
	w.post(replays+"/"+id+"/reject", "b", `{"reason":"x"}`, header, second).refused(422, "idempotency_mismatch")
	w.replayed()
	w.get(replays+"/"+id, header, finance).is(200).has("done", 2, "status", "done")
	w.post(replays, "k", fmt.Sprintf(ofAll, "replay"), header, finance).is(202).has("status", "done")
}

func TestReplayRequestsAreJudged(t *testing.T) {
	w := serve(t, nil)
	w.event("gig", 10)
	w.bury(1, 1)
	none := uuid.NewString()
	for body, code := range map[string]string{
		`{"action":"repair","filter":{},"reason":"x"}`:                                                              "400 invalid_request action",
		`{"action":"replay","reason":"x"}`:                                                                          "400 invalid_request filter",
		`{"action":"replay","filter":{}}`:                                                                           "400 invalid_request reason",
		`{"action":"replay","filter":{},"letters":["` + none + `"],"reason":"x"}`:                                   "400 invalid_request filter",
		`{"action":"replay","letters":["x"],"reason":"x"}`:                                                          "400 invalid_request letters",
		`{"action":"replay","filter":{"status":"dead"},"reason":"x"}`:                                               "400 invalid_request filter.status",
		`{"action":"replay","filter":{"since":"now"},"reason":"x"}`:                                                 "400 invalid_request filter.since",
		`{"action":"replay","filter":{"replay_id":"x"},"reason":"x"}`:                                               "400 invalid_request filter.replay_id",
		`{"action":"replay","filter":{"since":"2027-03-02T10:00:00Z","until":"2027-03-01T10:00:00Z"},"reason":"x"}`: "400 invalid_request filter.until",
		`{"action":"replay","filter":{},"rate":0,"reason":"x"}`:                                                     "400 invalid_request rate",
		`{"action":"replay","filter":{},"rate":1001,"reason":"x"}`:                                                  "400 invalid_request rate",
		`{"action":"replay","filter":{"event":"none"},"reason":"x"}`:                                                "404 event_not_found",
		`{"action":"replay","filter":{"replay_id":"` + none + `"},"reason":"x"}`:                                    "404 replay_not_found",
		`{"action":"replay","letters":["` + none + `"],"reason":"x"}`:                                               "404 dead_letter_not_found",
		`{"action":"replay","filter":{"kind":"none"},"reason":"x"}`:                                                 "409 nothing_chosen",
		`{"action":"replay","filter":{"event":"gig","journal":1},"reason":"x"}`:                                     "400 invalid_request filter.journal",
		`{"action":"discard","filter":{"journal":4294967296},"reason":"x"}`:                                         "400 invalid_request filter.journal",
		`{"action":"discard","filter":{},"reason":"` + strings.Repeat("x", 501) + `"}`:                              "400 invalid_request reason",
		`{"action":"discard","filter":{"target":"` + strings.Repeat("x", 501) + `"},"reason":"x"}`:                  "400 invalid_request filter.target",
	} {
		for _, path := range []string{replays, replays + "?dry_run=true"} {
			got := w.post(path, "k", body)
			said := fmt.Sprint(got.status, " ", got.text("code"))
			if field, ok := got.field("field").(string); ok {
				said += " " + field
			}
			if said != code {
				t.Errorf("%s: %s, want %s: %s", body, said, code, got.body)
			}
		}
	}
	w.do("POST", replays, fmt.Sprintf(ofAll, "replay")).refused(400, "idempotency_key_required")
	w.post(replays, "k", fmt.Sprintf(ofAll, "replay"), "If-Match", `"1"`).refused(400, "invalid_request")
	w.get(replays+"/none").refused(404, "replay_not_found")
	w.get(replays+"/"+none).refused(404, "replay_not_found")
	for _, step := range []string{"approve", "resume"} {
		w.post(replays+"/"+none+"/"+step, "k", "").refused(404, "replay_not_found")
		w.post(replays+"/"+none+"/"+step, "k", `{"reason":"x"}`).refused(400, "invalid_request")
	}
	for _, step := range []string{"reject", "stop"} {
		w.post(replays+"/"+none+"/"+step, "k", `{"reason":"x"}`).refused(404, "replay_not_found")
		w.post(replays+"/"+none+"/"+step, "k", `{"reason":""}`).refused(400, "invalid_request")
	}
	for _, wrong := range []string{"status=over", "action=burn", "cursor=x"} {
		w.get(replays+"?"+wrong).refused(400, "invalid_request")
	}
}
