package orders_test

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/seats"
)

// openSeated opens a shop whose event has a row of six seats, A-1-1 to A-1-6, at what the
// usual tickets cost.
func openSeated(t testing.TB, o option) *shop {
	t.Helper()
	if o.spec.Event == "" {
		o.spec = usual()
	}
	stalls := o.spec.Tiers[0]
	stalls.Tier, stalls.Quantity, stalls.Seated = "stalls", 0, true
	o.spec.Tiers = append(o.spec.Tiers, stalls)
	s := open(t, o)
	row := seats.Row{Row: "1"}
	for _, n := range strings.Split("123456", "") {
		row.Seats = append(row.Seats, seats.Seat{Seat: n})
	}
	chart := seats.Chart{Sections: []seats.Section{{Section: "A", Tier: "stalls", Rows: []seats.Row{row}}}}
	if _, err := s.Seats.Load(s.ctx, "tester", s.key(), "gig", chart); err != nil {
		t.Fatal(err)
	}
	return s
}

// place places a hold of seats of the row, by their numbers.
func (s *shop) place(customer, numbers string) (uuid.UUID, error) {
	receipt, err := s.Holds.Place(s.ctx, "tester", s.key(), "gig",
		holds.Request{Customer: customer, Items: []holds.Line{{Seats: labelsOf(numbers)}}})
	if err != nil {
		return uuid.Nil, err
	}
	var h holds.Hold
	s.decode(receipt.Data, &h)
	return h.ID, nil
}

// holdSeats is place for a hold that must be granted.
func (s *shop) holdSeats(customer, numbers string) uuid.UUID {
	s.Helper()
	id, err := s.place(customer, numbers)
	if err != nil {
		s.Fatal(err)
	}
	return id
}

// labelsOf gives the labels of seats by their numbers.
func labelsOf(numbers string) (labels []string) {
	for _, n := range strings.Split(numbers, "") {
		labels = append(labels, "A-1-"+n)
	}
	return labels
}

// buySeats is buy for seats.
func (s *shop) buySeats(customer, numbers, method string) orders.Order {
	s.Helper()
	hold := s.holdSeats(customer, numbers)
	if _, err := s.pay(hold, method); err != nil && fault.As(err).Kind != fault.Declined {
		s.Fatal(err)
	}
	s.idle()
	return s.order(s.orderOf(hold))
}

// row compares the states of the seats, a letter each.
func (s *shop) row(want string) {
	s.Helper()
	rows, err := s.owner.Query(s.ctx, `SELECT states FROM seat_rows`)
	if err != nil {
		s.Fatal(err)
	}
	if got := strings.Join(collect[string](s, rows), " "); got != want {
		s.Errorf("the row is %s, want %s", got, want)
	}
}

// endSeats moves the deadlines of seats with those of their holds, after endGrace or
// endHold.
func (s *shop) endSeats() {
	s.Helper()
	s.exec(`UPDATE seats s SET until = h.expires_at FROM holds h WHERE h.hold_id = s.hold_id AND s.state = 'held'`)
}

// lateSeats is late for two seats.
func lateSeats(t *testing.T, o option, method string) (s *shop, order uuid.UUID, payment string) {
	t.Helper()
	s = openSeated(t, o)
	order = s.buySeats("ann", "34", method).ID
	s.row("aahhaa")
	s.endGrace(order)
	s.endSeats()
	s.work()
	s.work()
	s.flush()
	s.is(order, orders.Cancelled, orders.PaymentDeclined, false)
	s.row("aaaaaa")
	s.ahead(time.Minute)
	return s, order, s.op(order, payments.Authorize).Payment
}

