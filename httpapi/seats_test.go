package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/seats"
)

// part is a section of a chart: rows of equal length, with further members of each seat.
func part(name, tier string, rows, perRow int, members ...string) string {
	more := strings.Join(append([]string{""}, members...), ",")
	var list []string
	for r := range rows {
		var row []string
		for n := range perRow {
			row = append(row, fmt.Sprintf(`{"seat":"%d","x":%d,"y":%d%s}`, n+1, 10*n, 10*r, more))
		}
		list = append(list, fmt.Sprintf(`{"row":"%d","seats":[%s]}`, r+1, strings.Join(row, ",")))
	}
	return fmt.Sprintf(`{"section":%q,"tier":%q,"rows":[%s]}`, name, tier, strings.Join(list, ","))
}

func chart(parts ...string) string { return `{"sections":[` + strings.Join(parts, ",") + `]}` }

// seated is an event with the tiers front and back, sold by seat, and ga; members are added
// to it.
func seated(event string, members ...string) string {
	const price = `"price":{"amount":5000,"currency":"USD"}`
	return fmt.Sprintf(`{"event":%q,"name":"A house","currency":"USD","tiers":[{"tier":"front","seated":true,%s},`+
		`{"tier":"back","seated":true,%s},{"tier":"ga","quantity":10,%s}]%s}`, event, price, price, price,
		strings.Join(append([]string{""}, members...), ","))
}

// house puts an event with seats on sale: A of front with two rows of 5, B of back with
// one of 4.
func (w *world) house(event string, members ...string) {
	w.t.Helper()
	w.post("/v1/events", "event-"+event, seated(event, members...)).is(201)
	w.post("/v1/events/"+event+"/chart", "chart", chart(part("A", "front", 2, 5), part("B", "back", 1, 4))).is(201)
}

// ask asks for a hold; the lines are items.
func (w *world) ask(event, key, customer string, lines ...string) reply {
	w.t.Helper()
	return w.post("/v1/events/"+event+"/holds", key, asking(customer, lines...))
}

func asking(customer string, lines ...string) string {
	return fmt.Sprintf(`{"customer":%q,"items":[%s]}`, customer, strings.Join(lines, ","))
}

// named is a line of seats, best one of the best available with further members.
func named(labels ...string) string { return fmt.Sprintf(`{"seats":[%s]}`, labelList(labels)) }

func best(quantity int, members ...string) string {
	return fmt.Sprintf(`{"best_available":{%s}}`, strings.Join(append(members, fmt.Sprintf(`"quantity":%d`, quantity)), ","))
}

func labelList(labels []string) string { return `"` + strings.Join(labels, `","`) + `"` }

// setAside is the body of a block, or of its end.
func setAside(reason string, labels ...string) string {
	return fmt.Sprintf(`{"seats":[%s],"reason":%q}`, labelList(labels), reason)
}

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

