package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/httpapi"
)

// serveOperators starts a world that two operators, "o1" and "o2", and a seller, "b", call;
// calls without a key are an admin's.
func serveOperators(t *testing.T) (w *world, as func(string) []string) {
	t.Helper()
	keys, secrets := keysFor(t, "o1 operator", "o2 operator", "b booking")
	w = serve(t, func(c *httpapi.Config) { c.Keys = keys })
	return w, func(who string) []string { return []string{"Authorization", "Bearer " + secrets[who]} }
}

// split puts a number of lanes of an event in use.
func (w *world) split(event, key string, lanes int) reply {
	w.t.Helper()
	return w.post("/v1/events/"+event+"/lanes", key, fmt.Sprintf(`{"lanes":%d}`, lanes)).is(200).has("lanes", lanes)
}

// bucket finds a bucket of ga, and gives how many are free and the version.
func (w *world) bucket(event string, lane int, allotment string) (free, version string) {
	w.t.Helper()
	view := w.get("/v1/events/" + event + "/buckets").is(200)
	for _, b := range view.field("buckets").([]any) {
		name, _ := member(b, "allotment").(string)
		if text(member(b, "tier")) == "ga" && text(member(b, "lane")) == fmt.Sprint(lane) && name == allotment {
			return text(member(b, "free")), text(member(b, "version"))
		}
	}
	return "none", ""
}

// holds fails the test unless buckets of ga have so many free, from the first lane on.
func (w *world) holds(event, allotment string, free ...string) {
	w.t.Helper()
	for i, want := range free {
		if got, _ := w.bucket(event, i+1, allotment); got != want {
			w.t.Errorf("lane %d has %s of %s %q free, want %s", i+1, got, event, allotment, want)
		}
	}
}

func TestSplit(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	w.house("seats")
	const path = "/v1/events/e/lanes"
	never := w.get(path).is(200).has("event", "e", "lane", 1, "lanes", 1, "generation", 0, "version", 0)
	if tag := never.header.Get("ETag"); tag != `"0"` {
		t.Errorf("the tag is %s", tag)
	}
	w.get(path, "If-None-Match", `"0"`).is(304)

	w.do("POST", path, `{"lanes":4}`).refused(400, "idempotency_key_required")
	for body, field := range map[string]string{
		``: "body", `{}`: "lanes", `{"lanes":0}`: "lanes", `{"lanes":-1}`: "lanes", `{"lanes":65}`: "lanes", `{"lanes":10000}`: "lanes",
		`{"lanes":"4"}`: "lanes", `{"lanes":4,"tier":"ga"}`: "tier", `{"lanes":4,"reason":"` + strings.Repeat("x", 501) + `"}`: "reason",
	} {
		w.post(path, "s1", body).refused(400, "invalid_request").has("field", field)
	}
	w.post("/v1/events/none/lanes", "k", `{"lanes":4}`).refused(404, "event_not_found")
	w.get("/v1/events/none/lanes").refused(404, "event_not_found")
	w.post("/v1/events/seats/lanes", "k", `{"lanes":2}`).refused(409, "not_splittable")

	dry := w.do("POST", path+"?dry_run=true", `{"lanes":4}`, "If-Match", `"0"`).is(200).has("lanes", 4, "generation", 1)
	if dry.header.Get("ETag") != "" {
		t.Errorf("a dry run has the tag %s", dry.header.Get("ETag"))
	}
	w.do("POST", path+"?dry_run=true", `{"lanes":4}`, "If-Match", `"9"`).refused(412, "version_conflict").has("version", 0)
	if got := w.get(path); string(got.body) != string(never.body) {
		t.Errorf("after dry runs the lanes are %s", got.body)
	}

	first := w.post(path, "s1", `{"lanes":4,"reason":"doors open"}`, "If-Match", `"0"`).is(200).
		has("event", "e", "lanes", 4, "generation", 1, "counts", "[4]", "reason", "doors open")
	w.post(path, "s1", `{"lanes":4,"reason":"doors open"}`, "If-Match", `"0"`).is(200).repeats(first)
	w.post(path, "s1", `{"lanes":3,"reason":"doors open"}`, "If-Match", `"0"`).refused(422, "idempotency_mismatch")
	w.post(path, "s2", `{"lanes":3}`, "If-Match", `"0"`).refused(412, "version_conflict").has("version", first.text("version"))
	same := w.split("e", "s3", 4).has("version", first.text("version"))
	w.get(path, "If-None-Match", same.header.Get("ETag")).is(304)
	w.get(path).is(200).has("lanes", 4, "version", first.text("version"))

	w.holds("e", "", "25", "25", "25", "25")
	w.get("/v1/events/e/buckets").has("lanes.lanes", 4, "tiers.0.capacity", 100, "tiers.0.available", 100, "tiers.0.in_transit", 0,
		"by_lane.0.in_use", true, "by_lane.0.in_transit", 75, "by_lane.3.in_transit", -25, "allotments", "[]")
	w.get("/v1/events/e/availability").has("tiers.0.capacity", 100, "tiers.0.available", 100, "tiers.0.in_transit", 0)
	w.get("/v1/events/none/buckets").refused(404, "event_not_found")
}

