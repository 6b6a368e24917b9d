package orders_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// restored are the accounts of an order after all of it was paid back.
var restored = map[string]ledger.Amount{"provider:sim USD": 0, "organiser:org USD": 0, "fees:platform USD": 0, "tax:sales USD": 0,
	"refunds-pending:sim USD": 0}

// T65: money and tickets go back apart from each other, or together.
func TestT65RefundsAndReturns(t *testing.T) {
	t.Parallel()
	one := []orders.RefundLine{{Tier: "ga", Quantity: 1}}
	for name, c := range map[string]struct {
		r       orders.RefundRequest
		money   ledger.Amount // what the provider has left
		tickets ledger.Amount // what the buyer has left
		status  orders.Status
		payment orders.PaymentStatus
		calls   int
	}{
		"all of it":                {orders.RefundRequest{ReturnTickets: true}, 0, 0, orders.Refunded, orders.PaymentRefunded, 3},
		"all the money":            {orders.RefundRequest{}, 0, 2, orders.Refunded, orders.PaymentRefunded, 3},
		"one ticket, with money":   {orders.RefundRequest{Items: one, ReturnTickets: true}, 5303, 1, orders.PartiallyRefunded, orders.PaymentPartiallyRefunded, 3},
		"one ticket's money":       {orders.RefundRequest{Items: one}, 5303, 2, orders.PartiallyRefunded, orders.PaymentPartiallyRefunded, 3},
		"one ticket, no money":     {orders.RefundRequest{Items: one, Amount: usd(0), ReturnTickets: true}, 10606, 1, orders.Captured, orders.PaymentCaptured, 2},
		"one ticket, a little":     {orders.RefundRequest{Items: one, Amount: usd(1), ReturnTickets: true}, 10605, 1, orders.PartiallyRefunded, orders.PaymentPartiallyRefunded, 3},
		"the same line twice":      {orders.RefundRequest{Items: append(one, one...), ReturnTickets: true}, 0, 0, orders.Refunded, orders.PaymentRefunded, 3},
		"money alone, of any part": {orders.RefundRequest{Amount: usd(106)}, 10500, 2, orders.PartiallyRefunded, orders.PaymentPartiallyRefunded, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{webhooks: true})
			o := s.buy("ann", 2, "sim_ok")
			if err := s.refund(o.ID, c.r); err != nil {
				t.Fatal(err)
			}
			s.flush()
			s.is(o.ID, c.status, c.payment, false)
			s.expect(map[string]ledger.Amount{"provider:sim USD": c.money, "sold:ann ga": c.tickets, "available ga": 100 - c.tickets,
				"refunds-pending:sim USD": 0})
			if s.posted() != c.calls {
				t.Errorf("%d calls", s.posted())
			}
		})
	}
}

// P40 and the other refusals, in their order.
func TestP40RefundsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	unpaid := s.buy("bob", 2, "sim_requires_action")
	for name, c := range map[string]struct {
		order uuid.UUID
		r     orders.RefundRequest
		want  *fault.Def
	}{
		"not captured":      {unpaid.ID, orders.RefundRequest{}, orders.ErrOrderNotCaptured},
		"unknown":           {s.orderOf(uuid.New()), orders.RefundRequest{}, orders.ErrOrderNotFound},
		"another currency":  {o.ID, orders.RefundRequest{Amount: &buckets.Money{Amount: 1, Currency: "EUR"}}, orders.ErrCurrencyMismatch},
		"too much":          {o.ID, orders.RefundRequest{Amount: usd(10607)}, orders.ErrRefundExceedsCaptured},
		"too many":          {o.ID, orders.RefundRequest{Items: []orders.RefundLine{{Tier: "ga", Quantity: 3}}}, orders.ErrTicketsNotOwned},
		"of another tier":   {o.ID, orders.RefundRequest{Items: []orders.RefundLine{{Tier: "vip", Quantity: 1}}}, orders.ErrTicketsNotOwned},
		"negative":          {o.ID, orders.RefundRequest{Amount: usd(-1)}, fault.ErrInvalidRequest},
		"nothing":           {o.ID, orders.RefundRequest{Amount: usd(0)}, fault.ErrInvalidRequest},
		"tickets of no one": {o.ID, orders.RefundRequest{Amount: usd(1), ReturnTickets: true}, fault.ErrInvalidRequest},
		"no tickets":        {o.ID, orders.RefundRequest{Items: []orders.RefundLine{{Tier: "ga", Quantity: 0}}}, fault.ErrInvalidRequest},
	} {
		t.Log(name)
		s.refused(s.refund(c.order, c.r), c.want)
	}
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
}

