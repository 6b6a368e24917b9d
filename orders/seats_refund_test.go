package orders_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/seats"
)

// T65: seats go back by name, with their money or without; the rest stays sold.
func TestT65RefundsOfSeats(t *testing.T) {
	t.Parallel()
	line := func(l orders.RefundLine) []orders.RefundLine { l.Tier = "stalls"; return []orders.RefundLine{l} }
	one := line(orders.RefundLine{Seats: labelsOf("3")})
	for name, c := range map[string]struct {
		r        orders.RefundRequest
		money    ledger.Amount // what the provider has left
		row      string
		returned []string
	}{
		"one seat, with money":        {orders.RefundRequest{Items: one, ReturnTickets: true}, 10606, "ssaaaa", labelsOf("3")},
		"one seat's money":            {orders.RefundRequest{Items: one}, 10606, "sssaaa", nil},
		"one seat, no money":          {orders.RefundRequest{Items: one, Amount: usd(0), ReturnTickets: true}, 15909, "ssaaaa", labelsOf("3")},
		"two, and a little":           {orders.RefundRequest{Items: line(orders.RefundLine{Seats: labelsOf("31"), Quantity: 2}), Amount: usd(9), ReturnTickets: true}, 15900, "asaaaa", labelsOf("13")},
		"all of it":                   {orders.RefundRequest{ReturnTickets: true}, 0, "aaaaaa", labelsOf("123")},
		"all the money":               {orders.RefundRequest{}, 0, "sssaaa", nil},
		"all seats, without a name":   {orders.RefundRequest{Items: line(orders.RefundLine{Quantity: 3}), ReturnTickets: true}, 0, "aaaaaa", labelsOf("123")},
		"a part of the money, no one": {orders.RefundRequest{Amount: usd(100)}, 15809, "sssaaa", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSeated(t, option{webhooks: true})
			o := s.buySeats("ann", "123", "sim_ok")
			if err := s.refund(o.ID, c.r); err != nil {
				t.Fatal(err)
			}
			s.flush()
			s.row(c.row)
			s.expect(map[string]ledger.Amount{"provider:sim USD": c.money, "refunds-pending:sim USD": 0,
				"sold:ann stalls": ledger.Amount(strings.Count(c.row, "s"))})
			if item := s.order(o.ID).Items[0]; !reflect.DeepEqual(item.ReturnedSeats, c.returned) || len(item.Seats) != 3 ||
				int(item.Returned) != len(c.returned) {
				t.Errorf("%+v", item)
			}
		})
	}
}

// P40: refunds of seats that are refused leave everything as it was.
func TestP40RefundsOfSeatsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := openSeated(t, option{webhooks: true})
	o := s.buySeats("ann", "123", "sim_ok")
	s.buySeats("bob", "4", "sim_ok")
	if err := s.refund(o.ID, orders.RefundRequest{ReturnTickets: true, Items: []orders.RefundLine{{Tier: "stalls", Seats: labelsOf("1")}}}); err != nil {
		t.Fatal(err)
	}
	s.flush()
	before := s.balances()
	for name, c := range map[string]struct {
		items []orders.RefundLine
		want  *fault.Def
	}{
		"a returned one":        {[]orders.RefundLine{{Tier: "stalls", Seats: labelsOf("1")}}, orders.ErrTicketsNotOwned},
		"somebody else's":       {[]orders.RefundLine{{Tier: "stalls", Seats: labelsOf("24")}}, orders.ErrTicketsNotOwned},
		"none there is":         {[]orders.RefundLine{{Tier: "stalls", Seats: labelsOf("9")}}, orders.ErrTicketsNotOwned},
		"of another tier":       {[]orders.RefundLine{{Tier: "ga", Seats: labelsOf("2")}}, orders.ErrTicketsNotOwned},
		"more than it owns":     {[]orders.RefundLine{{Tier: "stalls", Quantity: 3}}, orders.ErrTicketsNotOwned},
		"some, without a name":  {[]orders.RefundLine{{Tier: "stalls", Quantity: 1}}, seats.ErrSeatsRequired},
		"one twice":             {[]orders.RefundLine{{Tier: "stalls", Seats: labelsOf("22")}}, fault.ErrInvalidRequest},
		"one in two lines":      {[]orders.RefundLine{{Tier: "stalls", Seats: labelsOf("2")}, {Tier: "stalls", Seats: labelsOf("2")}}, fault.ErrInvalidRequest},
		"of another number":     {[]orders.RefundLine{{Tier: "stalls", Seats: labelsOf("2"), Quantity: 2}}, fault.ErrInvalidRequest},
		"an empty list of them": {[]orders.RefundLine{{Tier: "stalls", Seats: []string{}}}, fault.ErrInvalidRequest},
	} {
		for _, back := range []bool{true, false} {
			t.Log(name, back)
			s.refused(s.refund(o.ID, orders.RefundRequest{Items: c.items, ReturnTickets: back}), c.want)
		}
	}
	s.row("asssaa")
	if after := s.balances(); !reflect.DeepEqual(after, before) {
		t.Errorf("balances are %v, were %v", after, before)
	}
}

// A seat that came back and was sold again is its new buyer's, whatever happens to the
// first order.
func TestASeatThatWasSoldTwice(t *testing.T) {
	t.Parallel()
	s := openSeated(t, option{webhooks: true})
	first := s.buySeats("ann", "12", "sim_ok")
	if err := s.refund(first.ID, orders.RefundRequest{ReturnTickets: true, Items: []orders.RefundLine{{Tier: "stalls", Seats: labelsOf("1")}}}); err != nil {
		t.Fatal(err)
	}
	s.flush()
	second := s.buySeats("bob", "13", "sim_ok")
	s.row("sssaaa")
	if err := s.refund(first.ID, orders.RefundRequest{ReturnTickets: true}); err != nil {
		t.Fatal(err)
	}
	s.flush()
	s.row("sasaaa")
	s.is(first.ID, orders.Refunded, orders.PaymentRefunded, false)
	s.is(second.ID, orders.Captured, orders.PaymentCaptured, false)
	s.expect(map[string]ledger.Amount{"sold:ann stalls": 0, "sold:bob stalls": 2, "provider:sim USD": 10606})
}

// A chargeback takes money and leaves the seats with their buyer, until somebody returns
// them.
func TestAChargebackLeavesTheSeats(t *testing.T) {
	t.Parallel()
	s := openSeated(t, option{})
	o := s.buySeats("ann", "12", "sim_ok")
	s.tell(s.dispute(o, 10606), 0, said{"status": "succeeded"})
	s.row("ssaaaa")
	s.expect(map[string]ledger.Amount{"disputes:sim USD": 10606, "sold:ann stalls": 2})
	r := orders.RefundRequest{Amount: usd(0), ReturnTickets: true, Items: []orders.RefundLine{{Tier: "stalls", Seats: labelsOf("2")}}}
	if err := s.refund(o.ID, r); err != nil {
		t.Fatal(err)
	}
	s.row("saaaaa")
}
