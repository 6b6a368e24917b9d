package orders_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

// Lists have the orders of all lanes with their operations, in pages that don't care where
// a lane ends.
func TestListsHaveTheOrdersOfAllLanes(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	before := s.buy("c0", 1, "sim_ok") // in the home, wherever the customer's lane is to be
	if _, err := s.Quotas.Split(s.ctx, "tester", "split", "gig", 3, "a rush", nil, false); err != nil {
		t.Fatal(err)
	}
	all := []uuid.UUID{before.ID}
	in := map[ledger.JournalID]int{}
	var declined []uuid.UUID
	for n := range 30 {
		method := "sim_ok"
		if n%5 == 0 {
			method = "sim_decline"
		}
		o := s.buy(fmt.Sprint("c", n), 1, method)
		journal, _ := ledger.JournalOf(o.ID)
		in[journal]++
		all = append(all, o.ID)
		if method == "sim_decline" {
			declined = append(declined, o.ID)
		}
	}
	if len(in) != 3 {
		t.Fatalf("the orders are in %v, want three lanes", in)
	}
	for _, size := range []int{1, 7, 31, 32} {
		for name, c := range map[string]struct {
			f    orders.Filter
			want []uuid.UUID
		}{
			"all":             {orders.Filter{}, all},
			"of a status":     {orders.Filter{Status: orders.Pending}, declined},
			"of a customer":   {orders.Filter{Customer: "c7"}, all[8:9]},
			"of an early one": {orders.Filter{Customer: "c0"}, all[:2]},
			"of a stranger":   {orders.Filter{Customer: "nobody"}, nil},
		} {
			c.f.Limit = size
			want := slices.SortedFunc(slices.Values(c.want), func(x, y uuid.UUID) int { return strings.Compare(x.String(), y.String()) })
			if got := s.pages(c.f); !slices.Equal(got, want) {
				t.Errorf("%s, by %d: %v, want %v", name, size, got, want)
			}
		}
	}
}

// pages lists the orders of a filter, each as Get reads it.
func (s *shop) pages(f orders.Filter) (ids []uuid.UUID) {
	s.Helper()
	for {
		page, err := s.Orders.List(s.ctx, "gig", f)
		if err != nil {
			s.Fatal(err)
		}
		for _, o := range page {
			if one := s.order(o.ID); o.Event != "gig" || o.Total != one.Total || o.Version != one.Version ||
				len(o.Operations) == 0 || len(o.Operations) != len(one.Operations) {
				s.Errorf("listed %+v, read %+v", o, one)
			}
			ids = append(ids, o.ID)
		}
		if len(page) < f.Limit {
			return ids
		}
		f.After = page[len(page)-1].ID
	}
}