// T67: of two refunds that are more than was paid, one is refused.
func TestT67TwoRefundsAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = s.refund(o.ID, orders.RefundRequest{Amount: usd(6000)}) })
	}
	wg.Wait()
	granted := 0
	for _, err := range errs {
		if err == nil {
			granted++
		} else {
			s.refused(err, orders.ErrRefundExceedsCaptured)
		}
	}
	if granted != 1 {
		t.Errorf("%d were granted", granted)
	}
	s.idle()
	s.expect(map[string]ledger.Amount{"provider:sim USD": 4606})
}

// Refunds that are judged together are called once each.
func TestManyRefundsAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := s.refund(o.ID, orders.RefundRequest{Amount: usd(100)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.idle()
	refunds := s.ops(o.ID, payments.Refund)
	for _, op := range refunds {
		if n := s.calls(op.ID); n != 1 {
			t.Errorf("refund %d was called %d times", op.Attempt, n)
		}
	}
	if len(refunds) != 16 {
		t.Errorf("%d refunds", len(refunds))
	}
	s.expect(map[string]ledger.Amount{"provider:sim USD": 10606 - 1600})
}

// T67: a refund on the provider's own pages is recorded; tickets stay as they are.
func TestT67ARefundElsewhere(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_ok")
	s.play("/payments/"+s.op(o.ID, payments.Authorize).Payment+"/refunds", `{"reference": "dash", "amount": 10606, "currency": "USD"}`)
	s.flush()
	s.is(o.ID, orders.Refunded, orders.PaymentRefunded, false)
	s.expect(restored)
	s.expect(map[string]ledger.Amount{"sold:ann ga": 2})
	s.refused(s.refund(o.ID, orders.RefundRequest{}), orders.ErrRefundExceedsCaptured)
}

// P32: each refund is an operation of its own, and all of them together are what was
// captured.
func TestP32RefundsInParts(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_ok")
	for range 5 {
		if err := s.refund(o.ID, orders.RefundRequest{Amount: usd(2000)}); err != nil {
			t.Fatal(err)
		}
	}
	s.refused(s.refund(o.ID, orders.RefundRequest{Amount: usd(607)}), orders.ErrRefundExceedsCaptured)
	if err := s.refund(o.ID, orders.RefundRequest{}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.ops(o.ID, payments.Refund)); n != 6 {
		t.Errorf("%d operations", n)
	}
	s.is(o.ID, orders.Refunded, orders.PaymentRefunded, false)
	s.expect(restored)
}

// P35, T68: a refund that's pending, and fails or succeeds: what it took is restored once,
// the amount is owed, and it can be tried again.
func TestP35PendingRefunds(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"complete", "fail"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{webhooks: true})
			o := s.buy("ann", 2, "sim_refund_pending")
			if err := s.refund(o.ID, orders.RefundRequest{Amount: usd(5303)}); err != nil {
				t.Fatal(err)
			}
			s.flush()
			s.is(o.ID, orders.Captured, orders.PaymentRefunding, false)
			s.expect(map[string]ledger.Amount{"refunds-pending:sim USD": -5303, "provider:sim USD": 10606})
			s.bank(s.op(o.ID, payments.Refund).Payment, word, 0)
			s.flush()
			s.work()
			if word == "complete" {
				s.is(o.ID, orders.PartiallyRefunded, orders.PaymentPartiallyRefunded, false)
				s.expect(map[string]ledger.Amount{"refunds-pending:sim USD": 0, "provider:sim USD": 5303})
				return
			}
			s.is(o.ID, orders.Captured, orders.PaymentCaptured, true)
			s.expect(map[string]ledger.Amount{"refunds-pending:sim USD": 0, "provider:sim USD": 10606, "organiser:org USD": -10000})
			if c := s.theCase(cases.RefundFailed, cases.Open); c.Amount != *usd(5303) {
				t.Errorf("%+v", c)
			}
			if err := s.refund(o.ID, orders.RefundRequest{Amount: usd(5303)}); err != nil {
				t.Fatal(err)
			}
			s.bank(s.op(o.ID, payments.Refund).Payment, "complete", 0)
			s.flush()
			s.expect(map[string]ledger.Amount{"refunds-pending:sim USD": 0, "provider:sim USD": 5303})
		})
	}
}

