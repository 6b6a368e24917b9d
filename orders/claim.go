package orders

import (
	"errors"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// errNotDue says that an operation isn't to be worked on: it's settled, or another worker
// has it.
var errNotDue = errors.New("orders: not due")

// claim is the command that leases a due operation to one worker.
type claim struct {
	ref
	operation uuid.UUID
	again     bool // a repeat of the checkout whose call had not been made
}

// Decide leases it, or says that there's nothing to do.
func (c *claim) Decide(s *ledger.State) (ledger.Decision, error) {
	d, err := c.open(s)
	if err != nil {
		return ledger.Decision{}, err
	}
	op := d.order.find(c.operation)
	switch {
	case op == nil:
		return ledger.Decision{}, errNotDue
	case c.again:
		if !d.again(op) {
			return ledger.Decision{}, errNotDue
		}
	case !op.Status.open() || op.NextAttemptAt == nil || op.NextAttemptAt.After(s.Now):
		return ledger.Decision{}, errNotDue
	}
	op.send(s.Now)
	op.UpdatedAt = s.Now
	unpaid := op.Status == OpRequiresAction || op.Status == OpPending
	overdue := d.order.Status == Pending && !s.Now.Before(d.order.PayUntil)
	if op.Kind == payments.Authorize && unpaid && overdue {
		d.endIntent(op, reasonGrace) // again, if the provider has refused that
	}
	if op.exhausted() && (op.Status != OpRequiresAction || overdue) {
		d.openCase(cases.Case{Reason: cases.OutcomeUnknown, Amount: op.Amount,
			LastFact: fact(s.Now, "the %s was sent at %s and has no outcome", op.Kind, op.sentAt.UTC().Format("2006-01-02 15:04:05 MST")),
		}, op)
	}
	return d.decide(KindClaimed), nil
}

// again tells whether an authorization that certainly wasn't attempted may be sent after
// all, and takes the hold back into payment.
func (d *deal) again(op *Operation) bool {
	h := d.hold
	if op.Status != OpNotAttempted || op != d.last(payments.Authorize) || d.order.Status != Pending ||
		h.Status != holds.Held || h.ExpiresAt.Sub(d.s.Now) < minTimeLeft {
		return false
	}
	d.keepHold(h.Pay(0, d.s.NextSeq()), nil)
	d.order.PaymentStatus, d.order.dueAt = PaymentAuthorizing, d.hold.PayUntil
	op.Answered, op.sends, op.sentAt = 0, 0, nil // no call has been made for it
	return true
}

// reasonGrace is why the program ends a payment that the buyer hasn't made; reasonAsked
// why a caller does.
const (
	reasonGrace = "grace_ended"
	reasonAsked = "order_cancelled"
)

// timeout is the command that looks at a pending order whose time is over.
type timeout struct{ ref }

// Decide ends what's known to be unpaid, asks the provider to end what isn't paid yet,
// and keeps the tickets of what nobody knows.
func (c *timeout) Decide(s *ledger.State) (ledger.Decision, error) {
	d, err := c.open(s)
	if err != nil {
		return ledger.Decision{}, err
	}
	o := d.order
	if o.dueAt == nil || o.dueAt.After(s.Now) || o.Status != Pending {
		return ledger.Decision{}, errNotDue
	}
	if !d.hold.Status.Claims() || d.hold.Status == holds.Held { // it ended, or will before anything else
		o.PaymentStatus = PaymentDeclined
		d.endHold()
		return d.decide(KindCancelled), nil
	}
	op := d.openOne(payments.Authorize)
	switch {
	case op == nil:
		d.endHold()
		return d.decide(KindCancelled), nil
	case op.Status == OpRequiresAction || op.Status == OpPending:
		d.endIntent(op, reasonGrace)
		o.dueAt = nil
		return d.decide(KindPaymentOpen), nil
	}
	d.reconcile()
	return d.decide(KindReconciling), nil
}

// reconcile keeps the tickets of an order whose grace has ended with the outcome unknown.
func (d *deal) reconcile() {
	if d.hold.Status == holds.PaymentPending {
		d.keepHold(d.hold.Reconcile(d.s.NextSeq()), nil)
	}
	d.order.Reconciling, d.order.dueAt = true, nil
	d.order.PaymentStatus = PaymentUnknown
}

// endIntent prepares the end of a payment that the buyer hasn't made.
func (d *deal) endIntent(op *Operation, reason string) *Operation {
	if known := d.openOne(payments.Cancel); known != nil {
		return known
	}
	return d.begin(payments.Cancel, op.Payment, 0, reason)
}

// cancel is the command that ends an order that isn't paid.
type cancel struct {
	ref
	ifMatch *ledger.Seq
}

// Decide ends it at once where nothing can have been paid, or sends the provider the end
// of the payment.
func (c *cancel) Decide(s *ledger.State) (ledger.Decision, error) {
	d, err := c.open(s)
	if err != nil {
		return ledger.Decision{}, err
	}
	o := d.order
	switch {
	case c.ifMatch != nil && *c.ifMatch != o.Version:
		return ledger.Decision{}, versionConflict(o)
	case o.Status == Cancelled:
		return ledger.Decision{Data: o.data()}, nil
	case o.Status == Captured || o.Status == PartiallyRefunded || o.Status == Refunded:
		return ledger.Decision{}, ErrOrderCaptured.Because("order %s is %s", o.ID, o.Status).With("order_id", o.ID)
	case o.Status == Confirmed:
		return c.confirmed(d)
	}
	op := d.openOne(payments.Authorize)
	switch {
	case op == nil:
		o.PaymentStatus = PaymentDeclined
		d.endHold()
		return d.decide(KindCancelled), nil
	case op.Status == OpRequiresAction || op.Status == OpPending:
		if d.openOne(payments.Cancel) != nil { // it's under way
			return ledger.Decision{Data: o.data()}, nil
		}
		d.endIntent(op, reasonAsked).send(s.Now)
		return d.decide(KindPaymentOpen), nil
	}
	return ledger.Decision{}, inProgress(o)
}

// confirmed cancels an order whose capture has failed after all; with one under way it
// can't be told yet whether there's something to refund.
func (c *cancel) confirmed(d *deal) (ledger.Decision, error) {
	op := d.last(payments.Capture)
	if op == nil { // a payment that was taken at once, and taken back
		op = d.last(payments.Authorize)
	}
	if op == nil || op.Status.open() {
		return ledger.Decision{}, inProgress(d.order)
	}
	d.compensate(op, payments.Result{})
	d.resolveCase(cases.CaptureFailed, op, fact(d.s.Now, "the order was cancelled"))
	return d.decide(KindCancelled), nil
}

func inProgress(o *Order) error {
	return holds.ErrPaymentInProgress.Because("order %s is being paid", o.ID).With("order_id", o.ID)
}

func versionConflict(o *Order) error {
	return buckets.ErrVersionConflict.Because("order %s has version %d", o.ID, o.Version).With("version", o.Version)
}
