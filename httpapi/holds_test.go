package httpapi_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestPlaceHold(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "e", `{"event":"e","name":"E","currency":"USD","hold_seconds":60,"tiers":[
		{"tier":"ga","quantity":10,"price":{"amount":5000,"currency":"USD"},"fee":{"amount":250,"currency":"USD"},"tax_rate":"0.07"},
		{"tier":"vip","quantity":5,"price":{"amount":20000,"currency":"USD"}}]}`).is(201)
	h := w.post("/v1/events/e/holds", "k", `{"customer":"alice","items":[{"tier":"ga","quantity":2},{"tier":"vip","quantity":1}]}`).is(201)
	h.has("event", "e", "customer", "alice", "status", "held", "version", 2,
		"items.0.tier", "ga", "items.0.quantity", 2, "items.0.unit_price.amount", 5000, "items.0.unit_fee.amount", 250,
		"items.0.unit_tax.amount", 368, "items.0.price_version", 1, "items.1.unit_price.amount", 20000,
		"total.amount", 2*(5000+250+368)+20000, "total.currency", "USD")
	if h.header.Get("ETag") != `"2"` {
		t.Errorf("the tag is %s, want the version", h.header.Get("ETag"))
	}
	if created, expires := instant(t, h.text("created_at")), instant(t, h.text("expires_at")); expires.Sub(created) != time.Minute {
		t.Errorf("the hold lasts %v, want a minute", expires.Sub(created))
	}
	path := "/v1/holds/" + h.text("hold_id")
	got := w.get(path).is(200)
	if string(got.body) != string(h.body) {
		t.Errorf("read %s, placed %s", got.body, h.body)
	}
	w.get(path, "If-None-Match", got.header.Get("ETag")).is(304)
	w.get(path, "If-None-Match", `"1"`).is(200)
	w.get("/v1/events/e/availability").has("tiers.0.available", 8, "tiers.0.held", 2, "tiers.1.available", 4, "version", 2)
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestQuantities(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	tests := []struct{ quantity, code string }{
		{`0`, "invalid_quantity"},
		{`-1`, "invalid_quantity"},
		{`100001`, "invalid_quantity"},
		{`2147483648`, "invalid_quantity"},
		{`9223372036854775807`, "invalid_quantity"},
		{`9223372036854775808`, "invalid_request"},
		{`1.5`, "invalid_request"},
		{`1e3`, "invalid_request"},
		{`"2"`, "invalid_request"},
		{`null`, "invalid_request"},
	}
	for _, test := range tests {
		body := fmt.Sprintf(`{"customer":"alice","items":[{"tier":"ga","quantity":1},{"tier":"ga","quantity":%s}]}`, test.quantity)
		w.post("/v1/events/e/holds", "k", body).refused(400, test.code).has("field", "items[1].quantity")
	}
	w.post("/v1/events/e/holds", "k", `{"customer":"alice","items":[{"quantity":1}]}`).
		refused(400, "invalid_request").has("field", "items[0].tier")
	w.post("/v1/events/e/holds", "k", `{"customer":"alice","items":[{"tier":"ga"}]}`).
		refused(400, "invalid_quantity").has("field", "items[0].quantity")
	w.post("/v1/events/e/holds", "k", lines("alice")).refused(400, "invalid_request").has("field", "items")
	w.post("/v1/events/e/holds", "k", lines("alice", make([]int, 21)...)).refused(400, "invalid_request").has("field", "items")
	w.post("/v1/events/e/holds", "k", lines("a lice", 1)).refused(400, "invalid_request").has("field", "customer")
	if got := w.available("e"); got != "10" {
		t.Errorf("%s tickets are available after refusals", got)
	}
}

// What the contract has and this version hasn't is refused by name.
func TestUnsupportedFieldsOfHolds(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	for field, body := range map[string]string{
		"allotment":       `{"allotment":"presale","customer":"a","items":[]}`,
		"code":            `{"customer":"a","items":[{"tier":"ga","quantity":1}],"code":"X"}`,
		"admission_token": `{"customer":"a","admission_token":"X"}`,
	} {
		r := w.post("/v1/events/e/holds", "k", body).refused(400, "invalid_request").has("field", field)
		if !strings.Contains(r.text("detail"), "this version") {
			t.Errorf("%s: the detail is %s", field, r.text("detail"))
		}
	}
}

