package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/httpapi"
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
	version := "2"
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
				version = r.is(call.status).text("version")
			} else {
				r.refused(403, "forbidden").has("roles", "[operator admin]")
			}
		}
		w.mapped("e", version) // one before the last chart leads nowhere
		w.get("/v1/events/e/seatmap", as(role)...).is(200)
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