// A hold says in which lane it is, and from then on its id alone leads there.
func TestHoldsOfASplitEvent(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100, `"limit_per_customer":60`)
	if before := w.hold("e", "k0", "zoe", 1).is(201); before.header.Get("Tierledger-Lane") != "" {
		t.Errorf("a hold of an event in one piece is in lane %s", before.header.Get("Tierledger-Lane"))
	}
	w.split("e", "s1", 4)
	var paths []string
	lanes := make(map[string]bool)
	for i := range 12 {
		customer := fmt.Sprint("c", i)
		h := w.hold("e", customer, customer, 1).is(201)
		lane := h.header.Get("Tierledger-Lane")
		if again := w.hold("e", customer, customer, 1).is(201); again.header.Get("Tierledger-Lane") != lane {
			t.Errorf("the repeat is in lane %q, the hold in %q", again.header.Get("Tierledger-Lane"), lane)
		}
		w.get("/v1/events/e/accounts/held:"+customer+"?unit=ga&lane="+lane).is(200).has("data.0.balance", 1)
		paths = append(paths, "/v1/holds/"+h.text("hold_id"))
		lanes[lane] = true
	}
	if len(lanes) != 4 {
		t.Errorf("the holds of 12 customers are in the lanes %v", lanes)
	}
	if got := w.hold("e", "again", "zoe", 1).is(201).header.Get("Tierledger-Lane"); got != "1" {
		t.Errorf("who had tickets before the split is in lane %s", got)
	}
	// More than any lane has, then more than all.
	w.hold("e", "party", "yves", 60).is(201).has("items.0.quantity", 60)
	w.hold("e", "more", "xenia", 27).refused(409, "temporarily_held").has("available", 26, "asked", 27)
	w.hold("e", "most", "xenia", 60).refused(409, "temporarily_held").has("available", 26, "asked", 60)
	w.hold("e", "last", "xenia", 26).is(201)
	w.get("/v1/events/e/availability").has("tiers.0.available", 0, "tiers.0.held", 100)
	w.hold("e", "none", "wim", 60).refused(409, "temporarily_held").has("available", 0)
	if got := w.walk("/v1/events/e/holds?limit=5", "hold_id"); len(got) != 16 {
		t.Errorf("the list has %d holds, want 16", len(got))
	}

	w.split("e", "s2", 1)
	for i, path := range paths {
		w.get(path).is(200).has("status", "held")
		w.post(path+"/release", fmt.Sprint("r", i), "").is(200).has("status", "released")
	}
	if h := w.hold("e", "merged", "vera", 12).is(201); h.header.Get("Tierledger-Lane") != "1" {
		t.Errorf("after the merge a hold is in lane %s", h.header.Get("Tierledger-Lane"))
	}
	w.get("/v1/events/e/availability").has("tiers.0.available", 0, "tiers.0.held", 100)
}

