package orders

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Kinds of this package's entries.
const (
	KindCreated       = "order.created"        // checkout: the order, and its authorization as sent
	KindAttempted     = "order.attempted"      // another checkout after a payment that wasn't made
	KindClaimed       = "order.claimed"        // an operation was leased to a worker again
	KindPaymentOpen   = "order.payment_open"   // an operation waits for the buyer, the provider or evidence
	KindDeclined      = "order.declined"       // an authorization certainly wasn't made
	KindConfirmed     = "order.confirmed"      // the tickets are sold
	KindCaptured      = "order.captured"       // the money is taken
	KindCaptureFailed = "order.capture_failed" // reported as done before
	KindVoided        = "order.voided"
	KindVoidFailed    = "order.void_failed"
	KindCancelled     = "order.cancelled"
	KindReconciling   = "order.reconciling" // the grace ended, and nobody knows
	KindPaidLate      = "order.paid_late"
	KindHonoured      = "order.honoured"
	KindRefundAsked   = "order.refund_asked"
	KindRefunded      = "order.refunded"
	KindRefundFailed  = "order.refund_failed"
	KindChargedBack   = "order.charged_back"
	KindChargebackWon = "order.chargeback_reversed"
	KindCase          = "order.case" // a case of the order was opened or closed, and no money moved
)

// ref says which order a command is about, by what never changes about it: enough to
// read its rows and accounts in one go.
type ref struct {
	order     uuid.UUID
	hold      uuid.UUID
	customer  string
	organiser string
	provider  string
}

// columns are where a row's columns go: the order, its hold, customer, provider.
func (r *ref) columns() []any { return []any{&r.order, &r.hold, &r.customer, &r.provider} }

// OrderIDs names the order.
func (r ref) OrderIDs() []uuid.UUID { return []uuid.UUID{r.order} }

// HoldIDs names the order's hold.
func (r ref) HoldIDs() []uuid.UUID { return []uuid.UUID{r.hold} }

// Accounts that orders post to; those of a provider or an organiser are made below.
const (
	taxAccount   = "tax:sales"
	feesPlatform = "fees:platform"
	lateSuspense = "suspense:late"
	authOpen     = "auth:open"
	authContra   = "auth:contra"
	loss         = "chargeback-loss" // what the platform bears: claims written off, too much paid back
)

func providerAccount(p string) string { return "provider:" + p }
func capturePending(p string) string  { return "capture-pending:" + p }
func refundsPending(p string) string  { return "refunds-pending:" + p }
func disputes(p string) string        { return "disputes:" + p }
func organiser(o string) string       { return "organiser:" + o }
func disputeHold(o string) string     { return "organiser:" + o + ":dispute-hold" }

// Accounts names every account that a decision about the order may post to.
func (r ref) Accounts() []string {
	return []string{
		ledger.Available, ledger.HeldBy(r.customer), ledger.SoldTo(r.customer),
		providerAccount(r.provider), capturePending(r.provider), refundsPending(r.provider), disputes(r.provider),
		organiser(r.organiser), disputeHold(r.organiser), taxAccount, feesPlatform, lateSuspense, authOpen, authContra, loss,
	}
}

// deal is an order in one decision: copies of its rows, which the decision changes, and
// the postings that go with that.
type deal struct {
	ref
	s     *ledger.State
	event *buckets.Event
	order *Order
	hold  *holds.Hold
	legs  []ledger.Leg
	rows  []ledger.Row   // further ones
	cases []cases.Case   // opened or changed
	held  bool           // the hold has changed
	route *buckets.Route // of a command that may sell tickets which nobody holds
}

// open finds the order that a command is about.
func (r ref) open(s *ledger.State) (*deal, error) {
	d := &deal{ref: r, s: s, event: buckets.ShelfOf(s).Event}
	if h, ok := holds.Find(s, r.hold); ok {
		d.hold = &h
	}
	found, ok := shelfOf(s).orders[r.order]
	if !ok {
		return d, notFound(r.order)
	}
	o := *found
	o.Items = slices.Clone(found.Items)
	o.Operations = make([]*Operation, len(found.Operations))
	for i, op := range found.Operations {
		known := *op
		known.changed, known.fresh = false, false
		o.Operations[i] = &known
	}
	o.of(d.event.Event, d.event.Currency)
	d.order = &o
	return d, nil
}

// decide makes the decision of what was done in the deal.
func (d *deal) decide(kind string) ledger.Decision {
	o, version := d.order, d.s.NextSeq()
	o.Version = version
	o.arrange()
	for _, op := range d.changedOps() {
		op.Version = version
		if op.Answered == 0 && op.Status != OpPrepared && op.Status != OpSent {
			op.Answered = version
		}
	}
	o.of(d.event.Event, d.event.Currency)
	rows := append(d.rows, dealRow{d})
	if d.held {
		rows = append(rows, holds.Row(*d.hold))
		o.Hold = d.hold
	}
	for _, c := range d.cases {
		rows = append(rows, cases.Row(c))
	}
	o.Cases = d.cases
	return ledger.Decision{Kind: kind, Legs: d.legs, Rows: rows, Data: o.data()}
}