// Seats are held until they're paid, sold from then on, and named by the order.
func TestSeatsAreBought(t *testing.T) {
	t.Parallel()
	s := openSeated(t, option{webhooks: true})
	waiting := s.buySeats("bob", "56", "sim_requires_action")
	s.row("aaaahh")
	o := s.buySeats("ann", "21", "sim_ok")
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
	s.row("ssaahh")
	if len(o.Items) != 1 || !reflect.DeepEqual(o.Items[0].Seats, labelsOf("21")) || o.Items[0].ReturnedSeats != nil {
		t.Errorf("%+v", o.Items)
	}
	s.bank(s.op(waiting.ID, payments.Authorize).Payment, "complete", 0)
	s.flush()
	s.is(waiting.ID, orders.Captured, orders.PaymentCaptured, false)
	s.row("ssaass")
	s.expect(map[string]ledger.Amount{"sold:ann stalls": 2, "sold:bob stalls": 2, "available stalls": 2, "provider:sim USD": 21212})
	_, err := s.place("cid", "216")
	s.refused(err, seats.ErrSeatUnavailable)
	for _, f := range fault.As(err).Fields {
		for _, taken := range f.Value.([]seats.Taken) {
			if taken.Reason != "sold" || taken.MayReturnAt != nil {
				t.Errorf("%+v", taken)
			}
		}
	}
}

// A payment that was declined leaves the seats held until their deadline, and free after.
func TestSeatsOfADeclinedPayment(t *testing.T) {
	t.Parallel()
	s := openSeated(t, option{webhooks: true})
	o := s.buySeats("ann", "12", "sim_decline")
	s.flush()
	s.holdIs(o.HoldID, holds.Held)
	_, err := s.place("bob", "2")
	s.refused(err, seats.ErrSeatUnavailable)
	s.row("hhaaaa")
	s.endHold(o.ID)
	s.endSeats()
	s.row("hhaaaa") // nobody has asked yet
	s.holdSeats("bob", "2")
	s.row("ahaaaa")
	_, err = s.pay(o.HoldID, "sim_ok")
	if err == nil {
		t.Error("a hold that's over was paid")
	}
	s.holdIs(o.HoldID, holds.Expired)
}

// A payment whose outcome nobody knows keeps its seats, past the deadline and the grace.
func TestSeatsOfAnUnknownPayment(t *testing.T) {
	t.Parallel()
	s := openSeated(t, option{})
	o := s.buySeats("ann", "12", "sim_timeout_lost")
	s.endGrace(o.ID)
	s.endSeats()
	if _, err := s.Orders.Work(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.idle()
	s.holdIs(o.HoldID, holds.Reconciling)
	s.row("hhaaaa")
	_, err := s.place("bob", "1")
	s.refused(err, seats.ErrSeatUnavailable)
}

// P2: a payment that came late gets its seats when all of them are free, and is given back
// when another has one.
func TestP2LatePaymentsOfSeats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		taken, row string // that somebody else holds, and what the seats are at the end
		honoured   bool
	}{
		"all are free":       {"16", "hassah", true},
		"one is taken":       {"45", "aaahha", false},
		"both are":           {"34", "aahhaa", false},
		"the whole row":      {"123456", "hhhhhh", false},
		"taken and returned": {"", "aassaa", true},
	} {
		for _, method := range []string{"sim_requires_action", "sim_transfer"} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				s, order, payment := lateSeats(t, policy(buckets.HonourIfAvailable), method)
				if c.taken != "" {
					s.holdSeats("bob", c.taken)
				} else if _, err := s.Holds.Release(s.ctx, "tester", s.key(), s.holdSeats("bob", "34"), nil); err != nil {
					t.Fatal(err)
				}
				s.bank(payment, "complete", 0)
				s.flush()
				s.row(c.row)
				s.theCase(cases.LatePayment, cases.Resolved)
				if c.honoured {
					s.is(order, orders.Captured, orders.PaymentCaptured, false)
					s.expect(map[string]ledger.Amount{"sold:ann stalls": 2, "provider:sim USD": 10606, "suspense:late USD": 0})
					return
				}
				s.expect(map[string]ledger.Amount{"sold:ann stalls": 0, "provider:sim USD": 0, "suspense:late USD": 0, "auth:open USD.AUTH": 0})
			})
		}
	}
}

