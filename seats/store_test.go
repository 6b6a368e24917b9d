package seats_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

func TestSeatsAreHeldAllOrNone(t *testing.T) {
	h := openHall(t, chart(section("A", "front", 2, 5), section("B", "back", 1, 5)))
	first, err := h.place("ann", named("A-1-2", "B-1-1", "A-1-3"), holds.Line{Tier: "ga", Quantity: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Items) != 3 || !reflect.DeepEqual(first.Items[0].Seats, []string{"A-1-2", "A-1-3"}) || first.Items[1].Tier != "back" ||
		first.Total.Amount != 5*5000 {
		t.Errorf("got %+v", first)
	}
	_, err = h.place("bob", named("A-1-1", "A-1-2", "B-1-1"))
	if !errors.Is(err, seats.ErrSeatUnavailable) {
		t.Fatal(err)
	}
	want, _ := json.Marshal([]seats.Taken{{"A-1-2", "held", &first.ExpiresAt}, {"B-1-1", "held", &first.ExpiresAt}})
	if got, _ := json.Marshal(field(err, "seats")); string(got) != string(want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := h.place("bob", named("A-1-1")); err != nil {
		t.Error(err)
	}
	if _, err := h.Holds.Release(t.Context(), "tester", "r", first.ID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.place("bob", named("A-1-2", "B-1-1")); err != nil {
		t.Error(err)
	}
}

func TestBestAvailable(t *testing.T) {
	h := openHall(t, chart(section("A", "front", 2, 5), section("B", "back", 1, 4)))
	for i, want := range []string{"[A-1-1 A-1-2 A-1-3]", "[B-1-1 B-1-2]", "[A-2-1 A-2-2 A-2-3 A-2-4 A-2-5]"} {
		hold, err := h.place(fmt.Sprint("c", i), best(ledger.Amount([]int{3, 2, 5}[i])))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(hold.Items[0].Seats); got != want {
			t.Errorf("%d: got %s, want %s", i, got, want)
		}
	}
	_, err := h.place("z", best(3))
	if !errors.Is(err, seats.ErrNotTogether) || field(err, "largest_block") != 2 || field(err, "available") != 4 {
		t.Error(err, fault.As(err).Fields)
	}
	split := best(3)
	split.BestAvailable.AcceptSplit = true
	if _, err := h.place("z", split); err != nil {
		t.Error(err)
	}
	if _, err = h.place("z", split); !errors.Is(err, holds.ErrTemporarilyHeld) {
		t.Error(err)
	}
}

func TestStatementsFitTheSchema(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), seats.Statements, "sql.go")
}