// Each lane has a journal of its own to read.
func TestReadLanes(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	w.split("e", "s1", 2)
	const base = "/v1/events/e"
	w.get(base+"/entries?lane=2").is(200).has("data.0.kind", "lane.opened")
	w.get(base+"/entries?lane=1").is(200).has("data.0.kind", "event.opened")
	w.get(base+"/entries/1?lane=2").is(200).has("kind", "lane.opened")
	w.get(base+"/entries/1").is(200).has("kind", "event.opened")
	w.get(base+"/accounts/available?lane=2").is(200).has("data.0.balance", 50)
	w.get(base+"/accounts/transit?lane=2&unit=ga").is(200).has("data.0.balance", -50)
	w.get(base+"/accounts/available/postings?lane=2").is(200).has("data.0.amount", 50, "data.0.kind", "quota.received", "data.1", "<nil>")
	w.get(base+"/trial-balance?lane=2").is(200).has("totals.0.unit", "ga", "totals.0.debit", 50, "totals.0.credit", 50)
	w.get(base+"/trial-balance?lane=2&at=1").is(200).has("accounts", "[]")
	all := w.get(base + "/accounts?lane=2").is(200).field("data").([]any)
	if got := w.pages(base + "/accounts?lane=2&limit=1"); fmt.Sprint(got) != fmt.Sprint(all) || len(all) != 2 {
		t.Errorf("in pages of one the accounts of the lane are %v, want %v", got, all)
	}
	for _, read := range []string{"/entries", "/entries/1", "/accounts", "/accounts/available", "/accounts/available/postings", "/trial-balance"} {
		for _, bad := range []string{"0", "-1", "x", "1.5", "", "99999999999999999999"} {
			w.get(base+read+"?lane="+bad).refused(400, "invalid_request").has("field", "lane")
		}
		w.get(base+read+"?lane=3").refused(404, "lane_not_found").has("lane", 3)
		w.get("/v1/events/none"+read+"?lane=2").refused(404, "event_not_found")
	}
	w.post(base+"/entries?lane=2", "k", receive).refused(400, "invalid_request").has("field", "lane")
	w.post(base+"/entries", "k", receive).is(201)
	w.get(base + "/accounts/provider:sim?lane=1").is(200)
}

func TestQuotaMetrics(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	w.split("e", "s", 2)
	w.post("/v1/events/e/quota-moves", "m", move(`{"lane":1}`, `{"lane":2}`, `"quantity":7`)).is(201)
	w.post("/v1/events/e/quota-moves", "m", move(`{"lane":1}`, `{"lane":2}`, `"quantity":7`)).is(201)
	for i := range 4 { // in either lane
		w.hold("e", fmt.Sprint("h", i), fmt.Sprint("c", i), 25).is(201)
	}
	got := string(w.get("/metrics").is(200).body)
	for _, line := range []string{
		`tierledger_quota_moves_total{cause="split"} 1`, `tierledger_quota_moved_tickets_total{cause="split"} 50`,
		`tierledger_quota_moves_total{cause="operator"} 1`, `tierledger_quota_moved_tickets_total{cause="operator"} 7`,
		`tierledger_quota_moves_total{cause="rebalance"} 0`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("the metrics have no line %s", line)
		}
	}
	pulled := w.pages("/v1/events/e/quota-moves?cause=pull")
	if line := fmt.Sprintf(`tierledger_quota_moves_total{cause="pull"} %d`, len(pulled)); !strings.Contains(got, line+"\n") || len(pulled) == 0 {
		t.Errorf("the metrics have no line %s", line)
	}
}

