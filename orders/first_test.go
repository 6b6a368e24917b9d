package orders_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

// A webhook says that a payment is under way before the call is answered with its success.
// The first caller gets what a repeat gets: the first outcome.
func TestAWebhookOpensWhatTheAnswerCloses(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	order := s.orderOf(hold)
	journal, _ := ledger.JournalOf(order)
	id := ledger.NewID(journal, ledger.SystemPrincipal, "operation", order.String(), "authorize", "1")
	pending := s.letter(said{
		"id": "op_00000001", "reference": id.String(), "kind": "authorize", "amount": 10606, "currency": "USD",
		"payment": said{"id": "pay_00000001", "reference": id.String(), "status": "processing", "currency": "USD", "amount": 10606},
	}, -time.Second, said{"status": "pending"})
	s.watch(nil, s.during(func() {
		if err := s.Orders.Receive(s.ctx, "sim", pending.body, pending.header); err != nil {
			t.Error(err)
		}
	}))
	first, err := s.checkout("once", hold, "sim_ok")
	if err != nil || !first.Open {
		t.Errorf("answered %s, open: %t, %v", first.Data, first.Open, err)
	}
	s.idle()
	s.watch(nil, nil)
	if o := s.order(order); o.Status != orders.Captured || o.ID == uuid.Nil {
		t.Errorf("the order is %s", o.Status)
	}
	again, err := s.checkout("once", hold, "sim_ok")
	if err != nil || !again.Replayed || string(again.Data) != string(first.Data) || again.Open != first.Open {
		t.Errorf("answered %s, then %s: %v", first.Data, again.Data, err)
	}
}