// T35: people honour a late payment of seats as long as nobody has one of them, and are
// told which seat it is.
func TestT35PeopleHonourALatePaymentOfSeats(t *testing.T) {
	t.Parallel()
	s, order, payment := lateSeats(t, policy(buckets.Review), "sim_transfer")
	s.bank(payment, "complete", 0)
	s.flush()
	c := s.theCase(cases.LatePayment, cases.Open)
	other := s.holdSeats("bob", "45")
	s.refused(s.decide(c.ID, honourIt), seats.ErrSeatUnavailable)
	s.row("aaahha")
	if _, err := s.Holds.Release(s.ctx, "tester", s.key(), other, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recon.Approve(s.ctx, "gus", s.key(), c.ID, nil); err != nil { // it waits still
		t.Fatal(err)
	}
	s.idle()
	s.is(order, orders.Captured, orders.PaymentCaptured, false)
	s.row("aassaa")
}

// P4: two pay for one seat, the one late: one has it, and the other's payment goes back.
func TestP4TwoBuyersOfOneSeat(t *testing.T) {
	t.Parallel()
	s, order, payment := lateSeats(t, policy(buckets.HonourIfAvailable), "sim_transfer")
	won := s.buySeats("bob", "4", "sim_ok")
	s.bank(payment, "complete", 0)
	s.flush()
	s.is(won.ID, orders.Captured, orders.PaymentCaptured, false)
	if o := s.order(order); o.Status != orders.Cancelled || o.Reconciling {
		t.Errorf("the other is %s, reconciling: %t", o.Status, o.Reconciling)
	}
	s.row("aaasaa")
	s.expect(map[string]ledger.Amount{"sold:ann stalls": 0, "sold:bob stalls": 1, "provider:sim USD": 5303, "suspense:late USD": 0})
}

// Seats of a sale that was undone are free again: the capture was declined for good, the
// order was cancelled, or a limit came between.
func TestSeatsOfASaleThatIsUndone(t *testing.T) {
	t.Parallel()
	for name, undo := range map[string]func(s *shop) orders.Order{
		"capture declined": func(s *shop) orders.Order { return s.buySeats("ann", "25", "sim_capture_fails") },
		"cancelled": func(s *shop) orders.Order {
			o := s.buySeats("ann", "25", "sim_requires_action")
			s.row("ahaaha")
			if _, err := s.cancel(o.ID); err != nil {
				s.Fatal(err)
			}
			return o
		},
		"not confirmable": func(s *shop) orders.Order {
			o := s.buySeats("ann", "25", "sim_requires_action")
			limit := buckets.TierChange{LimitPerCustomer: new(int64(1))}
			if _, err := s.Events.ChangeTier(s.ctx, "tester", s.key(), "gig", "stalls", limit, nil, false); err != nil {
				s.Fatal(err)
			}
			s.bank(s.op(o.ID, payments.Authorize).Payment, "complete", 0)
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSeated(t, option{webhooks: true})
			o := undo(s)
			s.flush()
			if got := s.order(o.ID).Status; got != orders.Cancelled {
				t.Errorf("the order is %s", got)
			}
			s.row("aaaaaa")
			s.expect(map[string]ledger.Amount{"sold:ann stalls": 0, "held:ann stalls": 0, "available stalls": 6, "provider:sim USD": 0,
				"auth:open USD.AUTH": 0})
			s.holdSeats("bob", "5")
		})
	}
}