// CASES T2: two tickets, many requests for two: one is granted.
func TestT2ParallelHoldsOfTheLastTickets(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 2)
	const requests = 30
	replies, errs := make([]reply, requests), make([]error, requests)
	var calls sync.WaitGroup
	for i := range requests {
		calls.Go(func() {
			replies[i], errs[i] = w.send("POST", "/v1/events/e/holds", lines(fmt.Sprint("c", i), 2), "Idempotency-Key", fmt.Sprint(i))
		})
	}
	calls.Wait()
	granted := 0
	for i, r := range replies {
		switch {
		case errs[i] != nil:
			t.Error(errs[i])
		case r.status == 201:
			granted++
		default:
			r.refused(409, "temporarily_held").has("available", 0, "asked", 2, "tier", "ga")
		}
	}
	if granted != 1 || w.available("e") != "0" {
		t.Errorf("%d were granted, %s tickets are left", granted, w.available("e"))
	}
}

// CASES T4: 6 and 6 of 10.
func TestT4SecondHoldTellsWhatIsLeft(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	hold := w.hold("e", "1", "alice", 6).is(201)
	r := w.hold("e", "2", "bob", 6).refused(409, "temporarily_held").
		has("available", 4, "asked", 6, "tier", "ga", "retry_at", hold.text("expires_at"))
	var seconds int
	if _, err := fmt.Sscan(r.header.Get("Retry-After"), &seconds); err != nil || seconds < 290 || seconds > 300 {
		t.Errorf("Retry-After is %q, want the seconds until the hold runs out", r.header.Get("Retry-After"))
	}
	sold := w.hold("e", "3", "bob", 11).refused(409, "sold_out").has("available", 4, "asked", 11)
	if sold.header.Get("Retry-After") != "" {
		t.Error("sold_out says when to come back")
	}
	w.hold("e", "4", "bob", 4).is(201)
}

// CASES T7 and T8: the lines of a request are judged together.
func TestT7T8LinesAreJudgedTogether(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	w.event("limited", 100, `"limit_per_customer":6`)
	const twelve = 12
	ones := make([]int, twelve)
	for i := range ones {
		ones[i] = 1
	}
	w.post("/v1/events/e/holds", "t7", lines("alice", 6, 6)).refused(409, "sold_out").has("available", 10, "asked", 12)
	w.post("/v1/events/e/holds", "t8", lines("alice", ones...)).refused(409, "sold_out").has("available", 10, "asked", 12)
	w.post("/v1/events/limited/holds", "t8", lines("alice", ones...)).
		refused(409, "limit_exceeded").has("limit", 6, "used", 0, "asked", 12)
	w.hold("limited", "4", "alice", 4).is(201)
	w.hold("limited", "5", "alice", 3).refused(409, "limit_exceeded").has("limit", 6, "used", 4, "asked", 3)
	w.hold("limited", "6", "alice", 2).is(201)
	if a, b := w.available("e"), w.available("limited"); a != "10" || b != "94" {
		t.Errorf("%s and %s tickets are available, want 10 and 94", a, b)
	}
}

// CASES T19: a refusal leaves nothing, and is no trap for its key.
func TestT19RefusedHoldLeavesNothing(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 4)
	h := w.hold("e", "1", "alice", 4).is(201)
	before := w.get("/v1/events/e/entries").is(200)
	r := w.hold("e", "2", "bob", 2).refused(409, "temporarily_held")
	if r.field("hold_id") != nil || r.header.Get("ETag") != "" {
		t.Errorf("the refusal %s names a hold", r.body)
	}
	if after := w.get("/v1/events/e/entries").is(200); string(after.body) != string(before.body) {
		t.Errorf("the refusal made the journal %s", after.body)
	}
	w.get("/v1/events/e/holds?customer=bob").is(200).has("data", "[]")
	w.post("/v1/holds/"+h.text("hold_id")+"/release", "r", "").is(200)
	again := w.hold("e", "2", "bob", 2).is(201)
	if again.header.Get("Idempotency-Replayed") != "" {
		t.Error("the repeat of a refusal is a replay")
	}
}

