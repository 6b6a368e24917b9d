package orders

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// source is where evidence comes from.
type source string

// The sources of evidence.
const (
	fromAnswer  source = "answer"
	fromLookup  source = "lookup"
	fromWebhook source = "webhook"
	// fromAbsence: the provider doesn't know the operation, so long after its sending
	// that no call can be under way any more.
	fromAbsence source = "absence"
	fromPeople  source = "people" // two of them decided
)

// evidence is what was learned of an operation.
type evidence struct {
	source source
	result payments.Result
}

// observe is the command that applies evidence to an order: the one way in which an
// operation's outcome becomes known.
type observe struct {
	ref
	operation uuid.UUID // ours that it names; uuid.Nil when it's a step of the provider's own
	evidence  evidence
	webhook   *webhook // that brought it; nil for none
}

// Decide applies the evidence. What changes nothing is no entry, unless a webhook is to
// be kept; what can't be applied yet is errParked.
func (c *observe) Decide(s *ledger.State) (ledger.Decision, error) {
	d, err := c.open(s)
	if err != nil {
		return ledger.Decision{}, err
	}
	op, err := d.subject(c.operation, c.evidence.result)
	if err != nil {
		return ledger.Decision{}, err
	}
	kind := d.learn(op, c.evidence)
	if c.webhook != nil {
		w := c.webhook.applied(s)
		d.rows = append(d.rows, w)
		if kind == "" {
			return ledger.Decision{Kind: KindWebhook, Rows: []ledger.Row{w}, Data: w.data(d.order.ID)}, nil
		}
	}
	if kind == "" {
		text, err := json.Marshal(struct {
			OrderID uuid.UUID `json:"order_id"`
		}{d.order.ID})
		return ledger.Decision{Data: text}, err
	}
	return d.decide(kind), nil
}

// subject finds the operation that a provider's word is about: the one that it names; a
// step of ours that the provider did under a name of its own; or a step of its own. Some
// providers give the name of the payment to all that they do with it, so the kind counts.
func (d *deal) subject(named uuid.UUID, r payments.Result) (*Operation, error) {
	if op := d.order.find(named); op != nil && op.Kind == r.Kind {
		return op, nil
	}
	if r.Kind == payments.Capture || r.Kind == payments.Void {
		for _, op := range d.order.Operations {
			if op.Kind == r.Kind && op.Payment == r.Payment.Reference && op.Payment != "" && op.Status.open() {
				return op, nil
			}
		}
	}
	id := ledger.NewID(d.s.Journal, ledger.SystemPrincipal, "foreign", d.provider, r.Reference)
	if op := d.order.find(id); op != nil {
		return op, nil
	}
	return d.foreign(id, r)
}

// foreign begins the operation that a provider's own step with a payment of ours is: a
// refund from its dashboard, or a chargeback.
func (d *deal) foreign(id uuid.UUID, r payments.Result) (*Operation, error) {
	if r.Kind != payments.Refund && r.Kind != payments.Chargeback {
		return nil, errParked.Because("order %s has no operation %s", d.order.ID, id)
	}
	if _, late := d.suspenseCase(r.Payment.Reference); !late && d.order.Captured.Amount == 0 {
		return nil, errParked.Because("order %s isn't captured", d.order.ID)
	}
	op := d.begin(r.Kind, r.Payment.Reference, r.Amount.Amount, "by the provider")
	op.Amount = r.Amount
	op.ID, op.Status, op.NextAttemptAt = id, OpPending, nil
	op.fresh = true
	return op, nil
}

