package holds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

// Lists have the holds of all lanes, in pages that don't care where a lane ends, and of a
// lane that was made between two pages.
func TestListsHaveTheHoldsOfAllLanes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := pgtest.New(t)
	s := pgtest.Stores(t, db, nil)
	b := &box{Store: s.Holds, db: db, events: s.Events}
	if _, err := s.Events.Create(ctx, "tester", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD",
		HoldSeconds: day, LimitPerCustomer: new(int64(4)), Tiers: []buckets.TierSpec{tier("ga", 200)}}); err != nil {
		t.Fatal(err)
	}
	split := func(lanes int) {
		t.Helper()
		if _, err := s.Quotas.Split(ctx, "tester", fmt.Sprint("split", lanes), "gig", lanes, "a rush", nil, false); err != nil {
			t.Fatal(err)
		}
	}
	split(3)
	var all []uuid.UUID
	of := make(map[string][]uuid.UUID)
	in := make(map[ledger.JournalID]int)
	hold := func(customer string) {
		t.Helper()
		id, err := b.take(customer, holds.Line{Tier: "ga", Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		journal, _ := ledger.JournalOf(id)
		in[journal]++
		all, of[customer] = append(all, id), append(of[customer], id)
	}
	for range 2 {
		for n := range 30 {
			hold(fmt.Sprint("c", n))
		}
	}
	if len(in) != 3 {
		t.Fatalf("the holds are in %v, want three lanes", in)
	}
	released := slices.Clone(all[:20])
	for _, id := range released {
		if _, err := s.Holds.Release(ctx, "tester", id.String(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{1, 7, 20, 60, 61} {
		for name, c := range map[string]struct {
			f    holds.Filter
			want []uuid.UUID
		}{
			"all":                        {holds.Filter{}, all},
			"that are held":              {holds.Filter{Status: holds.Held}, all[20:]},
			"that were released":         {holds.Filter{Status: holds.Released}, released},
			"of a customer":              {holds.Filter{Customer: "c5"}, of["c5"]},
			"of a customer and released": {holds.Filter{Customer: "c5", Status: holds.Released}, of["c5"][:1]},
			"that ran out":               {holds.Filter{Status: holds.Expired}, nil},
		} {
			c.f.Limit = size
			if got := b.pages(t, c.f); !slices.Equal(got, ordered(c.want)) {
				t.Errorf("%s, by %d: %v, want %v", name, size, got, ordered(c.want))
			}
		}
	}

	first, err := s.Holds.List(ctx, "gig", holds.Filter{Limit: 50})
	if err != nil || len(first) != 50 || first[0].Event != "gig" || first[0].Total.Currency != "USD" {
		t.Fatalf("%d %v %+v", len(first), err, first[:1])
	}
	split(8)
	for n := range 30 {
		hold(fmt.Sprint("late", n))
	}
	var got []uuid.UUID
	for _, h := range first {
		got = append(got, h.ID)
	}
	rest := b.pages(t, holds.Filter{After: got[49], Limit: 7})
	for _, id := range ordered(all[60:]) { // those in a lane that the pages have left behind aren't on later ones
		if strings.Compare(id.String(), got[49].String()) > 0 && !slices.Contains(rest, id) {
			t.Errorf("%s is missing", id)
		}
	}
	if want := ordered(all[:60])[50:]; slices.ContainsFunc(want, func(id uuid.UUID) bool { return !slices.Contains(rest, id) }) {
		t.Errorf("%v, want all of %v", rest, want)
	}
}

func ordered(ids []uuid.UUID) []uuid.UUID {
	return slices.SortedFunc(slices.Values(ids), func(x, y uuid.UUID) int { return strings.Compare(x.String(), y.String()) })
}
