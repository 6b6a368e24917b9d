package orders

import (
	"errors"
	"testing"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// paying gives a hold of two tickets whose authorization has been sent.
func paying(t *testing.T) (*journal, *holds.Hold) {
	t.Helper()
	j := openJournal(t, buckets.Review, 10, 4)
	h, err := j.hold("ann", holds.Item{Tier: "ga", Quantity: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.checkout(h); err != nil {
		t.Fatal(err)
	}
	return j, h
}

// told applies what the provider says of the order's last operation of a kind, changed
// by the caller.
func (j *journal) told(h *holds.Hold, kind payments.Kind, outcome payments.Outcome, change func(*payments.Result)) {
	j.Helper()
	r := j.said(j.order(h).last(kind), outcome)
	if change != nil {
		change(&r)
	}
	if _, err := j.tell(h, fromWebhook, r); err != nil {
		j.Fatal(err)
	}
}

// A capture or a refund that the provider reports of another amount, or in another
// currency, than it was asked for settles nothing and moves nothing: people must look.
func TestAStepOfAnotherAmountThanAsked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*payments.Result){
		"in another currency": func(r *payments.Result) { r.Amount.Currency = "EUR" },
		"more":                func(r *payments.Result) { r.Amount.Amount++ },
		"nothing":             func(r *payments.Result) { r.Amount.Amount = 0 },
		"less":                func(r *payments.Result) { r.Amount.Amount-- },
	} {
		for _, kind := range []payments.Kind{payments.Capture, payments.Refund} {
			if name == "less" && kind == payments.Capture {
				continue // that can be: the rest stays claimed
			}
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				j, h := paying(t)
				j.told(h, payments.Authorize, payments.Succeeded, nil)
				if kind == payments.Refund {
					j.told(h, payments.Capture, payments.Succeeded, nil)
					if _, err := j.do("ann", &refund{ref: j.of(h), request: RefundRequest{Reason: "rain"}}); err != nil {
						t.Fatal(err)
					}
				}
				before := len(j.Entries())
				j.told(h, kind, payments.Succeeded, change)
				last := j.Entries()[len(j.Entries())-1]
				if len(j.Entries()) != before+1 || last.Kind != KindCase || len(last.Postings) != 0 {
					t.Errorf("it made %s with %d postings", last.Kind, len(last.Postings))
				}
				if op := j.order(h).last(kind); !op.Status.open() {
					t.Errorf("the %s is %s", kind, op.Status)
				}
				if c := j.caseOf(h, cases.AmountMismatch); c == nil || c.Status != cases.Open || c.Suspended != 0 {
					t.Errorf("the case is %+v", c)
				}
			})
		}
	}
}

// So many orders of an event may be pending, and no more.
func TestCheckoutsOfAnEventAreBounded(t *testing.T) {
	t.Parallel()
	j := openJournal(t, buckets.Review, 10, 4)
	h, err := j.hold("ann", holds.Item{Tier: "ga", Quantity: 2})
	if err != nil {
		t.Fatal(err)
	}
	j.shelf.pending = maxPending
	_, err = j.checkout(h)
	if f := fault.As(err); f == nil || f.Def != ErrTooManyCheckouts || f.RetryAfter != retryPending {
		t.Errorf("with %d pending: %v", maxPending, err)
	}
	j.shelf.pending = maxPending - 1
	if _, err := j.checkout(h); err != nil || j.shelf.pending != maxPending {
		t.Errorf("with one less: %v, then %d are pending", err, j.shelf.pending)
	}
}

// An attempt that was never made may be made by a repeat of its checkout, as long as it
// is the last one and there's time enough for it.
func TestWhenAnAttemptMayBeMadeAfterAll(t *testing.T) {
	t.Parallel()
	again := func(j *journal, h *holds.Hold, op *Operation) error {
		_, err := j.do(ledger.SystemPrincipal, &claim{ref: j.of(h), operation: op.ID, again: true})
		return err
	}
	never := func(t *testing.T) (*journal, *holds.Hold, *Operation) {
		j, h := paying(t)
		op := j.order(h).last(payments.Authorize)
		if _, err := j.tell(h, fromAnswer, payments.Result{Operation: op.ID, Kind: op.Kind, Outcome: payments.NotAttempted}); err != nil {
			t.Fatal(err)
		}
		return j, h, op
	}
	t.Run("another came after it", func(t *testing.T) {
		j, h, op := never(t)
		if _, err := j.checkout(h); err != nil {
			t.Fatal(err)
		}
		j.told(h, payments.Authorize, payments.Declined, nil)
		if err := again(j, h, op); !errors.Is(err, errNotDue) || h.Status != holds.Held {
			t.Errorf("%v, the hold is %s", err, h.Status)
		}
	})
	t.Run("it was declined", func(t *testing.T) {
		j, h := paying(t)
		j.told(h, payments.Authorize, payments.Declined, nil)
		if err := again(j, h, j.order(h).last(payments.Authorize)); !errors.Is(err, errNotDue) {
			t.Error(err)
		}
	})
	t.Run("too little time is left", func(t *testing.T) {
		j, h, op := never(t)
		j.now = h.ExpiresAt.Add(1 - minTimeLeft)
		if err := again(j, h, op); !errors.Is(err, errNotDue) || h.Status != holds.Held {
			t.Errorf("%v, the hold is %s", err, h.Status)
		}
	})
	t.Run("just enough is left", func(t *testing.T) {
		j, h, op := never(t)
		until := *h.PayUntil
		j.now = h.ExpiresAt.Add(-minTimeLeft)
		if err := again(j, h, op); err != nil || h.Status != holds.PaymentPending || !h.PayUntil.Equal(until) {
			t.Errorf("%v, the hold is %s until %s, was until %s", err, h.Status, h.PayUntil, until)
		}
	})
}

