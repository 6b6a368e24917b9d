package orders

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Whatever buyers, providers, people and time do, and in whatever order it's told, the
// books stay right; and once the provider has told all, everything settles.
func TestPurchasesKeepTheBooksRight(t *testing.T) {
	for n := range 10 { // rapid's hundred are too few for so long histories
		t.Run(strconv.Itoa(n), func(t *testing.T) { rapid.Check(t, func(r *rapid.T) { live(t, r) }) })
	}
}

// live is a history of an event, from its opening to when all is settled.
func live(t *testing.T, r *rapid.T) {
	policy := rapid.SampledFrom([]string{buckets.Review, buckets.Refund, buckets.HonourIfAvailable}).Draw(r, "policy")
	w := &world{T: r, journal: openJournal(t, policy, 6, 2), deeds: map[uuid.UUID]deed{},
		foreign: map[string]ledger.Amount{}, overturned: map[uuid.UUID]bool{}}
	w.event.LimitPerCustomer = new(int64(6))
	if rapid.Bool().Draw(r, "honour has an end") {
		w.event.HonourUntil = new(w.now.Add(12 * time.Hour))
	}
	r.Repeat(map[string]func(*rapid.T){
		"":           w.check,
		"hold":       w.placeHold,
		"checkout":   w.beginPayment,
		"checkout 2": w.beginPayment,
		"tell":       w.tellAnything,
		"tell 2":     w.tellAnything,
		"tell 3":     w.tellAnything,
		"foreign":    w.tellForeign,
		"claim":      w.claimOperation,
		"timeout":    w.endGrace,
		"cancel":     w.cancelOrder,
		"refund":     w.askRefund,
		"policy":     w.decideByPolicy,
		"people":     w.decideByPeople,
		"wait":       w.wait,
		"limit":      w.changeLimit,
	})
	w.T = r
	w.settleAll()
}

// world is an event with everybody who does something to it.
type world struct {
	*rapid.T
	*journal
	placedHolds []*holds.Hold
	deeds       map[uuid.UUID]deed
	foreign     map[string]ledger.Amount // the provider's own steps, by reference
	overturned  map[uuid.UUID]bool       // operations of which a provider has taken its word back
	seen        int                      // entries checked
	sums        map[ledger.AccountKey]ledger.Amount
	was         map[uuid.UUID]holds.Status
}

// must fails on an error that isn't a refusal.
func (w *world) must(err error) {
	w.T.Helper()
	if f := fault.As(err); err != nil && !errors.Is(err, errNotDue) && (f == nil || f.Kind == fault.Internal) {
		text, _, _ := strings.Cut(err.Error(), "\n") // without the stack
		w.T.Fatal(text)
	}
}

func (w *world) placeHold(r *rapid.T) {
	w.T = r
	items := []holds.Item{{Tier: "ga", Quantity: ledger.Amount(rapid.IntRange(1, 3).Draw(r, "ga"))}}
	if rapid.IntRange(0, 3).Draw(r, "vip") == 3 {
		items = append(items, holds.Item{Tier: "vip", Quantity: 1})
	}
	h, err := w.hold(rapid.SampledFrom([]string{"ann", "bob"}).Draw(r, "customer"), items...)
	w.must(err)
	if err == nil {
		w.placedHolds = append(w.placedHolds, h)
	}
}

// anyHold draws a hold; the later ones more often.
func (w *world) anyHold(r *rapid.T) *holds.Hold {
	w.T = r
	if len(w.placedHolds) == 0 {
		r.Skip("no holds")
	}
	n := len(w.placedHolds)
	return w.placedHolds[n-1-rapid.IntRange(0, n-1).Draw(r, "hold")]
}

func (w *world) beginPayment(r *rapid.T) {
	_, err := w.checkout(w.anyHold(r))
	w.must(err)
}

