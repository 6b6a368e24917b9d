package httpapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tierledger/tierledger/payments/sim"
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
	w.control(func(s *sim.Settings) { s.HoldAnswer = 1 })
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

// buy holds what lines ask for and pays it.
func (w *world) buy(event, key, customer string, lines ...string) reply {
	w.t.Helper()
	h := w.ask(event, key, customer, lines...).is(201)
	o := w.post("/v1/holds/"+h.text("hold_id")+"/checkout", "pay-"+key, paying("sim_ok")).is(201)
	return w.becomes(o.ordered(), "captured")
}

// Seats come back one by one, by name, and the next buyer gets them.
func TestRefundSeats(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	o := w.buy("e", "k1", "alice", named("A-1-1", "A-1-2", "A-1-3", "B-1-1"), `{"tier":"ga","quantity":2}`).
		has("items.0.seats", "[A-1-1 A-1-2 A-1-3]", "items.0.returned_seats", "<nil>", "items.1.seats", "[B-1-1]", "total.amount", 30000)
	path := o.ordered() + "/refunds"
	back := func(items string) string {
		return `{"return_tickets":true,"reason":"ill","items":[` + items + `]}`
	}
	for items, field := range map[string]string{
		`{"tier":"front","seats":[]}`:                                                   "items[0].seats",
		`{"tier":"front","seats":["A-1-1","A-1-1"]}`:                                    "items[0].seats[1]",
		`{"tier":"front","quantity":2,"seats":["A-1-1"]}`:                               "items[0].quantity",
		`{"tier":"front"}`:                                                              "items[0].quantity",
		`{"tier":"front","seats":["A-1-1"]},{"tier":"front","seats":["A-1-2","A-1-1"]}`: "items[1].seats",
	} {
		w.post(path, "k", back(items)).refused(400, "invalid_request").has("field", field)
	}
	w.post(path, "k", back(`{"tier":"ga","quantity":1},{"tier":"front","quantity":2}`)).refused(400, "seats_required").
		has("field", "items[1].seats", "tier", "front")
	w.post(path, "k", back(`{"tier":"front","seats":["A-1-1","A-1-4"]}`)).refused(409, "tickets_not_owned").has("tier", "front", "owned", 1, "asked", 2)
	w.post(path, "k", back(`{"tier":"back","seats":["A-1-1"]}`)).refused(409, "tickets_not_owned").has("tier", "back", "owned", 0, "asked", 1)
	w.ask("e", "h", "bob", named("A-1-2")).refused(409, "seat_unavailable").has("seats.0.reason", "sold")

	body := back(`{"tier":"front","seats":["A-1-2"]},{"tier":"ga","quantity":1}`)
	first := w.post(path, "r1", body).is(201).has("refunded.amount", 10000, "items.0.returned", 1, "items.0.returned_seats", "[A-1-2]",
		"items.0.seats", "[A-1-1 A-1-2 A-1-3]", "items.1.returned", "<nil>", "items.2.returned", 1, "items.2.returned_seats", "<nil>")
	w.post(path, "r1", body).is(201).repeats(first)
	w.post(path, "r1", back(`{"tier":"front","seats":["A-1-3"]},{"tier":"ga","quantity":1}`)).refused(422, "idempotency_mismatch")
	w.becomes(o.ordered(), "partially_refunded").has("items.0.returned_seats", "[A-1-2]")
	w.get("/v1/events/e/seats/A-1-2").has("state", "available")
	w.post(path, "k", back(`{"tier":"front","seats":["A-1-2"]}`)).refused(409, "tickets_not_owned").has("owned", 0, "asked", 1)
	w.post(path, "k", back(`{"tier":"front","quantity":1}`)).refused(400, "seats_required")

	again := w.buy("e", "k2", "bob", named("A-1-2"))
	w.get("/v1/events/e/seats/A-1-2").has("state", "sold", "hold_id", again.text("hold_id"))
	w.post(path, "k", back(`{"tier":"front","seats":["A-1-2"]}`)).refused(409, "tickets_not_owned")

	// The money alone: the seat stays the buyer's.
	w.post(path, "r2", `{"return_tickets":false,"reason":"bad view","items":[{"tier":"front","seats":["A-1-1"]}]}`).is(201).
		has("refunded.amount", 15000, "items.0.returned", 1)
	w.get("/v1/events/e/seats/A-1-1").has("state", "sold")
	// All that the order owns of a tier needs no names.
	w.becomes(o.ordered(), "partially_refunded")
	w.post(path, "r3", back(`{"tier":"front","quantity":2}`)).is(201).has("refunded.amount", 25000, "items.0.returned", 3,
		"items.0.returned_seats", "[A-1-2 A-1-1 A-1-3]")
	w.becomes(o.ordered(), "partially_refunded")
	w.post(path, "r4", `{"return_tickets":true,"reason":"the show is off"}`).is(201).has("refunded.amount", 30000, "items.1.returned_seats", "[B-1-1]")
	w.becomes(o.ordered(), "refunded")
	w.get("/v1/events/e/availability").has("tiers.0.available", 4, "tiers.1.available", 9, "tiers.1.sold", 1, "tiers.2.sold", 0)
	w.ask("e", "last", "carol", named("A-1-1", "A-1-3", "B-1-1")).is(201)
	w.get("/v1/events/e/seats/A-1-2").has("state", "sold", "hold_id", again.text("hold_id"))
}
