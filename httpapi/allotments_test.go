package httpapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// from asks for a ticket of ga of an allotment, by a code; both may be "".
func (w *world) from(event, key, customer, allotment, code string) reply {
	w.t.Helper()
	body := strings.TrimSuffix(lines(customer, 1), "}")
	if allotment != "" {
		body += fmt.Sprintf(`,"allotment":%q`, allotment)
	}
	if code != "" {
		body += fmt.Sprintf(`,"code":%q`, code)
	}
	return w.post("/v1/events/"+event+"/holds", key, body+"}")
}

const fans = `{"allotment":"fans","name":"Fan club","codes":[{"code":"fan27","max_uses":2},{"code":"SOLO","max_uses":1}],
	"tiers":[{"tier":"ga","quantity":6}],"reason":"presale"}`

func TestAllot(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	const path = "/v1/events/e/allotments"
	w.get(path).is(200).has("data", "[]", "next_cursor", "<nil>")
	w.do("POST", path, fans).refused(400, "idempotency_key_required")
	w.post(path, "a1", fans, "If-Match", `"1"`).refused(400, "invalid_request").has("field", "If-Match")
	made := w.post(path, "a1", fans).is(201).has("event", "e", "allotment", "fans", "name", "Fan club", "code_required", true,
		"codes.0.code", "FAN27", "codes.0.max_uses", 2, "moves.0.quantity", 6, "moves.0.to.allotment", "fans", "moves.0.status", "moved",
		"moves.0.reason", "presale")
	w.post(path, "a1", fans).is(201).repeats(made)
	w.post(path, "a1", strings.Replace(fans, "Fan club", "Fans", 1)).refused(422, "idempotency_mismatch")
	w.get(path).is(200).has("data.0.allotment", "fans", "data.0.version", made.text("version"), "data.1", "<nil>", "data.0.codes", "<nil>")
	w.get("/v1/events/e/availability").has("tiers.0.available", 4, "tiers.0.allotments.fans", 6, "tiers.0.capacity", 10)
	w.get("/v1/events/e/buckets").has("allotments.0.allotment", "fans", "buckets.1.allotment", "fans", "buckets.1.free", 6)
	w.post(path, "a2", strings.Replace(fans, `"quantity":6`, `"quantity":4`, 1)).refused(409, "allotment_exists").has("allotment", "fans")

	other := func(members string) string { return `{"allotment":"other","reason":"x"` + members + `}` }
	for body, field := range map[string]string{
		``: "body", `{"allotment":"other"}`: "reason", `{"reason":"x"}`: "allotment", `{"allotment":"a b","reason":"x"}`: "allotment",
		other(`,"codes":[{"code":"","max_uses":1}]`):                                     "codes[0].code",
		other(`,"codes":[{"code":"NEW","max_uses":0}]`):                                  "codes[0].max_uses",
		other(`,"codes":[{"code":"NEW","max_uses":1},{"code":"new","max_uses":1}]`):      "codes[1].code",
		other(`,"tiers":[{"tier":"ga","quantity":0}]`):                                   "tiers[0].quantity",
		other(`,"tiers":[{"tier":"ga","quantity":1},{"tier":"ga","quantity":1}]`):        "tiers[1].tier",
		other(`,"opens_at":"2027-03-28T02:30:00+01:00[Europe/Berlin]"`):                  "opens_at", // there's no such time
		other(`,"opens_at":"2027-05-01T00:00:00Z","releases_at":"2027-05-01T00:00:00Z"`): "releases_at",
		other(`,"releases_at":"2020-01-01T00:00:00Z"`):                                   "releases_at",
		other(`,"name":"` + strings.Repeat("x", 201) + `"`):                              "name",
		other(`,"quantity":1`): "quantity",
		strings.Replace(other(``), `"x"`, `"`+strings.Repeat("x", 501)+`"`, 1): "reason",
	} {
		w.post(path, "a3", body).refused(400, "invalid_request").has("field", field)
	}
	w.post(path, "a3", other(`,"tiers":[{"tier":"vip","quantity":1}]`)).refused(404, "tier_not_found").has("tier", "vip")
	w.post(path, "a3", other(`,"tiers":[{"tier":"ga","quantity":5}]`)).refused(409, "insufficient_free").has("tier", "ga", "free", 4, "asked", 5)
	w.post(path, "a3", other(`,"codes":[{"code":"NEW","max_uses":1},{"code":"Solo","max_uses":1}]`)).
		refused(409, "code_exists").has("field", "codes[1].code", "access_code", "SOLO")
	w.post("/v1/events/none/allotments", "k", fans).refused(404, "event_not_found")
	w.get("/v1/events/none/allotments").refused(404, "event_not_found")
	w.get(path).is(200).has("data.1", "<nil>")
	w.post(path, "a3", other(`,"opens_at":"2027-03-28T03:30:00+02:00[Europe/Berlin]"`)).is(201).
		has("name", "other", "opens_at", "2027-03-28T01:30:00Z", "moves", "[]", "code_required", "<nil>", "codes", "<nil>")
}

