package orders_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// checkout checks a hold out under a key.
func (s *shop) checkout(key string, hold uuid.UUID, method string) (orders.Answer, error) {
	return s.Orders.Checkout(s.ctx, "tester", key, hold, orders.CheckoutRequest{PaymentMethod: method})
}

// problem is an error as a caller sees it, but for the time.
func problem(err error) string {
	f := fault.As(err)
	if f == nil {
		return ""
	}
	return f.Code + ": " + f.Error()
}

// P7, T46: whatever comes of a checkout, its repeats get the same answer, and the
// provider one call.
func TestP7TheSameKeyGivesTheSameAnswer(t *testing.T) {
	t.Parallel()
	for method, c := range map[string]struct {
		open   bool
		status orders.Status
		err    *fault.Def
	}{
		"sim_ok":              {false, orders.Confirmed, nil},
		"sim_decline":         {false, "", orders.ErrPaymentDeclined},
		"sim_timeout_applied": {true, orders.Pending, nil},
		"sim_error":           {true, orders.Pending, nil},
		"sim_requires_action": {true, orders.Pending, nil},
		"sim_transfer":        {true, orders.Pending, nil},
		"sim_processing":      {true, orders.Pending, nil},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			hold := s.hold("ann", 2)
			first, err := s.checkout("once", hold, method)
			if c.err != nil {
				s.refused(err, c.err)
			} else if err != nil {
				t.Fatal(err)
			} else {
				var o orders.Order
				if s.decode(first.Data, &o); o.Status != c.status || first.Open != c.open || first.Replayed {
					t.Errorf("answered %s, open: %t, replayed: %t", o.Status, first.Open, first.Replayed)
				}
			}
			s.idle() // the capture changes the order, not the answer
			for range 3 {
				again, twice := s.checkout("once", hold, method)
				if problem(twice) != problem(err) || !bytes.Equal(again.Data, first.Data) || again.Open != first.Open ||
					err == nil && !again.Replayed {
					t.Errorf("answered %v %s, then %v %s", problem(err), first.Data, problem(twice), again.Data)
				}
			}
			if n := s.calls(s.op(s.orderOf(hold), payments.Authorize).ID); n != 1 {
				t.Errorf("the provider was called %d times", n)
			}
		})
	}
}

// P7: N identical submits at once are one charge; those that don't wait for it are told
// that it's open.
func TestP7ManyAtOnceUnderOneKey(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	var wg sync.WaitGroup
	answers, errs := make([]orders.Answer, 16), make([]error, 16)
	for i := range answers {
		wg.Go(func() { answers[i], errs[i] = s.checkout("once", hold, "sim_ok") })
	}
	wg.Wait()
	for i, a := range answers {
		var o orders.Order
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if s.decode(a.Data, &o); o.ID != s.orderOf(hold) || a.Open != (o.Status == orders.Pending) {
			t.Errorf("answered %s, open: %t", a.Data, a.Open)
		}
	}
	s.idle()
	if n := s.calls(s.op(s.orderOf(hold), payments.Authorize).ID); n != 1 || s.posted() != 2 {
		t.Errorf("%d authorizations of %d calls", n, s.posted())
	}
	s.is(s.orderOf(hold), orders.Captured, orders.PaymentCaptured, false)
}

// T49: what's paid can't be paid under another key.
func TestT49AnotherKeyOfAPaidOrder(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	if _, err := s.pay(hold, "sim_ok"); err != nil {
		t.Fatal(err)
	}
	_, err := s.pay(hold, "sim_ok")
	s.refused(err, holds.ErrHoldConfirmed)
	s.idle()
	if s.posted() != 2 {
		t.Errorf("%d calls", s.posted())
	}
}

// T52: while an attempt is open, a second confirm conflicts with it; so does the hold's
// release.
func TestT52ASecondCheckoutOfAnOpenAttempt(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_requires_action", "sim_processing", "sim_timeout_lost", "sim_transfer"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			hold := s.hold("ann", 2)
			if _, err := s.pay(hold, method); err != nil {
				t.Fatal(err)
			}
			_, err := s.pay(hold, "sim_ok")
			s.refused(err, holds.ErrPaymentInProgress)
			_, err = s.Holds.Release(s.ctx, "tester", s.key(), hold, nil)
			s.refused(err, holds.ErrPaymentInProgress)
			if s.posted() != 1 {
				t.Errorf("%d calls", s.posted())
			}
		})
	}
}