// move adds the postings of tickets, and the rows of their seats.
func (d *deal) move(legs []ledger.Leg, rows []ledger.Row) {
	d.legs, d.rows = append(d.legs, legs...), append(d.rows, rows...)
}

// changedOps gives the operations that the deal began or changed.
func (d *deal) changedOps() []*Operation {
	var ops []*Operation
	for _, op := range d.order.Operations {
		if op.changed {
			ops = append(ops, op)
		}
	}
	return ops
}

var kindOrder = []payments.Kind{
	payments.Authorize, payments.Capture, payments.Void, payments.Cancel, payments.Refund, payments.Chargeback,
}

// byKind orders operations by kind and attempt.
func byKind(a, b *Operation) int {
	return cmp.Or(cmp.Compare(slices.Index(kindOrder, a.Kind), slices.Index(kindOrder, b.Kind)), cmp.Compare(a.Attempt, b.Attempt))
}

// last gives the order's last operation of a kind; nil when it has none.
func (d *deal) last(kind payments.Kind) *Operation { return d.order.last(kind) }

// exhausted refuses another operation of a kind when the order has had too many.
func (d *deal) exhausted(kind payments.Kind) error {
	if last := d.last(kind); last != nil && last.Attempt >= maxAttempts {
		return ErrTooManyOperations.Because("%d of kind %s", last.Attempt, kind).
			With("order_id", d.order.ID).With("limit", maxAttempts)
	}
	return nil
}

// openOne gives an operation of a kind whose outcome is to come; nil when there's none.
func (d *deal) openOne(kind payments.Kind) *Operation {
	for _, op := range d.order.Operations {
		if op.Kind == kind && op.Status.open() {
			return op
		}
	}
	return nil
}

// begin adds an operation of a kind, prepared and due at once.
func (d *deal) begin(kind payments.Kind, payment string, amount ledger.Amount, reason string) *Operation {
	attempt := 1
	if last := d.last(kind); last != nil {
		attempt = last.Attempt + 1
	}
	op := &Operation{
		ID: ledger.NewID(d.s.Journal, ledger.SystemPrincipal, "operation", d.order.ID.String(), string(kind),
			strconv.Itoa(attempt)),
		Order: d.order.ID, Kind: kind, Attempt: attempt, Status: OpPrepared, Provider: d.provider,
		Payment: payment, Amount: buckets.Money{Amount: amount, Currency: d.event.Currency}, Reason: reason,
		UpdatedAt: d.s.Now, NextAttemptAt: new(d.s.Now), changed: true,
	}
	d.order.Operations = append(d.order.Operations, op)
	return op
}

// send begins an operation and leases it to whoever made the command: the call follows
// the commit.
func (d *deal) send(kind payments.Kind, payment string, amount ledger.Amount, reason string) *Operation {
	op := d.begin(kind, payment, amount, reason)
	op.send(d.s.Now)
	return op
}

// to changes the order's state.
func (d *deal) to(status Status) {
	o := d.order
	if o.Status == status {
		return
	}
	if !slices.Contains(next[o.Status], status) {
		panic(fmt.Sprintf("orders: %s can't become %s", o.Status, status))
	}
	o.Status = status
	if status != Pending {
		o.dueAt = nil
	}
}

// post adds postings in the event's currency that move an amount from an account to
// another.
func (d *deal) post(from, to string, amount ledger.Amount) {
	d.postIn(d.event.Currency, from, to, amount)
}

func (d *deal) postIn(unit ledger.Unit, from, to string, amount ledger.Amount) {
	d.legs = append(d.legs,
		ledger.Leg{Account: to, Unit: unit, Amount: amount},
		ledger.Leg{Account: from, Unit: unit, Amount: -amount})
}

// proceeds posts parts from an account to those whom they belong to; negative ones back.
func (d *deal) proceeds(from string, p holds.Parts) {
	d.post(organiser(d.organiser), from, p.Face)
	d.post(feesPlatform, from, p.Fee)
	d.post(taxAccount, from, p.Tax)
}

// reserve records that an authorization stands, for an amount; 0 for no more.
func (d *deal) reserve(op *Operation, amount ledger.Amount) {
	d.postIn(d.event.Currency+".AUTH", authContra, authOpen, amount-op.authorized)
	op.authorized, op.changed = amount, true
}

// keepHold takes the hold as it now is.
func (d *deal) keepHold(h holds.Hold, legs []ledger.Leg) {
	d.hold, d.held = &h, true
	d.legs = append(d.legs, legs...)
}

// endHold ends the hold if it still claims its tickets, and cancels a pending order; but
// for one of which an authorization may stand or be made now: the tickets are for that.
func (d *deal) endHold() {
	if slices.ContainsFunc(d.order.Operations, func(op *Operation) bool {
		return op.Kind == payments.Authorize && (op.Status == OpSent || op.Status == OpUnknown)
	}) {
		return
	}
	if d.hold != nil && d.hold.Status.Claims() {
		d.keepHold(d.hold.End(d.s.Now, d.s.NextSeq()))
	}
	if d.order.Status == Pending {
		d.to(Cancelled)
	}
}

// fact puts what was verified last into words.
func fact(now time.Time, format string, args ...any) string {
	return now.Format(time.RFC3339) + ": " + fmt.Sprintf(format, args...)
}
