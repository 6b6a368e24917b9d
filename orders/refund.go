package orders

import (
	"fmt"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/seats"
)

// maxReason bounds the text of a reason, in bytes.
const maxReason = 500

// RefundRequest is what's to be paid back, and whether tickets come back with it.
// Without an amount and items it's all that's left.
type RefundRequest struct {
	Amount        *buckets.Money `json:"amount,omitempty"` // in the order's currency; 0 returns tickets alone
	Items         []RefundLine   `json:"items,omitempty"`  // which tickets; without an amount, what they cost
	ReturnTickets bool           `json:"return_tickets"`   // they go on sale again
	Reason        string         `json:"reason"`
}

// RefundLine is a quantity of a tier; of one that's sold by seat, the seats, or without
// their names all that the order owns.
type RefundLine struct {
	Tier     ledger.Unit   `json:"tier"`
	Quantity ledger.Amount `json:"quantity,omitempty"` // with seats, their number or left out
	Seats    []string      `json:"seats,omitempty"`
}

// validate refuses what no state of the order could make right.
func (r *RefundRequest) validate() error {
	switch {
	case r.Reason == "" || len(r.Reason) > maxReason:
		return fault.BadField("reason", "must have 1 to %d bytes", maxReason)
	case len(r.Items) > holds.MaxItems:
		return fault.BadField("items", "at most %d lines", holds.MaxItems)
	case r.Amount != nil && r.Amount.Amount < 0:
		return fault.BadField("amount.amount", "can't be negative")
	case r.Amount != nil && r.Amount.Amount == 0 && (!r.ReturnTickets || len(r.Items) == 0):
		return fault.BadField("amount.amount", "0 returns tickets alone: name them in items, with return_tickets")
	case r.Amount != nil && len(r.Items) == 0 && r.ReturnTickets:
		return fault.BadField("items", "must name the tickets that an amount returns")
	}
	named := make(map[string]bool)
	for i := range r.Items {
		l := &r.Items[i]
		if err := l.validate(fmt.Sprintf("items[%d]", i), named); err != nil {
			return err
		}
		if l.Quantity < 1 || l.Quantity > holds.MaxQuantity {
			return fault.BadField(fmt.Sprintf("items[%d].quantity", i), "must be 1 to %d", holds.MaxQuantity)
		}
	}
	return nil
}

// validate refuses seats that can't be named, or were by another line, and counts them.
func (l *RefundLine) validate(field string, named map[string]bool) error {
	if l.Seats == nil {
		return nil
	}
	if err := seats.ValidLabels(field+".seats", l.Seats, holds.MaxSeats); err != nil {
		return err
	}
	for _, label := range l.Seats {
		if named[label] {
			return fault.BadField(field+".seats", "%s is named twice", label)
		}
		named[label] = true
	}
	if l.Quantity == 0 {
		l.Quantity = ledger.Amount(len(l.Seats))
	}
	if l.Quantity != ledger.Amount(len(l.Seats)) {
		return fault.BadField(field+".quantity", "must be the number of the seats, or left out")
	}
	return nil
}

// refund is the command that pays back.
type refund struct {
	ref
	request RefundRequest
	ifMatch *ledger.Seq
}

// Decide owes the amount to the buyer, puts tickets back on sale, and sends the refund.
func (c *refund) Decide(s *ledger.State) (ledger.Decision, error) {
	d, err := c.open(s)
	if err != nil {
		return ledger.Decision{}, err
	}
	o := d.order
	switch {
	case c.ifMatch != nil && *c.ifMatch != o.Version:
		return ledger.Decision{}, versionConflict(o)
	case o.Captured.Amount == 0 && o.Total.Amount > 0 || !o.Status.Owns():
		return ledger.Decision{}, ErrOrderNotCaptured.Because("order %s is %s", o.ID, o.Status).With("order_id", o.ID)
	case c.request.Amount != nil && c.request.Amount.Currency != d.event.Currency:
		return ledger.Decision{}, ErrCurrencyMismatch.Because("order %s is in %s", o.ID, d.event.Currency).
			With("currency", d.event.Currency)
	}
	if err := d.exhausted(payments.Refund); err != nil {
		return ledger.Decision{}, err
	}
	items, cost, err := c.lines(d)
	if err != nil {
		return ledger.Decision{}, err
	}
	parts, err := c.parts(d, cost)
	if err != nil {
		return ledger.Decision{}, err
	}
	if c.request.ReturnTickets {
		d.move(holds.Return(o.HoldID, d.customer, items))
	}
	if parts.Sum() > 0 {
		d.payBack(parts, c.request.Reason)
	}
	return d.decide(KindRefundAsked), nil
}

// lines takes the asked tickets off the order's lines, if they're to come back, and tells
// what they cost. Without any asked it's all that the order owns.
func (c *refund) lines(d *deal) ([]holds.Item, holds.Parts, error) {
	var items []holds.Item
	var cost holds.Parts
	asked := c.request.Items
	if len(asked) == 0 {
		for _, i := range d.order.tickets() {
			asked = append(asked, RefundLine{i.Tier, i.Quantity, i.Seats})
		}
	}
	for n, l := range asked {
		if err := l.namesSeats(d.order, n); err != nil {
			return nil, cost, err
		}
		need := l.Quantity
		var owned ledger.Amount
		for i := range d.order.Items {
			line := &d.order.Items[i]
			if line.Tier != l.Tier {
				continue
			}
			part, all := l.of(line, need)
			owned += all
			if part.Quantity == 0 {
				continue
			}
			need -= part.Quantity
			items = append(items, part)
			cost = cost.Plus(line.Of(part.Quantity))
			if c.request.ReturnTickets {
				line.giveBack(&part)
			}
		}
		if need > 0 {
			return nil, cost, ErrTicketsNotOwned.Because("the order owns %d of %s, %d asked", owned, l.Tier, l.Quantity).
				With("tier", l.Tier).With("owned", owned).With("asked", l.Quantity)
		}
	}
	return items, cost, nil
}