// The history has what everybody moved, the newest first, on every size of page.
func TestQuotaHistory(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100, `"approve_moves_from":9`)
	const path = "/v1/events/e/quota-moves"
	w.get(path).is(200).has("data", "[]")
	w.split("e", "s", 2)
	var want []string
	for i := range 5 {
		m := w.post(path, fmt.Sprint("m", i), move(`{"lane":1}`, `{"lane":2}`, fmt.Sprintf(`"quantity":%d`, i+5)))
		want = append(want, m.text("move_id"))
	}
	slices.Reverse(want)
	all := w.walk(path, "move_id")
	if len(all) != 6 || !slices.Equal(all[:5], want) {
		t.Fatalf("the history is %v, want %v and the split's", all, want)
	}
	for limit := 1; limit <= len(all); limit++ {
		if got := w.walk(fmt.Sprintf("%s?limit=%d", path, limit), "move_id"); !slices.Equal(got, all) {
			t.Errorf("in pages of %d the history is %v, want %v", limit, got, all)
		}
	}
	for query, want := range map[string][]string{
		"cause=operator&limit=2": all[:5], "cause=split": all[5:], "cause=pull": nil, "status=awaiting_approval": all[:1],
		"status=moved&cause=operator": all[1:5], "status=rejected": nil, "tier=ga": all, "tier=vip": nil,
	} {
		if got := w.walk(path+"?"+query, "move_id"); !slices.Equal(got, want) {
			t.Errorf("%s gives %v, want %v", query, got, want)
		}
	}
	w.get(path+"?cause=split").has("data.0.from.lane", 1, "data.0.to.lane", 2, "data.0.quantity", 50, "data.0.event", "e")
	for query, field := range map[string]string{
		"status=gone": "status", "cause=none": "cause", "lane=1": "lane", "cursor=x": "cursor", "limit=0": "limit",
	} {
		w.get(path+"?"+query).refused(400, "invalid_request").has("field", field)
	}
	for _, after := range []string{"x", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z x", all[0], "0001-01-01T00:00:00Z " + all[0]} {
		forged := encode(`{"path":"` + path + `","filters":"","limit":1,"after":"` + after + `"}`)
		w.get(path+"?cursor="+escape(forged)).refused(400, "invalid_request").has("field", "cursor")
	}
	w.get("/v1/events/none/quota-moves").refused(404, "event_not_found")
}

// The capacity of a split event goes down to what all lanes have committed, and no further
// (CASES T58); the sale of a lane goes on meanwhile.
func TestChangeCapacityOfASplitEvent(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	w.split("e", "s", 4)
	for i := range 4 {
		w.hold("e", fmt.Sprint(i), fmt.Sprint("c", i), 10).is(201)
	}
	const path = "/v1/events/e/tiers/ga"
	w.do("PATCH", path+"?dry_run=true", `{"quantity":39}`).refused(409, "below_committed").has("minimum", 40, "asked", 39, "tier", "ga")
	w.do("PATCH", path, `{"quantity":39}`, "Idempotency-Key", "k").refused(409, "below_committed").has("minimum", 40)
	w.get("/v1/events/e/availability").has("tiers.0.capacity", 100, "tiers.0.available", 60)
	w.do("PATCH", path+"?dry_run=true", `{"quantity":45}`).is(200).has("quantity", 45)
	less := w.do("PATCH", path, `{"quantity":45}`, "Idempotency-Key", "k").is(200).has("quantity", 45)
	w.do("PATCH", path, `{"quantity":45}`, "Idempotency-Key", "k").is(200).repeats(less)
	w.get("/v1/events/e/availability").has("tiers.0.capacity", 45, "tiers.0.available", 5, "tiers.0.held", 40, "tiers.0.in_transit", 0)
	w.hold("e", "rest", "zoe", 5).is(201)
	w.do("PATCH", path, `{"quantity":50}`, "Idempotency-Key", "k2").is(200).has("quantity", 50)
	w.hold("e", "more", "yves", 5).is(201)
}
