package orders_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// inCurrency is the usual event in a currency: 0, 2 or 3 decimals change no digit.
func inCurrency(currency ledger.Unit) buckets.Spec {
	spec := usual()
	spec.Currency = currency
	spec.Tiers[0].Price.Currency, spec.Tiers[0].Fee.Currency = currency, currency
	return spec
}

// A sale, a refund in part and a dispute in currencies of 0, 2 and 3 decimals.
func TestCurrencies(t *testing.T) {
	t.Parallel()
	for _, currency := range []ledger.Unit{"JPY", "USD", "KWD"} {
		t.Run(string(currency), func(t *testing.T) {
			t.Parallel()
			s := open(t, option{spec: inCurrency(currency), webhooks: true})
			money := func(n ledger.Amount) *buckets.Money { return &buckets.Money{Amount: n, Currency: currency} }
			o := s.buy("ann", 2, "sim_ok")
			if o.Total != *money(10606) || o.Captured != *money(10606) {
				t.Errorf("%+v", o)
			}
			if err := s.refund(o.ID, orders.RefundRequest{Amount: money(1001)}); err != nil {
				t.Fatal(err)
			}
			s.bank(s.op(o.ID, payments.Authorize).Payment, "dispute", 1500)
			s.flush()
			in := func(account string) string { return account + " " + string(currency) }
			s.expect(map[string]ledger.Amount{in("provider:sim"): 8105, in("disputes:sim"): 1500, in("refunds-pending:sim"): 0})
			if o := s.order(o.ID); o.Refunded != *money(2501) || o.RefundedParts.Sum() != 2501 {
				t.Errorf("%+v", o)
			}
			for _, other := range []ledger.Unit{"JPY", "USD", "KWD"} {
				if other != currency {
					s.expect(map[string]ledger.Amount{"provider:sim " + string(other): 0})
				}
			}
		})
	}
}

// An order that costs nothing is bought at once, and the provider hears nothing of it.
func TestFreeOrders(t *testing.T) {
	t.Parallel()
	spec := usual()
	spec.Tiers[0].Price.Amount, spec.Tiers[0].Fee, spec.Tiers[0].TaxRate = 0, nil, nil
	s := open(t, option{spec: spec})
	s.traffic.down.Store(true)
	hold := s.hold("ann", 2)
	first, err := s.checkout("once", hold, "none")
	if err != nil || first.Open {
		t.Fatalf("open: %t, %v", first.Open, err)
	}
	if again, err := s.checkout("once", hold, "none"); err != nil || string(again.Data) != string(first.Data) || !again.Replayed {
		t.Errorf("%s, then %s %v", first.Data, again.Data, err)
	}
	order := s.orderOf(hold)
	s.is(order, orders.Captured, orders.PaymentCaptured, false)
	s.expect(map[string]ledger.Amount{"sold:ann ga": 2})
	_, err = s.Orders.Cancel(s.ctx, "tester", s.key(), order, nil)
	s.refused(err, orders.ErrOrderCaptured)
	if err := s.refund(order, orders.RefundRequest{ReturnTickets: true}); err != nil {
		t.Fatal(err)
	}
	s.expect(map[string]ledger.Amount{"sold:ann ga": 0, "available ga": 100})
	s.refused(s.refund(order, orders.RefundRequest{Amount: usd(1)}), orders.ErrRefundExceedsCaptured)
	s.refused(s.refund(order, orders.RefundRequest{Items: []orders.RefundLine{{Tier: "ga", Quantity: 1}}, ReturnTickets: true}),
		orders.ErrTicketsNotOwned)
	if n := len(s.order(order).Operations); n != 0 || s.posted() != 0 {
		t.Errorf("%d operations, %d calls", n, s.posted())
	}
}