// namesSeats refuses a part of the order's tickets of a tier that doesn't say which seats.
func (l *RefundLine) namesSeats(o *Order, n int) error {
	var owned ledger.Amount
	seated := false
	for i := range o.Items {
		if line := &o.Items[i]; line.Tier == l.Tier {
			owned += line.owned().Quantity
			seated = seated || line.Seats != nil
		}
	}
	if !seated || l.Seats != nil || l.Quantity >= owned {
		return nil
	}
	return seats.ErrSeatsRequired.Because("items[%d]: name the seats of %s", n, l.Tier).
		With("field", fmt.Sprintf("items[%d].seats", n)).With("tier", l.Tier)
}

// of gives what of a line is asked, up to a quantity, and how much the order owns of it:
// with seats named, of those.
func (l *RefundLine) of(line *Item, most ledger.Amount) (part holds.Item, all ledger.Amount) {
	part = line.owned()
	if l.Seats != nil {
		part.Seats = slices.DeleteFunc(part.Seats, func(label string) bool { return !slices.Contains(l.Seats, label) })
		part.Quantity = ledger.Amount(len(part.Seats))
	}
	all = part.Quantity
	part.Quantity = min(all, most)
	return part, all
}

// parts tells what the refund takes of each part of the order.
func (c *refund) parts(d *deal, cost holds.Parts) (holds.Parts, error) {
	o, left := d.order, d.order.left()
	most := min(left.Sum(), o.Captured.Amount-o.RefundedParts.Sum())
	asked := cost.Sum()
	switch {
	case c.request.Amount != nil:
		asked = c.request.Amount.Amount
	case len(c.request.Items) == 0:
		asked = most
	}
	if asked > most || asked == 0 && most == 0 && c.request.Amount == nil && o.Total.Amount > 0 {
		return holds.Parts{}, ErrRefundExceedsCaptured.
			Because("%d was captured, %d was refunded, %d asked", o.Captured.Amount, o.RefundedParts.Sum(), asked).
			With("captured", o.Captured.Amount).With("refunded", o.RefundedParts.Sum()).With("asked", asked)
	}
	if c.request.Amount == nil && len(c.request.Items) > 0 &&
		cost.Face <= left.Face && cost.Fee <= left.Fee && cost.Tax <= left.Tax {
		return cost, nil
	}
	return split(asked, left), nil
}

// split divides an amount over parts in proportion to what's left of them, by largest
// remainder in the order face, fee, tax: the shares sum to the amount, and none is more
// than what's left of its part.
func split(amount ledger.Amount, left holds.Parts) holds.Parts {
	whole := left.Sum()
	if whole == 0 {
		return holds.Parts{}
	}
	weights := [3]ledger.Amount{left.Face, left.Fee, left.Tax}
	var shares [3]ledger.Amount
	var remainders [3]decimal.Decimal
	rest := amount
	for i, w := range weights {
		q, r := decimal.NewFromInt(int64(amount)).Mul(decimal.NewFromInt(int64(w))).QuoRem(decimal.NewFromInt(int64(whole)), 0)
		shares[i], remainders[i] = ledger.Amount(q.IntPart()), r
		rest -= shares[i]
	}
	for ; rest > 0; rest-- {
		most := 0
		for i := range remainders {
			if remainders[i].GreaterThan(remainders[most]) {
				most = i
			}
		}
		shares[most]++
		remainders[most] = decimal.NewFromInt(-1)
	}
	return holds.Parts{Face: shares[0], Fee: shares[1], Tax: shares[2]}
}

// payBack owes parts to the buyer, and sends the refund of the payment that took them.
func (d *deal) payBack(parts holds.Parts, reason string) {
	o := d.order
	d.proceeds(refundsPending(d.provider), holds.Parts{}.Minus(parts))
	o.RefundedParts = o.RefundedParts.Plus(parts)
	op := d.send(payments.Refund, d.paymentTaken(), parts.Sum(), reason)
	op.parts = parts
	o.PaymentStatus = PaymentRefunding
}

// paymentTaken is the provider's reference of the payment that paid the order.
func (d *deal) paymentTaken() string {
	for _, op := range d.order.Operations {
		if op.Status == OpSucceeded && (op.Kind == payments.Capture || op.taken > 0) && !d.setAside(op) {
			return op.Payment
		}
	}
	return ""
}

// setAside tells whether a payment couldn't buy the tickets when it came, and didn't later.
func (d *deal) setAside(op *Operation) bool {
	return slices.ContainsFunc(lateReasons, func(reason cases.Reason) bool {
		if reason == cases.AmountMismatch && op.Kind == payments.Capture {
			return false // what was said of it first was something else
		}
		return slices.ContainsFunc(d.casesAbout(reason, op), func(c cases.Case) bool {
			return c.Status != cases.Resolved || c.Resolution != cases.Honour
		})
	})
}