func TestHoldByCode(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	w.post("/v1/events/e/allotments", "a", fans).is(201)
	w.from("e", "k", "alice", "fans", "").refused(403, "code_required").has("allotment", "fans", "field", "code")
	w.from("e", "k", "alice", "", "NONE").refused(403, "invalid_code").has("field", "code")
	w.from("e", "k", "alice", "none", "FAN27").refused(403, "invalid_code").has("field", "code")
	w.from("e", "k", "alice", "none", "").refused(404, "allotment_not_found").has("allotment", "none")
	w.from("e", "k", "alice", "", strings.Repeat("x", 65)).refused(403, "invalid_code")

	h := w.from("e", "h1", "alice", "", "fan27").is(201).has("code", "FAN27", "items.0.allotment", "fans", "items.0.tier", "ga")
	w.from("e", "h1", "alice", "", "fan27").is(201).repeats(h)
	w.get("/v1/holds/"+h.text("hold_id")).is(200).has("code", "FAN27", "items.0.allotment", "fans")
	w.from("e", "h2", "bob", "fans", "FAN27").is(201)
	w.from("e", "h3", "carol", "", "Fan27").refused(409, "code_used_up").has("access_code", "FAN27")
	w.hold("e", "h4", "dora", 5).refused(409, "temporarily_held").has("available", 4, "asked", 5)
	w.hold("e", "h4", "dora", 4).is(201).has("items.0.allotment", "<nil>", "code", "<nil>")

	// Released, the ticket is the allotment's again and the code can be used once more.
	w.post("/v1/holds/"+h.text("hold_id")+"/release", "r", "").is(200).has("code", "FAN27")
	w.get("/v1/events/e/availability").has("tiers.0.available", 0, "tiers.0.allotments.fans", 5)
	w.from("e", "h5", "carol", "", "FAN27").is(201)
	w.get("/v1/events/e/accounts/code:SOLO").is(200).has("data.0.balance", 1)
	w.get("/v1/events/e/accounts/redeemed:FAN27").is(200).has("data.0.balance", 2)
	w.get("/v1/events/e/availability").has("tiers.0.allotments.fans", 4, "tiers.1", "<nil>")

	// Bought and refunded, the same: the ticket is the allotment's.
	h = w.from("e", "h6", "eve", "", "SOLO").is(201)
	paid := w.post("/v1/holds/"+h.text("hold_id")+"/checkout", "pay", paying("sim_ok")).is(201).has("items.0.allotment", "fans")
	w.becomes(paid.ordered(), "captured")
	w.get("/v1/events/e/availability").has("tiers.0.allotments.fans", 3, "tiers.0.sold", 1)
	w.post(paid.ordered()+"/refunds", "back", `{"return_tickets":true,"reason":"ill"}`).is(201)
	w.becomes(paid.ordered(), "refunded").has("items.0.allotment", "fans", "items.0.returned", 1)
	w.get("/v1/events/e/availability").has("tiers.0.allotments.fans", 4, "tiers.0.sold", 0)
}

