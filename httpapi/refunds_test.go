package httpapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestCancelOrder(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	declined := w.checkout("e", "k1", "alice", 2, "sim_decline").refused(402, "payment_declined")
	path := declined.ordered() + "/cancel"
	version := w.get(declined.ordered()).is(200).text("version")
	w.do("POST", path, "").refused(400, "idempotency_key_required")
	w.post(path, "x", `{"reason":"x"}`).refused(400, "invalid_request").has("field", "reason")
	w.post(path, "x", ``, "If-Match", `"1"`).refused(412, "version_conflict").has("version", version)
	first := w.post(path, "x", ``, "If-Match", `"`+version+`"`).is(200).has("status", "cancelled", "hold.status", "released")
	w.post(path, "x", ``, "If-Match", `"`+version+`"`).is(200).repeats(first)
	w.post(path, "x", ``).refused(422, "idempotency_mismatch")
	again := w.post(path, "y", `{}`).is(200).has("status", "cancelled", "version", first.text("version"))
	if again.header.Get("ETag") != first.header.Get("ETag") || again.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("the second cancellation got %v", again.header)
	}

	open := w.checkout("e", "k2", "alice", 2, "sim_requires_action").is(202)
	w.post(open.ordered()+"/cancel", "z", "").is(202)
	w.becomes(open.ordered(), "cancelled")
	paid := w.checkout("e", "k3", "alice", 2, "sim_ok").is(201)
	w.becomes(paid.ordered(), "captured")
	w.post(paid.ordered()+"/cancel", "z3", "").refused(409, "order_captured").has("order_id", paid.text("order_id"))
	unknown := w.checkout("e", "k4", "alice", 2, "sim_timeout_lost").is(202)
	w.post(unknown.ordered()+"/cancel", "z4", "").refused(409, "payment_in_progress").has("order_id", unknown.text("order_id"))
	w.get("/v1/events/e/availability").has("tiers.0.available", 6, "tiers.0.held", 2, "tiers.0.sold", 2)
}

func TestRefundOrder(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	declined := w.checkout("e", "k0", "alice", 1, "sim_decline").refused(402, "payment_declined")
	everything := `{"return_tickets":true,"reason":"the show is off"}`
	w.post(declined.ordered()+"/refunds", "k", everything).refused(409, "order_not_captured")

	o := w.checkout("e", "k1", "alice", 3, "sim_ok").is(201)
	version := w.becomes(o.ordered(), "captured").text("version")
	path := o.ordered() + "/refunds"
	w.do("POST", path, everything).refused(400, "idempotency_key_required")
	for body, field := range map[string]string{
		``:                        "body",
		`{"return_tickets":true}`: "reason",
		`{"reason":"x"}`:          "return_tickets",
		`{"return_tickets":true,"reason":"x","items":[]}`:                               "items",
		`{"return_tickets":true,"reason":"x","items":[{"tier":"ga","quantity":0}]}`:     "items[0].quantity",
		`{"return_tickets":true,"reason":"x","items":[{"tier":"ga","quantity":1.5}]}`:   "items[0].quantity",
		`{"return_tickets":true,"reason":"x","amount":{"amount":1,"currency":"USD"}}`:   "items",
		`{"return_tickets":false,"reason":"x","amount":{"amount":0,"currency":"USD"}}`:  "amount.amount",
		`{"return_tickets":false,"reason":"x","amount":{"amount":-1,"currency":"USD"}}`: "amount.amount",
		`{"return_tickets":"yes","reason":"x"}`:                                         "return_tickets",
		`{"return_tickets":true,"reason":"x","fee":1}`:                                  "fee",
		`{"return_tickets":true,"reason":"` + strings.Repeat("x", 501) + `"}`:           "reason",
	} {
		w.post(path, "k", body).refused(400, "invalid_request").has("field", field)
	}
	w.post(path, "k", `{"return_tickets":false,"reason":"x","amount":{"amount":15001,"currency":"USD"}}`).
		refused(409, "refund_exceeds_captured").has("captured", 15000, "refunded", 0, "asked", 15001)
	w.post(path, "k", `{"return_tickets":false,"reason":"x","amount":{"amount":1,"currency":"EUR"}}`).refused(409, "currency_mismatch")
	w.post(path, "k", `{"return_tickets":true,"reason":"x","items":[{"tier":"ga","quantity":4}]}`).
		refused(409, "tickets_not_owned").has("tier", "ga", "owned", 3, "asked", 4)
	w.post(path, "k", everything, "If-Match", `"1"`).refused(412, "version_conflict").has("version", version)

	part := `{"return_tickets":true,"reason":"ill","items":[{"tier":"ga","quantity":1}]}`
	first := w.post(path, "k", part, "If-Match", `"`+version+`"`).is(201).has("refunded.amount", 5000, "items.0.returned", 1)
	w.post(path, "k", part, "If-Match", `"`+version+`"`).is(201).repeats(first)
	w.post(path, "k", everything).refused(422, "idempotency_mismatch")
	w.becomes(o.ordered(), "partially_refunded")
	w.post(path, "k2", everything).is(201).has("refunded.amount", 15000, "items.0.returned", 3)
	w.becomes(o.ordered(), "refunded")
	w.post(path, "k3", everything).refused(409, "refund_exceeds_captured")
	w.post(path, "k", part, "If-Match", `"`+version+`"`).is(201).repeats(first)
	w.get("/v1/events/e/availability").has("tiers.0.sold", 0)
}

// T67: two refunds side by side that are too much together; and one, asked often.
func TestRefundsAtOnce(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	o := w.checkout("e", "k", "alice", 2, "sim_ok").is(201)
	w.becomes(o.ordered(), "captured")
	body := `{"amount":{"amount":6000,"currency":"USD"},"return_tickets":false,"reason":"half of it"}`
	const n = 8
	replies, errs := make([]reply, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			replies[i], errs[i] = w.send("POST", o.ordered()+"/refunds", body, "Idempotency-Key", fmt.Sprint(i%2))
		})
	}
	all.Wait()
	byKey := make(map[int]map[string]int) // how often a key got a body; the refused one differs in its request id alone
	for i, r := range replies {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if byKey[i%2] == nil {
			byKey[i%2] = make(map[string]int)
		}
		what := string(r.body)
		if r.status != 201 {
			what = r.refused(409, "refund_exceeds_captured").text("code")
		}
		byKey[i%2][what]++
	}
	if len(byKey[0]) != 1 || len(byKey[1]) != 1 || byKey[0]["refund_exceeds_captured"]+byKey[1]["refund_exceeds_captured"] != n/2 {
		t.Errorf("the keys got %v", byKey)
	}
	w.becomes(o.ordered(), "partially_refunded").has("refunded.amount", 6000)
}
