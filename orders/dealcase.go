package orders

import (
	"slices"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
)

// openCase opens a case about an operation of the order. While one is open for the
// reason it stays as it is; what the provider only repeats opens no other after it.
func (d *deal) openCase(c cases.Case, op *Operation) {
	c.HoldID, c.OrderID, c.OperationID, c.Event = &d.order.HoldID, &d.order.ID, &op.ID, d.event.Event
	if c.Amount.Currency == "" {
		c.Amount.Currency = d.event.Currency
	}
	known := d.casesAbout(c.Reason, op)
	once := c.Suspended == 0 && (c.Reason == cases.OutcomeUnknown || c.Reason == cases.AmountMismatch)
	if len(known) > 0 && (once || known[0].Status != cases.Resolved) {
		return
	}
	d.order.Reconciling = true
	d.cases = append(d.cases, cases.OpenedNow(d.s, c, len(known)))
}

// keepCase takes a case as it now is.
func (d *deal) keepCase(c cases.Case) {
	for i := range d.cases {
		if d.cases[i].ID == c.ID {
			d.cases[i] = c
			d.order.Reconciling = d.stillReconciling()
			return
		}
	}
	d.cases = append(d.cases, c)
	d.order.Reconciling = d.stillReconciling()
}

// casesAbout finds the cases about an operation for a reason, as the deal left them so
// far, those first that aren't resolved.
func (d *deal) casesAbout(reason cases.Reason, op *Operation) []cases.Case {
	var list []cases.Case
	for _, c := range append(slices.Clone(d.cases), cases.OfOrder(d.s, d.order.ID)...) {
		about := c.Reason == reason && *c.OperationID == op.ID
		if !about || slices.ContainsFunc(list, func(k cases.Case) bool { return k.ID == c.ID }) {
			continue
		}
		if c.Status == cases.Resolved {
			list = append(list, c)
		} else {
			list = slices.Insert(list, 0, c)
		}
	}
	return list
}

// findCase finds the case about an operation that isn't resolved.
func (d *deal) findCase(reason cases.Reason, op *Operation) (cases.Case, bool) {
	list := d.casesAbout(reason, op)
	if len(list) == 0 || list[0].Status == cases.Resolved {
		return cases.Case{}, false
	}
	return list[0], true
}

// resolveCase resolves what's open about an operation for a reason, by a fact.
func (d *deal) resolveCase(reason cases.Reason, op *Operation, fact string) {
	if c, ok := d.findCase(reason, op); ok {
		d.keepCase(c.Resolve(fact, d.s.Now, d.s.NextSeq()))
	}
}

// stillReconciling tells whether anything of the order is open beside its status: a hold
// whose grace ended, or a case.
func (d *deal) stillReconciling() bool {
	if d.hold != nil && d.hold.Status == holds.Reconciling {
		return true
	}
	for _, c := range d.cases {
		if c.Status != cases.Resolved {
			return true
		}
	}
	return slices.ContainsFunc(cases.OfOrder(d.s, d.order.ID), func(c cases.Case) bool {
		return c.Status != cases.Resolved && !slices.ContainsFunc(d.cases, func(n cases.Case) bool { return n.ID == c.ID })
	})
}
