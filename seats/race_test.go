package seats_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// T13: two customers want the same seat, each through a process of its own: one gets it,
// and the other is told that it's held.
func TestT13TwoCustomersOneSeat(t *testing.T) {
	t.Parallel()
	const rounds = 25
	h := openHall(t, chart(section("A", "front", 1, rounds)))
	processes := []*hall{h, h.another()}
	for round := range rounds {
		label := fmt.Sprint("A-1-", round+1)
		granted, refused := pgtest.Rush(2, func(i int) error {
			_, err := processes[i].place(fmt.Sprint("c", i), named(label))
			return err
		})
		if granted != 1 || refused["seat_unavailable"] != 1 {
			t.Fatalf("%s: %d granted, %v", label, granted, refused)
		}
	}
}

// T1: one seat is left and fifty want it, by name, as the best, or with something else: one
// gets it.
func TestT1OneSeatLeft(t *testing.T) {
	t.Parallel()
	split := best(1)
	split.BestAvailable.AcceptSplit = true
	for name, lines := range map[string][]holds.Line{
		"by name":         {named("B-1-1")},
		"the best":        {best(1)},
		"of its section":  {{BestAvailable: &seats.Best{Quantity: 1, Section: "B"}}},
		"of its tier":     {{BestAvailable: &seats.Best{Quantity: 1, Tier: "back"}}},
		"split":           {split},
		"beside tickets":  {{Tier: "ga", Quantity: 1}, best(1)},
		"after the other": {named("B-1-1"), {Tier: "ga", Quantity: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t, chart(section("A", "front", 1, 2), section("B", "back", 1, 1)))
			h.take("ann", named("A-1-1", "A-1-2"))
			processes := []*hall{h, h.another()}
			granted, refused := pgtest.Rush(50, func(i int) error {
				_, err := processes[i%2].place(fmt.Sprint("c", i), lines...)
				return err
			})
			if granted != 1 || refused["seat_unavailable"]+refused["temporarily_held"] != 49 {
				t.Errorf("%d granted, %v", granted, refused)
			}
			h.want("hh h")
		})
	}
}

// One seat and five thousand clients, who reach it through two processes: one hold, and
// everybody else is told why and until when.
func TestOneSeatForFiveThousand(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 1, 3)))
	processes := []*hall{h, h.another()}
	var mu sync.Mutex
	var told []error
	granted, refused := pgtest.Rush(5_000, func(i int) error {
		_, err := processes[i%2].place(fmt.Sprint("c", i), named("A-1-2"))
		if err != nil {
			mu.Lock()
			told = append(told, err)
			mu.Unlock()
		}
		return err
	})
	if granted != 1 || refused["seat_unavailable"] != 4_999 {
		t.Fatalf("%d granted, %v", granted, refused)
	}
	for _, err := range told {
		taken, _ := field(err, "seats").([]seats.Taken)
		if len(taken) != 1 || taken[0].Seat != "A-1-2" || taken[0].Reason != "held" || taken[0].MayReturnAt == nil {
			t.Fatalf("told %+v", taken)
		}
	}
	h.want("aha")
}

// crowd is parties of 1 to 6 who take the best seats, one after the other until there are
// none, and what they were answered.
type crowd struct {
	mu      sync.Mutex
	of      map[string]string // holders by seat
	asked   int
	refused map[string]int
	enough  int // refusals while as many seats were free as were asked
}

// buy has a buyer take seats until one can't be had.
func (c *crowd) buy(t *testing.T, h *hall, buyer int, split bool) {
	luck := rand.New(rand.NewPCG(16, uint64(buyer)))
	for party := 1 + luck.IntN(6); party > 0; {
		line := best(ledger.Amount(party))
		line.BestAvailable.AcceptSplit = split
		hold, err := h.place(fmt.Sprint("c", buyer), line)
		if !c.note(t, hold, err, party) {
			party--
			continue
		}
		party = 1 + luck.IntN(6)
	}
}

// note remembers an answer, and tells whether it was a yes.
func (c *crowd) note(t *testing.T, hold holds.Hold, err error, party int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if f := fault.As(err); err != nil {
		if f == nil {
			t.Error(err)
			return false
		}
		c.refused[f.Code]++
		if free, _ := field(err, "available").(int); free >= party {
			c.enough++
		}
		return false
	}
	labels := holds.Seats(hold.Items)
	if len(labels) != party {
		t.Errorf("hold %s of %d has %v", hold.ID, party, labels)
	}
	for _, label := range labels {
		if other, ok := c.of[label]; ok {
			t.Errorf("%s is of hold %s and of %s", label, other, hold.ID)
		}
		c.of[label] = hold.ID.String()
	}
	return true
}

