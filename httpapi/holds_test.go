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
	r := w.post("/v1/events/e/holds", "k", `{"customer":"a","admission_token":"X"}`).refused(400, "invalid_request").has("field", "admission_token")
	if !strings.Contains(r.text("detail"), "this version") {
		t.Errorf("the detail is %s", r.text("detail"))
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
	asked := time.Now()
	r := w.hold("e", "2", "bob", 6).refused(409, "temporarily_held").
		has("available", 4, "asked", 6, "tier", "ga", "retry_at", hold.text("expires_at"))
	r.retriesAt(asked, hold.text("expires_at"))
	sold := w.hold("e", "3", "bob", 11).refused(409, "sold_out").has("available", 4, "asked", 11)
	if sold.header.Get("Retry-After") != "" {
		t.Error("sold_out says when to come back")
	}
	w.hold("e", "4", "bob", 4).is(201)
}

// retriesAt fails the test unless the reply to a call of a time gives the seconds from then
// to another.
func (r reply) retriesAt(asked time.Time, at string) {
	r.t.Helper()
	end := instant(r.t, at)
	var seconds float64
	_, err := fmt.Sscan(r.header.Get("Retry-After"), &seconds)
	if most, least := end.Sub(asked).Seconds()+1, time.Until(end).Seconds()-1; err != nil || seconds < least || seconds > most {
		r.t.Errorf("Retry-After is %q, want the %.0f to %.0f seconds until %s", r.header.Get("Retry-After"), least, most, at)
	}
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
	"event_not_found", "invalid_code", "allotment_not_found", "allotment_closed", "code_required", "not_on_sale",
	"section_not_found", "tier_not_found", "seat_not_found", "seats_required", "invalid_quantity", "limit_exceeded",
	"code_used_up", "seat_unavailable", "not_together", "temporarily_held", "sold_out", "overloaded",
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
	w.event("coded", 3, `"sale_closes_at":"2020-01-01T00:00:00Z"`)
	w.post("/v1/events/coded/allotments", "a1", `{"allotment":"fans","codes":[{"code":"FAN","max_uses":1}],"reason":"x"}`).is(201)
	w.event("fans", 9, `"limit_per_customer":5`)
	w.post("/v1/events/fans/allotments", "a1", `{"allotment":"fans","codes":[{"code":"FAN","max_uses":1}],"tiers":[{"tier":"ga","quantity":1}],"reason":"x"}`).is(201)
	w.from("fans", "f", "bob", "", "FAN").is(201)
	w.post("/v1/events/coded/allotments", "a2", `{"allotment":"over","reason":"x"}`).is(201)
	w.post("/v1/events/coded/allotments/over/close", "c", `{"reason":"x"}`).is(200)
	from := func(body, members string) string { return strings.TrimSuffix(body, "}") + "," + members + "}" }
	const fives, none = `{"tier":"ga","quantity":5}`, `{"tier":"ga","quantity":0}`
	ask := func(lines ...string) string { return asking("alice", lines...) }
	vip := `{"customer":"alice","items":[{"tier":"vip","quantity":0}]}`
	tests := []struct {
		event, body, code string
		status            int
	}{
		{"none", `{"customer":"","items":[]}`, "event_not_found", 404},
		{"coded", from(vip, `"allotment":"none","code":"x"`), "invalid_code", 403},
		{"coded", from(vip, `"allotment":"none"`), "allotment_not_found", 404},
		{"coded", from(vip, `"allotment":"over"`), "allotment_closed", 409},
		{"coded", from(vip, `"allotment":"fans"`), "code_required", 403},
		{"coded", from(vip, `"code":"fan"`), "not_on_sale", 409},
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
		{"fans", from(lines("alice", 6), `"code":"fan"`), "limit_exceeded", 409},
		{"fans", from(lines("alice", 5), `"code":"fan"`), "code_used_up", 409},
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
	h := w.hold("e", "k", "alice", 10).is(201).has("status", "held")
	path, tag := "/v1/holds/"+h.text("hold_id"), h.header.Get("ETag")
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
