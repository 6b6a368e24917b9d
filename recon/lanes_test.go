package recon_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/recon"
)

// openSplit is a sale of which one event is split into three lanes.
func openSplit(t *testing.T) (*sale, buckets.Layout) {
	t.Helper()
	s := openSale(t)
	if _, err := s.Quotas.Split(t.Context(), "tester", "split", "gig", 3, "a rush", nil, false); err != nil {
		t.Fatal(err)
	}
	layout, err := s.Events.Look(t.Context(), "gig")
	if err != nil || len(layout.Journals) != 3 {
		t.Fatalf("%+v %v", layout, err)
	}
	return s, layout
}

// of gives n names of customers of a lane.
func of(l buckets.Layout, lane, n int) (names []string) {
	for i := 0; len(names) < n; i++ {
		if name := fmt.Sprint("c", i); l.LaneOf(name) == lane {
			names = append(names, name)
		}
	}
	return names
}

// What a provider reports of a split event is explained by the orders of all its lanes, and
// each fee is booked in the lane of its payment.
func TestReportOfASaleInLanes(t *testing.T) {
	t.Parallel()
	s, layout := openSplit(t)
	var sold [3][]uuid.UUID
	for i := range sold {
		for _, customer := range of(layout, i+1, 3) {
			order := s.buy("gig", customer, "sim_ok")
			s.await(order, payments.Capture)
			if journal, _ := ledger.JournalOf(order); journal != layout.Journals[i] {
				t.Errorf("the order of %s is in journal %d, the lanes are %v", customer, journal, layout.Journals)
			}
			sold[i] = append(sold[i], order)
		}
	}
	for _, order := range []uuid.UUID{sold[0][0], sold[2][0]} {
		if _, err := s.Orders.Refund(t.Context(), "tester", "refund "+order.String(), order, orders.RefundRequest{
			Amount: &buckets.Money{Amount: 1000, Currency: "USD"}, Reason: "late start"}, nil); err != nil {
			t.Fatal(err)
		}
		s.await(order, payments.Refund)
	}
	s.post("/payments/"+s.payment(sold[1][0])+"/dispute", `{"amount": 5250}`)
	s.await(sold[1][0], payments.Chargeback)

	text := s.report()
	r, err := s.Recon.Import(t.Context(), "finance", "sim", strings.NewReader(text))
	const lines = 9 + 2 + 2 // taken, paid back, charged back with its fee
	if err != nil || r.Lines != lines || r.Matched != lines || r.Booked != lines || r.Unexplained != 0 {
		t.Errorf("%+v %v of\n%s", r, err, text)
	}
	if len(r.Balance) != 1 || r.Balance[0].Report != r.Balance[0].Ledger || r.Balance[0].Ledger.Amount == 0 {
		t.Errorf("%+v", r.Balance)
	}
	for _, journal := range layout.Journals {
		list, err := s.Reader.Account(t.Context(), journal, "fees:provider:sim", "USD", ledger.Point{})
		if err != nil || len(list) != 1 || list[0].Balance <= 0 {
			t.Errorf("fees in journal %d: %+v %v", journal, list, err)
		}
	}
	if again, err := s.Recon.Import(t.Context(), "finance", "sim", strings.NewReader(text)); err != nil || again.Booked != 0 || again.Matched != lines {
		t.Errorf("again: %+v %v", again, err)
	}
}

// Cases of every lane are among the event's, and two people decide on each.
func TestCasesOfLanesAreDecided(t *testing.T) {
	t.Parallel()
	s, layout := openSplit(t)
	var about []uuid.UUID
	for lane := range 3 {
		order := s.buy("gig", of(layout, lane+1, 1)[0], "sim_transfer")
		s.post("/payments/"+s.payment(order)+"/complete", `{"amount": 5000}`)
		s.await(order, payments.Authorize)
		about = append(about, order)
	}
	list, err := s.Recon.Cases(t.Context(), cases.Filter{Event: "gig", Status: cases.Open, Reason: cases.AmountMismatch, Limit: 10})
	if err != nil || len(list) != 3 {
		t.Fatalf("%+v %v", list, err)
	}
	for _, c := range list {
		d := &desk{s, *c.OrderID, c.ID}
		if _, err := d.resolve("fay", refundIt, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := d.approve("gus", nil); err != nil || got.Event != "gig" {
			t.Fatalf("%+v %v", got, err)
		}
		s.await(d.order, payments.Refund)
		if !slices.Contains(about, d.order) {
			t.Errorf("case %s is about order %s", c.ID, d.order)
		}
	}
	resolved, err := s.Recon.Cases(t.Context(), cases.Filter{Event: "gig", Status: cases.Resolved, Reason: cases.AmountMismatch, Limit: 10})
	if err != nil || len(resolved) != 3 {
		t.Fatalf("%+v %v", resolved, err)
	}
	r, err := s.Recon.Import(t.Context(), "finance", "sim", strings.NewReader(s.report()))
	if err != nil || r.Lines != 6 || r.ByResult[recon.MissingHere] != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

// report gets all that the provider has to report.
func (s *sale) report() string {
	s.Helper()
	answer, err := http.Get(s.url + "/report")
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}
