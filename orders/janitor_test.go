package orders_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// P10: many janitors in several processes find the same 200 operations due. Each call is
// made once for each lease.
func TestP10ManyJanitorsAtOnce(t *testing.T) {
	t.Parallel()
	spec := usual()
	spec.Tiers[0].Quantity = 1000
	s := open(t, option{spec: spec})
	const n = 200
	var ids [n]uuid.UUID
	s.watchOnly("/payments")
	for i := range ids {
		hold := s.hold(fmt.Sprint("c", i), 1)
		if _, err := s.pay(hold, "sim_ok"); err != nil {
			t.Fatal(err)
		}
		ids[i] = s.orderOf(hold)
	}
	s.idle()
	s.watch(nil, nil)
	s.exec(`UPDATE operations SET due_at = 'epoch' WHERE due_at IS NOT NULL`)
	processes := []service.Stores{s.Stores, s.process(nil), s.process(nil)}
	for range 2 { // the captures' calls broke off: looked up, and called again
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				if _, err := processes[i%3].Orders.Work(s.ctx); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	for _, p := range processes {
		p.Orders.Idle()
	}
	for _, id := range ids {
		s.is(id, orders.Captured, orders.PaymentCaptured, false)
		for _, op := range s.order(id).Operations {
			want := 1
			if op.Kind == payments.Capture {
				want = 2 // the one that broke off, and one by a janitor
			}
			if c := s.calls(op.ID); c != want {
				t.Errorf("%s was called %d times, want %d", op.Kind, c, want)
			}
		}
	}
	if claimed := s.entries("order.claimed"); claimed != n {
		t.Errorf("%d leases", claimed)
	}
	s.expect(map[string]ledger.Amount{"provider:sim USD": n * 5303})
	b, err := s.Orders.Work(s.ctx)
	if err != nil || b != (orders.Backlog{}) {
		t.Errorf("%+v %v", b, err)
	}
}

// What waits is told: how much, and for how long.
func TestBacklog(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	s.buy("ann", 1, "sim_ok")
	s.buy("bob", 1, "sim_timeout_lost")
	s.buy("cid", 1, "sim_processing")
	s.age(time.Hour)
	s.db.Except("operations_recorded")
	s.exec(`UPDATE operations SET due_at = due_at + interval '1 hour'`) // nothing is due yet, however long this takes
	b, err := s.Orders.Work(s.ctx)
	if err != nil || b.Unknown != 2 || b.Oldest.Hours() < 1 || b.Due != 0 {
		t.Errorf("%+v %v", b, err)
	}
}