func TestAddCodes(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	made := w.post("/v1/events/e/allotments", "a", strings.Replace(fans, `"max_uses":2`, `"max_uses":1`, 1)).is(201)
	const path = "/v1/events/e/allotments/fans/codes"
	more := `{"codes":[{"code":"fan28","max_uses":3},{"code":"fan29","max_uses":1}]}`
	w.do("POST", path, more).refused(400, "idempotency_key_required")
	first := w.post(path, "c1", more).is(201).has("event", "e", "allotment", "fans", "codes.0.code", "FAN28", "codes.1.max_uses", 1)
	if tag := first.header.Get("ETag"); tag != "" {
		t.Errorf("codes have the tag %s, which isn't the allotment's", tag)
	}
	w.post(path, "c1", more).is(201).repeats(first)
	w.get("/v1/events/e/allotments").has("data.0.version", made.text("version"))
	w.post(path, "c2", `{"codes":[{"code":"FAN30","max_uses":1},{"code":"FAN28","max_uses":1}]}`).
		refused(409, "code_exists").has("field", "codes[1].code", "access_code", "FAN28")
	for body, field := range map[string]string{
		``: "body", `{}`: "codes", `{"codes":[]}`: "codes", `{"codes":[{"code":"a b","max_uses":1}]}`: "codes[0].code",
		`{"codes":[{"code":"A","max_uses":1000001}]}`: "codes[0].max_uses", `{"code":"A"}`: "code",
	} {
		w.post(path, "c2", body).refused(400, "invalid_request").has("field", field)
	}
	w.post("/v1/events/none/allotments/fans/codes", "k", more).refused(404, "event_not_found")
	for _, none := range []string{"none", "%00", "%ff", strings.Repeat("x", 200)} {
		w.post("/v1/events/e/allotments/"+none+"/codes", "k", strings.ReplaceAll(more, "fan", "new")).refused(404, "allotment_not_found")
		w.post("/v1/events/e/allotments/"+none+"/close", "k", `{"reason":"x"}`).refused(404, "allotment_not_found")
	}
	// Ten at once, three uses.
	var each sync.WaitGroup
	replies := make([]reply, 10)
	for i := range replies {
		each.Go(func() {
			body := fmt.Sprintf(`{"customer":"c%d","code":"fan28","items":[{"tier":"ga","quantity":1}]}`, i)
			r, err := w.send("POST", "/v1/events/e/holds", body, "Idempotency-Key", fmt.Sprint(i))
			if err != nil {
				t.Error(err)
			}
			replies[i] = r
		})
	}
	each.Wait()
	granted := 0
	for _, r := range replies {
		if r.status == 201 {
			granted++
		} else {
			r.refused(409, "code_used_up")
		}
	}
	if granted != 3 {
		t.Errorf("%d were granted, want 3", granted)
	}
}

func TestCloseAllotment(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	w.split("e", "s", 2)
	made := w.post("/v1/events/e/allotments", "a", fans).is(201)
	h := w.from("e", "h", "alice", "", "FAN27").is(201)
	const path = "/v1/events/e/allotments/fans/close"
	w.do("POST", path, `{"reason":"done"}`).refused(400, "idempotency_key_required")
	w.post(path, "c1", `{"reason":"done"}`, "If-Match", `"1"`).refused(412, "version_conflict").has("version", made.text("version"))
	for body, field := range map[string]string{``: "body", `{}`: "reason", `{"reason":""}`: "reason", `{"reason":"x","at":"now"}`: "at"} {
		w.post(path, "c1", body).refused(400, "invalid_request").has("field", field)
	}
	closed := w.post(path, "c1", `{"reason":"done"}`, "If-Match", made.header.Get("ETag")).is(200).
		has("event", "e", "allotment", "fans", "reason", "done")
	if closed.field("closed_at") == nil {
		t.Errorf("the closed allotment is %s", closed.body)
	}
	w.post(path, "c1", `{"reason":"done"}`, "If-Match", made.header.Get("ETag")).is(200).repeats(closed)
	again := w.post(path, "c2", `{"reason":"again"}`).is(200).has("version", closed.text("version"), "closed_at", closed.text("closed_at"))
	if again.header.Get("ETag") != closed.header.Get("ETag") {
		t.Errorf("closed again it has the tag %s, before %s", again.header.Get("ETag"), closed.header.Get("ETag"))
	}
	w.get("/v1/events/e/allotments").has("data.0.closed_at", closed.text("closed_at"))
	w.get("/v1/events/e/availability").has("tiers.0.available", 9, "tiers.0.held", 1, "tiers.0.allotments", "<nil>")

	w.from("e", "k", "bob", "", "FAN27").refused(409, "allotment_closed").has("allotment", "fans")
	w.from("e", "k", "bob", "fans", "").refused(409, "allotment_closed")
	w.post("/v1/events/e/allotments/fans/codes", "k", `{"codes":[{"code":"NEW","max_uses":1}]}`).refused(409, "allotment_closed")
	w.post("/v1/holds/"+h.text("hold_id")+"/release", "r", "").is(200)
	w.hold("e", "all", "carol", 10).is(201)
	w.post("/v1/events/none/allotments/fans/close", "k", `{"reason":"x"}`).refused(404, "event_not_found")
}

