package orders_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

// A provider at which everything goes wrong by chance: when it's well again, everything
// comes to an end, every buyer has paid once or not at all, and the books have what the
// provider has.
func TestFaultsThenHealed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			spec := usual()
			spec.LatePaymentPolicy = []string{buckets.HonourIfAvailable, buckets.Refund}[seed%2]
			s := open(t, option{spec: spec, webhooks: true, seed: seed})
			well := s.sim.Settings()
			ill := well
			ill.Rates = sim.Rates{TimeoutApplied: .1, TimeoutLost: .1, ErrorApplied: .1, Error: .1, Decline: .1, RequiresAction: .1,
				CaptureFails: .1, WebhookLost: .2, WebhookTwice: .2, WebhookReordered: .2}
			if err := s.sim.Configure(ill); err != nil {
				t.Fatal(err)
			}
			list := s.rush(60)
			s.work()
			for i, id := range list { // some are cancelled, some paid back, some run out of time
				switch i % 4 {
				case 0:
					_, _ = s.cancel(id)
				case 1:
					_ = s.refund(id, orders.RefundRequest{Amount: usd(ledger.Amount(1000 + i))})
				case 2:
					if s.order(id).Status == orders.Pending {
						s.endGrace(id)
					}
				}
			}
			s.work()
			// Of a payment whose end was agreed on, only a webhook tells that it was made
			// after all: such an authorization would lapse unseen.
			ill.ClockOffset, ill.Rates.WebhookLost = time.Minute.Milliseconds(), 0
			if err := s.sim.Configure(ill); err != nil {
				t.Fatal(err)
			}
			for i, id := range list { // some buyers pay, in time or late
				for _, op := range s.order(id).Operations {
					if op.Kind == payments.Authorize && op.Payment != "" && i%3 > 0 {
						answer, err := http.Post(s.simURL+"/payments/"+op.Payment+"/complete", "application/json", nil)
						if err != nil {
							t.Fatal(err)
						}
						answer.Body.Close() // it may be refused
					}
				}
			}
			well.ClockOffset = ill.ClockOffset
			s.ends(well, list)
		})
	}
}

// seeds is how many sales go wrong in their own way.
const seeds = 4

// rush lets buyers check out at once, and gives their orders.
func (s *shop) rush(n int) []uuid.UUID {
	s.Helper()
	list := make([]uuid.UUID, n)
	var buyers sync.WaitGroup
	for i := range list {
		hold := s.hold(fmt.Sprint("c", i), 1)
		list[i] = s.orderOf(hold)
		buyers.Go(func() {
			_, err := s.checkout(fmt.Sprint("pay", i), hold, "sim_ok")
			if f := fault.As(err); err != nil && (f == nil || f.Kind != fault.Declined && f.Def != payments.ErrProviderUnavailable) {
				s.Error(err)
			}
		})
	}
	buyers.Wait()
	s.idle()
	return list
}

// ends makes the provider well, lets everything come to its end, and compares the books
// with the provider's.
func (s *shop) ends(well sim.Settings, list []uuid.UUID) {
	s.Helper()
	if err := s.sim.Configure(well); err != nil {
		s.Fatal(err)
	}
	for round := 0; ; round++ {
		s.flush()
		s.age(3 * time.Minute)
		for _, id := range list { // buyers who should act don't
			if o := s.order(id); o.Status == orders.Pending && o.PaymentStatus == orders.PaymentRequiresAction {
				s.endGrace(id)
			}
		}
		s.work()
		if b, err := s.Orders.Work(s.ctx); err != nil || round > 20 {
			s.Fatalf("after %d rounds %+v waits: %v", round, b, err)
		} else if b.Unknown == 0 && b.Due == 0 {
			break
		}
	}
	s.flush()
	var has ledger.Amount
	for _, id := range list {
		o := s.order(id)
		if o.Status == orders.Confirmed {
			s.Errorf("order %s is %s, its payment %s", id, o.Status, o.PaymentStatus)
		}
		paid := ledger.Amount(0)
		for _, op := range o.Operations {
			if op.Kind == payments.Authorize && op.Payment != "" {
				var p struct{ Authorized, Captured, Refunded ledger.Amount }
				if err := json.Unmarshal(s.get("/payments/"+op.Payment), &p); err != nil {
					s.Fatal(err)
				}
				paid += p.Captured - p.Refunded
				if o.Status == orders.Cancelled && p.Authorized > p.Captured {
					s.Errorf("order %s is cancelled, and its authorization of %d stands", id, p.Authorized)
				}
			}
		}
		if o.Captured.Amount-o.Refunded.Amount != paid {
			s.Errorf("order %s is %s and paid %d, the provider has %d", id, o.Status, o.Captured.Amount-o.Refunded.Amount, paid)
		}
		has += paid
	}
	s.expect(map[string]ledger.Amount{"provider:sim USD": has, "capture-pending:sim USD": 0, "auth:open USD.AUTH": 0,
		"suspense:late USD": 0, "refunds-pending:sim USD": 0, "suspense:unidentified USD": 0})
}
