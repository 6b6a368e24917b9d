package orders_test

import (
	"errors"
	"net/http"
	"slices"
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

// P49: with all webhooks lost, lookups find out the same.
func TestP49WebhooksLostAltogether(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_requires_action", "sim_processing", "sim_transfer"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			o := s.buy("ann", 2, method)
			s.bank(s.op(o.ID, payments.Authorize).Payment, "complete", 0)
			s.work() // the authorization
			s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
			s.expect(map[string]ledger.Amount{"provider:sim USD": 10606, "sold:ann ga": 2, "auth:open USD.AUTH": 0})
		})
	}
}

// P8, T53: a webhook that comes three times at the same instant, and again later, is one
// entry.
func TestP8AWebhookThriceAtTheSameInstant(t *testing.T) {
	t.Parallel()
	s := open(t, option{mailbox: true})
	o := s.buy("ann", 2, "sim_requires_action")
	s.letters()
	s.bank(s.op(o.ID, payments.Authorize).Payment, "complete", 0)
	mail := s.letters()
	if len(mail) != 1 {
		t.Fatalf("%d webhooks", len(mail))
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.Orders.Receive(s.ctx, "sim", mail[0].body, mail[0].header); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.idle()
	s.deliver(mail[0])
	if got := s.kinds(); !slices.Equal(got, []string{"order.created", "order.payment_open", "order.confirmed", "order.captured"}) {
		t.Errorf("entries %v", got)
	}
	if n := s.received(); n != 0 {
		t.Errorf("%d entries of webhooks that say nothing new", n)
	}
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
}

// received counts the entries of webhooks that said nothing new.
func (s *shop) received() (n int) {
	s.Helper()
	if err := s.owner.QueryRow(s.ctx, `SELECT count(*) FROM entries WHERE kind = 'webhook.received'`).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// T53: what was known from the answer is no entry of the order when the webhook comes.
func TestT53WebhooksThatSayNothingNew(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_ok", "sim_webhook_twice", "sim_webhook_late"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{mailbox: true})
			o := s.buy("ann", 2, method)
			for _, l := range s.letters() {
				s.deliver(l)
				s.deliver(l)
			}
			s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
			if got := s.kinds(); !slices.Equal(got, []string{"order.created", "order.confirmed", "order.captured"}) {
				t.Errorf("entries %v", got)
			}
			if n, entries := s.webhooks("applied"), s.received(); n != 2 || entries != 2 { // each once
				t.Errorf("%d webhooks were stored, with %d entries", n, entries)
			}
		})
	}
}

// T50: a refund on the provider's own pages of what was captured there too, told before the
// payment: it waits, and the payment confirms the order all the same.
func TestT50WebhooksInReverse(t *testing.T) {
	t.Parallel()
	s := open(t, option{mailbox: true})
	o := s.buy("ann", 2, "sim_requires_action")
	payment := s.op(o.ID, payments.Authorize).Payment
	s.letters()
	s.bank(payment, "complete", 0)
	paid := s.letters()
	s.play("/payments/"+payment+"/capture", `{"reference": "dashboard", "amount": 10606, "currency": "USD"}`)
	s.letters()
	s.play("/payments/"+payment+"/refunds", `{"reference": "dashboard", "amount": 10606, "currency": "USD"}`)
	s.deliver(s.letters()[0]) // the refund: of an order that isn't paid
	if n := s.webhooks("parked"); n != 1 {
		t.Fatalf("%d webhooks are parked", n)
	}
	s.deliver(paid[0])
	s.is(o.ID, orders.Confirmed, orders.PaymentUnknown, false) // somebody else has captured it
}