// T16: 8,000 seats and 160 buyers of the best available, in parties of 1 to 6, until
// nothing is left: no seat is given twice, every seat is given, and less than 1 % are refused
// while there are enough; of those who accept a split, nobody.
func TestT16BestAvailableUntilFull(t *testing.T) {
	t.Parallel()
	for _, split := range []bool{true, false} {
		t.Run(fmt.Sprint("split ", split), func(t *testing.T) {
			t.Parallel()
			h := openHall(t, chart(section("A", "front", 80, 50), section("B", "back", 80, 50)))
			c := &crowd{of: make(map[string]string), refused: make(map[string]int)}
			pgtest.Rush(160, func(i int) error {
				c.buy(t, h, i, split)
				return nil
			})
			t.Logf("%d asked, refused %v, %d of them while enough seats were free", c.asked, c.refused, c.enough)
			if len(c.of) != 8_000 {
				t.Errorf("%d seats were given", len(c.of))
			}
			if split && c.enough > 0 || c.enough*100 >= c.asked {
				t.Errorf("%d of %d were refused while enough seats were free", c.enough, c.asked)
			}
			for code := range c.refused {
				if code != "temporarily_held" && (split || code != "not_together") {
					t.Errorf("refused with %s", code)
				}
			}
		})
	}
}

// T17: holds that name overlapping seats in opposite orders, and releases between them:
// each is granted or told which seats it can't have, and nothing else.
func TestT17OverlappingGroupsInOppositeOrders(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 2, 6), section("B", "back", 2, 6)))
	processes := []*hall{h, h.another()}
	var all []string
	for _, section := range []string{"A", "B"} {
		for i := range 12 {
			all = append(all, fmt.Sprintf("%s-%d-%d", section, i/6+1, i%6+1))
		}
	}
	granted, refused := pgtest.Rush(600, func(i int) error {
		group := slices.Clone(all[i%19 : i%19+6])
		if i%2 == 1 {
			slices.Reverse(group)
		}
		hold, err := processes[i/2%2].place(fmt.Sprint("c", i), named(group...))
		if err == nil {
			err = processes[i%2].release(hold.ID)
		}
		return err
	})
	t.Logf("%d granted, %v", granted, refused)
	if len(refused) > 1 || len(refused) == 1 && refused["seat_unavailable"] == 0 || granted < 1 {
		t.Errorf("%d granted, %v", granted, slices.Sorted(maps.Keys(refused)))
	}
	h.want("aaaaaa aaaaaa aaaaaa aaaaaa")
}

// Those who name seats and those who take the best, at once and through two processes, with
// seats that are blocked and put back meanwhile.
func TestNamesAndTheBestAtOnce(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 4, 10)))
	processes := []*hall{h, h.another()}
	granted, refused := pgtest.Rush(300, func(i int) error {
		p := processes[i%2]
		label := fmt.Sprintf("A-%d-%d", i%4+1, i%10+1)
		switch i % 5 {
		case 0:
			r := seats.BlockRequest{Seats: []string{label}, Reason: "camera"}
			if _, err := p.Seats.Block(t.Context(), "tester", p.key(), "gig", r, false); err != nil {
				return err
			}
			_, err := p.Seats.Unblock(t.Context(), "tester", p.key(), "gig", r, false)
			return err
		case 1, 2:
			_, err := p.place(fmt.Sprint("c", i), named(label), best(2))
			return err
		}
		hold, err := p.place(fmt.Sprint("c", i), best(3))
		if err == nil && i%2 == 0 {
			err = p.release(hold.ID)
		}
		return err
	})
	for code := range refused {
		if !slices.Contains([]string{"seat_unavailable", "temporarily_held", "not_together", "sold_out"}, code) {
			t.Errorf("refused with %s", code)
		}
	}
	if granted == 0 {
		t.Error("nobody got anything")
	}
	for {
		_, err := h.place("last", best(1))
		if errors.Is(err, holds.ErrTemporarilyHeld) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h.want("hhhhhhhhhh hhhhhhhhhh hhhhhhhhhh hhhhhhhhhh")
}
