package httpapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// move is the body of a move of ga; members are added to it.
func move(from, to string, members ...string) string {
	return fmt.Sprintf(`{"tier":"ga","from":%s,"to":%s,"reason":"x"%s}`, from, to, strings.Join(append([]string{""}, members...), ","))
}

func TestMoveQuota(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	w.split("e", "s", 2)
	w.post("/v1/events/e/allotments", "a", `{"allotment":"vip","reason":"guests"}`).is(201)
	const path = "/v1/events/e/quota-moves"
	out := move(`{"lane":2}`, `{"allotment":"vip"}`, `"quantity":20`)
	w.do("POST", path, out).refused(400, "idempotency_key_required")
	dry := w.do("POST", path+"?dry_run=true", out).is(200).has("status", "moved", "quantity", 20, "from.lane", 2, "to.lane", 2, "to.allotment", "vip")
	if dry.header.Get("ETag") != "" {
		t.Errorf("a dry run has the tag %s", dry.header.Get("ETag"))
	}
	w.holds("e", "", "50", "50")

	_, version := w.bucket("e", 2, "")
	tag := fmt.Sprintf("%q", version)
	first := w.post(path, "m1", out, "If-Match", tag).is(201).has("event", "e", "tier", "ga", "from.lane", 2, "from.allotment", "<nil>",
		"to.lane", 2, "to.allotment", "vip", "quantity", 20, "status", "moved", "cause", "operator", "reason", "x",
		"asked_by", "loopback", "decided_by", "<nil>")
	w.post(path, "m1", out, "If-Match", tag).is(201).repeats(first)
	w.post(path, "m1", out).refused(422, "idempotency_mismatch")
	_, version = w.bucket("e", 2, "")
	w.post(path, "m2", out, "If-Match", tag).refused(412, "version_conflict").has("version", version)
	w.post(path, "m2", move(`{}`, `{"allotment":"vip"}`, `"quantity":20`), "If-Match", tag).
		refused(400, "invalid_request").has("field", "from.lane")
	w.holds("e", "", "50", "30")
	w.holds("e", "vip", "none", "20")
	w.get("/v1/events/e/availability").has("tiers.0.available", 80, "tiers.0.allotments.vip", 20, "tiers.0.capacity", 100)

	read := w.get("/v1/quota-moves/" + first.text("move_id")).is(200)
	if string(read.body) != string(first.body) || read.header.Get("ETag") != first.header.Get("ETag") {
		t.Errorf("moved %s, read %s", first.body, read.body)
	}
	w.get("/v1/quota-moves/"+first.text("move_id"), "If-None-Match", read.header.Get("ETag")).is(304)

	// Between lanes, back from the allotment, and both.
	w.post(path, "m3", move(`{"lane":1}`, `{"lane":2}`, `"quantity":10`)).is(201)
	w.post(path, "m4", move(`{"lane":2,"allotment":"vip"}`, `{"lane":1}`, `"quantity":5`)).is(201)
	w.post(path, "m5", move(`{"lane":2,"allotment":"vip"}`, `{"lane":1,"allotment":"vip"}`, `"up_to":1000`)).is(201).has("quantity", 15, "up_to", true)
	w.holds("e", "", "45", "40")
	w.holds("e", "vip", "15", "none")

	// From any lane: all there is.
	w.do("POST", path+"?dry_run=true", move(`{}`, `{"allotment":"vip"}`, `"quantity":80`)).is(200).has("quantity", 80, "any_lane", true)
	w.holds("e", "", "45", "40")
	most := w.post(path, "m6", move(`{}`, `{"allotment":"vip"}`, `"quantity":80`)).is(201).has("from.lane", 1, "any_lane", true)
	w.post(path, "m6", move(`{}`, `{"allotment":"vip"}`, `"quantity":80`)).is(201).repeats(most)
	w.post(path, "m7", move(`{}`, `{"allotment":"vip"}`, `"quantity":6`)).refused(409, "insufficient_free").
		has("tier", "ga", "free", 5, "asked", 6)
	w.post(path, "m8", move(`{}`, `{"allotment":"vip"}`, `"up_to":6`)).is(201).has("quantity", 5)
	w.post(path, "m9", move(`{}`, `{"allotment":"vip"}`, `"up_to":6`)).refused(409, "insufficient_free").has("free", 0)
	w.do("POST", path+"?dry_run=true", move(`{}`, `{"allotment":"vip"}`, `"quantity":1`)).refused(409, "insufficient_free")
	w.get("/v1/events/e/availability").has("tiers.0.available", 0, "tiers.0.allotments.vip", 100, "tiers.0.in_transit", 0)
}

