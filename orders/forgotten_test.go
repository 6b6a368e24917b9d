package orders_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// A capture that the provider doesn't know is made again as long as the provider would
// recognise its id, with an hour to spare. After that it's neither made again nor taken
// for not attempted: the sale stands, and people find out.
func TestACaptureThatTheProviderHasForgotten(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	s.watch(func(r *http.Request) bool { return !strings.HasSuffix(r.URL.Path, "/capture") }, nil)
	o := s.buy("ann", 2, "sim_ok")
	op := s.op(o.ID, payments.Capture)
	if n := s.calls(op.ID); n != 1 {
		t.Fatalf("it was called %d times", n)
	}
	age := time.Duration(0)
	for _, c := range []struct {
		age   time.Duration
		calls int
	}{
		{22 * time.Hour, 2}, {23*time.Hour + time.Minute, 2}, {30 * time.Hour, 2}, {1000 * time.Hour, 2},
	} {
		s.age(c.age - age)
		age = c.age
		s.work()
		if n := s.calls(op.ID); n != c.calls {
			t.Errorf("%s after its sending it was called %d times, want %d", c.age, n, c.calls)
		}
		s.is(o.ID, orders.Confirmed, orders.PaymentUnknown, false)
	}
}

// What the provider has told of isn't called again when the provider doesn't find it: it
// has been there.
func TestAPendingPaymentThatTheProviderDoesNotFind(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	s.db.Except("operations_recorded")
	o := s.buy("ann", 2, "sim_timeout_lost")
	op := s.op(o.ID, payments.Authorize)
	s.exec(`UPDATE operations SET status = 'pending'`) // as if it had told
	called := s.calls(op.ID)
	for range 2 {
		s.work()
		s.age(time.Hour)
	}
	if n := s.calls(op.ID); n != called {
		t.Errorf("it was called %d times more", n-called)
	}
	if op = s.op(o.ID, payments.Authorize); op.Status != orders.OpPending {
		t.Errorf("it's %s", op.Status)
	}
}

// An entry begins the calls that were sent in it, and no call that another has sent and
// that's under way.
func TestAnEntryBeginsItsOwnCalls(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	s.watch(s.beforeThat(func() { // the first refund is under way
		if _, err := s.Orders.Refund(s.ctx, "tester", s.key(), o.ID, orders.RefundRequest{Amount: usd(100), Reason: "rain"}, nil); err != nil {
			t.Error(err)
		}
	}), nil)
	if err := s.refund(o.ID, orders.RefundRequest{Amount: usd(200)}); err != nil {
		t.Fatal(err)
	}
	s.idle()
	refunds := s.ops(o.ID, payments.Refund)
	if len(refunds) != 2 {
		t.Fatalf("%d refunds", len(refunds))
	}
	for _, op := range refunds {
		if n := s.calls(op.ID); n != 1 || op.Status != orders.OpSucceeded {
			t.Errorf("refund %d was called %d times and is %s", op.Attempt, n, op.Status)
		}
	}
}