func TestBlockSeats(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	const block, unblock = "/v1/events/e/seats/block", "/v1/events/e/seats/unblock"
	w.do("POST", block, setAside("camera", "A-1-1")).refused(400, "idempotency_key_required")
	w.post(block, "k", setAside("camera", "A-1-1"), "If-Match", `"2"`).refused(400, "invalid_request").has("field", "If-Match")
	w.post("/v1/events/none/seats/block", "k", setAside("camera", "A-1-1")).refused(404, "event_not_found")
	for body, field := range map[string]string{
		`{"reason":"x"}`:                                               "seats",
		`{"seats":[],"reason":"x"}`:                                    "seats",
		setAside("", "A-1-1"):                                          "reason",
		setAside(strings.Repeat("x", 501), "A-1-1"):                    "reason",
		setAside("x", "A-1-1", "A-1-1"):                                "seats[1]",
		setAside("x", "A-1-1", ""):                                     "seats[1]",
		setAside("x", strings.Split(strings.Repeat("s", 1001), "")...): "seats",
		`{"seats":["A-1-1"],"reason":"x","allotment":"a b"}`:           "allotment",
		`{"seats":["A-1-1"],"reason":"x","tier":"front"}`:              "tier",
	} {
		w.post(block, "k", body).refused(400, "invalid_request").has("field", field)
	}
	w.post(block, "k", setAside("camera", "A-1-1", "Z-1-1", "Ö")).refused(404, "seat_not_found").has("seats.0", "Z-1-1", "seats.1", "Ö")

	before := w.get("/v1/events/e/entries")
	dry := w.do("POST", block+"?dry_run=true", setAside("camera", "A-1-1", "B-1-1")).is(200).has("state", "blocked", "version", 3)
	if dry.header.Get("ETag") != "" {
		t.Errorf("a dry run has the tag %s", dry.header.Get("ETag"))
	}
	if after := w.get("/v1/events/e/entries"); string(after.body) != string(before.body) {
		t.Errorf("the dry run made the journal %s", after.body)
	}

	first := w.post(block, "b", `{"seats":["A-1-1","B-1-1"],"reason":"camera","allotment":"sponsor"}`).is(200).
		has("event", "e", "version", 3, "state", "blocked", "seats.0", "A-1-1", "seats.1", "B-1-1", "reason", "camera", "allotment", "sponsor")
	w.post(block, "b", `{"seats":["A-1-1","B-1-1"],"reason":"camera","allotment":"sponsor"}`).is(200).repeats(first)
	w.post(block, "b", setAside("camera", "A-1-1")).refused(422, "idempotency_mismatch")
	w.get("/v1/events/e/seats/A-1-1").is(200).has("state", "blocked", "allotment", "sponsor", "version", 3, "hold_id", "<nil>")
	w.get("/v1/events/e/availability").has("tiers.1.blocked", 1, "tiers.1.available", 9, "tiers.0.blocked", 1)

	h := w.ask("e", "h", "alice", named("A-1-3")).is(201)
	r := w.post(block, "c", setAside("x", "A-1-2", "A-1-1", "A-1-3")).refused(409, "seat_unavailable").
		has("seats.0.seat", "A-1-1", "seats.0.reason", "other_allotment", "seats.1.seat", "A-1-3", "seats.1.reason", "held",
			"seats.1.may_return_at", h.text("expires_at"), "seats.2", "<nil>")
	if strings.Contains(string(r.body), "alice") {
		t.Errorf("%s tells who has a seat", r.body)
	}
	w.do("POST", block+"?dry_run=true", setAside("x", "A-1-3")).refused(409, "seat_unavailable")
	w.get("/v1/events/e/seats/A-1-2").has("state", "available")

	w.post(unblock, "u", setAside("x", "A-1-1", "A-1-2", "A-1-3")).refused(409, "not_blocked").
		has("seats.0.seat", "A-1-2", "seats.0.reason", "available", "seats.1.seat", "A-1-3", "seats.1.reason", "held", "seats.2", "<nil>")
	w.post(unblock, "u", `{"seats":["A-1-1"],"reason":"x","allotment":"sponsor"}`).refused(400, "invalid_request").has("field", "allotment")
	w.do("POST", unblock+"?dry_run=true", setAside("x", "A-1-1")).is(200).has("state", "available")
	freed := w.post(unblock, "u", setAside("moved", "A-1-1", "B-1-1")).is(200).has("state", "available", "reason", "moved", "allotment", "<nil>")
	w.post(unblock, "u", setAside("moved", "A-1-1", "B-1-1")).is(200).repeats(freed)
	w.get("/v1/events/e/seats/A-1-1").has("state", "available", "allotment", "<nil>")
	w.get("/v1/events/e/availability").has("tiers.1.blocked", 0, "tiers.1.available", 9, "tiers.0.available", 4)
}

