package httpapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

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

	w.ask("e", "k", "alice", `{"seats":[]}`).refused(400, "invalid_quantity").has("field", "items[0].seats", "maximum", 6)

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
	w.unhook() // what it tells is recorded in the journal as well, at any time
	w.house("e")
	bought := w.buy("e", "h1", "alice", named("A-1-1"))
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
	asked := time.Now()
	r := w.ask("e", "k", "bob", best(5, `"tier":"front"`, `"accept_split":true`)).refused(409, "temporarily_held").
		has("available", 4, "asked", 5, "retry_at", first.text("expires_at"), "tier", "<nil>")
	r.retriesAt(asked, first.text("expires_at"))
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