// T50: the same with a transfer, whose payment takes the money.
func TestT50ARefundToldBeforeItsPayment(t *testing.T) {
	t.Parallel()
	s := open(t, option{mailbox: true})
	o := s.buy("ann", 2, "sim_transfer")
	payment := s.op(o.ID, payments.Authorize).Payment
	s.letters()
	s.bank(payment, "complete", 0)
	paid := s.letters()
	s.play("/payments/"+payment+"/refunds", `{"reference": "dashboard", "amount": 10606, "currency": "USD"}`)
	for _, l := range append(s.letters(), paid...) {
		s.deliver(l)
	}
	s.work() // the parked one
	s.is(o.ID, orders.Refunded, orders.PaymentRefunded, false)
	s.expect(map[string]ledger.Amount{"provider:sim USD": 0, "organiser:org USD": 0, "fees:platform USD": 0, "tax:sales USD": 0})
	if s.webhooks("parked") != 0 {
		t.Error("a webhook is parked still")
	}
}

// P17, P19: a webhook that is here before the order is parked, and applied when the
// order's there.
func TestP17AWebhookBeforeTheOrder(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	other := s.buy("bob", 1, "sim_ok")
	hold := s.hold("ann", 1)
	journal, _ := ledger.JournalOf(hold)
	operation := ledger.NewID(journal, ledger.SystemPrincipal, "operation", s.orderOf(hold).String(), "authorize", "1")
	s.tell(s.what(s.op(other.ID, payments.Authorize).ID), time.Second, said{"reference": operation.String(), "id": "op_00000003",
		"payment": said{"id": "pay_00000002", "reference": operation.String(), "captured": 0}})
	if n := s.webhooks("parked"); n != 1 {
		t.Fatalf("%d webhooks are parked", n)
	}
	s.work() // still not there
	if _, err := s.pay(hold, "sim_timeout_applied"); err != nil {
		t.Fatal(err)
	}
	s.exec(`UPDATE webhooks SET due_at = 'epoch' WHERE status = 'parked'`)
	if _, err := s.Orders.Work(s.ctx); err != nil { // the operation itself isn't due
		t.Fatal(err)
	}
	s.idle()
	s.is(s.orderOf(hold), orders.Captured, orders.PaymentCaptured, false)
	if s.webhooks("parked") != 0 || s.webhooks("applied") != 1 {
		t.Error("the webhook is parked still")
	}
}

// P16, T40: a delivery that fails half way is not stored; the next one does the work.
func TestP16ADeliveryThatFails(t *testing.T) {
	t.Parallel()
	s := open(t, option{mailbox: true})
	o := s.buy("ann", 2, "sim_requires_action")
	s.letters()
	s.bank(s.op(o.ID, payments.Authorize).Payment, "complete", 0)
	l := s.letters()[0]
	dying := s.process(nil)
	dying.Ledger.Close()
	if err := dying.Orders.Receive(s.ctx, "sim", l.body, l.header); !errors.Is(err, ledger.ErrClosing) {
		t.Fatalf("acknowledged with %v", err)
	}
	if n := s.webhooks("applied"); n != 0 {
		t.Errorf("%d webhooks are stored", n)
	}
	s.deliver(l)
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
}

// P20: money that isn't of an order of ours rests as unidentified, until its refund.
func TestP20APaymentOfSomebodyElse(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	s.play("/payments", `{"reference": "their-1", "amount": 700, "currency": "EUR", "payment_method": "sim_ok", "capture": "automatic"}`)
	s.flush()
	s.expect(map[string]ledger.Amount{"provider:sim EUR": 700, "suspense:unidentified EUR": -700})
	if c := s.theCase(cases.Unidentified, cases.Open); c.Suspended != 700 || c.Owner != cases.OwnerFinance {
		t.Errorf("%+v", c)
	}
	s.play("/payments/pay_00000001/refunds", `{"reference": "their-2", "amount": 200, "currency": "EUR"}`)
	s.flush()
	s.expect(map[string]ledger.Amount{"provider:sim EUR": 500, "suspense:unidentified EUR": -500})
	s.play("/payments/pay_00000001/refunds", `{"reference": "their-3", "amount": 500, "currency": "EUR"}`)
	s.flush()
	s.expect(map[string]ledger.Amount{"provider:sim EUR": 0, "suspense:unidentified EUR": 0})
	s.theCase(cases.Unidentified, cases.Resolved)
}