// anyOperation draws an operation that the provider may know of.
func (w *world) anyOperation(r *rapid.T) (*holds.Hold, *Operation) {
	h := w.anyHold(r)
	o := w.order(h)
	if o == nil {
		r.Skip("no order")
	}
	var ops []*Operation
	for _, op := range o.Operations {
		if op.sends > 0 {
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		r.Skip("no operations")
	}
	return h, ops[len(ops)-1-rapid.IntRange(0, len(ops)-1).Draw(r, "operation")]
}

// tellAnything has a provider say anything about an operation, or not answer, or not know
// it.
func (w *world) tellAnything(r *rapid.T) {
	h, op := w.anyOperation(r)
	o := w.order(h)
	outcome := rapid.SampledFrom([]payments.Outcome{
		payments.Succeeded, payments.Succeeded, payments.Succeeded, payments.Declined, payments.Declined,
		payments.Pending, payments.RequiresAction, payments.Unknown, payments.NotAttempted,
	}).Draw(r, "outcome")
	if settled := OperationStatus(outcome); !op.Status.open() && !settled.open() && settled != op.Status {
		if w.overturned[op.ID] {
			r.Skip("a provider takes its word back once")
		}
		w.overturned[op.ID] = true
	}
	from := fromAnswer
	result := payments.Result{Operation: op.ID, Kind: op.Kind, Outcome: outcome}
	switch outcome {
	case payments.NotAttempted:
		canCall := o.Status == Pending && w.now.Before(o.PayUntil)
		if op.Kind == payments.Authorize && !canCall && w.now.Sub(*op.sentAt) >= settles {
			from = fromAbsence
		}
	case payments.Unknown:
	default:
		from = rapid.SampledFrom([]source{fromAnswer, fromLookup, fromWebhook}).Draw(r, "source")
		result = w.anyWord(r, op, outcome)
	}
	_, err := w.tell(h, from, result)
	w.must(err)
}

// deed is what a provider does when it does an operation: perhaps not what it was asked to.
type deed struct {
	off      ledger.Amount // from the amount
	currency ledger.Unit
	taken    bool          // an authorization took the money at once
	captured ledger.Amount // what was taken with it
}

// deedOf draws what a provider does, once for an operation.
func (w *world) deedOf(r *rapid.T, op *Operation) deed {
	if d, ok := w.deeds[op.ID]; ok {
		return d
	}
	d := deed{currency: "USD"}
	d.off = ledger.Amount(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, -1, 1, -2000, 700}).Draw(r, "off"))
	d.taken = rapid.IntRange(0, 2).Draw(r, "takes the money") == 2
	if rapid.IntRange(0, 15).Draw(r, "currency") == 15 {
		d.currency = "EUR"
	}
	w.deeds[op.ID] = d
	return d
}

// anyWord is what a provider may say of an operation: stale or early, of another amount or
// currency, with the money or without.
func (w *world) anyWord(r *rapid.T, op *Operation, outcome payments.Outcome) payments.Result {
	said := w.said(op, outcome)
	said.At = w.now.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, -time.Second, -time.Minute, -time.Hour}).Draw(r, "at"))
	p := &said.Payment
	switch outcome {
	case payments.Succeeded:
		d := w.deedOf(r, op)
		said.Amount.Amount = max(0, said.Amount.Amount+d.off)
		p.Authorized = max(0, p.Authorized+d.off)
		said.Amount.Currency, p.Currency = d.currency, d.currency
		if op.Kind == payments.Authorize && d.taken {
			p.Captured = p.Authorized
		}
		if p.Captured > 0 && (op.Kind == payments.Authorize || op.Kind == payments.Capture) {
			d.captured = said.Amount.Amount
			w.deeds[op.ID] = d
		}
	case payments.Declined:
		said.Reason = rapid.SampledFrom([]string{"no", payments.ReasonAlreadyPaid, payments.ReasonNotCancellable}).Draw(r, "reason")
		if rapid.Bool().Draw(r, "authorization stands") {
			p.Authorized = op.Amount.Amount
		}
		if rapid.IntRange(0, 3).Draw(r, "refused") == 3 { // the call, so that there's no step
			said.Reference, said.At = "", time.Time{}
		}
	}
	return said
}

// tellForeign has a provider refund by itself, or a bank dispute a payment: together no
// more than was captured of it, whatever we have refunded.
func (w *world) tellForeign(r *rapid.T) {
	h, op := w.anyOperation(r)
	done := w.deeds[op.ID]
	if done.captured == 0 {
		r.Skip("nothing was captured")
	}
	left := done.captured
	for reference, amount := range w.foreign {
		if strings.HasSuffix(reference, op.Payment) {
			left -= amount
		}
	}
	kind := rapid.SampledFrom([]payments.Kind{payments.Refund, payments.Chargeback}).Draw(r, "kind")
	reference := rapid.SampledFrom([]string{"f1 ", "f2 ", "f3 "}).Draw(r, "reference") + string(kind) + op.Payment
	if w.foreign[reference] == 0 {
		if left <= 0 {
			r.Skip("nothing is left")
		}
		w.foreign[reference] = ledger.Amount(rapid.IntRange(1, int(left)).Draw(r, "amount"))
	}
	outcome := rapid.SampledFrom([]payments.Outcome{payments.Succeeded, payments.Succeeded, payments.Declined, payments.Pending}).
		Draw(r, "outcome")
	_, err := w.tell(h, fromWebhook, payments.Result{
		Kind: kind, Outcome: outcome, Reference: reference, At: w.now,
		Amount:  buckets.Money{Amount: w.foreign[reference], Currency: done.currency},
		Payment: payments.Payment{Reference: op.Payment, Operation: w.order(h).authorizationOf(op.Payment), Currency: done.currency},
	})
	w.must(err)
}