func TestMoveQuotaRefusals(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	w.split("e", "s", 2)
	w.split("e", "s2", 1)
	w.house("seats")
	w.post("/v1/events/e/allotments", "a", `{"allotment":"over","reason":"guests"}`).is(201)
	w.post("/v1/events/e/allotments/over/close", "c", `{"reason":"done"}`).is(200)
	long := strings.Repeat("x", 501)
	tests := []struct {
		body, code string
		status     int
		members    []any
	}{
		{``, "invalid_request", 400, []any{"field", "body"}},
		{move(`{}`, `{"allotment":"over"}`), "invalid_request", 400, []any{"field", "quantity"}},
		{move(`{}`, `{"allotment":"over"}`, `"quantity":1`, `"up_to":1`), "invalid_request", 400, []any{"field", "quantity"}},
		{move(`{}`, `{"allotment":"over"}`, `"quantity":0`), "invalid_request", 400, []any{"field", "quantity"}},
		{move(`{}`, `{"allotment":"over"}`, `"quantity":-1`), "invalid_request", 400, []any{"field", "quantity"}},
		{move(`{}`, `{"allotment":"over"}`, `"quantity":1.5`), "invalid_request", 400, []any{"field", "quantity"}},
		{move(`{}`, `{"allotment":"over"}`, `"up_to":0`), "invalid_request", 400, []any{"field", "up_to"}},
		{move(`{}`, `{"allotment":"over"}`, `"up_to":10000001`), "invalid_request", 400, []any{"field", "up_to"}},
		{move(`{"lane":-1}`, `{"allotment":"over"}`, `"quantity":1`), "invalid_request", 400, []any{"field", "from.lane"}},
		{move(`{}`, `{"lane":-1}`, `"quantity":1`), "invalid_request", 400, []any{"field", "to.lane"}},
		{move(`{}`, `{}`, `"quantity":1`), "invalid_request", 400, []any{"field", "to"}},
		{move(`{"lane":1}`, `{"lane":1}`, `"quantity":1`), "invalid_request", 400, []any{"field", "to"}},
		{move(`{"lane":1}`, `{}`, `"quantity":1`), "invalid_request", 400, []any{"field", "to"}},
		{move(`{}`, `{"bucket":1}`, `"quantity":1`), "invalid_request", 400, []any{"field", "to.bucket"}},
		{strings.Replace(move(`{}`, `{"lane":2}`, `"quantity":1`), `"x"`, `""`, 1), "invalid_request", 400, []any{"field", "reason"}},
		{strings.Replace(move(`{}`, `{"lane":2}`, `"quantity":1`), `"x"`, `"`+long+`"`, 1), "invalid_request", 400, []any{"field", "reason"}},
		{move(`{"lane":3}`, `{"lane":1}`, `"quantity":1`), "lane_not_found", 404, []any{"lane", 3}},
		{move(`{"lane":1}`, `{"lane":3}`, `"quantity":1`), "lane_not_found", 404, []any{"lane", 3}},
		{move(`{"lane":1}`, `{"lane":2}`, `"quantity":1`), "lane_not_found", 404, []any{"lane", 2}}, // it isn't in use
		{strings.Replace(move(`{}`, `{"allotment":"over"}`, `"quantity":1`), "ga", "vip", 1), "tier_not_found", 404, []any{"tier", "vip"}},
		{move(`{}`, `{"allotment":"none"}`, `"quantity":1`), "allotment_not_found", 404, []any{"allotment", "none"}},
		{move(`{"allotment":"none"}`, `{}`, `"quantity":1`), "allotment_not_found", 404, []any{"allotment", "none"}},
		{move(`{}`, `{"allotment":"over"}`, `"quantity":1`), "allotment_closed", 409, []any{"allotment", "over"}},
		{move(`{"lane":2}`, `{"lane":1}`, `"quantity":1`), "insufficient_free", 409, []any{"free", 0, "asked", 1}},
	}
	const path = "/v1/events/e/quota-moves"
	for _, test := range tests {
		w.post(path, "k", test.body).refused(test.status, test.code).has(test.members...)
		w.do("POST", path+"?dry_run=true", test.body).refused(test.status, test.code).has(test.members...)
	}
	w.post("/v1/events/none/quota-moves", "k", move(`{}`, `{"lane":2}`, `"quantity":1`)).refused(404, "event_not_found")
	w.post("/v1/events/seats/allotments", "a", `{"allotment":"vip","reason":"guests"}`).is(201)
	w.post("/v1/events/seats/quota-moves", "k", strings.Replace(move(`{}`, `{"allotment":"vip"}`, `"quantity":1`), "ga", "front", 1)).
		refused(400, "invalid_request").has("field", "tier")
	for _, id := range []string{"x", "00000000-0000-4000-8000-000000000000", "000003e7-a0a9-8715-b4a1-478ce139f1e9"} {
		w.get("/v1/quota-moves/"+id).refused(404, "move_not_found").has("move_id", id)
		w.post("/v1/quota-moves/"+id+"/approve", "k", ``).refused(404, "move_not_found")
		w.post("/v1/quota-moves/"+id+"/reject", "k", `{"reason":"x"}`).refused(404, "move_not_found")
	}
	w.holds("e", "", "100")
}