// What the provider only repeats opens one case, also when that has been resolved.
func TestARepeatedDifferenceIsOneCase(t *testing.T) {
	t.Parallel()
	j, h := paying(t)
	j.told(h, payments.Authorize, payments.Succeeded, nil)
	more := func(r *payments.Result) { r.Amount.Amount++ }
	about := func() []*cases.Case { return j.casesAbout(j.order(h).last(payments.Capture)) }
	for range 2 {
		j.told(h, payments.Capture, payments.Succeeded, more)
	}
	if n := len(about()); n != 1 {
		t.Fatalf("%d cases", n)
	}
	if _, err := j.do("fay", &proposing{about()[0].ID, "fay", cases.Link}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.settle(h, about()[0], "gus"); err != nil {
		t.Fatal(err)
	}
	j.told(h, payments.Capture, payments.Succeeded, more)
	if list := about(); len(list) != 1 || list[0].Status != cases.Resolved {
		t.Errorf("%d cases, the first is %s", len(list), list[0].Status)
	}
}

// A checkout needs time for its authorization, whatever else is wrong with it.
func TestACheckoutThatIsTooLate(t *testing.T) {
	t.Parallel()
	j := openJournal(t, buckets.Review, 10, 4)
	h, err := j.hold("ann", holds.Item{Tier: "ga", Quantity: 2})
	if err != nil {
		t.Fatal(err)
	}
	for left, want := range map[time.Duration]*fault.Def{minTimeLeft: ErrPriceChanged, minTimeLeft - 1: ErrTooLate, 1: ErrTooLate} {
		j.now = h.ExpiresAt.Add(-left)
		_, err := j.do(h.Customer, &checkout{ref: j.of(h), request: CheckoutRequest{PaymentMethod: "card", Total: &buckets.Money{Amount: 1, Currency: "USD"}}})
		if f := fault.As(err); f == nil || f.Def != want {
			t.Errorf("%s before the end: %v, want %s", left, err, want.Code)
		}
	}
}

// An order isn't given up before its time.
func TestATimeoutBeforeItsTime(t *testing.T) {
	t.Parallel()
	j, h := paying(t)
	j.told(h, payments.Authorize, payments.RequiresAction, nil)
	j.now = h.PayUntil.Add(-1)
	if _, err := j.do(ledger.SystemPrincipal, &timeout{j.of(h)}); !errors.Is(err, errNotDue) {
		t.Errorf("just before: %v", err)
	}
	j.now = *h.PayUntil
	if _, err := j.do(ledger.SystemPrincipal, &timeout{j.of(h)}); err != nil || j.order(h).last(payments.Cancel) == nil {
		t.Errorf("at its time: %v", err)
	}
}

// A capture that the provider takes back over and over, when its money has gone on, is one
// case until that's resolved.
func TestARepeatedTakingBackIsOneCase(t *testing.T) {
	t.Parallel()
	j, h := paying(t)
	j.told(h, payments.Authorize, payments.Succeeded, nil)
	j.told(h, payments.Capture, payments.Succeeded, nil)
	if _, err := j.do("ann", &refund{ref: j.of(h), request: RefundRequest{Reason: "rain"}}); err != nil {
		t.Fatal(err)
	}
	capture := j.order(h).last(payments.Capture)
	for range 3 {
		j.told(h, payments.Capture, payments.Declined, nil)
	}
	if list := j.casesAbout(capture); len(list) != 1 || list[0].Reason != cases.TakenBack || capture.Status != OpSucceeded {
		t.Errorf("%d cases, the capture is %s", len(list), capture.Status)
	}
}
