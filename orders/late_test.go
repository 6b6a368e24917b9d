package orders_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// late opens a shop with an order whose payment hadn't come when its grace ended, so that
// its hold is gone. By the provider's clock that's a minute ago.
func late(t *testing.T, o option, method string) (s *shop, order uuid.UUID, payment string) {
	t.Helper()
	s = open(t, o)
	order = s.buy("ann", 2, method).ID
	s.endGrace(order)
	s.work() // the end of the payment is prepared
	s.work() // and sent
	s.flush()
	s.is(order, orders.Cancelled, orders.PaymentDeclined, false)
	s.holdIs(s.order(order).HoldID, holds.Expired)
	s.ahead(time.Minute)
	return s, order, s.op(order, payments.Authorize).Payment
}

// P1, P2, T35: a payment that is late by the provider's clock, under each policy, with
// the tickets still there and gone; an authorization as well as money.
func TestP2LatePayments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy string
		gone   bool
		over   bool // honour_until has passed
		want   string
	}{
		"honoured":                     {buckets.HonourIfAvailable, false, false, "honoured"},
		"honour, but the tickets gone": {buckets.HonourIfAvailable, true, false, "paid back"},
		"honour, but too late":         {buckets.HonourIfAvailable, false, true, "paid back"},
		"refund":                       {buckets.Refund, false, false, "paid back"},
		"refund, tickets gone":         {buckets.Refund, true, false, "paid back"},
		"review":                       {buckets.Review, false, false, "kept"},
		"review, tickets gone":         {buckets.Review, true, false, "kept"},
	} {
		for _, method := range []string{"sim_requires_action", "sim_transfer"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				s, order, payment := late(t, policy(c.policy), method)
				if c.gone {
					s.hold("bob", 99)
				}
				if c.over {
					s.db.Except("events_recorded")
					s.exec(`UPDATE events SET honour_until = clock_timestamp() - interval '1 hour'`)
				}
				s.bank(payment, "complete", 0)
				s.flush()
				switch c.want {
				case "honoured":
					s.is(order, orders.Captured, orders.PaymentCaptured, false)
					s.expect(map[string]ledger.Amount{"sold:ann ga": 2, "available ga": 98, "provider:sim USD": 10606,
						"organiser:org USD": -10000, "suspense:late USD": 0, "auth:open USD.AUTH": 0})
					s.theCase(cases.LatePayment, cases.Resolved)
				case "paid back":
					s.expect(map[string]ledger.Amount{"sold:ann ga": 0, "provider:sim USD": 0, "organiser:org USD": 0,
						"suspense:late USD": 0, "refunds-pending:sim USD": 0, "auth:open USD.AUTH": 0})
					s.theCase(cases.LatePayment, cases.Resolved)
				case "kept":
					if c := s.theCase(cases.LatePayment, cases.Open); c.Amount != *usd(10606) || c.Owner != cases.OwnerFinance {
						t.Errorf("%+v", c)
					}
					s.work() // nothing changes by itself
					rests := map[string]ledger.Amount{"sold:ann ga": 0, "organiser:org USD": 0, "auth:open USD.AUTH": 10606}
					if method == "sim_transfer" {
						rests = map[string]ledger.Amount{"provider:sim USD": 10606, "suspense:late USD": -10606}
					}
					s.expect(rests)
				}
				if n := s.webhooks("parked"); n != 0 {
					t.Errorf("%d webhooks are parked", n)
				}
			})
		}
	}
}

// P4: two pay for the last ticket: one gets it, and the other's payment is given back, not
// merely its order cancelled.
func TestP4TwoBuyersOfTheLastTicket(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_requires_action", "sim_transfer"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			o := policy(buckets.HonourIfAvailable)
			o.spec.Tiers[0].Quantity = 2
			s, order, payment := late(t, o, method)
			won := s.buy("bob", 2, "sim_ok")
			s.bank(payment, "complete", 0)
			s.flush()
			s.is(won.ID, orders.Captured, orders.PaymentCaptured, false)
			if o := s.order(order); o.Status != orders.Cancelled || o.Reconciling {
				t.Errorf("the other is %s, reconciling: %t", o.Status, o.Reconciling)
			}
			s.expect(map[string]ledger.Amount{"sold:ann ga": 0, "sold:bob ga": 2, "available ga": 0, "provider:sim USD": 10606,
				"suspense:late USD": 0, "auth:open USD.AUTH": 0})
			var p struct{ Authorized, Captured, Refunded ledger.Amount }
			s.decode(s.get("/payments/"+payment), &p)
			if p.Captured != p.Refunded || method == "sim_requires_action" && p.Authorized != 0 {
				t.Errorf("the provider has %+v of it", p)
			}
		})
	}
}

// T34: a payment that was made in time, and told late, is honoured whatever the policy:
// the provider's clock decides.
func TestT34MadeInTimeToldLate(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_requires_action", "sim_transfer"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s, order, payment := late(t, option{mailbox: true}, method)
			s.bank(payment, "complete", 0)
			s.tell(s.what(s.op(order, payments.Authorize).ID), 0, said{"updated_at": s.order(order).PayUntil})
			s.is(order, orders.Captured, orders.PaymentCaptured, false)
			s.theCase(cases.LatePayment, cases.Resolved)
		})
	}
}