// Who may do what with seats.
func TestRolesOfSeats(t *testing.T) {
	roles := []string{"booking", "finance", "operator", "auditor", "admin"}
	var principals []string
	for _, role := range roles {
		principals = append(principals, role+" "+role)
	}
	keys, secrets := keysFor(t, principals...)
	w := serve(t, func(c *httpapi.Config) { c.Keys = keys })
	w.house("e")
	as := func(role string) []string { return []string{"Authorization", "Bearer " + secrets[role]} }
	for i, role := range roles {
		runs := role == "operator" || role == "admin"
		for _, call := range []struct {
			path, body string
			status     int
		}{
			{"/v1/events/e/chart", chart(part(fmt.Sprint("X", i), "front", 1, 1)), 201},
			{"/v1/events/e/seats/block", setAside("x", "A-1-1"), 200},
			{"/v1/events/e/seats/unblock", setAside("x", "A-1-1"), 200},
		} {
			r := w.post(call.path, call.path, call.body, as(role)...)
			if runs {
				r.is(call.status)
			} else {
				r.refused(403, "forbidden").has("roles", "[operator admin]")
			}
		}
		version := w.get("/v1/events/e/seatmap", as(role)...).is(200).text("version")
		w.get("/v1/events/e/changes?after="+version, as(role)...).is(200)
		w.get("/v1/events/e/seats/A-1-1", as(role)...).is(200).has("state", "available")
	}
	for _, path := range []string{"seatmap", "changes?after=9", "seats/A-1-1"} {
		w.get("/v1/events/e/"+path, "Authorization", "Bearer nobody").refused(401, "unauthenticated")
	}
}

func TestGetSeat(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "k", seated("e")).is(201)
	w.post("/v1/events/e/chart", "c", chart(part("A", "front", 2, 2), part("B", "back", 3, 2, `"accessible":true`))).is(201)
	seat := w.get("/v1/events/e/seats/B-2-1").is(200).has("seat", "B-2-1", "section", "B", "row", "2", "tier", "back",
		"accessible", true, "state", "available", "version", 2, "hold_id", "<nil>", "until", "<nil>")
	w.get("/v1/events/e/seats/A-2-2").is(200).has("row", "2", "accessible", "<nil>")
	tag := seat.header.Get("ETag")
	w.get("/v1/events/e/seats/B-2-1", "If-None-Match", tag).is(304)
	h := w.ask("e", "h", "alice", named("B-2-1")).is(201)
	r := w.get("/v1/events/e/seats/B-2-1", "If-None-Match", tag).is(200).
		has("state", "held", "hold_id", h.text("hold_id"), "until", h.text("expires_at"), "version", h.text("version"))
	if strings.Contains(string(r.body), "alice") {
		t.Errorf("%s tells who has the seat", r.body)
	}
	w.post("/v1/holds/"+h.text("hold_id")+"/release", "r", "").is(200)
	w.get("/v1/events/e/seats/B-2-1").has("state", "available", "until", "<nil>", "hold_id", h.text("hold_id"))
	for _, label := range []string{"B-2-3", "A-1", "%00", "%ff", strings.Repeat("x", 300), "A-1-1%20"} {
		w.get("/v1/events/e/seats/"+label).refused(404, "seat_not_found")
	}
	w.get("/v1/events/none/seats/A-1-1").refused(404, "event_not_found")
	w.do("POST", "/v1/events/e/seats/A-1-1", "{}").refused(405, "method_not_allowed")
}

// mapped reads the map again until it has come to a version.
func (w *world) mapped(event, version string) reply {
	w.t.Helper()
	for begun := time.Now(); ; {
		r := w.get("/v1/events/" + event + "/seatmap").is(200)
		switch {
		case r.text("version") == version:
			return r
		case time.Since(begun) > 20*time.Second:
			w.t.Fatalf("the map didn't come to %s: %s", version, r.body)
		}
	}
}