// T62: with any fee and rate, what the lines say is what the order says, at every stage.
func TestT62LinesSumToTheOrder(t *testing.T) {
	t.Parallel()
	spec := usual()
	rate := &buckets.Rate{}
	if err := rate.UnmarshalJSON([]byte(`"0.07"`)); err != nil {
		t.Fatal(err)
	}
	spec.Tiers[0].Price.Amount, spec.Tiers[0].Fee, spec.Tiers[0].TaxRate = 3400, usd(333), rate
	s := open(t, option{spec: spec})
	sums := func(o orders.Order) {
		t.Helper()
		var p holds.Parts
		for _, i := range o.Items {
			p = p.Plus(i.Of(i.Quantity))
		}
		if p != o.Parts || p.Sum() != o.Total.Amount || p != (holds.Parts{Face: 6800, Fee: 666, Tax: 522}) {
			t.Errorf("the lines are %+v, the order %+v, %+v", p, o.Parts, o.Total)
		}
	}
	hold := s.hold("ann", 2)
	o, err := s.pay(hold, "sim_ok")
	if err != nil {
		t.Fatal(err)
	}
	sums(o)
	s.idle()
	sums(s.order(o.ID))
	if err := s.refund(o.ID, orders.RefundRequest{Items: []orders.RefundLine{{Tier: "ga", Quantity: 1}}, ReturnTickets: true}); err != nil {
		t.Fatal(err)
	}
	o = s.order(o.ID)
	sums(o)
	if o.RefundedParts != (holds.Parts{Face: 3400, Fee: 333, Tax: 261}) {
		t.Errorf("%+v", o.RefundedParts)
	}
	s.expect(map[string]ledger.Amount{"organiser:org USD": -3400, "fees:platform USD": -333, "tax:sales USD": -261})
}

// T47: the price is that of the hold, whatever it costs since.
func TestT47ThePriceIsTheHolds(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	before := s.hold("ann", 2)
	if _, err := s.Events.ChangeTier(s.ctx, "tester", s.key(), "gig", "ga", buckets.TierChange{Price: usd(9900)}, nil, false); err != nil {
		t.Fatal(err)
	}
	after := s.hold("bob", 2)
	for hold, total := range map[string]ledger.Amount{before.String(): 10606, after.String(): 20504} {
		id := before
		if hold == after.String() {
			id = after
		}
		_, err := s.Orders.Checkout(s.ctx, "tester", s.key(), id, orders.CheckoutRequest{PaymentMethod: "sim_ok", Total: usd(total + 1)})
		s.refused(err, orders.ErrPriceChanged)
		a, err := s.Orders.Checkout(s.ctx, "tester", s.key(), id, orders.CheckoutRequest{PaymentMethod: "sim_ok", Total: usd(total)})
		if err != nil {
			t.Fatal(err)
		}
		var o orders.Order
		if s.decode(a.Data, &o); o.Total != *usd(total) {
			t.Errorf("it costs %v, want %d", o.Total, total)
		}
	}
}

// T47: what was held before the sale closed can be paid for after it; nothing is held then.
func TestT47PaidAfterTheSaleHasClosed(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 2)
	s.db.Except("events_recorded")
	s.exec(`UPDATE events SET sale_closes_at = clock_timestamp() - interval '1 s'`)
	_, err := s.Holds.Place(s.ctx, "tester", s.key(), "gig", holds.Request{Customer: "bob", Items: []holds.Line{{Tier: "ga", Quantity: 1}}})
	s.refused(err, holds.ErrNotOnSale)
	if _, err := s.pay(hold, "sim_ok"); err != nil {
		t.Fatal(err)
	}
	s.idle()
	s.is(s.orderOf(hold), orders.Captured, orders.PaymentCaptured, false)
}

// A refund's shares sum to its amount, none is more than what's left of its part, and all
// refunds together take everything, and no more.
func TestSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Int64Range(0, 1_000_000_000_000)
		left := holds.Parts{Face: ledger.Amount(part.Draw(t, "face")), Fee: ledger.Amount(part.Draw(t, "fee")),
			Tax: ledger.Amount(part.Draw(t, "tax"))}
		for left.Sum() > 0 {
			amount := ledger.Amount(rapid.Int64Range(1, int64(left.Sum())).Draw(t, "amount"))
			if rapid.IntRange(0, 4).Draw(t, "the rest") == 0 {
				amount = left.Sum()
			}
			p := orders.Split(amount, left)
			if p.Sum() != amount {
				t.Fatalf("%d of %+v is %+v", amount, left, p)
			}
			if p.Face < 0 || p.Fee < 0 || p.Tax < 0 || p.Face > left.Face || p.Fee > left.Fee || p.Tax > left.Tax {
				t.Fatalf("%d of %+v is %+v", amount, left, p)
			}
			exact := func(share, of ledger.Amount) float64 {
				return float64(share) - float64(amount)*float64(of)/float64(left.Sum())
			}
			for _, off := range []float64{exact(p.Face, left.Face), exact(p.Fee, left.Fee), exact(p.Tax, left.Tax)} {
				if off < -1.001 || off > 1.001 {
					t.Fatalf("%d of %+v is %+v", amount, left, p)
				}
			}
			left = left.Minus(p)
		}
		if left != (holds.Parts{}) {
			t.Fatalf("%+v is left", left)
		}
	})
}
