package orders

import (
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// settle is the command that carries out what was decided about a case of an order: by
// policy, or by the second of two people.
type settle struct {
	ref
	caseID   uuid.UUID
	route    *buckets.Route
	approver string      // "" for policy
	ifMatch  *ledger.Seq // the version that the approver has seen
}

// Route leads to the customer's lane.
func (c *settle) Route() *buckets.Route { return c.route }

// CaseIDs names the case.
func (c *settle) CaseIDs() []uuid.UUID { return []uuid.UUID{c.caseID} }

// Decide carries the resolution out.
func (c *settle) Decide(s *ledger.State) (ledger.Decision, error) {
	found, ok := cases.Find(s, c.caseID)
	if !ok {
		return ledger.Decision{}, cases.NotFound(c.caseID)
	}
	d, err := c.open(s)
	if err != nil {
		return ledger.Decision{}, err
	}
	d.route = c.route
	op := d.order.find(*found.OperationID)
	if c.approver == "" {
		if found.Status != cases.Open || found.NextAttemptAt == nil || op == nil {
			return ledger.Decision{Data: d.order.data()}, nil // somebody was faster
		}
		return d.settleByPolicy(found, op)
	}
	if err := found.Approvable(c.approver, c.ifMatch); err != nil {
		return ledger.Decision{}, err
	}
	kind, err := d.resolve(found, op, found.Resolution, c.approver)
	if err != nil {
		return ledger.Decision{}, err
	}
	return d.decide(kind), nil
}

// settleByPolicy honours or refunds a late payment; what can't be done is for people.
func (d *deal) settleByPolicy(c cases.Case, op *Operation) (ledger.Decision, error) {
	resolution := cases.Refund
	if c.Reason == cases.LatePayment && (d.event.LatePaymentPolicy == buckets.HonourIfAvailable ||
		c.ToldAt != nil && d.inTime(*c.ToldAt)) {
		resolution = cases.Honour
	}
	kind, err := d.resolve(c, op, resolution, "")
	if errors.Is(err, buckets.ErrLaneChanging) { // the janitor comes again
		return ledger.Decision{}, err
	}
	if err != nil && resolution == cases.Honour && d.event.LatePaymentPolicy != buckets.Review {
		kind, err = d.resolve(c, op, cases.Refund, "")
	}
	if err != nil {
		c.LastFact = fact(d.s.Now, "policy couldn't be carried out: %v", err)
		c.Owner, c.NextAttemptAt, c.Version = cases.OwnerFinance, nil, d.s.NextSeq()
		d.keepCase(c)
		kind = KindCase
	}
	return d.decide(kind), nil
}

// resolve carries out a resolution, or says why it can't be.
func (d *deal) resolve(c cases.Case, op *Operation, r cases.Resolution, by string) (string, error) {
	late := slices.Contains(lateReasons, c.Reason)
	switch {
	case r == cases.Honour && late:
		if err := d.canHonour(c, op); err != nil {
			return "", err
		}
		d.move(holds.Take(d.s, *d.hold, d.order.tickets()))
		d.sell(op, lateSuspense)
		c.Suspended = 0
		d.settled(c, r, by)
		return KindHonoured, nil
	case r == cases.Refund && c.Suspended > 0:
		d.refundSuspended(c, op)
		c.Suspended = 0
		d.decided(c, r, by)
		return KindRefundAsked, nil
	case r == cases.Refund && late && op.Kind == payments.Authorize && op.Status == OpSucceeded && op.taken == 0:
		d.voidNow(op, string(c.Reason))
		d.decided(c, r, by)
		return KindPaymentOpen, nil
	case r == cases.WriteOff && c.Reason == cases.CaptureFailed && d.claim() > 0:
		d.post(capturePending(d.provider), loss, d.claim())
		d.settled(c, r, by)
		return KindCase, nil
	case r == cases.WriteOff && c.Reason == cases.TakenBack:
		d.postIn(c.Amount.Currency, providerAccount(d.provider), loss, c.Amount.Amount)
		d.settled(c, r, by)
		return KindCase, nil
	case r == cases.WriteOff && c.Reason == cases.OutcomeUnknown && op.Status.open():
		d.settled(c, r, by)
		return d.giveUpOn(op), nil
	case r == cases.Link && c.Suspended == 0 && !(late && op.authorized > 0) && !(c.Reason == cases.CaptureFailed && d.claim() > 0):
		if a := d.authorization(op); c.Reason == cases.VoidFailed && a != nil {
			d.reserve(a, 0) // it's gone, as the evidence says
			d.voided(a)
		}
		d.settled(c, r, by)
		return KindCase, nil
	case r == cases.Link:
		return "", notPossible(c, r, "money, or an authorization, rests for it")
	}
	return "", notPossible(c, r, "not for "+string(c.Reason))
}

func notPossible(c cases.Case, r cases.Resolution, why string) error {
	return cases.ErrResolution.Because("%s: %s", r, why).With("case_id", c.ID).With("resolution", r)
}

// settled resolves a case by a decision that's carried out with it.
func (d *deal) settled(c cases.Case, r cases.Resolution, by string) {
	d.keepCase(c.Decide(by, r, true, d.s.Now, d.s.NextSeq()))
}

// decided keeps a decision that the provider has to carry out.
func (d *deal) decided(c cases.Case, r cases.Resolution, by string) {
	d.keepCase(c.Decide(by, r, false, d.s.Now, d.s.NextSeq()))
}

// claim is what's to be captured for a sold order and isn't, nor written off.
func (d *deal) claim() ledger.Amount {
	if !d.order.Status.Owns() {
		return 0
	}
	claim := d.order.Total.Amount - d.order.Captured.Amount
	for _, c := range cases.OfOrder(d.s, d.order.ID) {
		if c.Reason == cases.CaptureFailed && c.Resolution == cases.WriteOff && c.Status == cases.Resolved {
			claim -= c.Amount.Amount
		}
	}
	return max(claim, 0)
}

// giveUpOn takes an operation for not attempted, because people have decided so.
func (d *deal) giveUpOn(op *Operation) string {
	kind := d.learn(op, evidence{fromPeople, payments.Result{
		Operation: op.ID, Kind: op.Kind, Outcome: payments.NotAttempted, Reason: "decided_by_people",
	}})
	if kind == "" {
		kind = KindCase
	}
	return kind
}

// canHonour tells why a payment can't buy the tickets now; nil when it can.
func (d *deal) canHonour(c cases.Case, op *Operation) error {
	no := func(why string) error { return notPossible(c, cases.Honour, why) }
	switch {
	case c.Amount != d.order.Total:
		return no("it's not the order's total")
	case d.order.Status != Cancelled:
		return no("the order is " + string(d.order.Status))
	case max(c.Suspended, op.authorized) != d.order.Total.Amount:
		return no("the payment is gone, or a part of it")
	case c.Suspended == 0 && slices.ContainsFunc(d.order.Operations, func(p *Operation) bool {
		return p.Kind == payments.Capture && p.Status == OpSucceeded
	}):
		return no("another payment of the order was captured")
	case d.event.HonourUntil != nil && d.s.Now.After(*d.event.HonourUntil):
		return no("the last date for honouring has passed")
	}
	return holds.Fits(d.s, d.route, *d.hold, d.order.tickets())
}

// voidNow sends the void of an authorization.
func (d *deal) voidNow(op *Operation, reason string) {
	if !slices.ContainsFunc(d.order.Operations, func(v *Operation) bool {
		return v.Kind == payments.Void && v.Payment == op.Payment && v.Status.open()
	}) {
		d.send(payments.Void, op.Payment, op.authorized, reason)
	}
	if d.order.Status == Cancelled {
		d.order.PaymentStatus = PaymentVoiding
	}
}
