package orders

import (
	"slices"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// lateReasons are those of cases about a payment that couldn't buy the tickets.
var lateReasons = []cases.Reason{
	cases.LatePayment, cases.DuplicatePayment, cases.AmountMismatch, cases.NotConfirmable,
}

// suspenseCase finds the case that isn't resolved and that money of a payment rests in
// suspense for, or did until its refund was sent.
func (d *deal) suspenseCase(payment string) (cases.Case, bool) {
	var found cases.Case
	for _, op := range d.order.Operations {
		if op.Payment != payment {
			continue
		}
		for _, reason := range append([]cases.Reason{cases.RefundFailed, cases.Chargeback}, lateReasons...) {
			c, ok := d.findCase(reason, op)
			if ok && (c.Suspended > 0 || c.Status == cases.Resolving) && (found.ID == uuid.Nil || c.Suspended > found.Suspended) {
				found = c
			}
		}
	}
	return found, found.Suspended > 0 || found.Status == cases.Resolving
}

// suspend accounts for money of a payment that rests in suspense again: for the case that
// it had rested for, or a new one about the operation.
func (d *deal) suspend(op *Operation, amount ledger.Amount, reason cases.Reason, told string) {
	c, ok := d.suspenseCase(op.Payment)
	if !ok || c.Amount.Currency != op.Amount.Currency || c.Suspended+amount > c.Amount.Amount {
		d.openCase(cases.Case{
			Reason: reason, Amount: buckets.Money{Amount: amount, Currency: op.Amount.Currency}, Suspended: amount, LastFact: told,
		}, op)
		return
	}
	if c.Status == cases.Resolving {
		c = c.Reopen(told, d.s.NextSeq())
	}
	c.Suspended += amount
	c.LastFact, c.Version = told, d.s.NextSeq()
	d.keepCase(c)
}

// release gives money of a payment that the provider has paid back out of suspense, as
// far as it rests there, and tells how much that was.
func (d *deal) release(op *Operation, amount ledger.Amount, told string) ledger.Amount {
	c, ok := d.suspenseCase(op.Payment)
	if !ok || c.Amount.Currency != op.Amount.Currency {
		return 0
	}
	n := min(amount, c.Suspended)
	if n == 0 {
		return 0
	}
	d.postIn(op.Amount.Currency, providerAccount(d.provider), lateSuspense, n)
	c.Suspended -= n
	c.LastFact, c.Version = told, d.s.NextSeq()
	if c.Suspended == 0 {
		c = c.Resolve(told, d.s.Now, d.s.NextSeq())
		if !d.order.Status.Owns() {
			d.order.PaymentStatus = PaymentRefunded
		}
	}
	d.keepCase(c)
	return n
}

// refundSuspended owes the money that rests for a case to the buyer, and sends the refund.
func (d *deal) refundSuspended(c cases.Case, op *Operation) {
	d.postIn(c.Amount.Currency, refundsPending(d.provider), lateSuspense, c.Suspended)
	refund := d.send(payments.Refund, op.Payment, c.Suspended, string(c.Reason))
	refund.Amount.Currency = c.Amount.Currency
	d.order.PaymentStatus = d.refundStatus()
}

// brought is the money that came with an authorization, or that a capture was to take.
func (op *Operation) brought() ledger.Amount {
	if op.Kind == payments.Capture {
		return op.Amount.Amount
	}
	return op.taken
}

// takenBack follows a payment whose money had come, as the provider said, and hasn't, as
// it says now.
func (d *deal) takenBack(op *Operation) string {
	taken := op.brought()
	op.taken = 0
	if c, ok := d.suspenseCase(op.Payment); ok {
		d.postIn(c.Amount.Currency, providerAccount(d.provider), lateSuspense, taken)
		c.Suspended -= taken
		d.keepCase(c.Resolve(fact(d.s.Now, "the provider says that the payment has failed: %s", op.Reason), d.s.Now, d.s.NextSeq()))
		d.order.PaymentStatus = PaymentDeclined
		return KindCaptureFailed
	}
	return d.reopenCapture(op)
}

// writtenOff tells whether people have written off what a payment brought.
func (d *deal) writtenOff(op *Operation) bool {
	return slices.ContainsFunc(append(d.casesAbout(cases.CaptureFailed, op), d.casesAbout(cases.TakenBack, op)...), func(c cases.Case) bool {
		return c.Status == cases.Resolved && c.Resolution == cases.WriteOff
	})
}

// fast tells whether money that a payment brought rests where it came to, all of it: on
// the order, or in suspense. Otherwise the provider can't take it back without people.
func (d *deal) fast(op *Operation) bool {
	if c, ok := d.suspenseCase(op.Payment); ok {
		return c.Suspended == op.brought() && c.Status != cases.Resolving
	}
	return d.order.RefundedParts.Sum() == 0 && d.order.Status == Captured && d.paymentTaken() == op.Payment &&
		!slices.ContainsFunc(d.order.Operations, func(r *Operation) bool {
			return r.Payment == op.Payment && r.Kind == payments.Refund && r.Status.open()
		})
}
