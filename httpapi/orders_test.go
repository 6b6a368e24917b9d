package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

// paying is the body of a checkout by a method.
func paying(method string) string { return fmt.Sprintf(`{"payment_method":%q}`, method) }

// checkout holds tickets of ga for a customer and pays by a method, both under a key.
func (w *world) checkout(event, key, customer string, quantity int, method string) reply {
	w.t.Helper()
	h := w.hold(event, key, customer, quantity).is(201)
	return w.post("/v1/holds/"+h.text("hold_id")+"/checkout", "pay-"+key, paying(method))
}

// ordered is the path of the order that a reply is about.
func (r reply) ordered() string {
	r.t.Helper()
	return "/v1/orders/" + r.text("order_id")
}

// becomes reads an order again until it has a status, which it comes to by itself.
func (w *world) becomes(path, status string) reply {
	w.t.Helper()
	var r reply
	pgtest.Until(w.t, path+" becomes "+status, func() bool {
		r = w.get(path).is(200)
		return r.text("status") == status
	})
	return r
}

func TestCheckout(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	h := w.hold("e", "h", "alice", 2).is(201)
	hold := "/v1/holds/" + h.text("hold_id")

	o := w.post(hold+"/checkout", "c", `{"payment_method":"sim_ok","return_url":"https://shop.example/done","total":{"amount":10000,"currency":"USD"}}`).is(201)
	o.has("hold_id", h.text("hold_id"), "event", "e", "customer", "alice", "status", "confirmed", "reconciling", false,
		"total.amount", 10000, "refunded.amount", 0, "items.0.quantity", 2, "items.0.unit_price.amount", 5000,
		"operations.0.kind", "authorize", "operations.0.status", "succeeded", "operations.0.provider", "sim",
		"next_action", "<nil>", "hold.status", "confirmed")
	if got, want := o.header.Get("ETag"), `"`+o.text("version")+`"`; got != want {
		t.Errorf("the tag is %s, want %s", got, want)
	}
	again := w.post(hold+"/checkout", "c", `{"payment_method":"sim_ok","return_url":"https://shop.example/done","total":{"amount":10000,"currency":"USD"}}`).is(201)
	again.repeats(o)

	paid := w.becomes(o.ordered(), "captured")
	paid.has("payment_status", "captured", "captured.amount", 10000, "hold", "<nil>")
	w.get(o.ordered(), "If-None-Match", paid.header.Get("ETag")).is(304)
	w.get(o.ordered(), "If-None-Match", o.header.Get("ETag")).is(200)
	w.get(hold).is(200).has("status", "confirmed")
	w.get("/v1/events/e/availability").has("tiers.0.available", 8, "tiers.0.held", 0, "tiers.0.sold", 2)

	again = w.post(hold+"/checkout", "c", `{"payment_method":"sim_ok","return_url":"https://shop.example/done","total":{"amount":10000,"currency":"USD"}}`).is(201)
	again.repeats(o)
	for what, body := range map[string]string{
		"method": paying("sim_slow"), "total": paying("sim_ok"),
		"page": `{"payment_method":"sim_ok","return_url":"https://shop.example/","total":{"amount":10000,"currency":"USD"}}`,
	} {
		if r := w.post(hold+"/checkout", "c", body).refused(422, "idempotency_mismatch"); r.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("another %s under the key is a replay", what)
		}
	}
	w.post(hold+"/checkout", "c2", otherTotal).refused(409, "hold_confirmed").has("order_id", o.text("order_id"))
	w.post(hold+"/release", "r", "").refused(409, "hold_confirmed")
	if charges := w.charges(); charges != 1 {
		t.Errorf("the provider charged %d times", charges)
	}
}

// repeats fails the test unless the reply is the replay of a first one, byte for byte.
func (r reply) repeats(first reply) {
	r.t.Helper()
	if string(r.body) != string(first.body) || r.status != first.status || r.header.Get("Idempotency-Replayed") != "true" ||
		r.header.Get("ETag") != first.header.Get("ETag") || first.header.Get("Idempotency-Replayed") != "" {
		r.t.Errorf("the repeat got %d %v\n%s\nwant the first answer\n%d %v\n%s", r.status, r.header, r.body, first.status, first.header, first.body)
	}
}

// What costs nothing is bought at once.
func TestFreeOrder(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "e", `{"event":"e","name":"E","currency":"USD","tiers":[{"tier":"ga","quantity":5,"price":{"amount":0,"currency":"USD"}}]}`).is(201)
	o := w.checkout("e", "k", "alice", 2, "none").is(201).has("status", "captured", "operations", "[]", "total.amount", 0)
	w.get(o.ordered()).is(200).has("status", "captured", "version", o.text("version"))
	w.get("/v1/events/e/availability").has("tiers.0.sold", 2)
}

