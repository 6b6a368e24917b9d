package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
)

const tierBody = `{"tier":"ga","quantity":10,"price":{"amount":5000,"currency":"USD"}}`

// spec is the body of a new event; members are added to it.
func spec(event string, members ...string) string {
	return fmt.Sprintf(`{"event":%q,"name":"An event","currency":"USD","tiers":[%s]%s}`,
		event, tierBody, strings.Join(append([]string{""}, members...), ","))
}

func TestCreateEvent(t *testing.T) {
	w := serve(t, nil)
	e := w.post("/v1/events", "k", spec("e", `"limit_per_customer":4`)).is(201)
	e.has("event", "e", "hold_seconds", 300, "grace_seconds", 120, "limit_per_customer", 4, "organiser", "e",
		"late_payment_policy", "review", "version", 1, "tiers.0.tier", "ga", "tiers.0.quantity", 10,
		"tiers.0.price_version", 1, "tiers.0.price.amount", 5000, "tiers.0.name", "ga")
	got := w.get("/v1/events/e").is(200)
	if string(got.body) != string(e.body) || got.header.Get("ETag") != `"1"` || e.header.Get("ETag") != `"1"` {
		t.Errorf("created %s, read %s", e.body, got.body)
	}
	w.get("/v1/events/none").refused(404, "event_not_found").has("event", "none")
	w.get("/v1/events/%00").refused(404, "event_not_found")
	w.get("/v1/events/%ff/holds").refused(404, "event_not_found")
}

func TestCreateEventNamesTheField(t *testing.T) {
	w := serve(t, nil)
	tests := []struct{ body, field string }{
		{spec(""), "event"},
		{spec("a/b"), "event"},
		{spec("e", `"hold_seconds":-1`), "hold_seconds"},
		{spec("e", `"limit_per_customer":0`), "limit_per_customer"},
		{spec("e", `"sale_opens_at":5`), "sale_opens_at"},
		{spec("e", `"sale_opens_at":"2027-01-01"`), "sale_opens_at"},
		{spec("e", `"late_payment_policy":"keep"`), "late_payment_policy"},
		{spec("e", `"sale_closes_at":"2027-01-01T00:00:00Z","honour_until":"2026-12-31T23:59:59Z"`), "honour_until"},
		{spec("e", `"seating":{}`), "seating.sections"},
		{spec("e", `"seating":[]`), "seating"},
		{spec("e", `"seating":{"sections":[{"section":"A","tier":"ga","rows":[]}]}`), "seating.sections[0].tier"},
		{spec("e", `"tiers":[]`), "tiers"}, // twice
		{strings.Replace(spec("e"), "[{", "[1,{", 1), "tiers[0]"},
		{strings.Replace(spec("e"), "10,", "0,", 1), "tiers[0].quantity"},
		{strings.Replace(spec("e"), "5000", "50.00", 1), "tiers[0].price.amount"},
		{strings.Replace(spec("e"), `5000,"currency":"USD"`, `5000,"currency":"EUR"`, 1), "tiers[0].price.currency"},
		{strings.Replace(spec("e"), `"price"`, `"tax_rate":1.5,"price"`, 1), "tiers[0].tax_rate"},
		{strings.Replace(spec("e"), `An event`, `\u0000`, 1), "name"},
		{strings.Replace(spec("e"), `An event`, "\xff", 1), "body"},
		{`{"event":"e"}`, "currency"},
		{``, "body"},
	}
	for _, test := range tests {
		r := w.post("/v1/events", "k", test.body).refused(400, "invalid_request")
		if got := r.text("field"); got != test.field {
			t.Errorf("%s: the error is about %s, want %s", test.body, got, test.field)
		}
	}
	w.get("/v1/events").is(200).has("data", "[]")
}

func TestTimesAtTheEdge(t *testing.T) {
	w := serve(t, nil)
	for i, at := range []string{"0000-12-31T23:59:59Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"} {
		for _, field := range []string{"sale_opens_at", "sale_closes_at", "honour_until"} {
			w.post("/v1/events", fmt.Sprint(field, i), spec("e", fmt.Sprintf(`%q:%q`, field, at))).
				refused(400, "invalid_request").has("field", field)
		}
	}
	first, last := "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"
	w.post("/v1/events", "k", spec("e", fmt.Sprintf(`"sale_opens_at":%q,"sale_closes_at":%q,"honour_until":%q`, first, last, last))).
		is(201)
	w.get("/v1/events/e").is(200).has("sale_opens_at", first, "sale_closes_at", last, "honour_until", last)
}

