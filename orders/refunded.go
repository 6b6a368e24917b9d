package orders

import (
	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// concludeRefund goes by the state of a refund: of the order, or of a payment that was
// never the order's; asked for by us, or made by the provider of itself.
func (d *deal) concludeRefund(op *Operation, was OperationStatus) string {
	asked := op.sends > 0
	switch {
	case op.Status == OpSucceeded && asked && was.open():
		d.postIn(op.Amount.Currency, providerAccount(d.provider), refundsPending(d.provider), op.Amount.Amount)
		if c, ok := d.suspenseCase(op.Payment); ok && op.parts.Sum() == 0 && c.Suspended == 0 {
			d.keepCase(c.Resolve(fact(d.s.Now, "refund %s was paid back", op.Reference), d.s.Now, d.s.NextSeq()))
		}
		d.afterRefund()
		return KindRefunded
	case op.Status == OpSucceeded:
		return d.refundedElsewhere(op)
	case op.Status.open() || !asked && was != OpSucceeded:
		return KindPaymentOpen
	case was == OpSucceeded:
		d.postIn(op.Amount.Currency, refundsPending(d.provider), providerAccount(d.provider), op.Amount.Amount)
	}
	return d.refundFailed(op)
}

// afterRefund sets the order's state by what was paid back.
func (d *deal) afterRefund() {
	o := d.order
	o.PaymentStatus = d.refundStatus()
	if !o.Status.Owns() || o.Status == Confirmed {
		return
	}
	switch back := d.paidBack(); {
	case back == 0:
		d.to(Captured)
	case back >= o.Captured.Amount:
		d.to(Refunded)
	default:
		d.to(PartiallyRefunded)
	}
}

// paidBack sums what was refunded of the order itself, for sure.
func (d *deal) paidBack() ledger.Amount {
	var sum ledger.Amount
	for _, op := range d.order.Operations {
		if op.Kind == payments.Refund && op.Status == OpSucceeded {
			sum += op.parts.Sum()
		}
	}
	return sum
}

// refundStatus is the payment's state while refunds are under way, and after them.
func (d *deal) refundStatus() PaymentStatus {
	o := d.order
	switch back := d.paidBack(); {
	case d.openOne(payments.Refund) != nil:
		return PaymentRefunding
	case !o.Status.Owns():
		return PaymentRefunded // of a payment that came late
	case back == 0:
		return PaymentCaptured
	case back >= o.Captured.Amount:
		return PaymentRefunded
	}
	return PaymentPartiallyRefunded
}

// refundFailed restores what a refund had taken, once: the amount is still owed, and a
// case says so.
func (d *deal) refundFailed(op *Operation) string {
	o := d.order
	told := fact(d.s.Now, "the provider refused the refund: %s", op.Reason)
	if rest := op.Amount.Amount - op.parts.Sum(); rest > 0 {
		d.postIn(op.Amount.Currency, lateSuspense, refundsPending(d.provider), rest)
		d.suspend(op, rest, cases.RefundFailed, told)
	}
	if op.parts.Sum() == 0 {
		o.PaymentStatus = PaymentCaptured
		return KindRefundFailed
	}
	d.proceeds(refundsPending(d.provider), op.parts)
	o.RefundedParts = o.RefundedParts.Minus(op.parts)
	d.openCase(cases.Case{Reason: cases.RefundFailed, Amount: op.Amount, LastFact: told}, op)
	for _, c := range o.Operations {
		if c.Kind == payments.Chargeback && c.Status == OpSucceeded {
			d.cover(c) // with what the refund has left free
		}
	}
	d.afterRefund()
	return KindRefundFailed
}

// refundedElsewhere records a refund that the provider made without being asked by us, or
// after it had refused. Tickets stay as they are.
func (d *deal) refundedElsewhere(op *Operation) string {
	o := d.order
	told := fact(d.s.Now, "refund %s of %d was paid back", op.Reference, op.Amount.Amount)
	rest := op.Amount.Amount - d.release(op, op.Amount.Amount, told)
	if op.parts = (holds.Parts{}); op.Amount.Currency == d.event.Currency {
		op.parts = split(min(rest, d.mostBack()), o.left())
	}
	d.proceeds(providerAccount(d.provider), holds.Parts{}.Minus(op.parts))
	o.RefundedParts = o.RefundedParts.Plus(op.parts)
	if rest -= op.parts.Sum(); rest > 0 {
		d.postIn(op.Amount.Currency, providerAccount(d.provider), loss, rest)
		d.openCase(cases.Case{
			Reason: cases.AmountMismatch, Amount: buckets.Money{Amount: rest, Currency: op.Amount.Currency},
			LastFact: fact(d.s.Now, "the provider paid back %d more than was left", rest),
		}, op)
	}
	d.resolveCase(cases.RefundFailed, op, told)
	d.afterRefund()
	return KindRefunded
}

// mostBack is what may still be taken back from the order's parts.
func (d *deal) mostBack() ledger.Amount {
	return min(d.order.left().Sum(), d.order.Captured.Amount-d.order.RefundedParts.Sum())
}

// concludeChargeback goes by the state of a dispute: an inquiry posts nothing, and money
// that the bank took back is kept from the organiser until the dispute ends. What it took
// of money in suspense has gone back to the buyer.
func (d *deal) concludeChargeback(op *Operation, was OperationStatus) string {
	amount, unit := op.Amount.Amount, op.Amount.Currency
	switch {
	case op.Status == OpSucceeded:
		told := fact(d.s.Now, "the buyer's bank took %d %s back: %s", amount, unit, op.Reason)
		if rest := amount - d.release(op, amount, told); rest > 0 {
			d.postIn(unit, providerAccount(d.provider), disputes(d.provider), rest)
			op.disputed = rest
			d.cover(op)
			d.openCase(cases.Case{Reason: cases.Chargeback, Amount: op.Amount, LastFact: told}, op)
		}
		return KindChargedBack
	case was != OpSucceeded:
		return KindPaymentOpen
	}
	told := fact(d.s.Now, "the dispute was won")
	d.postIn(unit, disputes(d.provider), providerAccount(d.provider), op.disputed)
	d.post(organiser(d.organiser), disputeHold(d.organiser), op.parts.Face)
	d.order.RefundedParts = d.order.RefundedParts.Minus(op.parts)
	d.resolveCase(cases.Chargeback, op, told)
	if rest := amount - op.disputed; rest > 0 {
		d.postIn(unit, lateSuspense, providerAccount(d.provider), rest)
		d.suspend(op, rest, cases.Chargeback, told)
	}
	op.parts, op.disputed = holds.Parts{}, 0
	return KindChargebackWon
}

// cover takes a dispute from what's left of the order, as far as that goes.
func (d *deal) cover(op *Operation) {
	if op.Amount.Currency != d.event.Currency {
		return
	}
	more := split(min(op.disputed-op.parts.Sum(), d.mostBack()), d.order.left())
	op.parts, op.changed = op.parts.Plus(more), true
	d.order.RefundedParts = d.order.RefundedParts.Plus(more)
	d.post(disputeHold(d.organiser), organiser(d.organiser), more.Face)
}