func TestCheckoutBodies(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	path := "/v1/holds/" + w.hold("e", "h", "alice", 1).is(201).text("hold_id") + "/checkout"
	w.do("POST", path, paying("sim_ok")).refused(400, "idempotency_key_required")
	for body, field := range map[string]string{
		``:                                       "body",
		`{}`:                                     "payment_method",
		`{"payment_method":""}`:                  "payment_method",
		`{"payment_method":"a b"}`:               "payment_method",
		`{"payment_method":7}`:                   "payment_method",
		paying(strings.Repeat("x", 65)):          "payment_method",
		`{"payment_method":"sim_ok","amount":5}`: "amount",
		`{"payment_method":"sim_ok","total":{"amount":"5000"}}`:                         "total.amount",
		`{"payment_method":"sim_ok","return_url":"https://shop.example/a b"}`:           "return_url",
		`{"payment_method":"sim_ok","return_url":"x` + strings.Repeat("x", 2048) + `"}`: "return_url",
	} {
		w.post(path, "k", body).refused(400, "invalid_request").has("field", field)
	}
	w.post(path, "k", paying("sim_ok"), "If-Match", `"2"`).refused(400, "invalid_request").has("field", "If-Match")
	for _, id := range []string{"x", "00000000-0000-4000-8000-000000000000", "000003e7-a0a9-8715-b4a1-478ce139f1e9"} {
		w.post("/v1/holds/"+id+"/checkout", "k", paying("sim_ok")).refused(404, "hold_not_found").has("hold_id", id)
		w.get("/v1/orders/"+id).refused(404, "order_not_found").has("order_id", id)
		w.post("/v1/orders/"+id+"/cancel", "k", "").refused(404, "order_not_found").has("order_id", id)
		w.post("/v1/orders/"+id+"/refunds", "k", `{"return_tickets":false,"reason":"x"}`).refused(404, "order_not_found")
	}
	w.get("/v1/events/e/availability").has("tiers.0.held", 1)
}

// A declined attempt leaves the hold; its answer is remembered, and another key makes
// another attempt of the same order.
func TestCheckoutDeclined(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	path := "/v1/holds/" + w.hold("e", "h", "alice", 2).is(201).text("hold_id")
	first := w.post(path+"/checkout", "c1", paying("sim_decline"), "X-Request-Id", "one").refused(402, "payment_declined")
	first.isProblem()
	if first.text("reason") == "<nil>" {
		t.Errorf("%s doesn't say why", first.body)
	}
	w.post(path+"/checkout", "c1", paying("sim_decline"), "X-Request-Id", "one").refused(402, "payment_declined").repeats(first)
	w.post(path+"/checkout", "c1", paying("sim_ok")).refused(422, "idempotency_mismatch")
	w.get(path).is(200).has("status", "held")
	w.get(first.ordered()).is(200).has("status", "pending", "payment_status", "declined", "operations.0.status", "declined")

	second := w.post(path+"/checkout", "c2", paying("sim_ok")).is(201).has("order_id", first.text("order_id"), "status", "confirmed",
		"operations.1.attempt", 2)
	if second.text("operations.0.operation_id") == second.text("operations.1.operation_id") {
		t.Errorf("both attempts are one operation: %s", second.body)
	}
	w.becomes(first.ordered(), "captured")
	w.post(path+"/checkout", "c1", paying("sim_decline"), "X-Request-Id", "one").refused(402, "payment_declined").repeats(first)
}

// A buyer who has to act first: the answer is 202, and nothing but the outcome ends it.
func TestCheckoutOpen(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	path := "/v1/holds/" + w.hold("e", "h", "alice", 2).is(201).text("hold_id")
	first := w.post(path+"/checkout", "c1", paying("sim_requires_action")).is(202).has("status", "pending",
		"payment_status", "requires_action", "next_action.type", "redirect")
	if first.text("next_action.url") == "" || first.header.Get("ETag") == "" {
		t.Errorf("got %v %s", first.header, first.body)
	}
	w.get(path).is(200).has("status", "payment_pending")
	w.post(path+"/checkout", "c1", paying("sim_requires_action")).is(202).repeats(first)
	w.post(path+"/checkout", "c2", otherTotal).refused(409, "payment_in_progress").has("order_id", first.text("order_id"))
	w.post(path+"/release", "r", "").refused(409, "payment_in_progress")
	w.says(first, "complete")
	w.becomes(first.ordered(), "captured").has("next_action", "<nil>")
	w.post(path+"/checkout", "c1", paying("sim_requires_action")).is(202).repeats(first)
	w.post(path+"/checkout", "c3", paying("sim_ok")).refused(409, "hold_confirmed")
}

