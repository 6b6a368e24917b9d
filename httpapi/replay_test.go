package httpapi_test

import (
	"strings"
	"testing"

	"github.com/tierledger/tierledger/httpapi"
)

func TestKeyOfCommand(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	const path = "/v1/events/e/holds"
	body := lines("alice", 1)

	w.do("POST", path, body).refused(400, "idempotency_key_required")
	w.do("POST", path, body, "Idempotency-Key", "").refused(400, "idempotency_key_required")
	w.post(path, strings.Repeat("k", 256), body).refused(400, "invalid_request").has("field", "Idempotency-Key")
	w.post(path, "schlüssel", body).refused(400, "invalid_request").has("field", "Idempotency-Key")
	w.post(path, "a", body, "X-Idempotency-Key", "b").refused(400, "invalid_request").has("field", "Idempotency-Key")
	w.do("POST", path, body, "Idempotency-Key", "a", "Idempotency-Key", "b").refused(400, "invalid_request")
	if got := w.available("e"); got != "10" {
		t.Fatalf("%s tickets are available after refusals", got)
	}

	first := w.post(path, "abc", body).is(201)
	for _, headers := range [][]string{
		{"Idempotency-Key", `"abc"`},
		{"X-Idempotency-Key", "abc"},
		{"X-Idempotency-Key", `"abc"`, "Idempotency-Key", "abc"},
	} {
		again := w.do("POST", path, body, headers...).is(201)
		if string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" ||
			again.header.Get("ETag") != first.header.Get("ETag") {
			t.Errorf("%v: got %v %s, want the first answer", headers, again.header, again.body)
		}
	}
	if first.header.Get("Idempotency-Replayed") != "" {
		t.Error("the first answer says that it's a replay")
	}
	if got := w.available("e"); got != "9" {
		t.Errorf("%s tickets are available after one hold and its repeats", got)
	}
}

// P13 for holds: the same key with other content.
func TestKeyWithOtherContent(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	first := w.hold("e", "k", "alice", 2).is(201)
	for name, body := range map[string]string{
		"quantity": lines("alice", 3), "customer": lines("bob", 2), "lines": lines("alice", 1, 1),
	} {
		if r := w.post("/v1/events/e/holds", "k", body); r.refused(422, "idempotency_mismatch").header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s: a mismatch says that it's a replay", name)
		}
	}
	w.post("/v1/holds/"+first.text("hold_id")+"/release", "k", "").refused(422, "idempotency_mismatch")
	again := w.hold("e", "k", "alice", 2).is(201)
	if string(again.body) != string(first.body) {
		t.Errorf("got %s, want the first answer %s", again.body, first.body)
	}
}

// A repeat gets the first answer, whatever has happened since.
func TestReplayAfterChange(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	first := w.hold("e", "k", "alice", 2).is(201)
	w.post("/v1/holds/"+first.text("hold_id")+"/release", "r", "").is(200).has("status", "released")
	if again := w.hold("e", "k", "alice", 2).is(201); string(again.body) != string(first.body) {
		t.Errorf("got %s, want the first answer %s", again.body, first.body)
	}
	create := `{"event":"f","name":"F","currency":"USD","tiers":[{"tier":"ga","quantity":1,"price":{"amount":1,"currency":"USD"}}]}`
	event := w.post("/v1/events", "f", create).is(201)
	w.post("/v1/events/f/tiers", "t", `{"tier":"vip","quantity":1,"price":{"amount":1,"currency":"USD"}}`).is(201)
	again := w.post("/v1/events", "f", create).is(201)
	if string(again.body) != string(event.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %s, want the first answer %s", again.body, event.body)
	}
	w.post("/v1/events", "f2", create).refused(409, "event_exists")
}

// A key belongs to its principal, and to the event.
func TestKeyOfAnotherPrincipal(t *testing.T) {
	keys, secrets := keysFor(t, "one booking", "two booking")
	w := serve(t, func(c *httpapi.Config) { c.Keys = keys })
	w.event("e", 10)
	w.event("f", 10)
	ids := make(map[string]bool)
	for _, call := range [][2]string{{"e", "one"}, {"e", "two"}, {"f", "one"}} {
		r := w.post("/v1/events/"+call[0]+"/holds", "k", lines("alice", 1), "Authorization", "Bearer "+secrets[call[1]]).is(201)
		if r.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%v: a first command was taken for a repeat", call)
		}
		ids[r.text("hold_id")] = true
	}
	if len(ids) != 3 {
		t.Errorf("three commands made the holds %v", ids)
	}
}