// The contract's order of refusals; the documents are held to it as well.
var holdRefusals = []string{
	"event_not_found", "not_on_sale", "section_not_found", "tier_not_found", "seat_not_found", "seats_required",
	"invalid_quantity", "limit_exceeded", "seat_unavailable", "not_together", "temporarily_held", "sold_out", "overloaded",
}

// Each request breaks two neighbouring rules: the first one is told.
func TestHoldRefusalOrder(t *testing.T) {
	w := serve(t, nil)
	w.event("open", 10, `"limit_per_customer":5`)
	w.event("closed", 10, `"sale_closes_at":"2020-01-01T00:00:00Z"`)
	w.event("held", 10, `"limit_per_customer":5`)
	w.hold("held", "h1", "bob", 5).is(201)
	w.hold("held", "h2", "carol", 4).is(201)
	w.house("seats", `"limit_per_customer":5`)
	w.ask("seats", "s1", "bob", named("A-1-1", "A-1-5", "A-2-3")).is(201)
	w.ask("seats", "s2", "carol", named("A-2-1", "A-2-5")).is(201) // singles and pairs of front are left
	w.post("/v1/events/seats/seats/block", "b", setAside("x", "B-1-1", "B-1-2")).is(200)
	const fives, none = `{"tier":"ga","quantity":5}`, `{"tier":"ga","quantity":0}`
	ask := func(lines ...string) string { return asking("alice", lines...) }
	vip := `{"customer":"alice","items":[{"tier":"vip","quantity":0}]}`
	tests := []struct {
		event, body, code string
		status            int
	}{
		{"none", `{"customer":"","items":[]}`, "event_not_found", 404},
		{"closed", vip, "not_on_sale", 409},
		{"seats", ask(best(9, `"section":"Z"`, `"tier":"vip"`)), "section_not_found", 404},
		{"open", vip, "tier_not_found", 404},
		{"seats", ask(`{"tier":"vip","quantity":1}`, named("Z-1-1")), "tier_not_found", 404},
		{"seats", ask(`{"tier":"front","quantity":0}`, named("Z-1-1")), "seat_not_found", 404},
		{"seats", ask(`{"tier":"front","quantity":0}`, none), "seats_required", 400},
		{"seats", ask(named("A-1-1"), none, fives, fives), "invalid_quantity", 400},
		{"open", lines("alice", 6, 0), "invalid_quantity", 400},
		{"held", lines("alice", 6), "limit_exceeded", 409},
		{"open", lines("alice", 11), "limit_exceeded", 409},
		{"seats", ask(named("A-1-1"), fives), "limit_exceeded", 409},
		{"seats", ask(named("A-1-1"), best(4, `"tier":"front"`)), "seat_unavailable", 409},
		{"seats", ask(best(4, `"tier":"front"`)), "not_together", 409},
		{"held", lines("alice", 5), "temporarily_held", 409},
		{"seats", ask(best(3, `"tier":"back"`)), "sold_out", 409},
	}
	place := 0
	for _, test := range tests {
		w.post("/v1/events/"+test.event+"/holds", "k", test.body).refused(test.status, test.code)
		for holdRefusals[place] != test.code {
			place++ // panics when the tests aren't in the contract's order
		}
	}
}