// A timeout is an open outcome, not a failure: the attempt is found again by its id.
func TestCheckoutUnknown(t *testing.T) {
	w := serveWith(t, time.Second, nil)
	w.event("e", 10)
	w.unhook()
	first := w.checkout("e", "k", "alice", 2, "sim_timeout_applied").is(202)
	first.has("status", "pending", "payment_status", "unknown", "operations.0.status", "unknown")
	body, headers := w.hook(first)
	w.tell(t, w.url+hooks) // of the capture, should it take longer than the client waits
	w.do("POST", hooks, body, headers...).is(200)
	w.becomes(first.ordered(), "captured")
	if charges := w.charges(); charges != 1 {
		t.Errorf("the provider charged %d times", charges)
	}
}

// otherTotal is the body of a checkout with a sum that no hold of these tests has.
const otherTotal = `{"payment_method":"sim_ok","total":{"amount":1,"currency":"USD"}}`

// Refusals that the state makes. Each request breaks two rules: the first one is told.
func TestCheckoutRefusals(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10, `"grace_seconds":0`)

	w.event("short", 10, `"hold_seconds":2`, `"grace_seconds":0`)
	var late, r reply
	for n := 0; n == 0 || r.text("code") == "hold_expired"; n++ { // the test came too late itself
		late = w.hold("short", fmt.Sprint("h", n), "alice", 1).is(201)
		r = w.post("/v1/holds/"+late.text("hold_id")+"/checkout", "c", otherTotal)
		if r.text("code") == "hold_expired" && time.Now().Before(instant(t, late.text("expires_at"))) {
			t.Fatalf("%s has expired before its time: %s", late.body, r.body)
		}
	}
	r.refused(409, "too_late").has("expires_at", late.text("expires_at"))
	path := "/v1/holds/" + late.text("hold_id")
	w.until(late.text("expires_at"))
	w.post(path+"/checkout", "c", otherTotal).refused(409, "hold_expired")

	h := w.hold("e", "h", "bob", 2).is(201)
	path = "/v1/holds/" + h.text("hold_id")
	w.do("PATCH", "/v1/events/e/tiers/ga", `{"limit_per_customer":1}`, "Idempotency-Key", "limit").is(200)
	w.post(path+"/checkout", "c", otherTotal).refused(409, "price_changed").has("total.amount", 10000)
	w.post(path+"/checkout", "c", `{"payment_method":"sim_ok","total":{"amount":10000,"currency":"EUR"}}`).refused(409, "price_changed")
	w.post(path+"/checkout", "c", paying("sim_ok")).refused(409, "limit_exceeded").has("tier", "ga", "limit", 1)
	w.post(path+"/release", "r", "").is(200).has("status", "released")
	w.post(path+"/checkout", "c", otherTotal).refused(409, "hold_expired")
	w.get("/v1/orders?event=e").is(200).has("data", "[]")
	if charges := w.charges(); charges != 0 {
		t.Errorf("the provider charged %d times", charges)
	}
}

func TestTooManyCheckouts(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	for i := range 5 {
		w.checkout("e", fmt.Sprint(i), "alice", 1, "sim_requires_action").is(202)
	}
	r := w.checkout("e", "5", "alice", 1, "sim_ok").refused(429, "too_many_checkouts")
	if r.header.Get("Retry-After") == "" {
		t.Errorf("got %v", r.header)
	}
	w.checkout("e", "6", "bob", 1, "sim_ok").is(201)
	h := w.hold("e", "7", "alice", 1).is(201)
	w.do("PATCH", "/v1/events/e/tiers/ga", `{"limit_per_customer":1}`, "Idempotency-Key", "limit").is(200)
	w.post("/v1/holds/"+h.text("hold_id")+"/checkout", "c", paying("sim_ok")).refused(409, "limit_exceeded")
}

// A provider that can't be reached: nothing was sent, the hold stays as it was, and a
// repeat is the same attempt once more.
func TestProviderUnavailable(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	h := w.hold("e", "h", "alice", 1).is(201)
	path := "/v1/holds/" + h.text("hold_id")
	w.unplug()
	w.post(path+"/checkout", "c", otherTotal).refused(409, "price_changed")
	r := w.post(path+"/checkout", "c", paying("sim_ok")).refused(503, "provider_unavailable")
	if r.header.Get("Retry-After") == "" {
		t.Errorf("got %v", r.header)
	}
	w.get(path).is(200).has("status", "held")
	w.post(path+"/checkout", "c", paying("sim_decline")).refused(422, "idempotency_mismatch")
	w.post(path+"/checkout", "c", paying("sim_ok")).refused(503, "provider_unavailable")
	w.get(path).is(200).has("status", "held")

	w.plug()
	o := w.post(path+"/checkout", "c", paying("sim_ok")).is(201).has("status", "confirmed")
	w.post(path+"/checkout", "c", paying("sim_ok")).is(201).repeats(o)
	w.becomes(o.ordered(), "captured")
	if charges := w.charges(); charges != 1 {
		t.Errorf("the provider charged %d times", charges)
	}
}

