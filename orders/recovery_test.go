package orders_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// T38, P11, P19: the process dies between the provider's answer and the commit, with
// twenty payments under way. What was committed before the call is enough: another
// process finds every charge.
func TestT38DeathBetweenAnswerAndCommit(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	const n = 20
	holdsOf := make([]uuid.UUID, n)
	for i := range holdsOf {
		holdsOf[i] = s.hold(fmt.Sprint("c", i), 1)
	}
	dying := s.process(nil)
	var arrived sync.WaitGroup
	arrived.Add(n)
	var once sync.Once
	s.watch(nil, func(r *http.Request, _ *httptest.ResponseRecorder) bool {
		arrived.Done()
		arrived.Wait() // the provider has done all of them
		once.Do(dying.Ledger.Close)
		return true
	})
	var checkouts sync.WaitGroup
	for i, hold := range holdsOf {
		checkouts.Go(func() {
			answer, err := dying.Orders.Checkout(s.ctx, "tester", fmt.Sprint("pay", i), hold, orders.CheckoutRequest{PaymentMethod: "sim_ok"})
			if err != nil || !answer.Open {
				t.Errorf("open: %t, %v", answer.Open, err)
			}
		})
	}
	checkouts.Wait()
	dying.Orders.Close(s.ctx)
	s.watch(nil, nil)
	s.work()
	for i, hold := range holdsOf {
		s.is(s.orderOf(hold), orders.Captured, orders.PaymentCaptured, false)
		if answer, err := s.checkout(fmt.Sprint("pay", i), hold, "sim_ok"); err != nil || answer.Open {
			t.Errorf("open: %t, %v", answer.Open, err)
		}
		for _, op := range s.order(s.orderOf(hold)).Operations {
			if c := s.calls(op.ID); c != 1 {
				t.Errorf("%s was called %d times", op.Kind, c)
			}
		}
	}
	s.expect(map[string]ledger.Amount{"provider:sim USD": n * 5303})
}

// P5, P25: a call without an answer is unknown, until a lookup tells. One charge.
func TestP25UnknownThenLookedUp(t *testing.T) {
	t.Parallel()
	for method, calls := range map[string]int{"sim_timeout_applied": 1, "sim_capture_timeout": 1} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			o := s.buy("ann", 2, method)
			if o.PaymentStatus != orders.PaymentUnknown {
				t.Errorf("the payment is %s", o.PaymentStatus)
			}
			_, err := s.pay(o.HoldID, "sim_ok") // the customer tries again
			if method == "sim_timeout_applied" {
				s.refused(err, holds.ErrPaymentInProgress)
			} else {
				s.refused(err, holds.ErrHoldConfirmed)
			}
			s.work()
			s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
			for _, op := range s.order(o.ID).Operations {
				if c := s.calls(op.ID); c != calls {
					t.Errorf("%s was called %d times", op.Kind, c)
				}
			}
			s.expect(map[string]ledger.Amount{"provider:sim USD": 10606})
		})
	}
}

// P26: what nobody knows stays unknown, however often it was asked for; a person is told.
// It isn't called again when the grace is over, and it's not attempted only when the
// provider certainly doesn't know it.
func TestP26StillUnknown(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_timeout_lost")
	for range 7 {
		s.work()
		s.is(o.ID, orders.Pending, orders.PaymentUnknown, len(s.cases("")) > 0)
	}
	c := s.theCase(cases.OutcomeUnknown, cases.Open)
	if c.Owner != cases.OwnerFinance || *c.OperationID != s.op(o.ID, payments.Authorize).ID {
		t.Errorf("%+v", c)
	}
	called := s.calls(*c.OperationID)
	s.endGrace(o.ID)
	s.work()
	s.is(o.ID, orders.Pending, orders.PaymentUnknown, true)
	s.holdIs(o.HoldID, holds.Reconciling)
	s.expect(map[string]ledger.Amount{"held:ann ga": 2})
	s.work() // two minutes haven't passed since it was sent
	s.holdIs(o.HoldID, holds.Reconciling)
	s.age(3 * time.Minute)
	s.work()
	if n := s.calls(*c.OperationID); n != called {
		t.Errorf("it was called again")
	}
	s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, false)
	s.holdIs(o.HoldID, holds.Expired)
	s.theCase(cases.OutcomeUnknown, cases.Resolved)
	s.expect(nothingSold)
}

