package orders_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

// Every method of the provider, without and with its webhooks: what the order is when its
// checkout was answered, and in the end.
func TestEveryMethod(t *testing.T) {
	t.Parallel()
	type states struct {
		status  orders.Status
		payment orders.PaymentStatus
	}
	done := states{orders.Captured, orders.PaymentCaptured}
	unknown := states{orders.Pending, orders.PaymentUnknown}
	asked := states{orders.Pending, orders.PaymentRequiresAction}
	for method, c := range map[string]struct{ first, last states }{
		"sim_ok":              {done, done},
		"sim_decline":         {states{orders.Pending, orders.PaymentDeclined}, states{orders.Pending, orders.PaymentDeclined}},
		"sim_requires_action": {asked, done},
		"sim_processing":      {states{orders.Pending, orders.PaymentAuthorizing}, done},
		"sim_transfer":        {asked, done},
		"sim_timeout_applied": {unknown, done},
		"sim_timeout_lost":    {unknown, unknown},
		"sim_slow":            {done, done}, // it's in time; see TestASlowAuthorization
		"sim_error":           {unknown, unknown},
		"sim_capture_fails":   {states{orders.Cancelled, orders.PaymentDeclined}, states{orders.Cancelled, orders.PaymentDeclined}},
		"sim_capture_timeout": {states{orders.Confirmed, orders.PaymentUnknown}, done},
		"sim_refund_pending":  {done, done},
		"sim_webhook_late":    {done, done},
		"sim_webhook_twice":   {done, done},
	} {
		for name, webhooks := range map[string]bool{"": false, " with webhooks": true} {
			t.Run(method+name, func(t *testing.T) {
				t.Parallel()
				s := open(t, option{webhooks: webhooks})
				s.slow(time.Millisecond)
				o := s.buy("ann", 2, method)
				if got := (states{o.Status, o.PaymentStatus}); !webhooks && got != c.first {
					t.Errorf("first it's %v, want %v", got, c.first)
				}
				switch method {
				case "sim_requires_action", "sim_processing", "sim_transfer":
					s.bank(s.op(o.ID, payments.Authorize).Payment, "complete", 0)
				}
				s.flush()
				s.work()
				s.work()
				s.is(o.ID, c.last.status, c.last.payment, false)
				if c.last == done {
					s.expect(map[string]ledger.Amount{"sold:ann ga": 2, "provider:sim USD": 10606, "auth:open USD.AUTH": 0})
				} else {
					s.expect(map[string]ledger.Amount{"sold:ann ga": 0, "provider:sim USD": 0, "auth:open USD.AUTH": 0})
				}
			})
		}
	}
	if n := len(sim.Methods()); n != 14 {
		t.Errorf("the provider has %d methods", n)
	}
}

// slow sets how long a slow call takes.
func (s *shop) slow(d time.Duration) {
	s.Helper()
	settings := s.sim.Settings()
	settings.SlowLatency = d.Milliseconds()
	if err := s.sim.Configure(settings); err != nil {
		s.Fatal(err)
	}
}

// P5: an authorization that takes longer than its caller is there. It isn't found when it's
// looked up at once, which is no evidence; it's called again under its id, and is one
// charge.
func TestASlowAuthorization(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	s.slow(time.Millisecond)
	var calls sync.WaitGroup
	begin := make(chan struct{})
	carryOut := sync.OnceFunc(func() { close(begin); calls.Wait() })
	defer carryOut()
	s.watch(func(r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		call := r.Clone(context.WithoutCancel(r.Context()))
		call.Body = io.NopCloser(bytes.NewReader(body))
		calls.Go(func() {
			<-begin
			http.StripPrefix("/sim", s.sim).ServeHTTP(httptest.NewRecorder(), call)
		})
		return false // the caller has gone
	}, nil)
	o := s.buy("ann", 2, "sim_slow")
	s.is(o.ID, orders.Pending, orders.PaymentUnknown, false)
	s.work()
	s.is(o.ID, orders.Pending, orders.PaymentUnknown, false)
	carryOut()
	s.watch(nil, nil)
	s.work()
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
	if op := s.op(o.ID, payments.Authorize); s.calls(op.ID) != 2 || op.Payment != "pay_00000001" {
		t.Errorf("%d calls, payment %s", s.calls(op.ID), op.Payment)
	}
	s.expect(map[string]ledger.Amount{"provider:sim USD": 10606})
}