// P35: a refund changes its mind, again and again, as banks do. The books follow.
func TestP35ARefundThatChangesItsMind(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"of an order": false, "of a late payment": true} {
		for from, words := range map[string][]string{
			"failed":    {"declined", "succeeded", "declined", "succeeded"},
			"succeeded": {"succeeded", "declined", "succeeded", "declined"},
		} {
			t.Run(name+" "+from, func(t *testing.T) {
				t.Parallel()
				s := open(t, policy(buckets.Refund))
				op := s.beingPaidBack(late)
				for i, word := range words {
					s.tell(op, time.Duration(i+1)*time.Minute, said{"status": word})
					left, open := ledger.Amount(10606), 1
					if word == "succeeded" {
						left, open = 0, 0
					}
					s.expect(map[string]ledger.Amount{"provider:sim USD": left, "refunds-pending:sim USD": 0, "chargeback-loss USD": 0})
					if late {
						s.expect(map[string]ledger.Amount{"suspense:late USD": -left})
					}
					if got := s.openCases(); len(got) != open {
						t.Errorf("after %v, open cases are %v, want %d", words[:i+1], got, open)
					}
				}
			})
		}
	}
}

// beingPaidBack gives the refund, with no outcome yet, of all of a captured order, or of
// one whose payment came late.
func (s *shop) beingPaidBack(late bool) said {
	s.Helper()
	o := s.buy("ann", 2, map[bool]string{false: "sim_refund_pending", true: "sim_transfer"}[late])
	if !late {
		if err := s.refund(o.ID, orders.RefundRequest{}); err != nil {
			s.Fatal(err)
		}
		s.flush()
		return s.what(s.op(o.ID, payments.Refund).ID)
	}
	s.endGrace(o.ID)
	s.work()
	s.work()
	s.ahead(time.Minute)
	s.watch(func(r *http.Request) bool { return !strings.HasSuffix(r.URL.Path, "/refunds") }, nil)
	payment := s.what(s.op(o.ID, payments.Authorize).ID)
	s.bank(payment["payment_id"].(string), "complete", 0)
	s.flush()
	s.is(o.ID, orders.Cancelled, orders.PaymentRefunding, true)
	payment = s.what(s.op(o.ID, payments.Authorize).ID)
	refund := said{"id": "op_of_the_refund", "reference": s.op(o.ID, payments.Refund).ID.String(), "kind": "refund"}
	for name, value := range payment {
		if refund[name] == nil {
			refund[name] = value
		}
	}
	return refund
}

// A refund from the provider's own pages that fails has taken nothing.
func TestARefundElsewhereThatFails(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_refund_pending")
	payment := s.op(o.ID, payments.Authorize).Payment
	s.play("/payments/"+payment+"/refunds", `{"reference": "dash", "amount": 606, "currency": "USD"}`)
	s.flush()
	s.bank(payment, "fail", 0)
	s.flush()
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
	s.expect(map[string]ledger.Amount{"provider:sim USD": 10606, "refunds-pending:sim USD": 0, "suspense:late USD": 0, "organiser:org USD": -10000})
}