func TestReleaseHold(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	h := w.hold("e", "k", "alice", 3).is(201)
	path := "/v1/holds/" + h.text("hold_id") + "/release"
	w.do("POST", path, "").refused(400, "idempotency_key_required")
	w.post(path, "r", `{"reason":"x"}`).refused(400, "invalid_request").has("field", "reason")
	w.post(path, "r", ``, "If-Match", `"1"`).refused(412, "version_conflict").has("version", 2)
	w.post(path, "r", ``, "If-Match", `2`).refused(400, "invalid_request").has("field", "If-Match")

	first := w.post(path, "r1", ``).is(200).has("status", "released", "version", 3)
	again := w.post(path, "r1", ``).is(200)
	if string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the repeat got %v %s", again.header, again.body)
	}
	w.hold("e", "k2", "bob", 1).is(201) // the journal goes on; the hold's version doesn't
	ended := w.post(path, "r2", `{}`).is(200).has("status", "released", "version", 3)
	if ended.header.Get("ETag") != `"3"` || ended.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the release of a released hold got %v", ended.header)
	}
	if got := w.available("e"); got != "9" {
		t.Errorf("%s tickets are available, want 9", got)
	}
	for _, id := range []string{"x", "00000000-0000-4000-8000-000000000000", "000003e7-a0a9-8715-b4a1-478ce139f1e9",
		"{" + h.text("hold_id") + "}", strings.ReplaceAll(h.text("hold_id"), "-", "")} {
		w.get("/v1/holds/"+escape(id)).refused(404, "hold_not_found").has("hold_id", id)
		w.post("/v1/holds/"+escape(id)+"/release", "k", "").refused(404, "hold_not_found")
	}
}

// A hold that has run out reads as expired before an entry says so, and its tag
// doesn't hide that.
func TestExpiredHold(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10, `"hold_seconds":1`)
	h := w.hold("e", "k", "alice", 10).is(201)
	path := "/v1/holds/" + h.text("hold_id")
	tag := w.get(path).is(200).has("status", "held").header.Get("ETag")
	w.until(h.text("expires_at"))
	w.get(path, "If-None-Match", tag).is(200).has("status", "expired", "version", 2)
	w.get("/v1/events/e/holds?status=held").has("data", "[]")
	w.get("/v1/events/e/holds?status=expired").has("data.0.hold_id", h.text("hold_id"))
	w.hold("e", "k2", "bob", 10).is(201)
	w.get(path).is(200).has("status", "expired", "version", 3)
	w.post(path+"/release", "r", "").is(200).has("status", "expired", "version", 3)
}

// until waits for the database's clock.
func (w *world) until(at string) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.db.ServiceURL())
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const sql = `SELECT pg_sleep(greatest(0, extract(epoch FROM $1::timestamptz - clock_timestamp())))`
	if _, err := conn.Exec(w.t.Context(), sql, at); err != nil {
		w.t.Fatal(err)
	}
}

func TestListHolds(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	w.event("f", 100)
	const n = 7
	for i := range n {
		w.hold("e", fmt.Sprint("a", i), "alice", 1).is(201)
		w.hold("e", fmt.Sprint("b", i), "bob", 1).is(201)
	}
	if got := len(w.walk("/v1/events/e/holds?limit=3", "hold_id")); got != 2*n {
		t.Errorf("the pages have %d holds, want %d", got, 2*n)
	}
	if got := len(w.walk("/v1/events/e/holds?customer=alice&status=held&limit=2", "hold_id")); got != n {
		t.Errorf("the pages have %d holds of alice, want %d", got, n)
	}
	w.get("/v1/events/f/holds").is(200).has("data", "[]", "next_cursor", "<nil>")
	w.get("/v1/events/none/holds").refused(404, "event_not_found")
	w.get("/v1/events/e/holds?status=gone").refused(400, "invalid_request").has("field", "status")
	w.get("/v1/events/e/holds?customer="+escape("a b")).refused(400, "invalid_request").has("field", "customer")

	cursor := escape(w.get("/v1/events/e/holds?customer=alice&limit=2").text("next_cursor"))
	w.get("/v1/events/e/holds?cursor="+cursor).is(200).has("data.1.customer", "alice", "data.2", "<nil>")
	w.get("/v1/events/e/holds?limit=3&customer=alice&cursor="+cursor).is(200).has("data.2.customer", "alice", "data.3", "<nil>")
	w.get("/v1/events/e/holds?customer=bob&cursor="+cursor).refused(400, "invalid_request").has("field", "cursor")
	w.get("/v1/events/e/holds?customer=alice&status=held&cursor="+cursor).refused(400, "invalid_request").has("field", "cursor")
	w.get("/v1/events/f/holds?cursor="+cursor).refused(400, "invalid_request").has("field", "cursor")
}

