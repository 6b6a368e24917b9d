package orders

import (
	"errors"
	"testing"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// nothingSent is what a call gives that certainly did nothing.
func nothingSent(op *Operation) payments.Result {
	return payments.Result{Operation: op.ID, Kind: op.Kind, Outcome: payments.NotAttempted}
}

// A call that did nothing says so of itself alone: one before it may have done it.
func TestACallThatDidNothing(t *testing.T) {
	t.Parallel()
	t.Run("the first", func(t *testing.T) {
		j, h := paying(t)
		op := j.order(h).last(payments.Authorize)
		if _, err := j.tell(h, fromAnswer, nothingSent(op)); err != nil || op.Status != OpNotAttempted || h.Status != holds.Held {
			t.Errorf("%v: it's %s, the hold is %s", err, op.Status, h.Status)
		}
	})
	t.Run("the second, after a process died in the first", func(t *testing.T) {
		j, h := paying(t)
		op := j.order(h).last(payments.Authorize)
		j.now = j.now.Add(lease)
		if _, err := j.do(ledger.SystemPrincipal, &claim{ref: j.of(h), operation: op.ID}); err != nil {
			t.Fatal(err)
		}
		before := len(j.Entries())
		if _, err := j.tell(h, fromAnswer, nothingSent(op)); err != nil || op.Status != OpSent || len(j.Entries()) != before {
			t.Errorf("%v: it's %s", err, op.Status)
		}
	})
	t.Run("after an unknown outcome", func(t *testing.T) {
		j, h := paying(t)
		op := j.order(h).last(payments.Authorize)
		j.told(h, payments.Authorize, payments.Unknown, nil)
		if _, err := j.tell(h, fromAnswer, nothingSent(op)); err != nil || op.Status != OpUnknown || h.Status != holds.PaymentPending {
			t.Errorf("%v: it's %s, the hold is %s", err, op.Status, h.Status)
		}
	})
	t.Run("of a capture", func(t *testing.T) {
		j, h := paying(t)
		j.told(h, payments.Authorize, payments.Succeeded, nil)
		op := j.order(h).last(payments.Capture)
		if _, err := j.tell(h, fromAnswer, nothingSent(op)); err != nil || op.Status != OpPrepared || j.order(h).Status != Confirmed {
			t.Errorf("%v: it's %s, the order is %s", err, op.Status, j.order(h).Status)
		}
	})
}

// A call without an answer says nothing about what's known already.
func TestNoAnswerIsNoEvidence(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[payments.Outcome]OperationStatus{
		payments.RequiresAction: OpRequiresAction, payments.Pending: OpPending, payments.Declined: OpDeclined,
	} {
		j, h := paying(t)
		j.told(h, payments.Authorize, outcome, nil)
		op := j.order(h).last(payments.Authorize)
		if _, err := j.tell(h, fromAnswer, j.said(op, payments.Unknown)); err != nil || op.Status != want {
			t.Errorf("%v: it was %s and is %s", err, want, op.Status)
		}
	}
}

// A buyer may be asked to act again; an authorization that stands isn't taken back.
func TestWhatLaterEvidenceMayChange(t *testing.T) {
	t.Parallel()
	j, h := paying(t)
	op := j.order(h).last(payments.Authorize)
	for _, outcome := range []payments.Outcome{payments.Pending, payments.RequiresAction, payments.Pending, payments.RequiresAction} {
		if j.told(h, payments.Authorize, outcome, nil); op.Status != OperationStatus(outcome) {
			t.Errorf("told that it's %s, it's %s", outcome, op.Status)
		}
	}
	j.told(h, payments.Authorize, payments.Succeeded, nil)
	j.now = j.now.Add(time.Minute)
	j.told(h, payments.Authorize, payments.Declined, nil)
	if o := j.order(h); op.Status != OpSucceeded || o.Status != Confirmed || o.Reconciling {
		t.Errorf("it's %s, the order %s, reconciling %t", op.Status, o.Status, o.Reconciling)
	}
}

// What is known of one attempt doesn't free the tickets while another is under way.
func TestAnAttemptUnderWayKeepsTheHold(t *testing.T) {
	t.Parallel()
	j, h := paying(t)
	first := j.order(h).last(payments.Authorize)
	if _, err := j.tell(h, fromAnswer, nothingSent(first)); err != nil {
		t.Fatal(err)
	}
	if _, err := j.checkout(h); err != nil {
		t.Fatal(err)
	}
	if _, err := j.tell(h, fromWebhook, j.said(first, payments.Declined)); err != nil {
		t.Fatal(err)
	}
	if o := j.order(h); first.Status != OpDeclined || h.Status != holds.PaymentPending || o.PaymentStatus != PaymentAuthorizing {
		t.Errorf("the first is %s, the hold %s, the payment %s", first.Status, h.Status, o.PaymentStatus)
	}
}

// A decline between the hold's deadline and the end of its grace ends it: the grace is
// for the payment that was under way.
func TestADeclineInTheGrace(t *testing.T) {
	t.Parallel()
	j, h := paying(t)
	j.now = h.ExpiresAt
	j.told(h, payments.Authorize, payments.Declined, nil)
	if o := j.order(h); h.Status != holds.Expired || o.Status != Cancelled {
		t.Errorf("the hold is %s, the order %s", h.Status, o.Status)
	}
}

// What turns out after the grace to wait for its buyer is ended, once; and so is what
// was known before, by one command.
func TestAfterTheGraceAPaymentIsEndedOnce(t *testing.T) {
	t.Parallel()
	ends := func(j *journal, h *holds.Hold) (n int) {
		for _, op := range j.order(h).Operations {
			if op.Kind == payments.Cancel {
				n++
			}
		}
		return n
	}
	t.Run("it was unknown", func(t *testing.T) {
		j, h := paying(t)
		j.told(h, payments.Authorize, payments.Unknown, nil)
		j.now = *h.PayUntil
		for _, outcome := range []payments.Outcome{payments.Pending, payments.RequiresAction} {
			if j.told(h, payments.Authorize, outcome, nil); ends(j, h) != 1 {
				t.Errorf("%s: it's ended by %d operations", outcome, ends(j, h))
			}
		}
	})
	t.Run("it was known", func(t *testing.T) {
		j, h := paying(t)
		j.told(h, payments.Authorize, payments.RequiresAction, nil)
		j.now = *h.PayUntil
		if _, err := j.do(ledger.SystemPrincipal, &timeout{j.of(h)}); err != nil {
			t.Fatal(err)
		}
		if _, err := j.do(ledger.SystemPrincipal, &timeout{j.of(h)}); !errors.Is(err, errNotDue) || ends(j, h) != 1 {
			t.Errorf("again: %v; it's ended by %d operations", err, ends(j, h))
		}
	})
}

// A void that's refused because nothing stands any more has done what it was to do.
func TestAVoidOfWhatIsGone(t *testing.T) {
	t.Parallel()
	j, h := paying(t)
	j.event.LatePaymentPolicy = buckets.Refund
	j.told(h, payments.Authorize, payments.Declined, nil)
	if _, err := j.do("ann", &cancel{ref: j.of(h)}); err != nil {
		t.Fatal(err)
	}
	j.told(h, payments.Authorize, payments.Succeeded, nil)
	if _, err := j.settle(h, j.caseOf(h, "late_payment"), ""); err != nil {
		t.Fatal(err)
	}
	j.told(h, payments.Void, payments.Declined, nil)
	o := j.order(h)
	if o.last(payments.Authorize).authorized != 0 || o.PaymentStatus != PaymentVoided || o.Reconciling || j.caseOf(h, "void_failed") != nil {
		t.Errorf("%d reserved, the payment is %s, reconciling %t", o.last(payments.Authorize).authorized, o.PaymentStatus, o.Reconciling)
	}
}
