package sim

import (
	"net/http"

	"github.com/tierledger/tierledger/payments"
)

// complete is the bank's yes: to the payment, however late, or else to the refund that
// has waited longest.
func complete(b *book, p payment, r *request, m moment) (change, *refusal) {
	if p.Status != requiresAction && p.Status != processing && p.Status != canceled {
		return b.endRefund(p, true, m)
	}
	amount := p.Amount
	if r.Amount != 0 {
		if p.Method != methodTransfer || r.Amount < 0 || r.Amount > maxAmount {
			return change{}, refuse(http.StatusBadRequest, "invalid_request",
				"amount: only a transfer can bring another amount than asked for, 1 to %d", int64(maxAmount))
		}
		amount = r.Amount
	}
	o := b.last(p.ID, isAuthorization)
	o.settle(payments.Succeeded, "", m.now)
	o.Amount = amount
	p.pay(amount)
	c := p.changed(m.now, o)
	c.Rows = b.charged(&p, &o)
	return c, nil
}

// fail is the bank's no: to a refund under way; or to the payment, from whatever it has
// said yes to so far.
func fail(b *book, p payment, _ *request, m moment) (change, *refusal) {
	o := b.last(p.ID, isAuthorization)
	switch {
	case p.Status == requiresAction || p.Status == processing:
		o.settle(payments.Declined, "buyer_failed", m.now)
	case p.Status == authorized:
		o.settle(payments.Declined, "authorization_revoked", m.now)
	case p.Captured > 0 && p.refundable() == p.Captured:
		return b.uncapture(p, m), nil
	default:
		return b.endRefund(p, false, m)
	}
	p.Status, p.Authorized = failed, 0
	return p.changed(m.now, o), nil
}

// uncapture takes captured money back, with its fee.
func (b *book) uncapture(p payment, m moment) change {
	o := b.last(p.ID, func(o *operation) bool {
		return o.Kind == payments.Capture || o.Kind == payments.Authorize
	})
	o.settle(payments.Declined, "capture_failed", m.now)
	back := b.newRow(rowCaptureFailed, &o, -p.Captured, -feeOf(p.Captured, p.Currency))
	p.Status, p.Authorized, p.Captured = failed, 0, 0
	c := p.changed(m.now, o)
	c.Rows = []row{back}
	return c
}

// endRefund settles the oldest refund that is pending.
func (b *book) endRefund(p payment, paid bool, m moment) (change, *refusal) {
	for _, first := range b.byPayment[p.ID] {
		o := *b.operations[first.ID]
		if o.Kind != payments.Refund || o.Status != payments.Pending {
			continue
		}
		p.RefundsPending -= o.Amount
		if !paid {
			o.settle(payments.Declined, "refund_failed", m.now)
			return p.changed(m.now, o), nil
		}
		o.settle(payments.Succeeded, "", m.now)
		p.refund(o.Amount)
		c := p.changed(m.now, o)
		c.Rows = []row{b.newRow(rowRefund, &o, -o.Amount, 0)}
		return c, nil
	}
	return change{}, conflict("nothing_open", &p)
}

// dispute takes an amount back from the merchant, or all that's left, and charges for
// it. The operation is the provider's own: it has no reference.
func dispute(b *book, p payment, r *request, m moment) (change, *refusal) {
	amount := r.Amount
	if amount == 0 {
		amount = p.refundable()
	}
	switch {
	case p.Captured == 0:
		return change{}, conflict("not_captured", &p)
	case amount <= 0 || amount > p.refundable():
		return change{}, conflict("amount_too_large", &p)
	}
	o := b.newOperation(&p, payments.Chargeback, "", amount, m.now)
	p.Disputed += amount
	back := b.newRow(rowChargeback, &o, -amount, 0)
	fee := b.newRow(rowFee, &o, 0, disputeFee)
	fee.ID, fee.Currency = back.ID+"_fee", disputeFeeCurrency
	c := p.changed(m.now, o)
	c.Rows = []row{back, fee}
	return c, nil
}
