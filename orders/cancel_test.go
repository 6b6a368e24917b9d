package orders_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

func (s *shop) cancel(id uuid.UUID) (orders.Answer, error) {
	s.Helper()
	s.gate.RLock()
	a, err := s.Orders.Cancel(s.ctx, "tester", s.key(), id, nil)
	s.gate.RUnlock()
	s.idle()
	return a, err
}

// T23: what cancelling an order does, by where its payment is.
func TestT23CancelByState(t *testing.T) {
	t.Parallel()
	for method, c := range map[string]struct {
		open   bool
		err    bool
		status orders.Status
		hold   holds.Status
	}{
		"sim_decline":         {false, false, orders.Cancelled, holds.Released},
		"sim_requires_action": {true, false, orders.Cancelled, holds.Released},
		"sim_processing":      {true, false, orders.Cancelled, holds.Released},
		"sim_transfer":        {true, false, orders.Cancelled, holds.Released},
		"sim_timeout_lost":    {false, true, orders.Pending, holds.PaymentPending},
		"sim_error":           {false, true, orders.Pending, holds.PaymentPending},
		"sim_capture_timeout": {false, true, orders.Confirmed, holds.Confirmed},
		"sim_ok":              {false, true, orders.Captured, holds.Confirmed},
		"sim_capture_fails":   {false, false, orders.Cancelled, holds.Confirmed},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{webhooks: true})
			o := s.buy("ann", 2, method)
			s.flush()
			answer, err := s.cancel(o.ID)
			switch {
			case method == "sim_ok":
				s.refused(err, orders.ErrOrderCaptured)
			case c.err && method != "sim_capture_timeout": // its webhook may have told
				s.refused(err, holds.ErrPaymentInProgress)
			case !c.err && (err != nil || answer.Open != c.open):
				t.Errorf("open: %t, %v", answer.Open, err)
			}
			s.flush()
			if o = s.order(o.ID); o.Status != c.status && method != "sim_capture_timeout" {
				t.Errorf("the order is %s, want %s", o.Status, c.status)
			}
			s.holdIs(o.HoldID, c.hold)
			if c.status == orders.Cancelled {
				s.expect(nothingSold)
				if again, err := s.cancel(o.ID); err != nil || again.Open {
					t.Errorf("again: open: %t, %v", again.Open, err)
				}
				s.work()
				s.expect(nothingSold)
			}
		})
	}
}

// T23: many cancel at once, the buyer and the operator and the timeout: the tickets come
// back once.
func TestT23ManyCancelAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_requires_action")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.cancel(o.ID); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.flush()
	s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, false)
	s.expect(nothingSold)
	if n, calls := len(s.ops(o.ID, payments.Cancel)), s.calls(s.op(o.ID, payments.Cancel).ID); n != 1 || calls != 1 {
		t.Errorf("%d ends of the payment, called %d times", n, calls)
	}
}

// The buyer pays while the order is being cancelled: one of both happens.
func TestPaidWhileItIsCancelled(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_requires_action")
	payment := s.op(o.ID, payments.Authorize).Payment
	s.watch(s.beforeThat(func() { s.bank(payment, "complete", 0) }), nil)
	if _, err := s.cancel(o.ID); err != nil {
		t.Fatal(err)
	}
	s.watch(nil, nil)
	s.flush()
	s.work()
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
	s.holdIs(o.HoldID, holds.Confirmed)
	s.expect(map[string]ledger.Amount{"sold:ann ga": 2, "provider:sim USD": 10606})
}

// A declined order's hold may be released, or run out: the order ends with it. What is
// paid for it after that came late.
func TestAHoldThatEndsAfterADecline(t *testing.T) {
	t.Parallel()
	for name, released := range map[string]bool{"released": true, "expired": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, policy(buckets.HonourIfAvailable))
			o := s.buy("ann", 2, "sim_processing")
			op := s.what(s.op(o.ID, payments.Authorize).ID)
			s.tell(op, 0, said{"status": "declined", "reason": "card_declined"})
			if released {
				if _, err := s.Holds.Release(s.ctx, "tester", s.key(), o.HoldID, nil); err != nil {
					t.Fatal(err)
				}
			} else {
				s.endGrace(o.ID)
			}
			s.exec(`UPDATE orders SET due_at = 'epoch' WHERE due_at IS NOT NULL`)
			s.work()
			s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, false)
			s.expect(nothingSold)
			s.bank(op["payment_id"].(string), "complete", 0)
			s.flush()
			s.is(o.ID, orders.Captured, orders.PaymentCaptured, false) // by policy
			s.theCase(cases.LatePayment, cases.Resolved)
		})
	}
}

// T35: who acts on an order by what isn't so any more is refused.
func TestT35StaleVersionsOfAnOrder(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	stale := o.Version - 1
	_, err := s.Orders.Cancel(s.ctx, "tester", s.key(), o.ID, &stale)
	s.refused(err, buckets.ErrVersionConflict)
	_, err = s.Orders.Refund(s.ctx, "tester", s.key(), o.ID, orders.RefundRequest{Reason: "x"}, &stale)
	s.refused(err, buckets.ErrVersionConflict)
	if _, err = s.Orders.Refund(s.ctx, "tester", s.key(), o.ID, orders.RefundRequest{Reason: "x"}, &o.Version); err != nil {
		t.Fatal(err)
	}
}

// The same key of a refund is one refund, with one answer; with another content it's
// refused.
func TestTheSameKeyOfARefund(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	ask := func(n ledger.Amount) (orders.Answer, error) {
		return s.Orders.Refund(s.ctx, "tester", "once", o.ID, orders.RefundRequest{Amount: usd(n), Reason: "x"}, nil)
	}
	first, err := ask(1000)
	if err != nil {
		t.Fatal(err)
	}
	s.idle()
	for range 3 {
		if again, err := ask(1000); err != nil || string(again.Data) != string(first.Data) || !again.Replayed {
			t.Errorf("%s, then %s %v", first.Data, again.Data, err)
		}
	}
	_, err = ask(1001)
	s.refused(err, ledger.ErrIdempotencyMismatch)
	s.idle()
	if n := len(s.ops(o.ID, payments.Refund)); n != 1 {
		t.Errorf("%d refunds", n)
	}
}

// Orders are listed in pages, each with its operations, by customer and by status.
func TestList(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	for range 3 {
		s.buy("ann", 1, "sim_ok")
		s.buy("bob", 1, "sim_decline")
	}
	for name, c := range map[string]struct {
		f    orders.Filter
		want int
	}{
		"all":      {orders.Filter{}, 6},
		"ann's":    {orders.Filter{Customer: "ann"}, 3},
		"captured": {orders.Filter{Status: orders.Captured}, 3},
		"none":     {orders.Filter{Customer: "ann", Status: orders.Pending}, 0},
		"bob's":    {orders.Filter{Customer: "bob", Status: orders.Pending}, 3},
	} {
		n := 0
		for c.f.Limit = 2; ; {
			page, err := s.Orders.List(s.ctx, "gig", c.f)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page {
				if one := s.order(o.ID); len(one.Operations) != len(o.Operations) || len(o.Operations) == 0 || one.Version != o.Version ||
					strings.Compare(o.ID.String(), c.f.After.String()) <= 0 {
					t.Errorf("%s: listed %+v, read %+v", name, o, one)
				}
				c.f.After = o.ID
			}
			n += len(page)
			if len(page) < 2 {
				break
			}
		}
		if n != c.want {
			t.Errorf("%s: %d orders, want %d", name, n, c.want)
		}
	}
}