// Many tickets move when a second person says so.
func TestApproveMove(t *testing.T) {
	w, as := serveOperators(t)
	w.event("e", 100, `"approve_moves_from":40`)
	w.get("/v1/events/e").has("approve_moves_from", 40)
	w.split("e", "s", 2)
	w.post("/v1/events/e/allotments", "a", `{"allotment":"vip","reason":"guests"}`, as("o1")...).is(201)
	const moves = "/v1/events/e/quota-moves"
	large := move(`{}`, `{"allotment":"vip"}`, `"quantity":70`)
	w.do("POST", moves+"?dry_run=true", large, as("o1")...).is(200).has("status", "awaiting_approval")
	w.get(moves+"?status=awaiting_approval").has("data", "[]")
	w.post(moves, "small", move(`{"lane":1}`, `{"allotment":"vip"}`, `"quantity":39`), as("o1")...).is(201)
	w.post(moves, "back", move(`{"allotment":"vip"}`, `{}`, `"quantity":39`), as("o1")...).is(201)

	asked := w.post(moves, "m1", large, as("o1")...).is(202).has("status", "awaiting_approval", "asked_by", "o1", "moved_at", "<nil>", "quantity", 70)
	w.post(moves, "m1", large, as("o1")...).is(202).repeats(asked)
	w.get("/v1/events/e/availability").has("tiers.0.available", 100)
	path := "/v1/quota-moves/" + asked.text("move_id")
	w.do("POST", path+"/approve", "", as("o2")...).refused(400, "idempotency_key_required")
	w.post(path+"/approve", "a1", `{"reason":"x"}`, as("o2")...).refused(400, "invalid_request").has("field", "reason")
	w.post(path+"/approve", "a1", "", append(as("o2"), "If-Match", `"1"`)...).refused(400, "invalid_request").has("field", "If-Match")
	for body, field := range map[string]string{``: "body", `{}`: "reason", `{"reason":""}`: "reason", `{"reason":"x","by":"me"}`: "by"} {
		w.post(path+"/reject", "r1", body, as("o2")...).refused(400, "invalid_request").has("field", field)
	}
	w.post(path+"/approve", "a1", "", as("o1")...).refused(403, "same_person").has("move_id", asked.text("move_id"))
	w.post(path+"/reject", "r1", `{"reason":"x"}`, as("o1")...).refused(403, "same_person")
	w.post(path+"/approve", "a1", "", as("b")...).refused(403, "forbidden")
	w.get(path).is(200).has("status", "awaiting_approval")

	done := w.post(path+"/approve", "a1", "", as("o2")...).is(200).has("status", "moved", "decided_by", "o2", "asked_by", "o1", "quantity", 70)
	w.post(path+"/approve", "a1", "{}", as("o2")...).is(200).repeats(done)
	w.post(path+"/approve", "a2", "", as("o2")...).refused(409, "move_decided").has("move_status", "moved", "decided_by", "o2")
	w.post(path+"/reject", "r2", `{"reason":"x"}`, as("o2")...).refused(409, "move_decided")
	w.get(path).is(200).has("status", "moved", "reason", "x", "event", "e")
	w.get("/v1/events/e/availability").has("tiers.0.available", 30, "tiers.0.allotments.vip", 70)

	// What isn't there any more, and a no.
	undo := w.post(moves, "m2", move(`{"lane":1,"allotment":"vip"}`, `{"lane":2}`, `"quantity":60`), as("o1")...).is(202)
	w.post(moves, "m3", move(`{"lane":1,"allotment":"vip"}`, `{"lane":1}`, `"quantity":11`), as("o1")...).is(201)
	path = "/v1/quota-moves/" + undo.text("move_id")
	w.post(path+"/approve", "a3", "", as("o2")...).refused(409, "insufficient_free").has("free", 59, "asked", 60)
	no := w.post(path+"/reject", "r3", `{"reason":"too late"}`, as("o2")...).is(200).has("status", "rejected", "decided_by", "o2", "reason", "too late")
	w.post(path+"/reject", "r3", `{"reason":"too late"}`, as("o2")...).is(200).repeats(no)
	w.post(path+"/approve", "a4", "", as("o2")...).refused(409, "move_decided").has("move_status", "rejected")
	w.get("/v1/events/e/availability").has("tiers.0.available", 41, "tiers.0.allotments.vip", 59)
}

