package orders_test

import (
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// The connection to the database is cut when the provider has answered: before the write,
// and after the commit. The answer is committed once, without the janitor.
func TestDatabaseCutAfterTheProvidersAnswer(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*pgtest.Proxy) <-chan struct{}{
		"before the write": (*pgtest.Proxy).LoseNextWrite,
		"after the commit": (*pgtest.Proxy).LoseNextAnswer,
	} {
		for _, method := range []string{"sim_ok", "sim_decline", "sim_requires_action"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				db := pgtest.New(t)
				proxy := pgtest.NewProxy(t, db)
				s := openOn(t, db, option{proxy: proxy})
				hold := s.hold("ann", 2)
				var hit <-chan struct{}
				s.watch(nil, s.during(func() { hit = lose(proxy) }))
				answer, err := s.checkout("once", hold, method)
				<-hit
				s.idle()
				if method == "sim_decline" {
					s.refused(err, orders.ErrPaymentDeclined)
				} else if err != nil || answer.Open != (method != "sim_ok") {
					t.Errorf("open: %t, %v", answer.Open, err)
				}
				again, twice := s.checkout("once", hold, method)
				if string(again.Data) != string(answer.Data) || problem(twice) != problem(err) {
					t.Errorf("answered %s %v, then %s %v", answer.Data, err, again.Data, twice)
				}
				if c := s.calls(s.op(s.orderOf(hold), payments.Authorize).ID); c != 1 {
					t.Errorf("%d calls", c)
				}
				if method == "sim_ok" { // what follows was begun too
					s.is(s.orderOf(hold), orders.Captured, orders.PaymentCaptured, false)
				}
			})
		}
	}
}

// The connection is cut when a command is committed: before, and after. What it has sent
// is begun by the process that committed it, without the janitor.
func TestDatabaseCutAtACommand(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*pgtest.Proxy) <-chan struct{}{
		"before the write": (*pgtest.Proxy).LoseNextWrite,
		"after the commit": (*pgtest.Proxy).LoseNextAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			proxy := pgtest.NewProxy(t, db)
			s := openOn(t, db, option{proxy: proxy})
			hold := s.hold("ann", 2)
			hit := lose(proxy)
			answer, err := s.checkout("once", hold, "sim_ok")
			<-hit
			if err != nil || answer.Open {
				t.Errorf("checkout: open: %t, %v", answer.Open, err)
			}
			s.idle()
			order := s.orderOf(hold)
			s.is(order, orders.Captured, orders.PaymentCaptured, false)
			hit = lose(proxy)
			err = s.refund(order, orders.RefundRequest{Amount: usd(606)})
			<-hit
			if err != nil {
				t.Error(err)
			}
			s.is(order, orders.PartiallyRefunded, orders.PaymentPartiallyRefunded, false)
			for _, op := range s.order(order).Operations {
				if c := s.calls(op.ID); c != 1 {
					t.Errorf("%s was called %d times", op.Kind, c)
				}
			}
		})
	}
}
