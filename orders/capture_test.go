package orders_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// nothingSold are the accounts of an event whose sale was undone.
var nothingSold = map[string]ledger.Amount{"sold:ann ga": 0, "held:ann ga": 0, "available ga": 100, "provider:sim USD": 0,
	"organiser:org USD": 0, "fees:platform USD": 0, "tax:sales USD": 0, "capture-pending:sim USD": 0, "auth:open USD.AUTH": 0,
	"suspense:late USD": 0}

// T44: an authorization of what can't be sold any more is voided, never captured.
func TestT44AuthorizedButNotConfirmableIsVoided(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_ok", "sim_requires_action", "sim_transfer"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{webhooks: true})
			limit := func() {
				_, err := s.Events.ChangeTier(s.ctx, "tester", s.key(), "gig", "ga",
					buckets.TierChange{LimitPerCustomer: new(int64(1))}, nil, false)
				if err != nil {
					t.Error(err)
				}
			}
			hold := s.hold("ann", 2)
			order := s.orderOf(hold)
			if method == "sim_ok" {
				s.watch(func(*http.Request) bool { limit(); s.watch(nil, nil); return true }, nil)
			}
			if _, err := s.pay(hold, method); err != nil {
				t.Fatal(err)
			}
			if method != "sim_ok" {
				limit()
				s.bank(s.op(order, payments.Authorize).Payment, "complete", 0)
			}
			s.flush()
			s.holdIs(hold, holds.Released)
			s.theCase(cases.NotConfirmable, cases.Resolved)
			s.expect(nothingSold)
			for _, op := range s.order(order).Operations {
				if op.Kind == payments.Capture {
					t.Error("it was captured")
				}
			}
		})
	}
}

// T10: what a limit in force forbids at checkout is refused, and nothing is charged.
func TestT10RefusedAtCheckout(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	if _, err := s.Events.ChangeTier(s.ctx, "tester", s.key(), "gig", "ga",
		buckets.TierChange{LimitPerCustomer: new(int64(1))}, nil, false); err != nil {
		t.Fatal(err)
	}
	_, err := s.pay(hold, "sim_ok")
	s.refused(err, holds.ErrLimitExceeded)
	if s.posted() != 0 {
		t.Errorf("%d calls", s.posted())
	}
	s.holdIs(hold, holds.Held)
}

// T5: a tier that shrinks between hold and confirm can't take what's held.
func TestT5ATierThatShrinks(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	shrink := func(n ledger.Amount) error {
		_, err := s.Events.ChangeTier(s.ctx, "tester", s.key(), "gig", "ga", buckets.TierChange{Quantity: &n}, nil, false)
		return err
	}
	s.refused(shrink(1), buckets.ErrBelowCommitted)
	if err := shrink(2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pay(hold, "sim_ok"); err != nil {
		t.Fatal(err)
	}
	s.idle()
	s.expect(map[string]ledger.Amount{"sold:ann ga": 2, "available ga": 0})
}

// The capture is declined for good: nothing was issued, so all of the sale is undone.
func TestACaptureThatIsDeclined(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_capture_fails")
	s.flush()
	s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, false)
	s.expect(nothingSold)
}

// P34: a capture that was accepted and fails afterwards: the claim is open again, with a
// case, and everything that was is there to be read. By cancelling, all is undone.
func TestP34CapturedThenFailed(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_ok")
	s.bank(s.op(o.ID, payments.Authorize).Payment, "fail", 0)
	s.flush()
	s.is(o.ID, orders.Confirmed, orders.PaymentDeclined, true)
	s.expect(map[string]ledger.Amount{"capture-pending:sim USD": 10606, "provider:sim USD": 0, "sold:ann ga": 2, "organiser:org USD": -10000})
	s.theCase(cases.CaptureFailed, cases.Open)
	s.work() // nobody captures again by itself
	if n := len(s.ops(o.ID, payments.Capture)); n != 1 {
		t.Errorf("%d captures", n)
	}
	s.refused(s.refund(o.ID, orders.RefundRequest{}), orders.ErrOrderNotCaptured)
	if _, err := s.Orders.Cancel(s.ctx, "tester", s.key(), o.ID, nil); err != nil {
		t.Fatal(err)
	}
	s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, false)
	s.theCase(cases.CaptureFailed, cases.Resolved)
	s.expect(nothingSold)
	if o := s.order(o.ID); len(o.Operations) != 2 || s.entries("order.captured") != 1 || s.entries("order.capture_failed") != 1 {
		t.Errorf("%v", s.kinds())
	}
}

// P34: the same of a transfer, whose payment is taken back.
func TestP34ATransferThatIsTakenBack(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_transfer")
	payment := s.op(o.ID, payments.Authorize).Payment
	s.bank(payment, "complete", 0)
	s.flush()
	s.bank(payment, "fail", 0)
	s.flush()
	s.is(o.ID, orders.Confirmed, orders.PaymentDeclined, true)
	s.expect(map[string]ledger.Amount{"capture-pending:sim USD": 10606, "provider:sim USD": 0, "sold:ann ga": 2})
	s.theCase(cases.CaptureFailed, cases.Open)
	if _, err := s.Orders.Cancel(s.ctx, "tester", s.key(), o.ID, nil); err != nil {
		t.Fatal(err)
	}
	s.expect(nothingSold)
	s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, false)
}