// A refund by another program with ids of its own, UUIDs as ours are, is one of our
// payment all the same.
func TestARefundUnderAnotherProgramsUUID(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]uuid.UUID{"of any kind": uuid.New(), "like ours": ledger.NewID(4711, "staging")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{webhooks: true})
			o := s.buy("ann", 2, "sim_ok")
			s.play("/payments/"+s.op(o.ID, payments.Authorize).Payment+"/refunds",
				`{"reference": "`+id.String()+`", "amount": 606, "currency": "USD"}`)
			s.flush()
			s.work()
			s.is(o.ID, orders.PartiallyRefunded, orders.PaymentPartiallyRefunded, false)
			s.expect(map[string]ledger.Amount{"provider:sim USD": 10000, "suspense:unidentified USD": 0})
		})
	}
}

// P22: what was signed in the future, or long ago, is refused, and what isn't signed.
func TestP22Signatures(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	l := s.letter(s.what(s.op(o.ID, payments.Capture).ID), 0, nil)
	for _, off := range []time.Duration{payments.Tolerance + time.Minute, -payments.Tolerance - time.Minute} {
		header := http.Header{}
		s.secrets.Sign(header, "evt_1", time.Now().Add(off), l.body)
		s.refused(s.Orders.Receive(s.ctx, "sim", l.body, header), payments.ErrWebhookTimestamp)
	}
	s.refused(s.Orders.Receive(s.ctx, "sim", append(l.body, ' '), l.header), payments.ErrWebhookSignatureInvalid)
	s.refused(s.Orders.Receive(s.ctx, "sim", l.body, http.Header{}), payments.ErrWebhookSignatureInvalid)
	s.refused(s.Orders.Receive(s.ctx, "visa", l.body, l.header), orders.ErrProviderNotFound)
	header := http.Header{}
	s.secrets.Sign(header, "evt_2", time.Now(), []byte(`{}`))
	s.refused(s.Orders.Receive(s.ctx, "sim", []byte(`{}`), header), payments.ErrWebhookUnreadable)
	if n := s.webhooks("applied"); n != 0 {
		t.Errorf("%d webhooks are stored", n)
	}
}

// P23: an authorization that was declined and then made; told in either order.
func TestP23DeclinedThenAuthorized(t *testing.T) {
	t.Parallel()
	for name, reverse := range map[string]bool{"in order": false, "in reverse": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{webhooks: true})
			o := s.buy("ann", 2, "sim_requires_action")
			op := s.what(s.op(o.ID, payments.Authorize).ID)
			s.bank(op["payment"].(map[string]any)["id"].(string), "complete", 0)
			s.flush()
			if reverse { // it's confirmed by the later one already
				s.tell(op, -time.Minute, said{"status": "declined", "reason": "card_declined"})
				s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
				return
			}
			two := s.buy("bob", 2, "sim_processing")
			op = s.what(s.op(two.ID, payments.Authorize).ID)
			s.tell(op, 0, said{"status": "declined", "reason": "card_declined"})
			s.is(two.ID, orders.Pending, orders.PaymentDeclined, false)
			s.holdIs(two.HoldID, holds.Held)
			s.sim.SetWebhookURL("")
			s.bank(op["payment"].(map[string]any)["id"].(string), "complete", 0)
			s.tell(s.what(s.op(two.ID, payments.Authorize).ID), time.Second, nil)
			s.is(two.ID, orders.Captured, orders.PaymentCaptured, false)
		})
	}
}

// P23: an older word of the provider changes nothing, whatever it says.
func TestP23AnOlderWord(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	if err := s.refund(o.ID, orders.RefundRequest{Amount: usd(606)}); err != nil {
		t.Fatal(err)
	}
	before := s.balances()
	for _, kind := range []payments.Kind{payments.Authorize, payments.Capture, payments.Refund} {
		for _, word := range []string{"declined", "pending", "requires_action"} {
			s.tell(s.what(s.op(o.ID, kind).ID), -time.Minute, said{"status": word, "reason": "old"})
		}
	}
	s.is(o.ID, orders.PartiallyRefunded, orders.PaymentPartiallyRefunded, false)
	s.expect(before)
	if got := s.openCases(); len(got) != 0 {
		t.Errorf("open cases: %v", got)
	}
}
