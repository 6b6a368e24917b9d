package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
)

const (
	receive = `{"description":"a late payment","postings":[
		{"account":"provider:sim","unit":"USD","amount":5300},
		{"account":"organiser:org","unit":"USD","amount":-5300}]}`
	settle = `{"description":"honoured","postings":[
		{"account":"organiser:org","unit":"USD","amount":5300},
		{"account":"organiser:e","unit":"USD","amount":-5300}],
		"conditions":[{"account":"organiser:org","unit":"USD","version":%d,"balance":{"eq":0}}]}`
)

func TestPostEntry(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	const path = "/v1/events/e/entries"
	w.do("POST", path, receive).refused(400, "idempotency_key_required")

	dry := w.do("POST", path+"?dry_run=true", receive).is(201).has("seq", 2, "postings.1.balance", -5300)
	if dry.header.Get("ETag") != "" {
		t.Errorf("a dry run has the tag %s", dry.header.Get("ETag"))
	}
	w.get(path+"/2").refused(404, "entry_not_found").has("seq", 2)

	first := w.post(path, "k", receive).is(201).has("seq", 2, "kind", "entry.posted", "postings.0.version", 2)
	again := w.post(path, "k", receive).is(201)
	if string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("ETag") != `"2"` {
		t.Errorf("the repeat got %v %s", again.header, again.body)
	}
	w.post(path, "k", fmt.Sprintf(settle, 2)).refused(422, "idempotency_mismatch")
	w.post(path, "s0", fmt.Sprintf(settle, 1)).refused(409, "condition_failed").
		has("account", "organiser:org", "unit", "USD", "version", 2, "balance", -5300)
	w.post(path, "s1", fmt.Sprintf(settle, 2)).is(201).has("seq", 3, "postings.0.balance", 0)
	w.post(path, "s2", fmt.Sprintf(settle, 3)).refused(409, "condition_failed").has("balance", 0)

	entry := w.get(path+"/2").is(200).has("id", first.text("id"), "principal", "loopback", "data.description", "a late payment")
	w.get(path+"/2", "If-None-Match", entry.header.Get("ETag")).is(304)
	w.get("/v1/events/none/entries/1").refused(404, "event_not_found")
	w.get(path+"/x").refused(400, "invalid_request").has("field", "seq")
	w.get(path+"/0").refused(404, "entry_not_found")
}

func TestPostEntryRefusals(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	posting := func(legs ...string) string {
		return `{"description":"d","postings":[` + strings.Join(legs, ",") + `]}`
	}
	leg := func(account, unit, amount string) string {
		return fmt.Sprintf(`{"account":%q,"unit":%q,"amount":%s}`, account, unit, amount)
	}
	bank, tax := leg("bank:b", "USD", "100"), leg("tax:t", "USD", "-100")
	condition := func(text string) string {
		return strings.TrimSuffix(posting(bank, tax), "}") + `,"conditions":[` + text + `]}`
	}
	tests := []struct {
		body, code string
		status     int
		members    []any
	}{
		{`{"postings":[]}`, "invalid_request", 400, []any{"field", "description"}},
		{posting(bank), "invalid_request", 400, []any{"field", "postings"}},
		{posting(bank, leg("nowhere", "USD", "-100")), "invalid_request", 400, []any{"field", "postings[1].account"}},
		{posting(bank, leg("tax:t", "ga", "-100")), "invalid_request", 400, []any{"field", "postings[1].unit"}},
		{posting(bank, leg("tax:t", "USD", "0")), "invalid_request", 400, []any{"field", "postings[1].amount"}},
		{posting(bank, leg("tax:t", "USD", "1.5")), "invalid_request", 400, []any{"field", "postings[1].amount"}},
		{posting(bank, bank), "invalid_request", 400, []any{"field", "postings[1]"}},
		{posting(leg("available", "vip", "-1"), leg("blocked", "vip", "1")), "invalid_request", 400, []any{"field", "postings[0].unit"}},
		{condition(`{"account":"bank:b","unit":"USD","balance":{}}`), "invalid_request", 400, []any{"field", "conditions[0].balance"}},
		{condition(`{"account":"bank:b","unit":"USD","balance":{"ge":1}}`), "invalid_request", 400, []any{"field", "conditions[0].balance.ge"}},
		{condition(`{"account":"bank","unit":"USD","version":1}`), "invalid_request", 400, []any{"field", "conditions[0]"}},
		{posting(leg("held:alice", "ga", "-1"), leg("available", "ga", "1")), "account_reserved", 422,
			[]any{"field", "postings[0].account", "account", "held:alice"}},
		{posting(bank, leg("tax:t", "USD", "-99")), "unbalanced_entry", 422, []any{"unit", "USD", "difference", 1}},
		{posting(leg("available", "ga", "-11"), leg("blocked", "ga", "11")), "insufficient_free", 409,
			[]any{"account", "available", "unit", "ga", "free", 10, "asked", 11}},
		{condition(`{"account":"bank:b","unit":"USD","balance":{"lte":99}}`), "condition_failed", 409,
			[]any{"account", "bank:b", "version", 0, "balance", 0}},
	}
	for _, test := range tests {
		w.post("/v1/events/e/entries", "k", test.body).refused(test.status, test.code).has(test.members...)
	}
	w.post("/v1/events/none/entries", "k", posting(bank, tax)).refused(404, "event_not_found")
	w.post("/v1/events/e/entries", "k", posting(bank, tax), "If-Match", `"1"`).refused(400, "invalid_request")
	w.post("/v1/events/e/entries", "k", posting(leg("available", "ga", "-3"), leg("blocked", "ga", "3"))).is(201)
	w.get("/v1/events/e/availability").has("tiers.0.available", 7, "tiers.0.blocked", 3)
}

