package quota_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

// till is a desk that sells.
type till struct {
	*desk
	url string // the provider's
}

func openTill(t *testing.T, quantity ledger.Amount, change ...func(*buckets.Spec)) *till {
	t.Helper()
	db := pgtest.New(t)
	stores, url := pgtest.Selling(t, db, 10*time.Second, nil)
	return &till{openWith(t, db, stores, quantity, change...), url}
}

// buy holds tickets and begins to pay for them.
func (s *till) buy(customer string, n ledger.Amount, method string) (order uuid.UUID) {
	s.t.Helper()
	hold, err := s.hold(customer, n)
	s.must(err)
	_, err = s.Orders.Checkout(context.Background(), "shop", "pay "+hold.ID.String(), hold.ID, orders.CheckoutRequest{PaymentMethod: method})
	s.must(err)
	s.Orders.Idle()
	journal, _ := ledger.JournalOf(hold.ID)
	return orders.OrderID(journal, hold.ID)
}

func (s *till) order(id uuid.UUID) orders.Order {
	s.t.Helper()
	o, err := s.Orders.Get(context.Background(), id)
	s.must(err)
	return o
}

// becomes waits for what the provider's webhooks bring about.
func (s *till) becomes(id uuid.UUID, status orders.Status) {
	s.t.Helper()
	pgtest.Until(s.t, fmt.Sprintf("order %s to be %s", id, status), func() bool { return s.order(id).Status == status })
}

// play does something at the provider that isn't by us.
func (s *till) play(path, body string) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
	s.must(err)
	r.Header.Set("Idempotency-Key", uuid.NewString())
	answer, err := http.DefaultClient.Do(r)
	s.must(err)
	if answer.Body.Close(); answer.StatusCode/100 != 2 {
		s.t.Fatal(answer.Status)
	}
}

// Orders of every lane are found by their ids alone: bought, paid back, and the tickets on
// sale again in the lane that they were of, also when that isn't in use any more.
func TestOrdersOfEveryLane(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTill(t, 80)
	s.split(4)
	bought := make(map[int]uuid.UUID)
	for lane := 1; lane <= 4; lane++ {
		bought[lane] = s.buy(s.of(lane, 0), 3, "sim_ok")
		s.becomes(bought[lane], orders.Captured)
	}
	if ga := s.tier(); ga.Sold != 12 || fmt.Sprint(s.free()) != "[17 17 17 17]" {
		t.Errorf("%+v %v", ga, s.free())
	}
	refund := func(lane int) {
		t.Helper()
		_, err := s.Orders.Refund(ctx, "shop", uuid.NewString(), bought[lane], orders.RefundRequest{ReturnTickets: true, Reason: "a test",
			Items: []orders.RefundLine{{Tier: "ga", Quantity: 1}}}, nil)
		s.must(err)
		s.Orders.Idle()
	}
	for lane := 1; lane <= 4; lane++ {
		refund(lane)
	}
	if got := fmt.Sprint(s.free()); got != "[18 18 18 18]" {
		t.Error(got)
	}
	s.split(1)
	s.balance()
	if got := fmt.Sprint(s.free()); got != "[72 0 0 0]" {
		t.Error(got)
	}
	refund(3)
	list, err := s.Orders.List(ctx, s.event, orders.Filter{Limit: 10})
	if s.must(err); len(list) != 4 || sum(s.free()) != 73 {
		t.Errorf("%d orders, %v", len(list), s.free())
	}
	_, err = s.hold("last", 73) // what came back in a lane that isn't in use is sold too
	s.must(err)
}

// A payment comes when its hold is gone: it buys the tickets in its customer's lane, if need
// be with tickets of other lanes.
func TestALatePaymentInALane(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone ledger.Amount // moved out of the lane meanwhile
		sold bool          // all tickets went to others
		want orders.Status
	}{
		"the lane has tickets":     {0, false, orders.Captured},
		"other lanes have tickets": {20, false, orders.Captured},
		"nobody has any":           {0, true, orders.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			s := openTill(t, 80, func(spec *buckets.Spec) { spec.LatePaymentPolicy = buckets.HonourIfAvailable })
			s.split(4)
			order := s.buy(s.of(3, 0), 2, "sim_transfer")
			s.db.Except("holds_recorded", "orders_recorded") // entries have the times that they were given
			s.exec(`UPDATE holds SET expires_at = clock_timestamp(), pay_until = clock_timestamp()`)
			s.exec(`UPDATE orders o SET pay_until = h.pay_until, due_at = h.pay_until FROM holds h WHERE h.hold_id = o.hold_id`)
			for range 2 { // the end of the payment is prepared, and sent
				_, err := s.Orders.Work(ctx)
				s.must(err)
				s.Orders.Idle()
				s.exec(`UPDATE operations SET due_at = 'epoch' WHERE due_at IS NOT NULL`)
			}
			s.becomes(order, orders.Cancelled)
			if c.gone > 0 {
				_, err := s.move("op", request(lane(3), lane(1), c.gone))
				s.must(err)
			}
			if c.sold {
				_, err := s.hold("bob", 80)
				s.must(err)
			}
			s.play("/control", `{"clock_offset_ms": 60000}`)
			var payment string
			for _, op := range s.order(order).Operations {
				payment = max(payment, op.Payment)
			}
			s.play("/payments/"+payment+"/complete", "")
			pgtest.Until(t, "what becomes of the payment", func() bool {
				o := s.order(order)
				return o.Status == orders.Captured || o.PaymentStatus == orders.PaymentRefunded
			})
			s.Orders.Idle()
			o := s.order(order)
			if ga := s.tier(); o.Status != c.want || (ga.Sold == 2) != (c.want == orders.Captured) || ga.Sold+ga.Held+ga.Available != 80 {
				t.Errorf("%s: %+v", o.Status, ga)
			}
		})
	}
}