// What isn't a method of the provider is declined by it, and nothing is open.
func TestAMethodThatTheProviderDoesntKnow(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	_, err := s.pay(hold, "gold")
	s.refused(err, orders.ErrPaymentDeclined)
	s.holdIs(hold, holds.Held)
}

// The buyer's next step is told as long as it's the buyer's turn.
func TestNextAction(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	for method, kind := range map[string]string{"sim_requires_action": "redirect", "sim_transfer": "transfer"} {
		o := s.buy(method, 1, method)
		payment := s.op(o.ID, payments.Authorize).Payment
		if o.NextAction == nil || o.NextAction.Type != kind || o.NextAction.URL != s.simURL+"/payments/"+payment+"/bank" {
			t.Errorf("%s: %+v", method, o.NextAction)
		}
		s.bank(payment, "complete", 0)
		s.flush()
		if o := s.order(o.ID); o.NextAction != nil {
			t.Errorf("%s: %+v", method, o.NextAction)
		}
	}
}

// The refusals of a checkout, in their order of precedence, and nothing of them is left.
func TestCheckoutRefusals(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	check := func(hold func() orders.CheckoutRequest, want *fault.Def) {
		t.Helper()
		id := s.hold("ann", 1)
		r := hold()
		if r.PaymentMethod == "" {
			r.PaymentMethod = "sim_ok"
		}
		_, err := s.Orders.Checkout(s.ctx, "tester", s.key(), id, r)
		s.refused(err, want)
		if _, err := s.Holds.Release(s.ctx, "tester", s.key(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	check(func() orders.CheckoutRequest { return orders.CheckoutRequest{PaymentMethod: "a method"} }, fault.ErrInvalidRequest)
	check(func() orders.CheckoutRequest { return orders.CheckoutRequest{ReturnURL: "https://x/ y"} }, fault.ErrInvalidRequest)
	check(func() orders.CheckoutRequest {
		s.db.Except("holds_recorded")
		s.exec(`UPDATE holds SET expires_at = clock_timestamp() WHERE status = 'held'`)
		return orders.CheckoutRequest{Total: usd(1)} // that comes later
	}, orders.ErrHoldExpired)
	check(func() orders.CheckoutRequest { return orders.CheckoutRequest{Total: usd(5302)} }, orders.ErrPriceChanged)
	_, err := s.pay(s.orderOf(s.hold("ann", 1)), "sim_ok")
	s.refused(err, holds.ErrHoldNotFound)
	for range 5 {
		if _, err := s.pay(s.hold("bob", 1), "sim_requires_action"); err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.pay(s.hold("bob", 1), "sim_ok")
	s.refused(err, orders.ErrTooManyCheckouts)
	if f := fault.As(err); f.RetryAfter == 0 {
		t.Error("it's not told when to come back")
	}
	if s.posted() != 5 {
		t.Errorf("%d calls", s.posted())
	}
}

// T64: what failed leaves no number behind: an order's entries are those that changed it.
func TestT64RefusalsLeaveNothing(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 1)
	head := func() (n int64) {
		if err := s.owner.QueryRow(s.ctx, `SELECT max(seq) FROM entries WHERE journal_id <> 0`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := head()
	for range 3 {
		if _, err := s.Orders.Checkout(s.ctx, "tester", s.key(), hold, orders.CheckoutRequest{PaymentMethod: "sim_ok", Total: usd(1)}); err == nil {
			t.Fatal("not refused")
		}
	}
	if after := head(); after != before {
		t.Errorf("%d entries", after-before)
	}
	if _, err := s.Orders.Get(s.ctx, s.orderOf(hold)); fault.As(err).Def != orders.ErrOrderNotFound {
		t.Error(err)
	}
	if _, err := s.pay(hold, "sim_ok"); err != nil {
		t.Fatal(err)
	}
	s.idle()
	if after := head(); after != before+3 { // created, confirmed, captured
		t.Errorf("%d entries", after-before)
	}
}