// A lookup that fails is no evidence: the tickets stay.
func TestALookupThatFailsIsNoEvidence(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_timeout_applied")
	s.endGrace(o.ID)
	s.work()
	o = s.order(o.ID)
	if o.Status != orders.Captured { // the lookup found it before anything else
		t.Errorf("the order is %s", o.Status)
	}
	two := s.buy("bob", 2, "sim_timeout_lost")
	s.endGrace(two.ID)
	s.age(time.Hour)
	s.traffic.down.Store(true)
	s.work()
	s.work()
	s.is(two.ID, orders.Pending, orders.PaymentUnknown, true)
	s.holdIs(two.HoldID, holds.Reconciling)
	s.traffic.down.Store(false)
	s.work()
	s.is(two.ID, orders.Cancelled, orders.PaymentDeclined, false)
}

// T32: a provider that says "processing" for ever: at the end of the grace it's asked to
// end the payment, and the tickets are free.
func TestT32ProcessingForEver(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_processing", "sim_requires_action", "sim_transfer"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			o := s.buy("ann", 2, method)
			for range 8 {
				s.work()
			}
			s.endGrace(o.ID)
			s.work()
			s.work()
			s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, s.order(o.ID).Reconciling)
			s.holdIs(o.HoldID, holds.Expired)
			s.expect(nothingSold)
		})
	}
}

// At the end of the grace the buyer has paid after all: that's a branch, not an error.
func TestPaidAtTheEndOfTheGrace(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_requires_action")
	s.bank(s.op(o.ID, payments.Authorize).Payment, "complete", 0) // and nobody tells
	s.endGrace(o.ID)
	for range 3 { // the end is prepared, and sent: already paid; so it's looked up
		if _, err := s.Orders.Work(s.ctx); err != nil {
			t.Fatal(err)
		}
		s.idle()
	}
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
	s.holdIs(o.HoldID, holds.Confirmed)
}

// A webhook that is faster than the answer: the checkout is answered with what it brought,
// and a repeat with the same.
func TestAWebhookFasterThanTheAnswer(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_ok", "sim_decline", "sim_requires_action", "sim_timeout_applied"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{mailbox: true})
			hold := s.hold("ann", 2)
			s.watch(nil, s.during(func() {
				if err := s.sim.Flush(s.ctx); err != nil {
					t.Error(err)
				}
				s.traffic.mu.Lock()
				l := s.traffic.mail[0]
				s.traffic.mu.Unlock()
				if err := s.Orders.Receive(s.ctx, "sim", l.body, l.header); err != nil {
					t.Error(err)
				}
			}))
			first, err := s.checkout("once", hold, method)
			if method == "sim_decline" {
				s.refused(err, orders.ErrPaymentDeclined)
			} else if err != nil || first.Replayed {
				t.Errorf("replayed: %t, %v", first.Replayed, err)
			}
			s.idle()
			again, twice := s.checkout("once", hold, method)
			if string(again.Data) != string(first.Data) || problem(twice) != problem(err) || again.Open != first.Open {
				t.Errorf("answered %s %v, then %s %v", first.Data, err, again.Data, twice)
			}
		})
	}
}

// P2: the process that took a late payment in dies before policy has decided: the janitor
// of another does it, once.
func TestPolicyAfterADeath(t *testing.T) {
	t.Parallel()
	spec := usual()
	spec.LatePaymentPolicy = "honour_if_available"
	s, order, payment := late(t, option{spec: spec, mailbox: true}, "sim_transfer")
	s.letters()
	s.bank(payment, "complete", 0)
	l := s.letters()[0]
	dying := s.process(nil)
	dying.Orders.Close(s.ctx) // it begins nothing any more
	if err := dying.Orders.Receive(s.ctx, "sim", l.body, l.header); err != nil {
		t.Fatal(err)
	}
	s.theCase(cases.LatePayment, cases.Open)
	other := s.process(nil)
	var wg sync.WaitGroup
	for _, o := range []*orders.Store{s.Orders, other.Orders, s.Orders, other.Orders} {
		wg.Go(func() {
			if _, err := o.Work(s.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.is(order, orders.Captured, orders.PaymentCaptured, false)
	if n := s.entries("order.honoured"); n != 1 {
		t.Errorf("%d entries", n)
	}
	s.expect(map[string]ledger.Amount{"sold:ann ga": 2, "provider:sim USD": 10606, "suspense:late USD": 0})
}