func TestHoldSeats(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	const path = "/v1/events/e/holds"
	body := asking("alice", named("A-1-3", "B-1-1", "A-1-2"), `{"tier":"ga","quantity":2}`, named("A-1-4"))
	first := w.post(path, "k", body).is(201).has("status", "held", "version", 3, "total.amount", 30000,
		"items.0.tier", "front", "items.0.quantity", 2, "items.0.seats", "[A-1-3 A-1-2]",
		"items.1.tier", "back", "items.1.quantity", 1, "items.1.seats", "[B-1-1]",
		"items.2.tier", "ga", "items.2.quantity", 2, "items.2.seats", "<nil>",
		"items.3.tier", "front", "items.3.quantity", 1, "items.3.seats", "[A-1-4]", "items.4", "<nil>")
	w.post(path, "k", body).is(201).repeats(first)
	w.post(path, "k", asking("alice", named("A-1-2", "B-1-1", "A-1-3"), `{"tier":"ga","quantity":2}`, named("A-1-4"))).refused(422, "idempotency_mismatch")
	w.get("/v1/holds/"+first.text("hold_id")).is(200).has("items.0.seats", "[A-1-3 A-1-2]")
	w.get("/v1/events/e/holds?customer=alice").has("data.0.items.1.seats", "[B-1-1]")
	w.get("/v1/events/e/availability").has("tiers.0.held", 1, "tiers.1.held", 3, "tiers.2.held", 2)

	// Seats that are named are taken first: the best of the others aren't those.
	w.ask("e", "l", "bob", best(2, `"section":"A"`), best(1, `"tier":"back"`), named("A-2-3")).is(201).
		has("items.0.seats", "[A-2-1 A-2-2]", "items.1.tier", "back", "items.1.quantity", 1, "items.2.seats", "[A-2-3]")
	w.post("/v1/holds/"+first.text("hold_id")+"/release", "r", "").is(200).has("status", "released", "items.0.seats", "[A-1-3 A-1-2]")
	w.ask("e", "m", "carol", named("A-1-2", "A-1-3", "B-1-1")).is(201)
	w.post(path, "k", body).is(201).repeats(first)
	w.get("/v1/events/e/seats/A-1-2").has("state", "held")
}