// learn applies evidence to one operation and gives the kind of the entry; "" when it
// says nothing new.
func (d *deal) learn(op *Operation, e evidence) string {
	r, now := e.result, d.s.Now
	status := OperationStatus(r.Outcome)
	switch r.Outcome {
	case payments.Unknown:
		if op.Status != OpSent {
			return ""
		}
	case payments.NotAttempted:
		status = op.notAttempted(e.source)
		if status == "" {
			return ""
		}
	default:
		// It was so once; but what has succeeded wasn't waiting for it any more, whatever the
		// provider's clocks say.
		old := op.ToldAt != nil && r.At.Before(*op.ToldAt)
		if old && !(op.Status.open() && r.Outcome == payments.Succeeded) {
			return ""
		}
	}
	if status == op.Status && !op.fresh || status != op.Status && !op.can(status) {
		return ""
	}
	was := op.Status
	if mismatch(op, r) {
		return d.differs(cases.AmountMismatch, op, r)
	}
	if d.tooLate(op, status) {
		return d.differs(cases.TakenBack, op, r)
	}
	op.to(status, now)
	op.tell(r)
	if status.open() && op.sends > 0 {
		op.wait(now, op.backoff())
	}
	return d.conclude(op, was, r)
}

// notAttempted is what an operation is after a call that did nothing; "" for no change:
// an earlier call may have done it.
func (op *Operation) notAttempted(source source) OperationStatus {
	switch {
	case source == fromAbsence, source == fromPeople:
		return OpNotAttempted
	case op.Status != OpSent || op.sends > 1:
		return ""
	case op.Kind == payments.Authorize:
		return OpNotAttempted
	}
	return OpPrepared // it has to be done, so it's sent again
}

// tell takes what the provider says of the operation itself.
func (op *Operation) tell(r payments.Result) {
	if r.Reference != "" {
		op.Reference = r.Reference
	}
	if r.Payment.Reference != "" {
		op.Payment = r.Payment.Reference
	}
	if !r.At.IsZero() {
		at := r.At
		if at.After(op.UpdatedAt.Add(clockSkew)) {
			at = op.UpdatedAt.Add(-clockSkew) // a clock that was ahead mustn't make later words old
		}
		op.ToldAt = &at
	}
	op.nextAction = r.NextAction
	if op.Kind != payments.Cancel && (r.Reason != "" || r.Outcome == payments.Declined) {
		op.Reason = r.Reason // of the end of an intent it's who wanted that
	}
}

// mismatch tells whether the provider says that it did something else than it was asked
// to: of an authorization that's judged with the money.
func mismatch(op *Operation, r payments.Result) bool {
	if r.Outcome != payments.Succeeded || op.Kind == payments.Authorize || op.Kind == payments.Void || op.Kind == payments.Cancel {
		return false
	}
	more := r.Amount.Amount > op.Amount.Amount
	less := r.Amount.Amount < op.Amount.Amount && op.Kind != payments.Capture
	return r.Amount.Currency != op.Amount.Currency || more || less || r.Amount.Amount == 0
}

// tooLate tells whether the provider takes back a payment whose money has gone on since:
// no posting makes sense of that, people must.
func (d *deal) tooLate(op *Operation, to OperationStatus) bool {
	return op.Status == OpSucceeded && to == OpDeclined && (op.Kind == payments.Capture || op.Kind == payments.Authorize) &&
		(!d.fast(op) || d.writtenOff(op))
}

// differs leaves an operation as it is, for people to see what the provider says of it.
func (d *deal) differs(reason cases.Reason, op *Operation, r payments.Result) string {
	n := len(d.cases)
	d.openCase(cases.Case{
		Reason: reason, Amount: r.Amount,
		LastFact: fact(d.s.Now, "the provider reports a %s of %d %s as %s; of %d %s it was %s here", op.Kind,
			r.Amount.Amount, r.Amount.Currency, r.Outcome, op.Amount.Amount, op.Amount.Currency, op.Status),
	}, op)
	if len(d.cases) == n {
		return ""
	}
	op.changed = true
	return KindCase
}