// P13: the same key with another content is refused, and the original stays as it was.
func TestP13TheSameKeyWithAnotherBody(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	first, err := s.checkout("once", hold, "sim_ok")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []orders.CheckoutRequest{
		{PaymentMethod: "sim_decline"},
		{PaymentMethod: "sim_ok", ReturnURL: "https://example.com/"},
		{PaymentMethod: "sim_ok", Total: usd(10606)},
	} {
		_, err := s.Orders.Checkout(s.ctx, "tester", "once", hold, r)
		s.refused(err, ledger.ErrIdempotencyMismatch)
	}
	if again, err := s.checkout("once", hold, "sim_ok"); err != nil || !bytes.Equal(again.Data, first.Data) {
		t.Errorf("%s %v", again.Data, err)
	}
}

// P14: another basket is another hold, and so another order and another operation.
func TestP14AnotherBasketIsAnotherOperation(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	one := s.hold("ann", 1)
	if _, err := s.pay(one, "sim_decline"); err == nil {
		t.Fatal("not declined")
	}
	if _, err := s.Holds.Release(s.ctx, "tester", s.key(), one, nil); err != nil {
		t.Fatal(err)
	}
	two := s.buy("ann", 2, "sim_ok")
	if s.op(s.orderOf(one), payments.Authorize).ID == s.op(two.ID, payments.Authorize).ID {
		t.Error("both baskets have one operation")
	}
	s.expect(map[string]ledger.Amount{"sold:ann ga": 2, "held:ann ga": 0, "provider:sim USD": 10606})
}

// T46: another attempt after a decline has a key of its own, and there's one order.
func TestT46AnotherAttemptAfterADecline(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	for range 2 {
		_, err := s.pay(hold, "sim_decline")
		s.refused(err, orders.ErrPaymentDeclined)
		s.holdIs(hold, holds.Held)
	}
	if _, err := s.pay(hold, "sim_ok"); err != nil {
		t.Fatal(err)
	}
	s.idle()
	attempts := s.ops(s.orderOf(hold), payments.Authorize)
	if len(attempts) != 3 || s.posted() != 4 {
		t.Errorf("%d attempts, %d calls", len(attempts), s.posted())
	}
	for i, op := range attempts {
		if op.Attempt != i+1 || s.calls(op.ID) != 1 {
			t.Errorf("attempt %d is %d, called %d times", i+1, op.Attempt, s.calls(op.ID))
		}
	}
	s.is(s.orderOf(hold), orders.Captured, orders.PaymentCaptured, false)
}

// Nothing was sent to a provider that's down. A repeat under the key sends it; how often
// it had to be repeated makes no difference.
func TestARepeatAfterTheProviderWasDown(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]int{"once": 1, "twice": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			hold := s.hold("ann", 2)
			s.traffic.down.Store(true)
			for range down {
				_, err := s.checkout("once", hold, "sim_ok")
				s.refused(err, payments.ErrProviderUnavailable)
				s.holdIs(hold, holds.Held)
			}
			s.traffic.down.Store(false)
			first, err := s.checkout("once", hold, "sim_ok")
			if err != nil || first.Open {
				t.Fatalf("open: %t, %v", first.Open, err)
			}
			s.idle()
			if again, err := s.checkout("once", hold, "sim_ok"); err != nil || !bytes.Equal(again.Data, first.Data) {
				t.Errorf("then %s, %v", again.Data, err)
			}
			s.is(s.orderOf(hold), orders.Captured, orders.PaymentCaptured, false)
		})
	}
}

// A caller that gives up doesn't stop the payment; its repeat gets what came of it.
func TestACallerThatGivesUp(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	ctx, giveUp := context.WithCancel(s.ctx)
	defer giveUp()
	s.watch(nil, func(r *http.Request, _ *httptest.ResponseRecorder) bool {
		giveUp()
		return true
	})
	_, _ = s.Orders.Checkout(ctx, "tester", "once", hold, orders.CheckoutRequest{PaymentMethod: "sim_ok"}) // either may be first
	s.idle()
	again, err := s.checkout("once", hold, "sim_ok")
	if err != nil || again.Open || !again.Replayed {
		t.Errorf("open: %t, %v", again.Open, err)
	}
	s.is(s.orderOf(hold), orders.Captured, orders.PaymentCaptured, false)
}