func TestChangeTier(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	old := w.hold("e", "h1", "alice", 4).is(201)
	const path = "/v1/events/e/tiers/ga"
	patch := func(key, body string, headers ...string) reply {
		t.Helper()
		return w.do("PATCH", path, body, append(headers, "Idempotency-Key", key)...)
	}
	tag := w.get("/v1/events/e").is(200).header.Get("ETag")
	w.get("/v1/events/e", "If-None-Match", tag).is(304)

	changed := patch("p1", `{"price":{"amount":6000,"currency":"USD"}}`, "If-Match", `"1"`).is(200).
		has("price.amount", 6000, "price_version", 2, "quantity", 10, "version", 3)
	if changed.header.Get("ETag") != `"3"` {
		t.Errorf("the tag is %s", changed.header.Get("ETag"))
	}
	w.get("/v1/events/e", "If-None-Match", tag).is(200).has("version", 3, "tiers.0.version", 3)
	w.hold("e", "h2", "bob", 1).is(201).has("items.0.unit_price.amount", 6000, "items.0.price_version", 2)
	w.get("/v1/holds/"+old.text("hold_id")).has("items.0.unit_price.amount", 5000, "total.amount", 20000)

	patch("p2", `{"name":"x"}`, "If-Match", `"1"`).refused(412, "version_conflict").has("version", 3)
	if r := patch("p1", `{"price":{"amount":6000,"currency":"USD"}}`, "If-Match", `"1"`).is(200); string(r.body) != string(changed.body) {
		t.Errorf("the repeat got %s", r.body)
	}
	patch("p1", `{"price":{"amount":6000,"currency":"USD"}}`, "If-Match", `"3"`).refused(422, "idempotency_mismatch")
	patch("p3", `{"name":"x"}`, "If-Match", "*").is(200).has("name", "x")
	for _, bad := range []string{`3`, `W/"3"`, `"3", "4"`, `"x"`, `"03"`, `"-1"`, `"`, ``, `"99999999999999999999"`} {
		patch("p4", `{"name":"y"}`, "If-Match", bad).refused(400, "invalid_request").has("field", "If-Match")
	}
	patch("p5", `{"quantity":4}`).refused(409, "below_committed").has("minimum", 5, "asked", 4, "tier", "ga")
	patch("p6", `{"quantity":5}`).is(200).has("quantity", 5)
	patch("p7", `{"limit_per_customer":null}`).refused(400, "invalid_request").has("field", "limit_per_customer")
	patch("p8", `{}`).refused(400, "invalid_request").has("field", "body")
	w.do("PATCH", "/v1/events/e/tiers/vip", `{"name":"x"}`, "Idempotency-Key", "k").refused(404, "tier_not_found").has("tier", "vip")
	w.do("PATCH", path, `{"name":"x"}`).refused(400, "idempotency_key_required")
}

func TestChangeTierDryRun(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	const path = "/v1/events/e/tiers/ga?dry_run="
	before := w.get("/v1/events/e/entries")
	r := w.do("PATCH", path+"true", `{"quantity":7}`).is(200).has("quantity", 7, "version", 2)
	if r.header.Get("ETag") != "" {
		t.Errorf("a dry run has the tag %s", r.header.Get("ETag"))
	}
	w.do("PATCH", path+"true", `{"quantity":0}`).is(200)
	w.do("PATCH", path+"true", `{"quantity":0}`, "If-Match", `"9"`).refused(412, "version_conflict").has("version", 1)
	if after := w.get("/v1/events/e/entries"); string(after.body) != string(before.body) {
		t.Errorf("dry runs made the journal %s", after.body)
	}
	w.do("PATCH", path+"false", `{"quantity":7}`).refused(400, "idempotency_key_required")
	w.do("PATCH", path+"false", `{"quantity":7}`, "Idempotency-Key", "k").is(200).has("version", 2)
}