func TestHoldSeatsNamesTheField(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	w.house("other")
	w.post("/v1/events/other/chart", "more", chart(part("O", "front", 1, 1))).is(201)
	w.event("ga", 5)
	hundred := make([]string, 101)
	for i := range hundred {
		hundred[i] = fmt.Sprint("A-1-", i)
	}
	tests := []struct {
		event string
		lines []string
		field string
	}{
		{"e", []string{`{}`}, "items[0].tier"},
		{"e", []string{`{"seats":[]}`}, "items[0].seats"},
		{"e", []string{`{"seats":"A-1-1"}`}, "items[0].seats"},
		{"e", []string{`{"seats":[1]}`}, "items[0].seats[0]"},
		{"e", []string{named("A-1-1", "")}, "items[0].seats[1]"},
		{"e", []string{named("A-1-1", strings.Repeat("x", 51))}, "items[0].seats[1]"},
		{"e", []string{named("A-1-1", "A-1-1")}, "items[0].seats[1]"},
		{"e", []string{named("A-1-1"), named("A-1-2", "A-1-1")}, "items[1].seats"},
		{"e", []string{`{"seats":["A-1-1"],"tier":"front"}`}, "items[0]"},
		{"e", []string{`{"seats":["A-1-1"],"quantity":1}`}, "items[0]"},
		{"e", []string{`{"seats":["A-1-1"],"best_available":{"quantity":1}}`}, "items[0]"},
		{"e", []string{`{"best_available":{"quantity":1},"tier":"front"}`}, "items[0]"},
		{"e", []string{`{"best_available":{"quantity":1,"rows":2}}`}, "items[0].best_available.rows"},
		{"e", []string{`{"best_available":{"quantity":"1"}}`}, "items[0].best_available.quantity"},
		{"e", []string{best(1, `"tier":"ga"`)}, "items[0].best_available.tier"},
		{"e", []string{best(1, `"tier":"front"`, `"section":"B"`)}, "items[0].best_available.tier"},
		{"ga", []string{best(1)}, "items[0].best_available"},
	}
	for i, test := range tests {
		r := w.ask(test.event, "k", "alice", test.lines...).refused(400, "invalid_request")
		if got := r.text("field"); got != test.field {
			t.Errorf("%d: the error is about %s, want %s: %s", i, got, test.field, r.body)
		}
	}
	missing := w.ask("e", "k", "alice", named("A-1-1", "O-1-1"), named("A-9-1")).refused(404, "seat_not_found")
	missing.has("seats.0", "O-1-1", "seats.1", "<nil>")
	w.ask("e", "k", "alice", named("A-1-6", "A-1-1", "Z", "A-1-1-1")).refused(404, "seat_not_found").has("seats", "[A-1-6 Z A-1-1-1]")
	w.ask("ga", "k", "alice", named("A-1-1")).refused(404, "seat_not_found")
	w.ask("e", "k", "alice", best(1, `"section":"Z"`)).refused(404, "section_not_found").has("section", "Z")
	w.ask("e", "k", "alice", best(1, `"tier":"vip"`)).refused(404, "tier_not_found").has("tier", "vip")
	w.ask("e", "k", "alice", `{"tier":"back","quantity":1}`).refused(400, "seats_required").has("field", "items[0]", "tier", "back")

	six := named("A-1-1", "A-1-2", "A-1-3", "A-1-4", "A-1-5", "A-2-1")
	for field, lines := range map[string][]string{
		"items[0].seats":                   {named("A-1-1", "A-1-2", "A-1-3", "A-1-4", "A-1-5", "A-2-1", "B-1-1")},
		"items[1].seats":                   {six, named("B-1-1")},
		"items[1].best_available.quantity": {six, best(1)},
		"items[0].best_available.quantity": {best(7)},
		"items[2].best_available.quantity": {named("A-1-1", "A-1-2"), best(3), best(2)},
	} {
		w.ask("e", "k", "alice", lines...).refused(400, "invalid_quantity").has("field", field, "maximum", 6)
	}
	w.ask("e", "k", "alice", named(hundred...)).refused(400, "invalid_quantity").has("field", "items[0].seats", "maximum", 6)
	w.ask("e", "k", "alice", best(0)).refused(400, "invalid_quantity").has("maximum", 6)
	w.ask("e", "k", "alice", `{"best_available":{}}`).refused(400, "invalid_quantity").has("field", "items[0].best_available.quantity")
	w.get("/v1/events/e/availability").has("tiers.0.available", 4, "tiers.1.available", 10)
	w.ask("e", "k", "alice", named("A-1-1", "A-1-2"), `{"tier":"ga","quantity":7}`, best(2), best(2, `"section":"B"`)).is(201)
}

