package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/httpapi"
)

// late makes a payment that comes after its order was cancelled, and gives the path of
// the case that it opens.
func (w *world) late(event, key string, headers ...string) string {
	w.t.Helper()
	open := w.checkout(event, key, "alice", 2, "sim_transfer").is(202).has("next_action.type", "transfer")
	w.post(open.ordered()+"/cancel", "cancel-"+key, "")
	w.becomes(open.ordered(), "cancelled")
	w.says(open, "complete")
	return w.openCase(open, "late_payment")
}

// serveFinance starts a world whose finance has two people, "f1" and "f2"; calls
// without a key are an admin's.
func serveFinance(t *testing.T) (w *world, as func(string) []string) {
	t.Helper()
	keys, secrets := keysFor(t, "f1 finance", "f2 finance")
	w = serve(t, func(c *httpapi.Config) { c.Keys = keys })
	return w, func(who string) []string { return []string{"Authorization", "Bearer " + secrets[who]} }
}

func TestCase(t *testing.T) {
	w, as := serveFinance(t)
	w.event("e", 10)
	path := w.late("e", "k")
	c := w.get(path, as("f1")...).is(200).has("event", "e", "reason", "late_payment", "status", "open",
		"amount.amount", 10000, "amount.currency", "USD", "suspended", 10000, "owner", "finance")
	if c.text("hold_id") == "<nil>" || c.text("operation_id") == "<nil>" || c.text("last_fact") == "" {
		t.Errorf("the case %s tells too little", c.body)
	}
	w.get(path, "If-None-Match", c.header.Get("ETag")).is(304)
	w.get(path, "If-None-Match", `"1"`).is(200)

	refund := `{"resolution":"refund","reason":"the buyer has other tickets"}`
	w.do("POST", path+"/resolve", refund).refused(400, "idempotency_key_required")
	for body, field := range map[string]string{
		``: "body", `{}`: "resolution", `{"resolution":"forget","reason":"x"}`: "resolution",
		`{"resolution":"link","reason":"x"}`: "evidence", `{"resolution":"refund"}`: "reason", `{"resolution":"refund","reason":"x","by":"me"}`: "by",
		`{"resolution":"refund","reason":"` + strings.Repeat("x", 2001) + `"}`: "reason",
	} {
		w.post(path+"/resolve", "p1", body).refused(400, "invalid_request").has("field", field)
	}
	w.post(path+"/approve", "a0", "", as("f2")...).refused(409, "case_state")
	w.post(path+"/reject", "r0", `{"reason":"x"}`, as("f2")...).refused(409, "case_state")
	w.post(path+"/resolve", "p1", refund, "If-Match", `"1"`).refused(412, "version_conflict").has("version", c.text("version"))

	tag := append(as("f1"), "If-Match", c.header.Get("ETag"))
	proposed := w.post(path+"/resolve", "p1", refund, tag...).is(202).has("status", "awaiting_approval", "resolution", "refund",
		"resolved_reason", "the buyer has other tickets", "proposed_by", "f1", "decided_by", "<nil>")
	w.post(path+"/resolve", "p1", refund, tag...).is(202).repeats(proposed)
	w.post(path+"/resolve", "p1", strings.Replace(refund, "other", "no", 1), tag...).refused(422, "idempotency_mismatch")

	w.post(path+"/approve", "a1", "", as("f1")...).refused(403, "same_person")
	w.post(path+"/reject", "r1", `{"reason":"x"}`, as("f1")...).refused(403, "same_person")
	w.post(path+"/approve", "a1", "", append(as("f2"), "If-Match", c.header.Get("ETag"))...).refused(412, "version_conflict")
	w.post(path+"/approve", "a1", `{"reason":"x"}`, as("f2")...).refused(400, "invalid_request").has("field", "reason")
	w.post(path+"/reject", "r1", ``, as("f2")...).refused(400, "invalid_request").has("field", "body")
	w.post(path+"/reject", "r1", `{"reason":""}`, as("f2")...).refused(400, "invalid_request").has("field", "reason")
	w.post(path+"/reject", "r1", `{"reason":"x"}`, append(as("f2"), "If-Match", c.header.Get("ETag"))...).refused(412, "version_conflict")

	open := w.post(path+"/reject", "r1", `{"reason":"ask first"}`, as("f2")...).is(200).has("status", "open", "resolution", "<nil>")
	w.post(path+"/reject", "r1", `{"reason":"ask first"}`, as("f2")...).is(200).repeats(open)
	w.post(path+"/resolve", "p2", refund, as("f1")...).is(202)
	done := w.post(path+"/approve", "a2", "", as("f2")...).is(200).has("proposed_by", "f1", "decided_by", "f2")
	w.post(path+"/approve", "a2", "{}", as("f2")...).is(200).repeats(done)
	w.becomes(path, "resolved").has("resolution", "refund", "suspended", 0)
	w.post(path+"/resolve", "p3", refund, as("f1")...).refused(409, "case_state")
	w.get("/v1/events/e/availability").has("tiers.0.available", 10)
}

