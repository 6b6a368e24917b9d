package orders_test

import (
	"testing"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// dispute gives what the provider says of a chargeback of an order, by its own name.
func (s *shop) dispute(o orders.Order, amount ledger.Amount) said {
	s.Helper()
	d := s.what(s.op(o.ID, payments.Capture).ID)
	d["id"], d["reference"], d["kind"], d["amount"], d["status"] = "op_of_the_dispute", "", "chargeback", amount, "pending"
	return d
}

// P38: an inquiry posts nothing; what it escalates to is posted once.
func TestP38AnInquiryThatEscalates(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	before := s.balances()
	d := s.dispute(o, 10606)
	s.tell(d, 0, nil)
	s.tell(d, time.Second, nil)
	for account, balance := range s.balances() {
		if before[account] != balance {
			t.Errorf("%s has %d, had %d", account, balance, before[account])
		}
	}
	if got := s.openCases(); len(got) != 0 {
		t.Errorf("cases %v", got)
	}
	for range 2 {
		s.tell(d, 2*time.Second, said{"status": "succeeded"})
	}
	s.expect(map[string]ledger.Amount{"disputes:sim USD": 10606, "provider:sim USD": 0, "organiser:org USD": 0,
		"organiser:org:dispute-hold USD": -10000, "sold:ann ga": 2})
	s.theCase(cases.Chargeback, cases.Open)
	if n := s.entries("order.charged_back"); n != 1 {
		t.Errorf("%d entries", n)
	}
}

// P38: a dispute that is won, and one that was never more than an inquiry.
func TestP38ADisputeThatIsWon(t *testing.T) {
	t.Parallel()
	for name, escalated := range map[string]bool{"an inquiry": false, "a chargeback": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			o := s.buy("ann", 2, "sim_ok")
			before := s.balances()
			d := s.dispute(o, 5303)
			s.tell(d, 0, nil)
			if escalated {
				s.tell(d, time.Second, said{"status": "succeeded"})
			}
			s.tell(d, time.Minute, said{"status": "declined", "reason": "won"})
			s.expect(before)
			s.expect(map[string]ledger.Amount{"disputes:sim USD": 0, "organiser:org:dispute-hold USD": 0})
			s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
		})
	}
}

// P37: a refund and a dispute of one payment, in every order: never more than was
// captured goes back, and the books are the same at the end.
func TestP37RefundsAndDisputes(t *testing.T) {
	t.Parallel()
	end := map[string]ledger.Amount{"provider:sim USD": 0, "disputes:sim USD": 6000, "refunds-pending:sim USD": 0,
		"organiser:org USD": 0, "chargeback-loss USD": 0}
	for name, do := range map[string]func(s *shop, o orders.Order, payment string) error{
		"the refund first": func(s *shop, o orders.Order, payment string) error {
			err := s.refund(o.ID, orders.RefundRequest{Amount: usd(4606)})
			s.bank(payment, "dispute", 0)
			return err
		},
		"the dispute first": func(s *shop, o orders.Order, payment string) error {
			s.bank(payment, "dispute", 6000)
			s.flush()
			s.refused(s.refund(o.ID, orders.RefundRequest{Amount: usd(4607)}), orders.ErrRefundExceedsCaptured)
			return s.refund(o.ID, orders.RefundRequest{})
		},
		"the dispute first, told last": func(s *shop, o orders.Order, payment string) error {
			if err := s.sim.SetWebhookURL(""); err != nil {
				return err
			}
			s.bank(payment, "dispute", 6000)
			if err := s.refund(o.ID, orders.RefundRequest{Amount: usd(10606)}); err != nil { // refused by the provider
				return err
			}
			s.is(o.ID, orders.Captured, orders.PaymentCaptured, true)
			s.tell(s.dispute(o, 6000), 0, said{"status": "succeeded"})
			return s.refund(o.ID, orders.RefundRequest{})
		},
		"told while a refund is under way": func(s *shop, o orders.Order, payment string) error {
			s.tell(s.dispute(o, 6000), 0, nil) // an inquiry
			if err := s.sim.SetWebhookURL(""); err != nil {
				return err
			}
			s.bank(payment, "dispute", 6000)
			told := s.letter(s.dispute(o, 6000), time.Second, said{"status": "succeeded"})
			s.watch(nil, s.during(func() {
				if err := s.Orders.Receive(s.ctx, "sim", told.body, told.header); err != nil {
					s.Error(err)
				}
			}))
			if err := s.refund(o.ID, orders.RefundRequest{Amount: usd(10606)}); err != nil {
				return err
			}
			s.watch(nil, nil)
			return s.refund(o.ID, orders.RefundRequest{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{webhooks: true})
			o := s.buy("ann", 2, "sim_ok")
			s.flush()
			if err := do(s, o, s.op(o.ID, payments.Authorize).Payment); err != nil {
				t.Fatal(err)
			}
			s.flush()
			s.expect(end)
			if o := s.order(o.ID); o.Refunded != *usd(10606) {
				t.Errorf("%d went back", o.Refunded.Amount)
			}
			got := s.balances()
			if organiser := got["organiser:org:dispute-hold USD"]; organiser > -5656 || organiser < -5658 {
				t.Errorf("%d is kept from the organiser", organiser) // 6000/10606 of 10000, by the order of rounding
			}
			s.refused(s.refund(o.ID, orders.RefundRequest{Amount: usd(1)}), orders.ErrRefundExceedsCaptured)
		})
	}
}