// An allotment may be large: then somebody else says so, tier by tier.
func TestAllotLarge(t *testing.T) {
	w, as := serveOperators(t)
	w.event("e", 10, `"approve_moves_from":6`)
	made := w.post("/v1/events/e/allotments", "a", fans, as("o1")...).is(202).has("moves.0.status", "awaiting_approval")
	w.post("/v1/events/e/allotments", "a", fans, as("o1")...).is(202).repeats(made)
	w.from("e", "h", "alice", "", "SOLO").refused(409, "sold_out").has("allotment", "fans", "available", 0)
	w.post("/v1/quota-moves/"+made.text("moves.0.move_id")+"/approve", "y", "", as("o2")...).is(200)
	w.from("e", "h", "alice", "", "SOLO").is(201)
	w.get("/v1/events/e/availability").has("tiers.0.available", 4, "tiers.0.allotments.fans", 5, "tiers.0.held", 1)
}

// Who has a code may buy before everybody else, and nobody before that.
func TestPresale(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10, `"sale_opens_at":"2120-06-01T00:00:00Z"`)
	opening := func(name, at string) string {
		return fmt.Sprintf(`{"allotment":%q,"opens_at":%q,"codes":[{"code":%q,"max_uses":5}],"tiers":[{"tier":"ga","quantity":3}],"reason":"x"}`, name, at, name)
	}
	w.post("/v1/events/e/allotments", "a1", opening("EARLY", "2020-06-01T00:00:00Z")).is(201)
	w.post("/v1/events/e/allotments", "a2", opening("LATER", "2120-05-01T02:00:00+02:00")).is(201)
	w.hold("e", "k", "alice", 1).refused(409, "not_on_sale").has("sale_opens_at", "2120-06-01T00:00:00Z", "allotment", "<nil>")
	w.from("e", "k", "alice", "", "later").refused(409, "not_on_sale").has("sale_opens_at", "2120-05-01T00:00:00Z", "allotment", "LATER")
	w.from("e", "k", "alice", "", "early").is(201)
}

// Codes and allotments are the event's, whatever the lane.
func TestCodesOfASplitEvent(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 40)
	w.split("e", "s", 4)
	w.post("/v1/events/e/allotments", "a", strings.Replace(fans, `"max_uses":2`, `"max_uses":5`, 1)).is(201)
	lanes := make(map[string]bool)
	var last reply
	for i := range 5 {
		last = w.from("e", fmt.Sprint(i), fmt.Sprint("customer-", i), "", "fan27").is(201).has("items.0.allotment", "fans")
		lanes[last.header.Get("Tierledger-Lane")] = true
	}
	if len(lanes) < 2 {
		t.Errorf("all are in the lanes %v", lanes)
	}
	w.from("e", "k", "nobody", "", "fan27").refused(409, "code_used_up").has("access_code", "FAN27")
	w.post("/v1/holds/"+last.text("hold_id")+"/release", "r", "").is(200)
	w.from("e", "k", "nobody", "", "fan27").is(201)
	w.get("/v1/events/e/availability").has("tiers.0.available", 34, "tiers.0.allotments.fans", 1, "tiers.0.held", 5, "tiers.0.capacity", 40)
}