// authorizationOf gives the id of the authorization of a payment.
func (o *Order) authorizationOf(payment string) uuid.UUID {
	for _, op := range o.Operations {
		if op.Kind == payments.Authorize && op.Payment == payment {
			return op.ID
		}
	}
	return uuid.Nil
}

func (w *world) claimOperation(r *rapid.T) {
	h := w.anyHold(r)
	o := w.order(h)
	if o == nil {
		r.Skip("no order")
	}
	again := rapid.IntRange(0, 3).Draw(r, "again") == 0
	for _, op := range o.Operations {
		_, err := w.do(ledger.SystemPrincipal, &claim{ref: w.of(h), operation: op.ID, again: again})
		w.must(err)
	}
}

func (w *world) endGrace(r *rapid.T) {
	h := w.anyHold(r)
	if w.order(h) == nil {
		r.Skip("no order")
	}
	_, err := w.do(ledger.SystemPrincipal, &timeout{w.of(h)})
	w.must(err)
}

func (w *world) cancelOrder(r *rapid.T) {
	h := w.anyHold(r)
	_, err := w.do(h.Customer, &cancel{ref: w.of(h)})
	w.must(err)
}

func (w *world) askRefund(r *rapid.T) {
	h := w.anyHold(r)
	q := RefundRequest{Reason: "asked", ReturnTickets: rapid.Bool().Draw(r, "return")}
	if rapid.Bool().Draw(r, "items") {
		q.Items = []RefundLine{{Tier: "ga", Quantity: ledger.Amount(rapid.IntRange(1, 3).Draw(r, "ga"))}}
	}
	if rapid.Bool().Draw(r, "amount") {
		q.Amount = &buckets.Money{Amount: ledger.Amount(rapid.IntRange(0, 9000).Draw(r, "amount")), Currency: "USD"}
	}
	if q.validate() != nil {
		r.Skip("no request")
	}
	_, err := w.do(h.Customer, &refund{ref: w.of(h), request: q})
	w.must(err)
}

// anyCase draws a case that isn't resolved.
func (w *world) anyCase(r *rapid.T) (*holds.Hold, *cases.Case) {
	h := w.anyHold(r)
	var open []*cases.Case
	for _, c := range w.cases {
		if *c.HoldID == h.ID && c.Status != cases.Resolved {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		r.Skip("no case")
	}
	slices.SortFunc(open, func(a, b *cases.Case) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return h, rapid.SampledFrom(open).Draw(r, "case")
}

func (w *world) decideByPolicy(r *rapid.T) {
	h, c := w.anyCase(r)
	_, err := w.settle(h, c, "")
	w.must(err)
}

func (w *world) decideByPeople(r *rapid.T) {
	h, c := w.anyCase(r)
	resolution := rapid.SampledFrom([]cases.Resolution{cases.Honour, cases.Refund, cases.WriteOff, cases.Link}).Draw(r, "resolution")
	if resolution == cases.Link && (c.Reason == cases.CaptureFailed || w.standing(c)) {
		r.Skip("it isn't settled elsewhere")
	}
	_, err := w.do("fay", &proposing{c.ID, "fay", resolution})
	w.must(err)
	if _, err = w.settle(h, c, "gus"); err != nil {
		w.must(err)
		_, err = w.do("gus", &proposing{caseID: c.ID, by: "gus"})
		w.must(err)
	}
}

// standing tells whether a case is about an authorization that stands.
func (w *world) standing(c *cases.Case) bool {
	for _, op := range w.shelf.orders[*c.OrderID].Operations {
		if op.ID == *c.OperationID {
			return op.authorized > 0
		}
	}
	return false
}

func (w *world) wait(r *rapid.T) {
	w.T = r
	w.now = w.now.Add(rapid.SampledFrom([]time.Duration{
		time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, time.Hour, 25 * time.Hour,
	}).Draw(r, "span"))
}

func (w *world) changeLimit(r *rapid.T) {
	w.T = r
	w.event.LimitPerCustomer = new(rapid.Int64Range(1, 8).Draw(r, "limit"))
}