// A chargeback of a payment that came late: its money isn't in suspense any more.
func TestAChargebackOfALatePayment(t *testing.T) {
	t.Parallel()
	s, order, payment := late(t, policy(buckets.Review), "sim_transfer")
	s.bank(payment, "complete", 0)
	s.flush()
	s.theCase(cases.LatePayment, cases.Open)
	s.bank(payment, "dispute", 0)
	s.flush()
	s.expect(map[string]ledger.Amount{"provider:sim USD": 0, "organiser:org USD": 0, "organiser:org:dispute-hold USD": 0})
	c := s.theCase(cases.LatePayment, s.cases(cases.LatePayment)[0].Status)
	// Whatever becomes of the case, the buyer can't get the money twice, nor tickets for nothing.
	if _, err := s.Recon.Resolve(s.ctx, "fay", s.key(), c.ID, honourIt, nil); err == nil {
		_, _ = s.Recon.Approve(s.ctx, "gus", s.key(), c.ID, nil)
	}
	s.flush()
	if o := s.order(order); o.Status.Owns() {
		t.Errorf("the order is %s, and its money was charged back", o.Status)
	}
	s.expect(map[string]ledger.Amount{"sold:ann ga": 0})
	// Won, the money's there again.
	d := s.what(s.op(order, payments.Authorize).ID)
	d["id"], d["reference"], d["kind"], d["status"] = s.op(order, payments.Chargeback).Reference, "", "chargeback", "declined"
	s.tell(d, time.Hour, nil)
	s.expect(map[string]ledger.Amount{"provider:sim USD": 10606, "disputes:sim USD": 0, "suspense:late USD": -10606})
}

// P41: yen are yen: a sale without decimals, disputed; the fee in dollars is no part of
// it.
func TestP41ADisputeInYen(t *testing.T) {
	t.Parallel()
	spec := usual()
	spec.Currency = "JPY"
	spec.Tiers[0].Price.Currency, spec.Tiers[0].Fee.Currency = "JPY", "JPY"
	s := open(t, option{spec: spec, webhooks: true})
	o := s.buy("ann", 1, "sim_ok")
	s.bank(s.op(o.ID, payments.Authorize).Payment, "dispute", 1500)
	s.flush()
	s.expect(map[string]ledger.Amount{"disputes:sim JPY": 1500, "provider:sim JPY": 3803, "provider:sim USD": 0})
	s.tell(s.dispute(o, 1500), time.Second, said{"id": "op_of_another", "status": "succeeded", "currency": "USD", "amount": 1500})
	s.expect(map[string]ledger.Amount{"disputes:sim JPY": 1500, "provider:sim JPY": 3803})
	if got := s.openCases(); len(got) != 2 { // of each dispute
		t.Errorf("open cases: %v", got)
	}
	s.holdIs(o.HoldID, holds.Confirmed)
}
