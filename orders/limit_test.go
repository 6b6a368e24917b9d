package orders_test

import (
	"errors"
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/orders"
)

// An order has a limit of payments and of refunds: every entry of it has all of them.
func TestAnOrderHasALimitOfOperations(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 1)
	for i := range 31 {
		_, err := s.pay(hold, "sim_decline")
		if want := orders.ErrPaymentDeclined; i < 30 && !errors.Is(err, want) {
			t.Fatalf("payment %d: %v", i+1, err)
		}
		if i == 30 && !errors.Is(err, orders.ErrTooManyOperations) {
			t.Errorf("payment %d: %v", i+1, err)
		}
	}
	paid := s.buy("bob", 1, "sim_ok")
	for i := range 31 {
		_, err := s.Orders.Refund(s.ctx, "tester", s.key(), paid.ID, orders.RefundRequest{
			Amount: &buckets.Money{Amount: 1, Currency: "USD"}, Reason: "rain",
		}, nil)
		s.Orders.Idle()
		if i < 30 && err != nil || i == 30 && !errors.Is(err, orders.ErrTooManyOperations) {
			t.Fatalf("refund %d: %v", i+1, err)
		}
	}
}
