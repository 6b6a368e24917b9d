package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/seats"
)

func TestLoadChart(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "k", seated("e")).is(201).has("tiers.0.seated", true, "tiers.0.quantity", 0, "tiers.2.seated", "<nil>")
	const path = "/v1/events/e/chart"
	tag := w.get("/v1/events/e").is(200).header.Get("ETag")
	body := chart(part("A", "front", 2, 5, `"accessible":true`), part("B", "back", 1, 4))
	w.do("POST", path, body).refused(400, "idempotency_key_required")
	w.post(path, "c", body, "If-Match", `"1"`).refused(400, "invalid_request").has("field", "If-Match")
	w.post("/v1/events/none/chart", "c", body).refused(404, "event_not_found")

	first := w.post(path, "c", body).is(201).has("event", "e", "version", 2, "seats", 14,
		"sections.0.section", "A", "sections.0.name", "A", "sections.0.tier", "front", "sections.0.rows", 2, "sections.0.seats", 10,
		"sections.0.accessible", 10, "sections.1.seats", 4, "sections.1.accessible", 0)
	if got := first.header.Get("ETag"); got != `"2"` {
		t.Errorf("the tag is %s", got)
	}
	w.post(path, "c", body).is(201).repeats(first)
	w.post(path, "c", chart(part("A", "front", 2, 5))).refused(422, "idempotency_mismatch")
	w.post(path, "d", body).refused(409, "section_exists").has("section", "A")
	w.post(path, "d", chart(part("C", "back", 1, 1), part("B", "back", 1, 1))).refused(409, "section_exists").has("section", "B")
	w.post(path, "d", chart(part("C", "back", 1, 3))).is(201).has("version", 3, "seats", 3, "sections.0.section", "C")
	w.get("/v1/events/e/availability").has("tiers.1.capacity", 10, "tiers.1.available", 10, "tiers.0.available", 7, "tiers.2.available", 10)
	w.get("/v1/events/e", "If-None-Match", tag).is(200).has("tiers.0.quantity", 10, "tiers.1.quantity", 7)
	w.do("PATCH", "/v1/events/e/tiers/front", `{"quantity":12}`, "Idempotency-Key", "p").refused(400, "invalid_request").has("field", "quantity")
	w.do("PATCH", "/v1/events/e/tiers/front", `{"name":"Front"}`, "Idempotency-Key", "p").is(200).has("seated", true, "quantity", 10)
	w.post("/v1/events/e/tiers", "t", `{"tier":"box","seated":true,"price":{"amount":1,"currency":"USD"}}`).is(201).has("seated", true, "quantity", 0)
	w.post("/v1/events/e/tiers", "u", `{"tier":"hut","seated":true,"quantity":1,"price":{"amount":1,"currency":"USD"}}`).
		refused(400, "invalid_request").has("field", "quantity")
	w.post(path, "x", chart(part("D", "box", 1, 1))).is(201)
}

func TestChartNamesTheField(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	good := part("C", "front", 2, 3)
	many := strings.Split(strings.Repeat("x", 1001), "")
	for i := range many {
		many[i] = part(fmt.Sprint("S", i), "front", 1, 1)
	}
	tests := []struct{ body, field string }{
		{``, "body"},
		{`{}`, "sections"},
		{chart(), "sections"},
		{chart(many...), "sections"},
		{chart(good, good), "sections[1].section"},
		{chart(part("", "front", 1, 1)), "sections[0].section"},
		{chart(part("A-1", "front", 1, 1)), "sections[0].section"},
		{chart(part(strings.Repeat("x", 17), "front", 1, 1)), "sections[0].section"},
		{chart(part("Ö", "front", 1, 1)), "sections[0].section"},
		{chart(part("C", "front", 0, 0)), "sections[0].rows"},
		{chart(part("C", "front", 1, 0)), "sections[0].rows[0].seats"},
		{chart(part("C", "front", 1, 201)), "sections[0].rows[0].seats"},
		{chart(part("C", "", 1, 1)), "sections[0].tier"},
		{chart(part("C", "ga", 1, 1)), "sections[0].tier"},
		{chart(good, strings.Replace(part("D", "front", 2, 3), `"row":"2"`, `"row":"1"`, 1)), "sections[1].rows[1].row"},
		{chart(strings.Replace(good, `{"row":"2"`, `{"row":"2","rank":-1`, 1)), "sections[0].rows[1].rank"},
		{chart(strings.Replace(good, `"seat":"3"`, `"seat":"2"`, 1)), "sections[0].rows[0].seats[2].seat"},
		{chart(strings.Replace(good, `"seat":"3"`, `"seat":"3 "`, 1)), "sections[0].rows[0].seats[2].seat"},
		{chart(strings.Replace(good, `"x":10`, `"x":-1`, 1)), "sections[0].rows[0].seats[1].x"},
		{chart(strings.Replace(good, `"y":10`, `"y":1000001`, 1)), "sections[0].rows[1].seats[0].y"},
		{chart(strings.Replace(good, `"x":10`, `"x":1.5`, 1)), "sections[0].rows[0].seats[1].x"},
		{chart(strings.Replace(good, `"x":10`, `"z":1`, 1)), "sections[0].rows[0].seats[1].z"},
	}
	for _, test := range tests {
		r := w.post("/v1/events/e/chart", "k", test.body).refused(400, "invalid_request")
		if got := r.text("field"); got != test.field {
			t.Errorf("%.200s: the error is about %s, want %s", test.body, got, test.field)
		}
	}
	w.post("/v1/events/e/chart", "k", chart(part("C", "vip", 1, 1))).refused(404, "tier_not_found").has("tier", "vip")
	w.get("/v1/events/e/availability").has("tiers.1.capacity", 10, "tiers.0.capacity", 4)
}