func TestSeatMap(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "k", seated("e")).is(201)
	row := `{"row":"1","seats":[{"seat":"1","x":5,"y":7,"accessible":true},{"seat":"2","x":6,"y":7,"aisle":true},{"seat":"3","x":9,"y":7}]}`
	w.post("/v1/events/e/chart", "c", chart(`{"section":"A","name":"Left <&>","tier":"front","rows":[`+row+`]}`, part("B", "back", 2, 2))).is(201)
	w.post("/v1/events/e/chart", "d", chart(part("C", "front", 1, 1))).is(201)
	w.get("/v1/events/e/seatmap").is(200).has("event", "e", "version", 3,
		"total.available", 8, "total.held", 0, "total.sold", 0, "total.blocked", 0,
		"sections.0.section", "A", "sections.0.name", "Left <&>", "sections.0.tier", "front", "sections.0.rows.0.row", "1",
		"sections.0.rows.0.seats", "[1 2 3]", "sections.0.rows.0.x", "[5 6 9]", "sections.0.rows.0.y", "[7 7 7]",
		"sections.0.rows.0.accessible", "[0]", "sections.0.rows.0.aisles", "[1]", "sections.0.rows.0.states", "aaa",
		"sections.1.rows.1.states", "aa", "sections.1.rows.0.accessible", "<nil>", "sections.2.section", "C")

	w.post("/v1/events/e/seats/block", "b", setAside("x", "A-1-3", "C-1-1")).is(200)
	o := w.ask("e", "h1", "alice", named("B-2-1")).is(201)
	w.post("/v1/holds/"+o.text("hold_id")+"/checkout", "p", paying("sim_ok")).is(201)
	h := w.ask("e", "h2", "bob", named("A-1-1"), `{"tier":"ga","quantity":1}`).is(201)
	w.mapped("e", h.text("version")).has("total.available", 4, "total.held", 1, "total.sold", 1, "total.blocked", 2,
		"sections.0.rows.0.states", "hab", "sections.1.rows.1.states", "sa", "sections.2.rows.0.states", "b")

	w.ask("e", "h3", "carol", `{"tier":"ga","quantity":1}`).is(201) // no seat: the map stays what it is
	w.get("/v1/events/e/seatmap").has("version", h.text("version"))
	w.get("/v1/events/none/seatmap").refused(404, "event_not_found")
	w.get("/v1/events/e/seatmap?after=1").refused(400, "invalid_request").has("field", "after")
}

func TestSeatMapOfNoSeats(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "k", seated("uncharted")).is(201)
	w.event("ga", 5)
	w.hold("ga", "h", "alice", 1).is(201)
	for _, event := range []string{"uncharted", "ga"} {
		r := w.get("/v1/events/"+event+"/seatmap").is(200).has("event", event, "version", 0, "sections", "[]", "total.available", 0)
		if r.header.Get("ETag") != "" {
			t.Errorf("%s: a map without seats has the tag %s", event, r.header.Get("ETag"))
		}
		w.get("/v1/events/"+event+"/changes?after=0").is(200).has("version", 0, "changes", "[]")
	}
	w.post("/v1/events/uncharted/chart", "c", chart(part("A", "front", 1, 3))).is(201)
	w.mapped("uncharted", "2").has("total.available", 3)
}

// The map is kept by whoever read it, in the form that each can read.
func TestSeatMapOnTheWire(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	fetch := func(method string, headers ...string) (*http.Response, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, w.url+"/v1/events/e/seatmap", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			request.Header.Add(headers[i], headers[i+1])
		}
		response, err := (&http.Transport{DisableCompression: true}).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		h := response.Header
		if h.Get("Vary") != "Accept-Encoding" || h.Get("ETag") != `"2"` || h.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s %v: got the headers %v", method, headers, h)
		}
		return response, body
	}
	_, plain := fetch("GET")
	if !json.Valid(plain) {
		t.Errorf("the map is %s", plain)
	}
	for accept, compressed := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "deflate, gzip; q=1.0": true,
		"identity": false, "gzip;q=0": false, "gzip; q=0.000, br": false, "br": false, "xgzip": false,
	} {
		response, body := fetch("GET", "Accept-Encoding", accept)
		if got := response.Header.Get("Content-Encoding") == "gzip"; got != compressed {
			t.Errorf("%s: compressed is %v", accept, got)
		}
		if compressed {
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(body, plain) {
			t.Errorf("%s: got %.40q, want %.40q", accept, body, plain)
		}
	}
	for _, match := range []string{`"2"`, `W/"2"`, `"1", "2"`, "*"} {
		response, body := fetch("GET", "If-None-Match", match, "Accept-Encoding", "gzip")
		if response.StatusCode != 304 || len(body) > 0 || response.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: got %d %v", match, response.StatusCode, response.Header)
		}
	}
	if response, _ := fetch("GET", "If-None-Match", `"1"`); response.StatusCode != 200 {
		t.Errorf("an old tag got %d", response.StatusCode)
	}
	if response, body := fetch("HEAD"); response.StatusCode != 200 || len(body) > 0 || response.ContentLength != int64(len(plain)) {
		t.Errorf("HEAD got %d with %d bytes of %d", response.StatusCode, len(body), response.ContentLength)
	}
}