// conclude does what the new state of an operation brings.
func (d *deal) conclude(op *Operation, was OperationStatus, r payments.Result) string {
	if !op.Status.open() {
		d.resolveCase(cases.OutcomeUnknown, op, fact(d.s.Now, "the %s is %s", op.Kind, op.Status))
		if op.Kind != payments.Authorize {
			d.resolveCase(cases.AmountMismatch, op, fact(d.s.Now, "the %s is %s", op.Kind, op.Status))
		}
	}
	switch op.Kind {
	case payments.Authorize:
		return d.concludeAuthorize(op, was, r)
	case payments.Capture:
		return d.concludeCapture(op, was, r)
	case payments.Void:
		return d.concludeVoid(op, r)
	case payments.Cancel:
		return d.concludeCancel(op, r)
	case payments.Refund:
		return d.concludeRefund(op, was)
	case payments.Chargeback:
		return d.concludeChargeback(op, was)
	}
	panic(fmt.Sprintf("orders: operation of kind %s", op.Kind))
}

// concludeAuthorize goes by the state of an authorization.
func (d *deal) concludeAuthorize(op *Operation, was OperationStatus, r payments.Result) string {
	o := d.order
	switch op.Status {
	case OpSucceeded:
		return d.paid(op, r)
	case OpDeclined, OpNotAttempted:
		if was == OpSucceeded {
			return d.takenBack(op)
		}
		return d.unpaid(op)
	}
	if o.Status == Pending {
		if op.Status != OpUnknown && !d.s.Now.Before(o.PayUntil) {
			d.endIntent(op, reasonGrace) // its grace ended before this was known
		}
		o.PaymentStatus = map[OperationStatus]PaymentStatus{
			OpRequiresAction: PaymentRequiresAction, OpPending: PaymentAuthorizing, OpUnknown: PaymentUnknown,
		}[op.Status]
	}
	return KindPaymentOpen
}

// unpaid follows an authorization that certainly wasn't made. The hold is the buyer's as
// long as it was before; with another attempt under way it stays as it is.
func (d *deal) unpaid(op *Operation) string {
	o := d.order
	if o.Status != Pending || d.openOne(payments.Authorize) != nil {
		return KindDeclined
	}
	o.PaymentStatus = PaymentDeclined
	if s := d.hold.Status; s == holds.PaymentPending || s == holds.Reconciling {
		d.keepHold(d.hold.Again(d.s.Now, d.s.NextSeq()))
	}
	if d.hold.Status == holds.Held {
		o.dueAt = new(d.hold.ExpiresAt)
	} else {
		d.to(Cancelled)
	}
	o.Reconciling = d.stillReconciling()
	return KindDeclined
}

// clockSkew is how far the provider's clock may differ from the database's before a
// payment in time counts as late.
const clockSkew = 5 * time.Second

// captures tells whether a payment has a capture of ours: then what's captured of it
// wasn't taken with the authorization.
func (d *deal) captures(payment string) bool {
	return slices.ContainsFunc(d.order.Operations, func(op *Operation) bool {
		return op.Kind == payments.Capture && op.Payment == payment
	})
}

// paid follows an authorization that stands, or a payment whose money was taken with it:
// it buys the tickets if it can, and rests with a case otherwise.
func (d *deal) paid(op *Operation, r payments.Result) string {
	if !d.captures(op.Payment) {
		op.taken = r.Payment.Captured
	}
	amount := buckets.Money{Amount: r.Payment.Authorized, Currency: r.Payment.Currency}
	if op.taken > 0 {
		amount.Amount = op.taken
	}
	if op.taken == 0 && amount.Currency == d.event.Currency && amount.Amount <= op.Amount.Amount {
		d.reserve(op, amount.Amount)
	}
	o, h := d.order, d.hold
	switch {
	case amount != o.Total:
		return d.paidLate(op, cases.AmountMismatch, amount, r.At)
	case o.Status != Pending && o.Status != Cancelled:
		return d.paidLate(op, cases.DuplicatePayment, amount, r.At)
	case o.Status == Cancelled, !h.Status.Claims(), h.Due(d.s.Now):
		return d.paidLate(op, cases.LatePayment, amount, r.At)
	case holds.WithinLimits(d.s, d.customer, h.Items) != nil:
		return d.paidLate(op, cases.NotConfirmable, amount, r.At)
	}
	d.confirm(op)
	o.Reconciling = d.stillReconciling()
	return KindConfirmed
}
