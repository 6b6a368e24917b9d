package cases_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/ledger"
)

// An event's cases are those of all its lanes, between which other events' may be.
func TestListsHaveTheCasesOfAllLanes(t *testing.T) {
	t.Parallel()
	b := openCabinet(t)
	split := func(lanes int) {
		t.Helper()
		if _, err := b.Quotas.Split(t.Context(), "tester", fmt.Sprint("split", lanes), "gig", lanes, "a rush", nil, false); err != nil {
			t.Fatal(err)
		}
	}
	split(2)
	if _, err := b.Events.Create(t.Context(), "tester", "between", buckets.Spec{Event: "between", Name: "Between", Currency: "USD",
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 1, Price: buckets.Money{Amount: 1, Currency: "USD"}}}}); err != nil {
		t.Fatal(err)
	}
	split(3)
	lanes, err := b.Events.Lanes(t.Context(), "gig")
	if err != nil || len(lanes) != 3 {
		t.Fatalf("%v %v", lanes, err)
	}
	of := map[string][]uuid.UUID{}
	for n := range 30 {
		event, journal := "gig", lanes[n%3]
		if n >= 24 {
			event = []string{"gala", "between"}[n%2]
			if journal, err = b.Events.Journal(t.Context(), event); err != nil {
				t.Fatal(err)
			}
		}
		of[event] = append(of[event], b.fileIn(t, fmt.Sprint("late", n), journal))
	}
	for _, size := range []int{1, 5, 24, 25} {
		for event, ids := range map[string][]uuid.UUID{
			"gig": of["gig"], "gala": of["gala"], "between": of["between"], "": slices.Concat(of["gig"], of["gala"], of["between"]),
		} {
			want := slices.SortedFunc(slices.Values(ids), func(x, y uuid.UUID) int { return strings.Compare(x.String(), y.String()) })
			if got := b.pages(t, cases.Filter{Event: event, Reason: cases.LatePayment, Limit: size}); !slices.Equal(got, want) {
				t.Errorf("%q, by %d: %v, want %v", event, size, got, want)
			}
			if got := b.pages(t, cases.Filter{Event: event, Status: cases.Resolved, Limit: size}); len(got) > 0 {
				t.Errorf("%q: %v are resolved", event, got)
			}
		}
	}
}

// fileIn opens a case in a journal.
func (b *cabinet) fileIn(t *testing.T, name string, journal ledger.JournalID) uuid.UUID {
	t.Helper()
	operation, order := uuid.New(), ledger.NewID(journal, "order", name)
	c := cases.Case{Reason: cases.LatePayment, OperationID: &operation, OrderID: &order, LastFact: name,
		Amount: buckets.Money{Amount: 5, Currency: "USD"}}
	if _, err := b.Ledger.Do(t.Context(), journal, ledger.Command{ID: ledger.NewID(journal, name), Principal: "tester",
		Body: &file{c}}); err != nil {
		t.Fatal(err)
	}
	return cases.ID(journal, cases.LatePayment, operation, 0)
}

// pages lists the cases of a filter.
func (b *cabinet) pages(t *testing.T, f cases.Filter) (ids []uuid.UUID) {
	t.Helper()
	for {
		page, err := b.Cases.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page {
			if f.Event != "" && c.Event != f.Event || c.Event == "" {
				t.Errorf("a case of %q among those of %q", c.Event, f.Event)
			}
			ids = append(ids, c.ID)
		}
		if len(page) < f.Limit {
			return ids
		}
		f.After = page[len(page)-1].ID
	}
}
