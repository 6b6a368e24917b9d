package recon_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/recon"
)

// sale is real orders on a database of its own, whose provider's webhooks reach it.
type sale struct {
	*testing.T
	service.Stores
	url     string        // of the provider
	batches chan struct{} // something was committed since it was last read
}

func openSale(t *testing.T) *sale {
	t.Helper()
	s := &sale{T: t, batches: make(chan struct{}, 1)}
	s.Stores, s.url = pgtest.Selling(t, pgtest.New(t), 10*time.Second, func(ledger.Batch) {
		select {
		case s.batches <- struct{}{}:
		default:
		}
	})
	for event, currency := range map[string]ledger.Unit{"gig": "USD", "tokyo": "JPY"} {
		if _, err := s.Events.Create(t.Context(), "tester", event, buckets.Spec{Event: event, Name: event, Currency: currency,
			HoldSeconds: 3600, Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 10, Price: buckets.Money{Amount: 5000, Currency: currency},
				Fee: &buckets.Money{Amount: 250, Currency: currency}}}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// buy holds a ticket and begins to pay for it.
func (s *sale) buy(event, customer, method string) (order uuid.UUID) {
	s.Helper()
	receipt, err := s.Holds.Place(s.Context(), "tester", "hold "+customer, event,
		holds.Request{Customer: customer, Items: []holds.Line{{Tier: "ga", Quantity: 1}}})
	if err != nil {
		s.Fatal(err)
	}
	var h struct {
		ID uuid.UUID `json:"hold_id"`
	}
	if err := json.Unmarshal(receipt.Data, &h); err != nil {
		s.Fatal(err)
	}
	if _, err := s.Orders.Checkout(s.Context(), "tester", "pay "+customer, h.ID, orders.CheckoutRequest{PaymentMethod: method}); err != nil {
		s.Fatal(err)
	}
	journal, _ := ledger.JournalOf(h.ID)
	return orders.OrderID(journal, h.ID)
}

// await reads an order at every commit until it has an operation of a kind that has
// succeeded, and gives the provider's reference of the payment.
func (s *sale) await(order uuid.UUID, kind payments.Kind) (payment string) {
	s.Helper()
	for {
		o, err := s.Orders.Get(s.Context(), order)
		if err != nil {
			s.Fatal(err)
		}
		for _, op := range o.Operations {
			if op.Kind == kind && op.Status == orders.OpSucceeded {
				return op.Payment
			}
		}
		select {
		case <-s.batches:
		case <-s.Context().Done():
			s.Fatalf("order %s has no %s", order, kind)
		}
	}
}

// payment gives the provider's reference of an order's payment.
func (s *sale) payment(order uuid.UUID) string {
	s.Helper()
	o, err := s.Orders.Get(s.Context(), order)
	if err != nil {
		s.Fatal(err)
	}
	return o.Operations[0].Payment
}

// post does something at the provider that isn't by us.
func (s *sale) post(path, body string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", path)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		s.Fatal(answer.Status)
	}
}

// A whole sale: everything that the provider tells is explained by its operations, and
// with the fees booked, the ledger has what the provider says that it has.
func TestReportOfASale(t *testing.T) {
	t.Parallel()
	s := openSale(t)
	sold := s.buy("gig", "ann", "sim_ok")
	s.await(sold, payments.Capture)

	refunded := s.buy("gig", "bob", "sim_ok")
	s.await(refunded, payments.Capture)
	if _, err := s.Orders.Refund(t.Context(), "tester", "refund", refunded, orders.RefundRequest{
		Amount: &buckets.Money{Amount: 1000, Currency: "USD"}, Reason: "late start"}, nil); err != nil {
		t.Fatal(err)
	}
	s.await(refunded, payments.Refund)

	// A refund on the provider's own pages, and a chargeback in yen with a fee in dollars.
	elsewhere := s.buy("gig", "cid", "sim_ok")
	s.post("/payments/"+s.await(elsewhere, payments.Capture)+"/refunds", `{"reference": "dashboard", "amount": 700, "currency": "USD"}`)
	s.await(elsewhere, payments.Refund)
	disputed := s.buy("tokyo", "dan", "sim_ok")
	s.post("/payments/"+s.await(disputed, payments.Capture)+"/dispute", `{"amount": 5250}`)
	s.await(disputed, payments.Chargeback)

	// Money that is taken at once.
	transferred := s.buy("gig", "eve", "sim_transfer")
	s.post("/payments/"+s.payment(transferred)+"/complete", "")
	s.await(transferred, payments.Authorize)

	answer, err := http.Get(s.url + "/report")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Recon.Import(t.Context(), "finance", "sim", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	const lines = 5 + 2 + 2 // taken, paid back, charged back with its fee
	if r.Lines != lines || r.Matched != lines || r.Booked != lines || r.Unexplained != 0 || r.ByResult[recon.Timing] != 0 {
		t.Errorf("%+v of\n%s", r, text)
	}
	if len(r.Balance) != 2 {
		t.Errorf("balance %v", r.Balance)
	}
	for _, b := range r.Balance {
		if b.Report != b.Ledger || b.Ledger.Amount == 0 {
			t.Errorf("the report comes to %v, the ledger to %v", b.Report, b.Ledger)
		}
	}
}