func TestAddTier(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	vip := `{"tier":"vip","quantity":5,"price":{"amount":9,"currency":"USD"},"limit_per_customer":2}`
	r := w.post("/v1/events/e/tiers", "k", vip).is(201).has("tier", "vip", "version", 2, "limit_per_customer", 2)
	if r.header.Get("ETag") != `"2"` {
		t.Errorf("the tag is %s", r.header.Get("ETag"))
	}
	w.get("/v1/events/e").has("version", 2, "tiers.1.tier", "vip")
	w.post("/v1/events/e/tiers", "k2", vip).refused(409, "tier_exists").has("tier", "vip")
	w.post("/v1/events/none/tiers", "k3", vip).refused(404, "event_not_found")
	w.post("/v1/events/e/tiers", "k4", strings.Replace(vip, "USD", "EUR", 1)).
		refused(400, "invalid_request").has("field", "price.currency")
	w.post("/v1/events/e/holds", "h", `{"customer":"a","items":[{"tier":"vip","quantity":3}]}`).
		refused(409, "limit_exceeded").has("tier", "vip", "limit", 2, "used", 0, "asked", 3)
}

func TestAvailabilityTags(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	const path = "/v1/events/e/availability"
	tag := w.get(path).is(200).header.Get("ETag")
	for _, match := range []string{tag, "W/" + tag, `"77", ` + tag, `"77",W/` + tag, "*"} {
		if r := w.get(path, "If-None-Match", match).is(304); len(r.body) > 0 || r.header.Get("ETag") != tag {
			t.Errorf("%s: got the tag %s and %q", match, r.header.Get("ETag"), r.body)
		}
	}
	for _, other := range []string{`"77"`, "1", `"`, "", "w/" + tag} {
		w.get(path, "If-None-Match", other).is(200)
	}
	w.get(path, "If-None-Match", `"77"`, "If-None-Match", tag).is(304)
	w.hold("e", "k", "alice", 1).is(201)
	w.get(path, "If-None-Match", tag).is(200).has("tiers.0.held", 1)
	w.get("/v1/events/none/availability").refused(404, "event_not_found")
}

// A window is given by offset or with a zone, and means the same across a change
// of the clock.
func TestSaleWindow(t *testing.T) {
	w := serve(t, nil)
	for given, utc := range map[string]string{
		"2083-03-28T03:30:00+02:00":                "2083-03-28T01:30:00Z",
		"2083-03-28T03:30:00+02:00[Europe/Berlin]": "2083-03-28T01:30:00Z",
		"2083-03-28T01:30:00+01:00[Europe/Berlin]": "2083-03-28T00:30:00Z",
		"2083-10-31T02:30:00+02:00[Europe/Berlin]": "2083-10-31T00:30:00Z", // the first 02:30 of that night
		"2083-10-31T02:30:00+01:00[Europe/Berlin]": "2083-10-31T01:30:00Z", // the second
	} {
		name := fmt.Sprint("e", strings.Map(digits, given))
		w.post("/v1/events", name, spec(name, fmt.Sprintf(`"sale_opens_at":%q`, given))).is(201).has("sale_opens_at", utc)
		r := w.hold(name, "k", "alice", 1).refused(409, "not_on_sale").has("sale_opens_at", utc)
		if r.field("sale_closes_at") != nil {
			t.Errorf("%s has a closing that nobody gave", r.body)
		}
	}
	for _, wrong := range []string{
		"2083-03-28T03:30:00+01:00[Europe/Berlin]", // it's summer time already
		"2083-03-28T02:30:00+01:00[Europe/Berlin]", // there's no such time
		"2083-10-31T02:30:00Z[Europe/Nowhere]",
		"2083-10-31T02:30:00",
	} {
		w.post("/v1/events", "k", spec("wrong", fmt.Sprintf(`"sale_opens_at":%q`, wrong))).
			refused(400, "invalid_request").has("field", "sale_opens_at")
	}
	w.event("over", 1, `"sale_opens_at":"2020-01-01T00:00:00Z"`, `"sale_closes_at":"2020-01-01T02:00:00+01:00"`)
	w.hold("over", "k", "alice", 1).refused(409, "not_on_sale").
		has("sale_opens_at", "2020-01-01T00:00:00Z", "sale_closes_at", "2020-01-01T01:00:00Z")
	w.event("on", 1, `"sale_opens_at":"2020-01-01T00:00:00Z"`, `"sale_closes_at":"2120-01-01T00:00:00Z"`)
	w.hold("on", "k", "alice", 1).is(201)
}

func digits(r rune) rune {
	if r >= '0' && r <= '9' {
		return r
	}
	return -1
}
