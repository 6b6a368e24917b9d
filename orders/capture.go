package orders

import (
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/payments"
)

// authorization gives the authorization that an operation acts on.
func (d *deal) authorization(op *Operation) *Operation {
	for _, a := range d.order.Operations {
		if a.Kind == payments.Authorize && a.Payment == op.Payment && a.Payment != "" {
			return a
		}
	}
	return nil
}

// concludeCapture goes by the state of a capture. Unknown and pending post nothing:
// what's claimed stays on capture-pending.
func (d *deal) concludeCapture(op *Operation, was OperationStatus, r payments.Result) string {
	switch op.Status {
	case OpSucceeded:
		return d.captured(op, r)
	case OpDeclined, OpNotAttempted:
		if was == OpSucceeded {
			return d.takenBack(op)
		}
		return d.compensate(op, r)
	case OpUnknown:
		d.order.PaymentStatus = PaymentUnknown
	default:
		d.order.PaymentStatus = PaymentCapturing
	}
	return KindPaymentOpen
}

// captured takes the money. Less than was claimed leaves the rest there, with a case.
func (d *deal) captured(op *Operation, r payments.Result) string {
	o, amount := d.order, r.Amount.Amount
	if o.Status != Confirmed {
		return d.capturedLate(op, r)
	}
	written := max(amount-d.claim(), 0)
	d.post(capturePending(d.provider), providerAccount(d.provider), amount-written)
	d.post(loss, providerAccount(d.provider), written) // it comes after all
	if a := d.authorization(op); a != nil {
		d.reserve(a, 0)
	}
	d.to(Captured)
	o.Captured.Amount, o.PaymentStatus = amount, PaymentCaptured
	d.resolveCase(cases.CaptureFailed, op, fact(d.s.Now, "the capture has succeeded"))
	if rest := o.Total.Amount - amount; rest > 0 {
		c := cases.Case{Reason: cases.CaptureFailed, LastFact: fact(d.s.Now, "%d of %d was captured", amount, o.Total.Amount)}
		c.Amount.Amount = rest
		d.openCase(c, op)
	}
	o.Reconciling = d.stillReconciling()
	return KindCaptured
}

// capturedLate keeps money that was captured for an order which had been given up on
// evidence that it wouldn't be.
func (d *deal) capturedLate(op *Operation, r payments.Result) string {
	if a := d.authorization(op); a != nil && a.authorized > 0 {
		d.reserve(a, 0)
	}
	return d.paidLate(op, cases.LatePayment, r.Amount, r.At)
}

// compensate undoes the sale of an order whose capture has certainly failed, before
// anything was issued: the exact reversal of the confirmation.
func (d *deal) compensate(op *Operation, r payments.Result) string {
	o := d.order
	d.post(loss, capturePending(d.provider), o.Total.Amount-d.claim()) // what was written off of it
	d.proceeds(capturePending(d.provider), holds.Parts{}.Minus(o.Parts))
	d.move(holds.Return(o.HoldID, d.customer, o.tickets()))
	d.to(Cancelled)
	o.PaymentStatus = PaymentDeclined
	if a := d.authorization(op); a != nil && a.authorized > 0 {
		if op.Status == OpDeclined && r.Payment.Reference != "" && r.Payment.Authorized == 0 {
			d.reserve(a, 0)
		} else {
			d.voidNow(a, "capture_failed")
		}
	}
	return KindCancelled
}

// reopenCapture takes back a capture that was reported as done, and of which nothing has
// gone on since: the claim is open again, and people decide, for tickets may have been
// issued.
func (d *deal) reopenCapture(op *Operation) string {
	o := d.order
	told := fact(d.s.Now, "the provider says that the capture it had accepted has failed: %s", op.Reason)
	d.resolveCase(cases.CaptureFailed, op, told) // about a rest that wasn't captured: it's all of it now
	d.post(providerAccount(d.provider), capturePending(d.provider), o.Captured.Amount)
	d.to(Confirmed)
	o.Captured.Amount, o.PaymentStatus = 0, PaymentDeclined
	c := cases.Case{Reason: cases.CaptureFailed, LastFact: told}
	c.Amount.Amount = d.claim()
	d.openCase(c, op)
	return KindCaptureFailed
}

// concludeVoid goes by the state of a void.
func (d *deal) concludeVoid(op *Operation, r payments.Result) string {
	a := d.authorization(op)
	gone := op.Status == OpDeclined && r.Payment.Reference != "" && r.Payment.Authorized == 0 && r.Payment.Captured == 0
	switch {
	case op.Status == OpSucceeded || gone:
		if a != nil && a.authorized > 0 {
			d.reserve(a, 0)
		}
		if a != nil {
			d.voided(a)
		}
		d.resolveCase(cases.VoidFailed, op, fact(d.s.Now, "the authorization was voided"))
		return KindVoided
	case op.Status == OpDeclined, op.Status == OpNotAttempted:
		c := cases.Case{Reason: cases.VoidFailed, Amount: op.Amount,
			LastFact: fact(d.s.Now, "the provider refused the void: %s", op.Reason)}
		d.openCase(c, op)
		return KindVoidFailed
	}
	return KindPaymentOpen
}

// voided follows the end of an authorization.
func (d *deal) voided(a *Operation) {
	if d.order.Status == Cancelled {
		d.order.PaymentStatus = PaymentVoided
	}
	for _, reason := range lateReasons {
		d.resolveCase(reason, a, fact(d.s.Now, "the authorization was voided"))
	}
}

// concludeCancel goes by what came of ending a payment that the buyer hasn't made.
func (d *deal) concludeCancel(op *Operation, r payments.Result) string {
	a := d.authorization(op)
	switch {
	case op.Status == OpSucceeded:
		if a != nil && a.Status.open() {
			a.to(OpDeclined, d.s.Now)
			a.Reason = "cancelled"
		}
		return d.giveUp()
	case op.Status == OpDeclined && r.Reason == payments.ReasonNotCancellable:
		return d.giveUp() // the authorization is watched on
	case op.Status == OpDeclined, op.Status == OpNotAttempted:
		if a != nil && a.Status.open() {
			a.wait(d.s.Now, 0) // it's over, one way or the other: ask
		}
	case op.Status == OpUnknown && d.hold.Status == holds.PaymentPending && !d.s.Now.Before(d.order.PayUntil):
		d.reconcile()
		return KindReconciling
	}
	return KindPaymentOpen
}

// giveUp ends an order that wasn't paid, and its hold.
func (d *deal) giveUp() string {
	if d.order.Status == Pending {
		if d.endHold(); d.order.Status == Cancelled {
			d.order.PaymentStatus = PaymentDeclined
		}
	}
	d.order.Reconciling = d.stillReconciling()
	return KindCancelled
}
