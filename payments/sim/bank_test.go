package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/payments"
)

// TestIntents has the buyer's bank, before and after the intent was cancelled.
func TestIntents(t *testing.T) {
	w := newWorld(t, Options{})
	ctx := t.Context()
	cancel := func(pay string) (payments.Result, error) { return w.CancelIntent(ctx, w.step(pay, 0)) }

	a := w.authorize("sim_requires_action")
	pay := a.Payment.Reference
	r, err := cancel(pay)
	w.is(r, err, payments.Succeeded, "")
	w.is(w.lookup(a.Operation), nil, payments.Declined, "canceled")
	if got := w.bank(pay, "complete", ""); got != "ok" { // a late payment
		t.Fatal(got)
	}
	if r := w.is(w.lookup(a.Operation), nil, payments.Succeeded, ""); r.Payment.Authorized != 10600 {
		t.Errorf("%+v", r)
	}
	r, err = cancel(pay)
	w.is(r, err, payments.Declined, payments.ReasonAlreadyPaid)
	want := []string{"authorize.declined", "authorize.requires_action", "authorize.succeeded", "cancel.succeeded"}
	if got := w.received(); !slices.Equal(got, want) {
		t.Errorf("webhooks %v, want %v", got, want)
	}

	a = w.authorize("sim_transfer")
	pay = a.Payment.Reference
	r, err = cancel(pay)
	w.is(r, err, payments.Declined, payments.ReasonNotCancellable)
	w.pass(90 * 24 * time.Hour)
	if got := w.bank(pay, "complete", `{"amount": 10599}`); got != "ok" {
		t.Fatal(got)
	}
	if r := w.is(w.lookup(a.Operation), nil, payments.Succeeded, ""); r.Amount.Amount != 10599 || r.Payment.Captured != 10599 || r.Payment.Amount != 10600 {
		t.Errorf("%+v", r)
	}

	a = w.authorize("sim_processing")
	pay = a.Payment.Reference
	for _, step := range [][3]string{
		{"complete", `{"amount": 5}`, "invalid_request"}, {"complete", `{"amount": }`, "invalid_request"},
		{"fail", "", "ok"}, {"fail", "", "nothing_open"}, {"complete", "", "nothing_open"}, {"dispute", "", "not_captured"},
	} {
		if got := w.bank(pay, step[0], step[1]); got != step[2] {
			t.Errorf("%s %s: %s, want %s", step[0], step[1], got, step[2])
		}
	}
	w.is(w.lookup(a.Operation), nil, payments.Declined, "buyer_failed")
	r, err = cancel(pay)
	w.is(r, err, payments.Declined, "already_failed")
	if got := w.bank("pay_404", "complete", ""); got != "payment_not_found" {
		t.Error(got)
	}
}

// TestBankTakesBack has yeses that turn into noes, and chargebacks.
func TestBankTakesBack(t *testing.T) {
	w := newWorld(t, Options{})
	ctx := t.Context()
	bank := func(pay, verb, body, want string) {
		t.Helper()
		if got := w.bank(pay, verb, body); got != want {
			t.Fatalf("%s: %s, want %s", verb, got, want)
		}
	}
	captured := func(method string) (pay string, capture uuid.UUID) {
		pay = w.authorize(method).Payment.Reference
		c, err := w.Capture(ctx, w.step(pay, 10600))
		w.is(c, err, payments.Succeeded, "")
		return pay, c.Operation
	}
	a := w.authorize("sim_ok")
	bank(a.Payment.Reference, "fail", "", "ok")
	w.is(w.lookup(a.Operation), nil, payments.Declined, "authorization_revoked")

	pay, capture := captured("sim_ok") // P34
	bank(pay, "fail", "", "ok")
	if r := w.is(w.lookup(capture), nil, payments.Declined, "capture_failed"); r.Payment.Captured != 0 {
		t.Errorf("%+v", r)
	}

	pay, _ = captured("sim_refund_pending") // P35
	first, err := w.Refund(ctx, w.step(pay, 6000))
	w.is(first, err, payments.Pending, "")
	over, err := w.Refund(ctx, w.step(pay, 6000))
	w.is(over, err, payments.Declined, "amount_too_large")
	second, err := w.Refund(ctx, w.step(pay, 4600))
	w.is(second, err, payments.Pending, "")
	bank(pay, "fail", "", "ok")
	bank(pay, "complete", "", "ok")
	bank(pay, "complete", "", "nothing_open")
	w.is(w.lookup(first.Operation), nil, payments.Declined, "refund_failed")
	w.is(w.lookup(second.Operation), nil, payments.Succeeded, "")

	bank(pay, "dispute", `{"amount": 6001}`, "amount_too_large")
	bank(pay, "dispute", "", "ok")
	r, err := w.Refund(ctx, w.step(pay, 1))
	w.is(r, err, payments.Declined, "amount_too_large") // P37
	w.received()
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.inbox, func(e payments.Event) bool { return e.Type == "chargeback.succeeded" }); i < 0 ||
		w.inbox[i].Result.Operation != uuid.Nil || w.inbox[i].Result.Payment.Disputed != 6000 {
		t.Error("no chargeback among the webhooks")
	}
}