// Two who decide at once: one of them does.
func TestDecideAtOnce(t *testing.T) {
	w, as := serveOperators(t)
	w.event("e", 100, `"approve_moves_from":1`)
	w.split("e", "s", 2)
	asked := w.post("/v1/events/e/quota-moves", "m", move(`{"lane":1}`, `{"lane":2}`, `"quantity":50`), as("o1")...).is(202)
	path := "/v1/quota-moves/" + asked.text("move_id")
	var each sync.WaitGroup
	replies := make([]reply, 8)
	for i := range replies {
		each.Go(func() {
			verb, body := "/approve", ""
			if i%2 == 1 {
				verb, body = "/reject", `{"reason":"no"}`
			}
			r, err := w.send("POST", path+verb, body, append(as("o2"), "Idempotency-Key", fmt.Sprint(i))...)
			if err != nil {
				t.Error(err)
			}
			replies[i] = r
		})
	}
	each.Wait()
	done := 0
	for _, r := range replies {
		if r.status == 200 {
			done++
		} else {
			r.refused(409, "move_decided")
		}
	}
	if done != 1 {
		t.Errorf("%d decided, want one", done)
	}
	w.get("/v1/events/e/availability").has("tiers.0.available", 100, "tiers.0.in_transit", 0)
}

// Two operators who move the same tickets get what there is, once.
func TestMoveAtOnce(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 50)
	w.split("e", "s", 2)
	w.post("/v1/events/e/allotments", "a", `{"allotment":"vip","reason":"guests"}`).is(201)
	var each sync.WaitGroup
	replies := make([]reply, 8)
	for i := range replies {
		each.Go(func() {
			to := []string{`{"lane":2}`, `{"allotment":"vip"}`}[i%2]
			r, err := w.send("POST", "/v1/events/e/quota-moves", move(`{"lane":1}`, to, `"quantity":10`), "Idempotency-Key", fmt.Sprint(i))
			if err != nil {
				t.Error(err)
			}
			replies[i] = r
		})
	}
	each.Wait()
	moved := 0
	for _, r := range replies {
		if r.status == 201 {
			moved++
		} else {
			r.refused(409, "insufficient_free").has("free", 5, "asked", 10)
		}
	}
	if moved != 2 {
		t.Errorf("%d moved, want 2", moved)
	}
	w.holds("e", "", "5")
}
