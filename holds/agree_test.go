package holds

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// How a house compares with its model.

// states gives what each seat must be: of an open hold, sold, blocked, or else available.
func (h *house) states(r *rapid.T) map[string]seats.State {
	states := make(map[string]seats.State)
	set := func(label string, to seats.State) {
		if was, ok := states[label]; ok {
			r.Fatalf("%s is %s and %s", label, was, to)
		}
		states[label] = to
	}
	for _, id := range h.holds {
		if hold := h.first.shelf.holds[id]; hold.Status.Claims() {
			for _, label := range Seats(hold.Items) {
				set(label, seats.Held)
			}
		}
	}
	for label := range h.sold {
		set(label, seats.Sold)
	}
	for label, blocked := range h.blocked {
		if blocked {
			set(label, seats.Blocked)
		}
	}
	for _, label := range h.labels() {
		if _, ok := states[label]; !ok {
			states[label] = seats.Available
		}
	}
	return states
}

// check compares seats, accounts, and the letters of the rows with the model.
func (h *house) check(r *rapid.T) {
	// What is due happens before anyone asks.
	nothing := func(*ledger.State) (ledger.Decision, error) { return ledger.Decision{}, nil }
	if _, err := h.both(r, func(j *journal) (ledger.Receipt, error) { return ledger.Receipt{}, j.decide(nothing) }); err != nil {
		r.Fatal(err)
	}
	states := h.states(r)
	for _, tier := range seated {
		for _, state := range seats.States() {
			n := ledger.Amount(0)
			for label, is := range states {
				if is == state && tierOf(label) == tier {
					n++
				}
			}
			if got := h.first.Balance(string(state), tier); got != n {
				r.Fatalf("%d of %s are %s, the account has %d", n, tier, state, got)
			}
		}
	}
	for _, customer := range customers {
		used := h.first.Balance(ledger.HeldBy(customer), "front") + h.first.Balance(ledger.SoldTo(customer), "front")
		if used > ledger.Amount(h.limit) {
			r.Fatalf("%s has %d, the limit is %d", customer, used, h.limit)
		}
	}
	err := h.first.decide(func(s *ledger.State) (ledger.Decision, error) { return ledger.Decision{}, h.compare(s, states) })
	if err != nil {
		r.Fatal(err)
	}
}

// compare asks for every seat, and for more of every section than it can have.
func (h *house) compare(s *ledger.State, states map[string]seats.State) error {
	for label, state := range states {
		err := seats.Select(s).Named([]string{label}, s.Now)
		reason := string(seats.Available)
		if f := fault.As(err); f != nil {
			reason = f.Fields[0].Value.([]seats.Taken)[0].Reason
		}
		if reason != string(state) {
			return fmt.Errorf("%s is %s, want %s", label, reason, state)
		}
	}
	for _, section := range h.sections {
		for _, accessible := range []bool{false, true} {
			want := map[seats.State]int{}
			for _, row := range section.Rows {
				for _, seat := range row.Seats {
					if seat.Accessible == accessible {
						want[states[seats.Label(section.Section, row.Row, seat.Seat)]]++
					}
				}
			}
			_, short := seats.Select(s).Best(seats.Best{Section: section.Section, Quantity: 1_000, Accessible: accessible},
				func(ledger.Unit) bool { return true })
			if short.Free != want[seats.Available] || short.Held != want[seats.Held] {
				return fmt.Errorf("the rows of %s have %+v, want %v", section.Section, short, want)
			}
		}
	}
	return nil
}