// T35: a payment of an order that was cancelled on request isn't honoured for being in
// time: nobody wants the tickets any more.
func TestT35APaymentOfACancelledOrder(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the deadline": false, "in the grace": true} {
		for _, method := range []string{"sim_requires_action", "sim_transfer"} {
			t.Run(method+" "+name, func(t *testing.T) {
				t.Parallel()
				s := open(t, option{webhooks: true})
				o := s.buy("ann", 2, method)
				if after {
					s.endHold(o.ID)
				}
				answer, err := s.Orders.Cancel(s.ctx, "tester", s.key(), o.ID, nil)
				if err != nil || !answer.Open {
					t.Fatalf("open: %t, %v", answer.Open, err)
				}
				s.idle()
				s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, false)
				s.expect(map[string]ledger.Amount{"available ga": 100})
				s.bank(s.op(o.ID, payments.Authorize).Payment, "complete", 0)
				s.flush()
				if o := s.order(o.ID); o.Status != orders.Cancelled || !o.Reconciling {
					t.Errorf("the order is %s, reconciling: %t", o.Status, o.Reconciling)
				}
				s.theCase(cases.LatePayment, cases.Open)
			})
		}
	}
}

// T41: money that isn't the order's total fulfils nothing and rests with a case, under
// every policy, however long.
func TestT41AnotherAmountThanTheTotal(t *testing.T) {
	t.Parallel()
	for _, amount := range []ledger.Amount{10605, 10607, 1} {
		s := open(t, policy(buckets.HonourIfAvailable))
		o := s.buy("ann", 2, "sim_transfer")
		s.bank(s.op(o.ID, payments.Authorize).Payment, "complete", int64(amount))
		s.flush()
		s.is(o.ID, orders.Cancelled, orders.PaymentCaptured, true)
		if c := s.theCase(cases.AmountMismatch, cases.Open); c.Suspended != amount || c.NextAttemptAt != nil {
			t.Errorf("%+v", c)
		}
		s.work()
		s.theCase(cases.AmountMismatch, cases.Open)
		s.expect(map[string]ledger.Amount{"sold:ann ga": 0, "available ga": 100, "provider:sim USD": amount, "suspense:late USD": -amount})
	}
}

// T26: two holds of one customer may both be paid; a second payment of one order is given
// back.
func TestT26ASecondPaymentOfOneOrder(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	hold := s.hold("ann", 2)
	if _, err := s.pay(hold, "sim_processing"); err != nil {
		t.Fatal(err)
	}
	order := s.orderOf(hold)
	first := s.op(order, payments.Authorize)
	s.tell(s.what(first.ID), 0, said{"status": "declined", "reason": "card_declined"})
	if _, err := s.pay(hold, "sim_ok"); err != nil {
		t.Fatal(err)
	}
	s.idle()
	s.bank(first.Payment, "complete", 0)
	s.flush()
	s.is(order, orders.Captured, orders.PaymentCaptured, false)
	s.theCase(cases.DuplicatePayment, cases.Resolved)
	if void := s.op(order, payments.Void); void.Status != orders.OpSucceeded || void.Payment != first.Payment {
		t.Errorf("%+v", void)
	}
	s.expect(map[string]ledger.Amount{"provider:sim USD": 10606, "auth:open USD.AUTH": 0, "sold:ann ga": 2})
}

// T26: as many payments as attempts: all but one are given back, each by a void of its
// own, also when the voids take a while.
func TestT26TwoDuplicatesAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	hold := s.hold("ann", 2)
	order := s.orderOf(hold)
	for range 2 {
		if _, err := s.pay(hold, "sim_processing"); err != nil {
			t.Fatal(err)
		}
		s.tell(s.what(s.op(order, payments.Authorize).ID), 0, said{"status": "declined", "reason": "card_declined"})
	}
	if _, err := s.pay(hold, "sim_ok"); err != nil {
		t.Fatal(err)
	}
	s.idle()
	settings := s.sim.Settings()
	settings.Rates.Error = 1
	if err := s.sim.Configure(settings); err != nil {
		t.Fatal(err)
	}
	for _, op := range s.ops(order, payments.Authorize)[:2] {
		s.bank(op.Payment, "complete", 0)
	}
	s.flush()
	settings.Rates.Error = 0
	if err := s.sim.Configure(settings); err != nil {
		t.Fatal(err)
	}
	s.work()
	for _, c := range s.cases(cases.DuplicatePayment) {
		if c.Status != cases.Resolved {
			t.Errorf("%+v", c)
		}
	}
	if voids := s.ops(order, payments.Void); len(voids) != 2 || voids[0].Payment == voids[1].Payment {
		t.Errorf("%d voids", len(voids))
	}
	s.is(order, orders.Captured, orders.PaymentCaptured, false)
	s.expect(map[string]ledger.Amount{"auth:open USD.AUTH": 0, "provider:sim USD": 10606})
}

// T37: an order that ended is there to be read, with everything that happened.
func TestT37AnEndedOrderIsReadable(t *testing.T) {
	t.Parallel()
	s, order, payment := late(t, policy(buckets.Refund), "sim_transfer")
	s.bank(payment, "complete", 0)
	s.flush()
	o := s.order(order)
	if len(o.Operations) != 3 || o.Operations[0].Status != orders.OpSucceeded || o.Operations[2].Kind != payments.Refund ||
		o.Status != orders.Cancelled || o.PaymentStatus != orders.PaymentRefunded {
		t.Errorf("%+v", o)
	}
	list, err := s.Orders.List(s.ctx, "gig", orders.Filter{Customer: "ann", Status: orders.Cancelled, Limit: 10})
	if err != nil || len(list) != 1 || list[0].Version != o.Version {
		t.Errorf("%+v %v", list, err)
	}
}
