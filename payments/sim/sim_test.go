package sim

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/payments"
)

func TestPurchase(t *testing.T) {
	w := newWorld(t, Options{})
	ctx := t.Context()
	a := w.authorize("sim_ok")
	w.is(a, nil, payments.Succeeded, "")
	if a.Payment.Authorized != 10600 || a.Payment.Captured != 0 || a.Payment.Operation != a.Operation {
		t.Errorf("%+v", a.Payment)
	}
	pay := a.Payment.Reference
	too, err := w.Capture(ctx, w.step(pay, 10601))
	w.is(too, err, payments.Declined, "amount_too_large")
	early, err := w.Refund(ctx, w.step(pay, 1))
	w.is(early, err, payments.Declined, "not_captured")
	c, err := w.Capture(ctx, w.step(pay, 10600))
	w.is(c, err, payments.Succeeded, "")
	again, err := w.Capture(ctx, w.step(pay, 10600))
	if again.Outcome != payments.Unknown || again.Payment.Captured != 10600 || !errors.Is(err, payments.ErrUnknownOutcome) {
		t.Errorf("P29: captured again: %+v, %v", again, err)
	}
	v, err := w.Void(ctx, w.step(pay, 0))
	w.is(v, err, payments.Declined, "already_captured")

	first, err := w.Refund(ctx, w.step(pay, 6000))
	if w.is(first, err, payments.Succeeded, "").Payment.Status != "partially_refunded" {
		t.Errorf("%+v", first)
	}
	over, err := w.Refund(ctx, w.step(pay, 4601))
	w.is(over, err, payments.Declined, "amount_too_large")
	rest, err := w.Refund(ctx, w.step(pay, 4600))
	if w.is(rest, err, payments.Succeeded, "").Payment.Status != "refunded" {
		t.Errorf("%+v", rest)
	}
	if got, want := w.received(), []string{"authorize.succeeded", "capture.succeeded", "refund.succeeded", "refund.succeeded"}; !slices.Equal(got, want) {
		t.Errorf("webhooks %v, want %v", got, want)
	}
	other, err := w.Capture(ctx, payments.Step{Operation: w.operation(), Payment: "pay_404", Amount: usd106})
	w.is(other, err, payments.Declined, "payment_not_found")
	yen, err := w.Refund(ctx, payments.Step{Operation: w.operation(), Payment: pay, Amount: buckets.Money{Amount: 1, Currency: "JPY"}})
	w.is(yen, err, payments.Declined, "invalid_request") // P40
}

func TestVoidAndPartialCapture(t *testing.T) {
	w := newWorld(t, Options{})
	ctx := t.Context()
	pay := w.authorize("sim_ok").Payment.Reference
	v, err := w.Void(ctx, w.step(pay, 0))
	if w.is(v, err, payments.Succeeded, "").Payment.Authorized != 0 {
		t.Errorf("%+v", v)
	}
	c, err := w.Capture(ctx, w.step(pay, 10600))
	w.is(c, err, payments.Declined, "not_authorized")
	// P31: less is captured than authorized; nothing of it looks like a refund.
	pay = w.authorize("sim_ok").Payment.Reference
	c, err = w.Capture(ctx, w.step(pay, 4000))
	if p := w.is(c, err, payments.Succeeded, "").Payment; p.Captured != 4000 || p.Refunded != 0 {
		t.Errorf("%+v", p)
	}
}

// TestMethods has what each method does to an authorization and a capture. Answers that are
// held are given up by the provider: a caller who does couldn't tell what was carried out by then.
func TestMethods(t *testing.T) {
	w := newWorld(t, Options{})
	w.control(`{"slow_ms": 1, "hold_answer_ms": 1}`)
	ctx := t.Context()
	authorize := func(operation uuid.UUID, method string) (payments.Result, error) {
		return w.Authorize(ctx, payments.Authorization{Operation: operation, Amount: usd106, Method: method})
	}
	unknown := func(r payments.Result, err error) {
		t.Helper()
		if r.Outcome != payments.Unknown || !errors.Is(err, payments.ErrUnknownOutcome) {
			t.Fatalf("%+v, %v", r, err)
		}
	}

	w.is(w.authorize("sim_slow"), nil, payments.Succeeded, "")
	w.is(w.authorize("sim_decline"), nil, payments.Declined, "card_declined")
	w.is(w.authorize("sim_processing"), nil, payments.Pending, "")
	for method, action := range map[string]string{"sim_requires_action": "redirect", "sim_transfer": "transfer"} {
		if r := w.is(w.authorize(method), nil, payments.RequiresAction, ""); r.NextAction.Type != action {
			t.Errorf("%s: %+v", method, r.NextAction)
		}
	}

	id := w.operation()
	r, err := authorize(id, "sim_timeout_applied")
	unknown(r, err)
	w.is(w.lookup(id), nil, payments.Succeeded, "")
	r, err = authorize(id, "sim_timeout_applied")
	w.is(r, err, payments.Succeeded, "") // a repeat under the same key is answered

	id = w.operation()
	for range 2 {
		r, err = authorize(id, "sim_timeout_lost")
		unknown(r, err)
	}
	id2 := w.operation()
	r, err = authorize(id2, "sim_error")
	unknown(r, err)
	for _, lost := range []uuid.UUID{id, id2} {
		if f, err := w.Lookup(ctx, lost); err != nil || f.Found || !f.AsOf.Equal(testStart) {
			t.Errorf("%+v, %v", f, err)
		}
	}

	p := w.authorize("sim_capture_fails").Payment
	r, err = w.Capture(ctx, w.step(p.Reference, 10600))
	w.is(r, err, payments.Declined, "capture_failed")

	p = w.authorize("sim_capture_timeout").Payment
	step := w.step(p.Reference, 10600)
	r, err = w.Capture(ctx, step)
	unknown(r, err)
	w.is(w.lookup(step.Operation), nil, payments.Succeeded, "")
	r, err = w.Capture(ctx, step)
	w.is(r, err, payments.Succeeded, "")
}

func TestCapabilitiesFitTheMethods(t *testing.T) {
	w := newWorld(t, Options{})
	for _, method := range Methods() {
		c := w.Capabilities(method)
		if own := method != "sim_transfer"; c.SeparateCapture != own || c.Cancellable != own || c.KeyLifetime != keyLifetime {
			t.Errorf("%s: %+v", method, c)
		}
	}
}