// T76: of every seat that can't be had it's told why, and nothing of who has it.
func TestT76UnavailableSeatsTellWhy(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	bought := w.ask("e", "h1", "alice", named("A-1-1")).is(201)
	w.post("/v1/holds/"+bought.text("hold_id")+"/checkout", "p1", paying("sim_ok")).is(201)
	held := w.ask("e", "h2", "bob", named("A-1-2", "B-1-4")).is(201)
	paying := w.ask("e", "h3", "carol", named("A-1-3")).is(201)
	w.post("/v1/holds/"+paying.text("hold_id")+"/checkout", "p3", `{"payment_method":"sim_requires_action"}`).is(202)
	w.post("/v1/events/e/seats/block", "b1", setAside("the camera", "A-1-4")).is(200)
	w.post("/v1/events/e/seats/block", "b2", `{"seats":["A-1-5"],"reason":"guests of the house","allotment":"sponsor"}`).is(200)

	before := w.get("/v1/events/e/entries").is(200)
	r := w.ask("e", "k", "dora", named("A-2-1", "A-1-5", "A-1-4", "A-1-3"), `{"tier":"ga","quantity":1}`, named("A-1-1", "A-1-2")).
		refused(409, "seat_unavailable").
		has("seats.0.seat", "A-1-5", "seats.0.reason", "other_allotment", "seats.0.may_return_at", "<nil>",
			"seats.1.seat", "A-1-4", "seats.1.reason", "blocked", "seats.1.may_return_at", "<nil>",
			"seats.2.seat", "A-1-3", "seats.2.reason", "held", "seats.2.may_return_at", paying.text("expires_at"),
			"seats.3.seat", "A-1-1", "seats.3.reason", "sold", "seats.3.may_return_at", "<nil>",
			"seats.4.seat", "A-1-2", "seats.4.reason", "held", "seats.4.may_return_at", held.text("expires_at"), "seats.5", "<nil>")
	for _, secret := range []string{"alice", "bob", "carol", "sponsor", "camera", "guests",
		bought.text("hold_id"), held.text("hold_id"), paying.text("hold_id")} {
		if strings.Contains(string(r.body), secret) {
			t.Errorf("the refusal tells %s: %s", secret, r.body)
		}
	}
	if after := w.get("/v1/events/e/entries").is(200); string(after.body) != string(before.body) {
		t.Errorf("the refusal made the journal %s", after.body)
	}
	w.ask("e", "k", "dora", named("A-2-1")).is(201)
}

// What the best available seats are refused with: what there is, and when it may be more.
func TestBestAvailableIsRefused(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	w.post("/v1/events/e/chart", "acc", chart(part("W", "back", 1, 2, `"accessible":true`))).is(201)
	first := w.ask("e", "h1", "ann", named("A-1-2", "A-1-4", "A-2-3")).is(201)
	// Of front: three singles of row 1, two pairs of row 2.
	w.ask("e", "k", "bob", best(3, `"tier":"front"`)).refused(409, "not_together").
		has("available", 7, "asked", 3, "largest_block", 2, "tier", "<nil>", "retry_at", "<nil>")
	w.ask("e", "k", "bob", best(3, `"section":"A"`)).refused(409, "not_together").has("available", 7, "asked", 3, "largest_block", 2)
	w.ask("e", "k", "bob", best(5)).refused(409, "not_together").has("available", 11, "asked", 5, "largest_block", 4)
	w.ask("e", "k", "bob", best(3, `"accessible":true`)).refused(409, "sold_out").has("available", 2, "asked", 3, "largest_block", 2)
	w.ask("e", "s1", "cat", best(3, `"tier":"front"`, `"accept_split":true`)).is(201).has("items.0.quantity", 3)

	// Of front four are left, and six are held.
	r := w.ask("e", "k", "bob", best(5, `"tier":"front"`, `"accept_split":true`)).refused(409, "temporarily_held").
		has("available", 4, "asked", 5, "retry_at", first.text("expires_at"), "tier", "<nil>")
	var seconds int
	if _, err := fmt.Sscan(r.header.Get("Retry-After"), &seconds); err != nil || seconds < 290 || seconds > 300 {
		t.Errorf("Retry-After is %q, want the seconds until the hold runs out", r.header.Get("Retry-After"))
	}
	w.ask("e", "k", "bob", best(5, `"section":"B"`)).refused(409, "sold_out").has("available", 4, "asked", 5, "largest_block", 4)
	w.post("/v1/events/e/seats/block", "b", setAside("x", "B-1-2")).is(200)
	w.ask("e", "k", "bob", best(3, `"section":"B"`)).refused(409, "not_together").has("available", 3, "largest_block", 2)
	w.ask("e", "k", "bob", best(4, `"section":"B"`, `"accept_split":true`)).refused(409, "sold_out").has("available", 3, "asked", 4, "largest_block", 2)

	// For good goes before for now, whatever the order of the lines.
	gone, later := best(4, `"section":"B"`), best(2, `"section":"A"`, `"accept_split":true`)
	w.ask("e", "s2", "dan", best(4, `"tier":"front"`, `"accept_split":true`)).is(201)
	w.ask("e", "k", "bob", later).refused(409, "temporarily_held").has("available", 0, "asked", 2, "largest_block", 0)
	w.ask("e", "k", "bob", later, gone).refused(409, "sold_out").has("asked", 4)
	w.ask("e", "k", "bob", gone, later).refused(409, "sold_out").has("asked", 4)
	w.ask("e", "k", "bob", later, `{"tier":"ga","quantity":11}`).refused(409, "sold_out").has("tier", "ga", "asked", 11)
	w.ask("e", "k", "bob", named("A-1-1"), gone).refused(409, "seat_unavailable")

	w.post("/v1/events", "empty", seated("empty")).is(201)
	w.ask("empty", "k", "bob", best(1)).refused(409, "sold_out").has("available", 0, "asked", 1, "largest_block", 0)
}

