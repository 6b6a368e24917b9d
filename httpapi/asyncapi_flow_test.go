package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

// kinds lists the kinds of the entries that there are.
func (w *world) kinds() (list []string) {
	w.t.Helper()
	events, err := entries(w.t.Context(), w.db.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		list = append(list, e.Kind)
	}
	return list
}

// comes waits for an entry of a kind.
func (w *world) comes(kind string) {
	w.t.Helper()
	pgtest.Until(w.t, kind, func() bool { return slices.Contains(w.kinds(), kind) })
}

// openCase finds the open case of an order, or any if the reply is of none.
func (w *world) openCase(order reply, reason string) (path string) {
	w.t.Helper()
	pgtest.Until(w.t, "a case "+reason, func() bool {
		for _, c := range w.get("/v1/recon/cases?status=open&reason=" + reason).is(200).field("data").([]any) {
			if order.t == nil || text(member(c, "order_id")) == order.text("order_id") {
				path = "/v1/recon/cases/" + text(member(c, "case_id"))
			}
		}
		return path != ""
	})
	return path
}

// Ways of a purchase that no other test here goes: what they record is as described too,
// which every world checks at its end.
func TestRareKindsAreAsDescribed(t *testing.T) {
	w, as := serveFinance(t)
	w.event("e", 100)
	buy := func(key, method string) (order reply) {
		t.Helper()
		return w.becomes(w.checkout("e", key, key, 2, method).is(201).ordered(), "captured")
	}
	settle := func(path, resolution string) {
		t.Helper()
		w.post(path+"/resolve", "p"+path, fmt.Sprintf(`{"resolution":%q,"reason":"x","evidence":"y"}`, resolution), as("f1")...).is(202)
		w.post(path+"/approve", "a"+path, "", as("f2")...).is(200)
	}

	// The bank takes a part back, and gives it again.
	o := buy("dan", "sim_ok")
	payment := o.text("operations.0.provider_payment")
	w.provider("POST", "/payments/"+payment+"/dispute", `{"amount":500}`).is(200)
	w.comes("order.charged_back")
	list := w.get(o.ordered()).is(200).field("operations").([]any)
	now := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	body := fmt.Sprintf(`{"type":"chargeback.reversed","timestamp":%[1]q,"data":{"id":%[2]q,"kind":"chargeback","reference":"",
		"status":"declined","reason":"won","amount":500,"currency":"USD","updated_at":%[1]q,"payment":{"id":%[3]q,"reference":%[4]q,
		"status":"captured","currency":"USD","amount":10000,"captured":10000}}}`, now,
		text(member(list[len(list)-1], "provider_reference")), payment, o.text("operations.0.operation_id"))
	w.do("POST", hooks, body, w.signed("evt_won", body, 0)...).is(200)
	w.comes("order.chargeback_reversed")

	// The bank takes the capture back, and the platform bears it.
	o = buy("eve", "sim_ok")
	w.says(o, "fail")
	w.comes("order.capture_failed")
	settle(w.openCase(o, "capture_failed"), "write_off")
	w.comes("order.case")

	// A refund isn't made.
	o = buy("fay", "sim_refund_pending")
	w.post(o.ordered()+"/refunds", "r", `{"return_tickets":false,"reason":"rain","amount":{"amount":100,"currency":"USD"}}`).is(201)
	w.comes("order.refund_asked")
	pgtest.Until(t, "a refund is pending", func() bool {
		return strings.Contains(string(w.get(o.ordered()).is(200).body), `"pending"`)
	})
	w.says(o, "fail")
	w.comes("order.refund_failed")

	// An authorization comes after the order was cancelled, and is given up.
	o = w.checkout("e", "gus", "gus", 1, "sim_requires_action").is(202)
	w.post(o.ordered()+"/cancel", "c", "")
	w.becomes(o.ordered(), "cancelled")
	w.says(o, "complete")
	settle(w.openCase(o, "late_payment"), "refund")
	w.comes("order.voided")

	// A webhook names what isn't there yet; another a payment that isn't ours.
	body = strings.Replace(foreign("pay_8"), "their own", ledger.NewID(1, "nobody").String(), 1)
	w.do("POST", hooks, body, w.signed("evt_8", body, 0)...).is(200)
	w.comes("webhook.parked")
	body = foreign("pay_9")
	w.do("POST", hooks, body, w.signed("evt_9", body, 0)...).is(200)
	settle(w.openCase(reply{}, "unidentified_payment"), "link")
	w.comes("case.resolved")
}
