package orders

import (
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/payments"
)

// paidLate keeps a payment that can't buy the tickets as it comes: money rests in
// suspense, an authorization stands, and a case says what it's about. What policy
// decides is decided by the next command; the rest is for people.
func (d *deal) paidLate(op *Operation, reason cases.Reason, amount buckets.Money, at time.Time) string {
	taken := op.taken
	if op.Kind == payments.Capture {
		taken = amount.Amount
	}
	if taken > 0 {
		d.postIn(amount.Currency, lateSuspense, providerAccount(d.provider), taken)
	}
	c := cases.Case{
		Reason: reason, Amount: amount, Suspended: taken, ToldAt: &at,
		LastFact: fact(d.s.Now, "payment %s of %d %s was made at %s by the provider's clock; until %s was time",
			op.Payment, amount.Amount, amount.Currency, at.Format(time.RFC3339), d.order.PayUntil.Format(time.RFC3339)),
	}
	if d.automatic(reason, at) {
		c.NextAttemptAt = &d.s.Now
	}
	if until := d.event.HonourUntil; until != nil && until.After(d.s.Now) {
		c.Deadline = cases.Deadline(d.s.Now, *until)
	}
	d.endHold()
	if d.order.Status == Cancelled {
		d.order.PaymentStatus = PaymentAuthorized
		if taken > 0 {
			d.order.PaymentStatus = PaymentCaptured
		}
	}
	d.openCase(c, op)
	return KindPaidLate
}

// automatic tells whether a late payment is decided without people. One that was made
// in time, and only told late, is honoured if it can be, whatever the policy.
func (d *deal) automatic(reason cases.Reason, at time.Time) bool {
	switch reason {
	case cases.DuplicatePayment, cases.NotConfirmable:
		return true
	case cases.LatePayment:
		return d.event.LatePaymentPolicy != buckets.Review || d.inTime(at)
	}
	return false
}

// inTime tells whether a payment was made while its hold was good, by the provider's
// clock, and the order was given up for nothing but its time.
func (d *deal) inTime(at time.Time) bool {
	end := d.last(payments.Cancel)
	return !at.After(d.order.PayUntil.Add(clockSkew)) && d.hold.Status == holds.Expired &&
		(end == nil || end.Reason == reasonGrace)
}