// P34: a capture that fails, is done, and fails again is a case each time.
func TestP34ACaptureThatChangesItsMind(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	op := s.what(s.op(o.ID, payments.Capture).ID)
	for i, word := range []string{"declined", "succeeded", "declined"} {
		s.tell(op, time.Duration(i+1)*time.Minute, said{"status": word})
	}
	s.is(o.ID, orders.Confirmed, orders.PaymentDeclined, true)
	if got := s.openCases(); len(got) != 1 {
		t.Errorf("open cases: %v", got)
	}
}

// P28: an order that's cancelled isn't captured, whatever screen asks; one that's being
// captured isn't cancelled.
func TestP28CancelAndCapture(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_requires_action")
	seen := o.Version
	if _, err := s.Orders.Cancel(s.ctx, "tester", s.key(), o.ID, &seen); err != nil {
		t.Fatal(err)
	}
	s.flush()
	s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, false)
	calls := s.posted()
	_, err := s.pay(o.HoldID, "sim_ok")
	s.refused(err, orders.ErrHoldExpired)
	s.refused(s.refund(o.ID, orders.RefundRequest{}), orders.ErrOrderNotCaptured)
	if again, err := s.Orders.Cancel(s.ctx, "tester", s.key(), o.ID, nil); err != nil || again.Open {
		t.Errorf("open: %t, %v", again.Open, err)
	}
	_, err = s.Orders.Cancel(s.ctx, "tester", s.key(), o.ID, &seen)
	s.refused(err, buckets.ErrVersionConflict)
	if s.posted() != calls {
		t.Error("the provider was called")
	}
}

// P29: "already captured" is no failure: a lookup tells that it was this very capture.
func TestP29AlreadyCaptured(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	order := s.orderOf(hold)
	// The answer is lost, and the provider has forgotten the call when it's repeated.
	if _, err := s.pay(hold, "sim_capture_timeout"); err != nil {
		t.Fatal(err)
	}
	s.idle()
	s.is(order, orders.Confirmed, orders.PaymentUnknown, false)
	settings := s.sim.Settings()
	settings.LookupLag, settings.ClockOffset = 1000*60*60*48, 1000*60*60*25
	if err := s.sim.Configure(settings); err != nil {
		t.Fatal(err)
	}
	s.work() // not found, called again: already captured
	s.is(order, orders.Confirmed, orders.PaymentUnknown, false)
	if n := s.calls(s.op(order, payments.Capture).ID); n != 2 {
		t.Errorf("%d calls", n)
	}
	settings.LookupLag = 0
	if err := s.sim.Configure(settings); err != nil {
		t.Fatal(err)
	}
	s.work()
	s.is(order, orders.Captured, orders.PaymentCaptured, false)
	if n := s.calls(s.op(order, payments.Capture).ID); n != 2 {
		t.Errorf("%d calls", n)
	}
	s.expect(map[string]ledger.Amount{"provider:sim USD": 10606, "capture-pending:sim USD": 0})
}

// P31: we always capture the whole. A provider that captures less than it was asked for:
// revenue in the books is the order's, what isn't there stays on capture-pending with a
// case, and nothing of it counts as refunded.
func TestP31LessThanWasAuthorized(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	s.watch(func(r *http.Request) bool { return !strings.HasSuffix(r.URL.Path, "/capture") }, nil)
	o := s.buy("ann", 2, "sim_ok")
	op := s.what(s.op(o.ID, payments.Authorize).ID)
	s.tell(op, time.Second, said{"id": "op_of_the_capture", "reference": s.op(o.ID, payments.Capture).ID.String(), "kind": "capture",
		"amount": 10000, "payment": said{"captured": 10000, "status": "captured"}})
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, true)
	if c := s.theCase(cases.CaptureFailed, cases.Open); c.Amount != *usd(606) {
		t.Errorf("%+v", c)
	}
	if o := s.order(o.ID); o.Captured != *usd(10000) || o.Refunded != *usd(0) {
		t.Errorf("captured %v, refunded %v", o.Captured, o.Refunded)
	}
	s.expect(map[string]ledger.Amount{"provider:sim USD": 10000, "capture-pending:sim USD": 606, "auth:open USD.AUTH": 0})
	s.refused(s.refund(o.ID, orders.RefundRequest{Amount: usd(10001)}), orders.ErrRefundExceedsCaptured)
}

// T43: what was captured in part goes back by one refund.
func TestT43ExpiryWithAPartialCapture(t *testing.T) {
	t.Parallel()
	s, order, payment := late(t, policy(buckets.Refund), "sim_transfer")
	s.bank(payment, "complete", 3000)
	s.flush()
	s.work()
	c := s.theCase(cases.AmountMismatch, cases.Open) // people decide about another amount
	if _, err := s.Recon.Resolve(s.ctx, "fay", s.key(), c.ID, refundIt, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, _ = s.Recon.Approve(s.ctx, "gus", s.key(), c.ID, nil) // the second is refused
		s.idle()
	}
	s.flush()
	s.theCase(cases.AmountMismatch, cases.Resolved)
	if refunds := s.ops(order, payments.Refund); len(refunds) != 1 || refunds[0].Amount != *usd(3000) {
		t.Errorf("%+v", refunds)
	}
	s.expect(nothingSold)
}