// A chart that's far too large is told by how much, also with all that the event has.
func TestChartIsTooLarge(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	million := chart(part("C", "front", 5000, 200))
	r := w.post("/v1/events/e/chart", "k", million).refused(400, "invalid_request").has("field", "body")
	if detail := r.text("detail"); !strings.Contains(detail, "100000 seats") {
		t.Errorf("the limit is told by %s", detail)
	}
	r = w.post("/v1/events", "f", seated("f", `"seating":`+million)).refused(400, "invalid_request").has("field", "body")
	if detail := r.text("detail"); !strings.Contains(detail, "100000 seats") {
		t.Errorf("the limit is told by %s", detail)
	}
	w.get("/v1/events/f").refused(404, "event_not_found")
	r = w.post("/v1/events/e/chart", "k", chart(part("C", "front", 500, 200))).refused(400, "invalid_request").has("field", "sections")
	if detail := r.text("detail"); !strings.Contains(detail, "100014") {
		t.Errorf("the limit is told by %s", detail)
	}
	w.post("/v1/events/e/chart", "k", million+strings.Repeat(" ", 32<<20)).refused(400, "invalid_request").has("field", "body")
}

func TestSeatingOfANewEvent(t *testing.T) {
	w := serve(t, nil)
	inline := func(parts ...string) string { return seated("e", `"seating":`+chart(parts...)) }
	for body, field := range map[string]string{
		seated("e", `"seating":{}`):                                                      "seating.sections",
		inline(part("A", "vip", 1, 1)):                                                   "seating.sections[0].tier",
		inline(part("B", "back", 1, 1), part("A", "ga", 1, 1)):                           "seating.sections[1].tier",
		inline(part("A", "front", 1, 1), part("A", "back", 1, 1)):                        "seating.sections[1].section",
		strings.Replace(inline(part("A", "front", 1, 2)), `"seat":"2"`, `"seat":"1"`, 1): "seating.sections[0].rows[0].seats[1].seat",
	} {
		w.post("/v1/events", "k", body).refused(400, "invalid_request").has("field", field)
	}
	w.get("/v1/events/e").refused(404, "event_not_found")

	whole := inline(part("A", "front", 2, 5), part("B", "back", 1, 4))
	first := w.post("/v1/events", "k", whole).is(201).has("event", "e", "version", 2, "tiers.0.quantity", 10, "tiers.1.quantity", 4)
	w.post("/v1/events", "k", whole).is(201).repeats(first)
	w.get("/v1/events/e/availability").has("tiers.1.available", 10, "tiers.0.available", 4, "version", 2)
	w.post("/v1/events", "k", inline(part("A", "front", 2, 4))).refused(422, "idempotency_mismatch")
	w.post("/v1/events", "k", seated("e")).refused(422, "idempotency_mismatch")
	w.post("/v1/events", "k2", whole).refused(409, "event_exists")
	w.ask("e", "h", "alice", named("A-2-5", "B-1-1")).is(201)
}

// The process died when the event was made and its chart wasn't loaded yet: a repeat
// finishes that, once.
func TestSeatingIsFinishedByARepeat(t *testing.T) {
	w := serve(t, nil)
	whole := seated("e", `"seating":`+chart(part("A", "front", 2, 5)))
	var body struct {
		buckets.Spec
		Seating *seats.Chart
	}
	if err := json.Unmarshal([]byte(whole), &body); err != nil {
		t.Fatal(err)
	}
	if _, err := w.stores.Events.CreateWith(t.Context(), "loopback", "k", body.Spec, body.Seating); err != nil {
		t.Fatal(err)
	}
	w.ask("e", "h", "alice", named("A-1-1")).refused(404, "seat_not_found").has("seats.0", "A-1-1")
	for range 2 {
		w.post("/v1/events", "k", whole).is(201).has("version", 2)
		w.get("/v1/events/e/availability").has("tiers.1.available", 10, "version", 2)
	}
	w.ask("e", "h", "alice", named("A-1-1")).is(201)
}