// Processes that never saw the chart confirm, cancel, refund and honour, and what another
// process has sold stays sold.
func TestOtherProcessesSellSeats(t *testing.T) {
	t.Parallel()
	s := openSeated(t, option{})
	hold := s.holdSeats("ann", "12")
	other := s.process(nil)
	if _, err := other.Orders.Checkout(s.ctx, "tester", s.key(), hold, orders.CheckoutRequest{PaymentMethod: "sim_ok"}); err != nil {
		t.Fatal(err)
	}
	other.Orders.Idle()
	s.row("ssaaaa")
	order := s.orderOf(hold)
	s.is(order, orders.Captured, orders.PaymentCaptured, false)
	other = s.process(nil)
	r := orders.RefundRequest{ReturnTickets: true, Reason: "rain", Items: []orders.RefundLine{{Tier: "stalls", Seats: labelsOf("2")}}}
	if _, err := other.Orders.Refund(s.ctx, "tester", s.key(), order, r, nil); err != nil {
		t.Fatal(err)
	}
	other.Orders.Idle()
	s.row("saaaaa")
	waiting := s.buySeats("bob", "3", "sim_requires_action")
	other = s.process(nil)
	if _, err := other.Orders.Cancel(s.ctx, "tester", s.key(), waiting.ID, nil); err != nil {
		t.Fatal(err)
	}
	other.Orders.Idle()
	s.row("saaaaa")
}

// Payments for seats and everything that ends their holds at once, through two processes:
// each seat is sold to an order or free.
func TestSeatsPaidAndEndedAtOnce(t *testing.T) {
	t.Parallel()
	s := openSeated(t, option{webhooks: true})
	other := s.process(nil)
	for _, numbers := range []string{"1", "2", "3", "4", "56"} {
		hold := s.holdSeats("ann", numbers)
		var all sync.WaitGroup
		all.Go(func() { _, _ = s.pay(hold, "sim_ok") }) // what comes of it is looked at below
		all.Go(func() { _, _ = other.Holds.Release(s.ctx, "tester", s.key(), hold, nil) })
		all.Go(func() { _, _ = s.place("bob", numbers) })
		all.Wait()
		s.idle()
		s.flush()
		h, err := s.Holds.Get(s.ctx, hold)
		if err != nil || h.Status != holds.Confirmed && h.Status != holds.Released {
			t.Errorf("seats %s: the hold is %s: %v", numbers, h.Status, err)
		}
	}
}

// The check of seats and orders finds what a wrong program or person could do to the rows.
func TestSeatsOfOrdersFindsSabotage(t *testing.T) {
	t.Parallel()
	s := openSeated(t, option{webhooks: true})
	o := s.buySeats("ann", "123", "sim_ok")
	if err := s.refund(o.ID, orders.RefundRequest{ReturnTickets: true, Items: []orders.RefundLine{{Tier: "stalls", Seats: labelsOf("1")}}}); err != nil {
		t.Fatal(err)
	}
	s.flush()
	for _, sql := range []string{
		`UPDATE seats SET hold_id = gen_random_uuid() WHERE state = 'sold'`,
		`UPDATE seats SET state = 'available' WHERE seat = 'A-1-2'`,
		`UPDATE seats SET state = 'sold', hold_id = gen_random_uuid() WHERE seat = 'A-1-5'`,
		`UPDATE seats SET state = 'sold' WHERE seat = 'A-1-1'`,
		`UPDATE seats SET tier = 'ga' WHERE seat = 'A-1-2'`,
		`UPDATE orders SET status = 'cancelled'`,
		`UPDATE orders SET items = replace(items::text, 'A-1-2', 'A-1-4')::json`,
		`UPDATE orders SET items = replace(items::text, '"returned_seats":["A-1-1"]', '"returned_seats":["A-1-2"]')::json`,
		`DELETE FROM orders`,
	} {
		s.exec(`BEGIN`)
		if found := s.violations(); len(found) != 0 {
			t.Fatal(found)
		}
		s.exec(sql)
		if found := s.violations(); found["seats_of_orders"] == 0 {
			t.Errorf("%s: it found %v", sql, found)
		}
		s.exec(`ROLLBACK`)
	}
}