// A customer's limits hold for seats, named and not.
func TestLimitsOfSeats(t *testing.T) {
	w := serve(t, nil)
	price := `"price":{"amount":5000,"currency":"USD"}`
	w.post("/v1/events", "e", fmt.Sprintf(`{"event":"e","name":"E","currency":"USD","limit_per_customer":5,"tiers":[
		{"tier":"front","seated":true,"limit_per_customer":3,%s},{"tier":"back","seated":true,%s}],"seating":%s}`, price, price,
		chart(part("A", "front", 2, 5), part("B", "back", 2, 5)))).is(201)
	front, any := best(4, `"tier":"front"`), best(4)
	w.ask("e", "k", "ann", front).refused(409, "limit_exceeded").has("tier", "front", "limit", 3, "used", 0, "asked", 4)
	w.ask("e", "k", "ann", named("A-1-1", "A-1-2", "A-1-3"), best(1, `"section":"A"`)).refused(409, "limit_exceeded").has("tier", "front", "asked", 4)
	w.ask("e", "k", "ann", best(6)).refused(409, "limit_exceeded").has("tier", "<nil>", "limit", 5, "asked", 6)
	w.ask("e", "a", "ann", any).is(201).has("items.0.tier", "back", "items.0.quantity", 4)
	w.ask("e", "k", "ann", best(2)).refused(409, "limit_exceeded").has("limit", 5, "used", 4, "asked", 2)
	w.ask("e", "b", "bob", best(2), best(2)).is(201).has("items.0.tier", "front", "items.0.quantity", 2, "items.1.tier", "back")
}

// One seat and many buyers over HTTP: one gets it, the others are told that it's held.
func TestT13OneSeatOneWinner(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	const n = 40
	replies, errs := make([]reply, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			replies[i], errs[i] = w.send("POST", "/v1/events/e/holds", asking(fmt.Sprint("c", i), named("A-1-3")), "Idempotency-Key", fmt.Sprint(i))
		})
	}
	all.Wait()
	granted := 0
	for i, r := range replies {
		switch {
		case errs[i] != nil:
			t.Error(errs[i])
		case r.status == 201:
			granted++
		default:
			r.refused(409, "seat_unavailable").has("seats.0.seat", "A-1-3", "seats.0.reason", "held")
		}
	}
	if granted != 1 {
		t.Errorf("%d have the seat", granted)
	}
}

// The first buyer who wants a seat at the end of its hold gets it.
func TestExpiredSeatIsFree(t *testing.T) {
	w := serve(t, nil)
	w.house("e", `"hold_seconds":1`)
	h := w.ask("e", "a", "alice", named("A-1-1", "B-1-1", "B-1-2", "B-1-3", "B-1-4")).is(201)
	w.until(h.text("expires_at"))
	w.ask("e", "b", "bob", named("A-1-1")).is(201)
	w.ask("e", "c", "carol", best(4, `"section":"B"`)).is(201)
	w.get("/v1/holds/"+h.text("hold_id")).has("status", "expired", "items.1.seats", "[B-1-1 B-1-2 B-1-3 B-1-4]")
}
