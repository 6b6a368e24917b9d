package orders_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// A provider speaks for its own payments: what another one tells of them is no evidence,
// however well it's signed.
func TestAProviderSpeaksForItself(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	secrets, err := service.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	other, err := payments.NewClient(payments.Options{Name: "other", URL: s.simURL, Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	two := pgtest.Stores(t, s.db, nil, s.provider, other)
	pending := s.buy("ann", 2, "sim_requires_action")
	paid := s.buy("bob", 2, "sim_ok")
	before := s.balances()
	for _, l := range []letter{
		s.letter(s.what(s.op(pending.ID, payments.Authorize).ID), time.Second, said{"status": "succeeded", "payment": said{"authorized": 10606}}),
		s.letter(s.what(s.op(paid.ID, payments.Capture).ID), time.Second, said{"status": "declined"}),
		s.letter(s.what(s.op(paid.ID, payments.Capture).ID), time.Second, said{"status": "succeeded", "kind": "refund", "reference": "", "id": "op_x"}),
		s.letter(s.dispute(paid, 10606), time.Second, said{"status": "succeeded"}),
	} {
		header := http.Header{}
		secrets.Sign(header, "evt_of_"+s.key(), time.Now(), l.body)
		_ = two.Orders.Receive(s.ctx, "other", l.body, header) // stored or refused
		two.Orders.Idle()
	}
	s.is(pending.ID, orders.Pending, orders.PaymentRequiresAction, false)
	s.is(paid.ID, orders.Captured, orders.PaymentCaptured, false)
	for account, balance := range s.balances() {
		if strings.HasPrefix(account, "provider:other ") || strings.HasPrefix(account, "suspense:unidentified ") {
			continue // what it says is about payments of its own, which nobody knows here
		}
		if before[account] != balance {
			t.Errorf("%s has %d, had %d", account, balance, before[account])
		}
	}
}

// What's free needs no provider at all.
func TestFreeOrdersWithoutAProvider(t *testing.T) {
	t.Parallel()
	spec := usual()
	spec.Tiers[0].Price.Amount, spec.Tiers[0].Fee, spec.Tiers[0].TaxRate = 0, nil, nil
	s := open(t, option{spec: spec})
	s.Stores = pgtest.Stores(t, s.db, nil)
	o := s.buy("ann", 2, "none")
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
	if err := s.refund(o.ID, orders.RefundRequest{ReturnTickets: true}); err != nil {
		t.Fatal(err)
	}
	s.expect(map[string]ledger.Amount{"available ga": 100})
	if got := s.cases(cases.Reason("")); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// What costs something does: without one it's refused, and nothing is begun.
func TestNoProvider(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	s.Stores = pgtest.Stores(t, s.db, nil)
	hold := s.hold("ann", 2)
	_, err := s.pay(hold, "sim_ok")
	s.refused(err, payments.ErrProviderUnavailable)
	if len(s.kinds()) != 0 {
		t.Errorf("entries %v", s.kinds())
	}
}

// A checkout that comes while the process shuts down is accepted, and made by another.
func TestACheckoutWhileClosing(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	dying := s.process(nil)
	hold := s.hold("ann", 2)
	dying.Orders.Close(s.ctx)
	answer, err := dying.Orders.Checkout(s.ctx, "tester", "once", hold, orders.CheckoutRequest{PaymentMethod: "sim_ok"})
	if err != nil || !answer.Open || s.posted() != 0 {
		t.Fatalf("open: %t, %v, %d calls", answer.Open, err, s.posted())
	}
	s.work()
	s.is(s.orderOf(hold), orders.Captured, orders.PaymentCaptured, false)
	if n := s.calls(s.op(s.orderOf(hold), payments.Authorize).ID); n != 1 {
		t.Errorf("%d calls", n)
	}
}