// Honoured, while there are tickets.
func TestCaseHonoured(t *testing.T) {
	w, as := serveFinance(t)
	w.event("e", 10)
	path := w.late("e", "k")
	honour := `{"resolution":"honour","reason":"the transfer was only slow","evidence":"bank statement 17"}`
	w.post(path+"/resolve", "p1", honour, as("f1")...).is(202).has("evidence", "bank statement 17")
	w.post(path+"/approve", "a", "", as("f2")...).is(200).has("status", "resolved", "suspended", 0)
	order := "/v1/orders/" + w.get(path).text("order_id")
	w.get(order).is(200).has("status", "captured", "reconciling", false)
	w.get("/v1/events/e/availability").has("tiers.0.available", 8, "tiers.0.sold", 2)
}

// What can't be done any more is told to whoever approves it, and the case stays.
func TestCaseNotPossible(t *testing.T) {
	w, as := serveFinance(t)
	w.event("e", 2)
	path := w.late("e", "k")
	w.hold("e", "other", "bob", 2).is(201)
	for i, test := range []struct{ resolution, code string }{
		{"honour", "temporarily_held"}, {"write_off", "resolution_not_possible"},
	} {
		key := fmt.Sprint(i)
		w.post(path+"/resolve", "p"+key, fmt.Sprintf(`{"resolution":%q,"reason":"x"}`, test.resolution), as("f1")...).is(202)
		w.post(path+"/approve", "a"+key, "", as("f2")...).refused(409, test.code)
		w.get(path).is(200).has("status", "awaiting_approval", "resolution", test.resolution)
		w.post(path+"/reject", "r"+key, `{"reason":"it can't be done"}`, as("f2")...).is(200)
	}
}

func TestListCases(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 20)
	w.event("f", 20)
	var paths []string
	for _, key := range []string{"1", "2", "3"} {
		paths = append(paths, w.late("e", key))
	}
	w.late("f", "1")
	const list = "/v1/recon/cases"
	if got := w.walk(list+"?limit=3", "case_id"); len(got) != 4 {
		t.Errorf("the pages have %d cases, want 4", len(got))
	}
	got := w.walk(list+"?event=e&status=open&reason=late_payment&age=0s&limit=2", "case_id")
	slices.Sort(paths)
	if len(got) != 3 || !slices.IsSorted(got) || list+"/"+got[0] != paths[0] {
		t.Errorf("the pages of e have %v, want %v", got, paths)
	}
	for query, field := range map[string]string{
		"status=gone": "status", "reason=none": "reason", "age=-1s": "age", "age=1": "age", "age=x": "age", "cursor=x": "cursor", "owner=x": "owner",
	} {
		w.get(list+"?"+query).refused(400, "invalid_request").has("field", field)
	}
	w.get(list+"?age=24h").is(200).has("data", "[]")
	w.get(list+"?status=resolved").is(200).has("data", "[]")
	w.get(list+"?event=none").refused(404, "event_not_found")
	for _, id := range []string{"x", "00000000-0000-4000-8000-000000000000", "000003e7-a0a9-8715-b4a1-478ce139f1e9"} {
		w.get(list+"/"+id).refused(404, "case_not_found").has("case_id", id)
		w.post(list+"/"+id+"/resolve", "p1", `{"resolution":"refund","reason":"x"}`).refused(404, "case_not_found")
		w.post(list+"/"+id+"/approve", "k", ``).refused(404, "case_not_found")
		w.post(list+"/"+id+"/reject", "k", `{"reason":"x"}`).refused(404, "case_not_found")
	}
}

// The provider's report agrees with the books, and only its first import changes them.
func TestReport(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	paid := w.checkout("e", "1", "alice", 2, "sim_ok").is(201)
	w.checkout("e", "2", "bob", 1, "sim_decline").refused(402, "payment_declined")
	w.becomes(paid.ordered(), "captured")
	report := string(w.provider("GET", "/report", "").is(200).body)

	const path = "/v1/recon/reports/sim"
	csv := []string{"Content-Type", "text/csv; charset=utf-8"}
	first := w.do("POST", path, report, csv...).is(200).has("provider", "sim", "lines", 1, "matched", 1, "booked", 1, "unexplained", 0,
		"differences", "[]", "by_result.matched", 1)
	if first.text("balance.0.report.amount") != first.text("balance.0.ledger.amount") {
		t.Errorf("the balances differ: %s", first.body)
	}
	again := w.do("POST", path, report, append(csv, "Idempotency-Key", "any")...).is(200).has("booked", 0, "matched", 1)
	if again.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the second import got %v", again.header)
	}
	short := strings.Replace(report, "100.00", "99.99", 1)
	if short == report {
		t.Fatalf("the report %s has no line to change", report)
	}
	w.do("POST", path, short, csv...).is(422)
	w.do("POST", path, "id,type\n1,2\n", csv...).refused(422, "report_unreadable").has("line", 1)
	w.do("POST", path, "", csv...).refused(422, "report_unreadable")
	w.do("POST", path, report, "Content-Type", "application/json").refused(400, "invalid_request").has("field", "Content-Type")
	w.do("POST", path+"?x=1", report, csv...).refused(400, "invalid_request").has("field", "x")
	w.do("POST", "/v1/recon/reports/acme", report, csv...).refused(404, "provider_not_found")
}