func TestReadLedger(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "e", `{"event":"e","name":"E","currency":"USD","tiers":[`+tierBody+`,`+
		strings.Replace(tierBody, `"ga"`, `"vip"`, 1)+`]}`).is(201)
	both := `{"customer":%q,"items":[{"tier":"ga","quantity":1},{"tier":"vip","quantity":2}]}`
	for _, customer := range []string{"alice", "bob", "carol"} {
		w.post("/v1/events/e/holds", customer, fmt.Sprintf(both, customer)).is(201)
	}
	const base = "/v1/events/e"

	all := w.get(base + "/accounts").is(200).field("data").([]any)
	if got := w.pages(base + "/accounts?limit=1"); fmt.Sprint(got) != fmt.Sprint(all) || len(all) != 12 {
		t.Errorf("in pages of one the accounts are %v, want %v", got, all)
	}
	w.get(base+"/accounts/held").is(200).has("data.0.unit", "ga", "data.0.balance", 3, "data.1.balance", 6, "data.2", "<nil>")
	w.get(base+"/accounts/held:alice?unit=vip").is(200).has("data.0.balance", 2, "data.0.control", "held", "data.1", "<nil>")
	w.get(base+"/accounts/available?unit=ga&at=2").is(200).has("data.0.balance", 9, "data.0.version", 2)
	w.get(base+"/accounts?at=1").is(200).has("data.0.account", "available", "data.0.unit", "ga", "data.0.balance", 10)
	now := escape(w.get(base + "/availability").text("as_of"))
	w.get(base+"/accounts/available?unit=ga&at="+now).is(200).has("data.0.balance", 7)
	for _, bad := range []string{"x", "0", "-1", "2027-01-01"} {
		w.get(base+"/accounts?at="+bad).refused(400, "invalid_request").has("field", "at")
	}
	for _, none := range []string{"nowhere", "bank:b", "%00", "%ff", "held?unit=none"} {
		w.get(base+"/accounts/"+none).refused(404, "account_not_found")
	}
	w.get(base+"/accounts/nowhere/postings").refused(404, "account_not_found")
	w.get("/v1/events/none/accounts").refused(404, "event_not_found")

	// Every size of page gives every line once, also when a page ends inside an entry.
	whole := w.get(base + "/accounts/held/postings").is(200)
	lines := whole.field("data").([]any)
	if len(lines) != 6 {
		t.Fatalf("the statement is %s", whole.body)
	}
	for limit := 1; limit <= len(lines); limit++ {
		if got := w.pages(fmt.Sprintf("%s/accounts/held/postings?limit=%d", base, limit)); fmt.Sprint(got) != fmt.Sprint(lines) {
			t.Errorf("in pages of %d the statement is %v, want %v", limit, got, lines)
		}
	}
	if got := w.pages(base + "/accounts/held/postings?unit=vip&limit=1"); len(got) != 3 {
		t.Errorf("the statement in vip is %v", got)
	}
	if got := strings.Join(w.walk(base+"/entries?limit=3", "seq"), " "); got != "1 2 3 4" {
		t.Errorf("the journal has the entries %s", got)
	}
	w.get(base+"/entries?limit=1").has("data.0.kind", "event.opened", "data.0.data.event", "e")

	trial := w.get(base+"/trial-balance").is(200).has("seq", 4, "totals.0.unit", "ga", "totals.0.debit", 10, "totals.0.credit", 10)
	w.get(base+"/trial-balance", "If-None-Match", trial.header.Get("ETag")).is(304)
	w.get(base+"/trial-balance?at=1").is(200).has("seq", 1, "accounts.0.account", "available", "accounts.0.debit", 10)
	w.get(base + "/trial-balance?at=2000-01-01T00:00:00Z").is(200)
	w.get("/v1/events/none/trial-balance").refused(404, "event_not_found")
}

// A point before the journal has nothing, one that's still to come is now.
func TestPointsOutsideTheJournal(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	const trial = "/v1/events/e/trial-balance?at="
	for _, at := range []string{"0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T01:00:00+01:00"} {
		w.get(trial+escape(at)).is(200).has("seq", 0, "accounts", "[]")
		w.get("/v1/events/e/accounts/available?at="+escape(at)).is(200).has("data.0.balance", 0)
	}
	var before reply
	for _, at := range []string{"100", "9223372036854775807", "9999-12-31T23:59:59-23:59"} {
		before = w.get(trial+escape(at)).is(200).has("seq", 1, "accounts.0.debit", 10)
		if tag := before.header.Get("ETag"); tag != `"1"` {
			t.Errorf("at %s the tag is %s", at, tag)
		}
	}
	w.hold("e", "k", "alice", 1).is(201)
	w.get(trial+"100", "If-None-Match", before.header.Get("ETag")).is(200).has("seq", 2, "accounts.0.debit", 9)
}