// One key at the same time, and again: one payment, and in the end one answer.
func TestCheckoutOnceForAKey(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	w.control(func(s *sim.Settings) { s.AuthorizeLatency = 200 })
	path := "/v1/holds/" + w.hold("e", "h", "alice", 2).is(201).text("hold_id") + "/checkout"
	const n = 8
	replies, errs := make([]reply, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { replies[i], errs[i] = w.send("POST", path, paying("sim_ok"), "Idempotency-Key", "c") })
	}
	all.Wait()
	first := 0
	for i, r := range replies {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if r.status == http.StatusCreated && r.header.Get("Idempotency-Replayed") == "" {
			first++
		} else if r.status != http.StatusCreated && r.status != http.StatusAccepted {
			t.Errorf("got %d %s", r.status, r.body)
		}
	}
	if first > 1 {
		t.Errorf("%d calls were the first", first)
	}
	last := w.post(path, "c", paying("sim_ok")).is(201)
	for _, r := range replies {
		if r.status == http.StatusCreated && string(r.body) != string(last.body) {
			t.Errorf("got %s, and later %s", r.body, last.body)
		}
	}
	w.becomes(last.ordered(), "captured")
	if charges := w.charges(); charges != 1 {
		t.Errorf("the provider charged %d times", charges)
	}
}

func TestListOrders(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	w.event("f", 100)
	const n = 4
	for i := range n {
		w.checkout("e", fmt.Sprint("a", i), "alice", 1, "sim_ok").is(201)
		w.checkout("e", fmt.Sprint("b", i), "bob", 1, "sim_decline").refused(402, "payment_declined")
	}
	if got := len(w.walk("/v1/orders?event=e&limit=3", "order_id")); got != 2*n {
		t.Errorf("the pages have %d orders, want %d", got, 2*n)
	}
	if got := len(w.walk("/v1/orders?event=e&customer=bob&status=pending&limit=2", "order_id")); got != n {
		t.Errorf("the pages have %d orders of bob, want %d", got, n)
	}
	w.get("/v1/orders?event=e&customer=alice&status=pending").is(200).has("data", "[]")
	w.get("/v1/orders?event=f").is(200).has("data", "[]", "next_cursor", "<nil>")
	w.get("/v1/orders").refused(400, "invalid_request").has("field", "event")
	w.get("/v1/orders?event=none").refused(404, "event_not_found")
	w.get("/v1/orders?event=e&status=gone").refused(400, "invalid_request").has("field", "status")
	w.get("/v1/orders?event=e&customer="+escape("a b")).refused(400, "invalid_request").has("field", "customer")
	cursor := escape(w.get("/v1/orders?event=e&customer=alice&limit=2").text("next_cursor"))
	w.get("/v1/orders?cursor="+cursor).is(200).has("data.0.customer", "alice", "data.1.customer", "alice")
	w.get("/v1/orders?event=f&cursor="+cursor).refused(400, "invalid_request").has("field", "cursor")
}

func TestMoneyMetrics(t *testing.T) {
	var m *httpapi.Metrics
	w := serve(t, func(c *httpapi.Config) { m = c.Metrics })
	w.event("e", 10)
	w.checkout("e", "1", "alice", 1, "sim_ok").is(201)
	w.checkout("e", "2", "alice", 1, "sim_decline").refused(402, "payment_declined")
	w.checkout("e", "3", "alice", 1, "sim_requires_action").is(202)
	w.do("POST", hooks, "{}").refused(401, "webhook_signature_invalid")
	m.SetBacklog(orders.Backlog{Due: 3, Unknown: 2, Oldest: 90 * time.Second})
	m.SetOpenCases(map[cases.Reason]int64{cases.LatePayment: 4})
	m.ObserveOperation(payments.Capture, orders.OpSucceeded)
	got := string(w.get("/metrics").is(200).body)
	for _, line := range []string{
		`tierledger_checkouts_total{answer="201"} 1`, `tierledger_checkouts_total{answer="202"} 1`,
		`tierledger_checkouts_total{answer="payment_declined"} 1`,
		`tierledger_webhooks_total{result="webhook_signature_invalid"} 1`,
		`tierledger_unknown_operations 2`, `tierledger_oldest_unknown_seconds 90`, `tierledger_janitor_due 3`,
		`tierledger_open_cases{reason="late_payment"} 4`, `tierledger_open_cases{reason="chargeback"} 0`,
		`tierledger_operations_total{kind="capture",status="succeeded"} 1`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("the metrics have no line %s", line)
		}
	}
}
