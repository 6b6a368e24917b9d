package orders_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/recon"
)

// decide has two people resolve a case.
func (s *shop) decide(id uuid.UUID, r recon.Resolution) error {
	s.Helper()
	if _, err := s.Recon.Resolve(s.ctx, "fay", s.key(), id, r, nil); err != nil {
		s.Fatal(err)
	}
	_, err := s.Recon.Approve(s.ctx, "gus", s.key(), id, nil)
	s.idle()
	return err
}

var (
	writeOff = recon.Resolution{Resolution: cases.WriteOff, Reason: "it won't come"}
	linkIt   = recon.Resolution{Resolution: cases.Link, Reason: "settled", Evidence: "bank statement 17"}
)

// T35: people honour a payment that came late, as long as there are tickets and nobody
// has been faster.
func TestT35PeopleHonourALatePayment(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_requires_action", "sim_transfer"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s, order, payment := late(t, policy(buckets.Review), method)
			s.bank(payment, "complete", 0)
			s.flush()
			c := s.theCase(cases.LatePayment, cases.Open)
			rest := s.hold("bob", 99)
			err := s.decide(c.ID, honourIt)
			if f := fault.As(err); f == nil || f.Code != "temporarily_held" {
				t.Errorf("got %v, want temporarily_held", err)
			}
			if _, err := s.Holds.Release(s.ctx, "tester", s.key(), rest, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Recon.Approve(s.ctx, "gus", s.key(), c.ID, nil); err != nil { // it waits still
				t.Fatal(err)
			}
			s.idle()
			s.is(order, orders.Captured, orders.PaymentCaptured, false)
			s.theCase(cases.LatePayment, cases.Resolved)
			s.expect(map[string]ledger.Amount{"sold:ann ga": 2, "available ga": 98, "provider:sim USD": 10606, "suspense:late USD": 0})
		})
	}
}

// People give a late payment back.
func TestPeopleRefundALatePayment(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_requires_action", "sim_transfer"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s, order, payment := late(t, policy(buckets.Review), method)
			s.bank(payment, "complete", 0)
			s.flush()
			if err := s.decide(s.theCase(cases.LatePayment, cases.Open).ID, refundIt); err != nil {
				t.Fatal(err)
			}
			s.theCase(cases.LatePayment, cases.Resolved)
			s.is(order, orders.Cancelled, map[string]orders.PaymentStatus{
				"sim_requires_action": orders.PaymentVoided, "sim_transfer": orders.PaymentRefunded}[method], false)
			s.expect(nothingSold)
		})
	}
}

// A void that the provider refuses is a case; the authorization is in the books as long as
// it stands.
func TestAVoidThatFails(t *testing.T) {
	t.Parallel()
	s, order, payment := late(t, policy(buckets.Refund), "sim_requires_action")
	s.watch(func(r *http.Request) bool { return !strings.HasSuffix(r.URL.Path, "/void") }, nil)
	s.bank(payment, "complete", 0)
	s.flush()
	void := s.op(order, payments.Void)
	if void.Status != orders.OpUnknown {
		t.Fatalf("the void is %s", void.Status)
	}
	s.theCase(cases.LatePayment, cases.Resolving)
	s.play("/payments/"+payment+"/capture", `{"reference": "dash", "amount": 10606, "currency": "USD"}`)
	s.watch(nil, nil)
	s.work() // already captured
	s.theCase(cases.VoidFailed, cases.Open)
	if o := s.order(order); o.Status != orders.Cancelled || !o.Reconciling {
		t.Errorf("%s, reconciling: %t", o.Status, o.Reconciling)
	}
}

// A capture that failed after all, and is written off: the platform bears it, and the
// tickets stay sold. It can't be cancelled as well.
func TestAFailedCaptureIsWrittenOffOnce(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_ok")
	s.bank(s.op(o.ID, payments.Authorize).Payment, "fail", 0)
	s.flush()
	c := s.theCase(cases.CaptureFailed, cases.Open)
	if err := s.decide(c.ID, writeOff); err != nil {
		t.Fatal(err)
	}
	s.theCase(cases.CaptureFailed, cases.Resolved)
	books := map[string]ledger.Amount{"chargeback-loss USD": 10606, "capture-pending:sim USD": 0, "organiser:org USD": -10000, "sold:ann ga": 2}
	s.expect(books)
	if _, err := s.Orders.Cancel(s.ctx, "tester", s.key(), o.ID, nil); err == nil {
		s.expect(map[string]ledger.Amount{"chargeback-loss USD": 0, "capture-pending:sim USD": 0, "organiser:org USD": 0, "sold:ann ga": 0})
		return // that's right too: all of it is undone
	}
	s.expect(books)
}

// Money that comes for a claim that was written off is a gain, not a claim of ours on
// anybody.
func TestACaptureAfterItsWriteOff(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	op := s.what(s.op(o.ID, payments.Capture).ID)
	s.tell(op, time.Minute, said{"status": "declined", "reason": "capture_failed"})
	if err := s.decide(s.theCase(cases.CaptureFailed, cases.Open).ID, writeOff); err != nil {
		t.Fatal(err)
	}
	s.tell(op, 2*time.Minute, nil)
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
	s.expect(map[string]ledger.Amount{"chargeback-loss USD": 0, "capture-pending:sim USD": 0, "provider:sim USD": 10606})
}

// Nobody knows whether an authorization was made; two people say that it wasn't. The
// tickets are free, and if it was after all, that's a late payment.
func TestPeopleSayThatItWasNot(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_timeout_lost")
	s.exec(`UPDATE operations SET sends = 6`)
	s.work()
	c := s.theCase(cases.OutcomeUnknown, cases.Open)
	s.endGrace(o.ID)
	s.work()
	if err := s.decide(c.ID, writeOff); err != nil {
		t.Fatal(err)
	}
	s.is(o.ID, orders.Cancelled, orders.PaymentDeclined, false)
	s.expect(nothingSold)
	other := s.buy("bob", 2, "sim_ok")
	op := s.op(o.ID, payments.Authorize)
	s.tell(s.what(s.op(other.ID, payments.Authorize).ID), time.Hour, said{"reference": op.ID.String(), "id": "op_x",
		"payment": said{"id": "pay_x", "reference": op.ID.String(), "captured": 0, "refunded": 0}})
	s.theCase(cases.LatePayment, cases.Open)
	s.expect(map[string]ledger.Amount{"auth:open USD.AUTH": 10606, "sold:ann ga": 0})
}

// T68: a refund that failed is a case until somebody says where it was settled.
func TestT68ARefundThatFailedIsLinked(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_refund_pending")
	if err := s.refund(o.ID, orders.RefundRequest{Amount: usd(1000)}); err != nil {
		t.Fatal(err)
	}
	s.bank(s.op(o.ID, payments.Refund).Payment, "fail", 0)
	s.flush()
	c := s.theCase(cases.RefundFailed, cases.Open)
	for _, r := range []recon.Resolution{refundIt, honourIt, writeOff} {
		s.refused(s.decide(c.ID, r), cases.ErrResolution)
		if _, err := s.Recon.Reject(s.ctx, "gus", s.key(), c.ID, "no", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.decide(c.ID, linkIt); err != nil {
		t.Fatal(err)
	}
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
}
