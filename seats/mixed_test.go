package seats_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// mixer makes commands of all kinds about few seats, so that a batch has many of each.
type mixer struct {
	*hall
	luck   *rand.Rand
	placed []string // keys
	charts int
}

// label gives a seat that there is, but for a few.
func (m *mixer) label() string {
	return fmt.Sprintf("S%d-%d-%d", m.luck.IntN(m.charts), m.luck.IntN(2)+1, m.luck.IntN(5)+1)
}

func (m *mixer) labels(most int) (list []string) {
	for range 1 + m.luck.IntN(most) {
		list = append(list, m.label())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// next gives a command.
func (m *mixer) next() func() error {
	ctx, key := context.Background(), m.key()
	switch n := m.luck.IntN(20); {
	case n < 5 && len(m.placed) > 0:
		id := ledger.NewID(gigJournal, "tester", m.placed[m.luck.IntN(len(m.placed))])
		return func() error { return m.release(id) }
	case n < 7:
		r, do := seats.BlockRequest{Seats: m.labels(2), Reason: "camera"}, m.Seats.Block
		if m.luck.IntN(2) == 0 {
			do = m.Seats.Unblock
		}
		return func() error { _, err := do(ctx, "tester", key, "gig", r, false); return err }
	case n == 7 && m.charts < 20:
		c := *chart(section(fmt.Sprint("S", m.charts), []ledger.Unit{"front", "back"}[m.charts%2], 2, 4))
		m.charts++
		return func() error { _, err := m.Seats.Load(ctx, "tester", key, "gig", c); return err }
	case n < 13:
		lines := []holds.Line{named(m.labels(3)...)}
		if n == 12 {
			lines = append(lines, best(ledger.Amount(1+m.luck.IntN(2))))
		}
		m.placed = append(m.placed, key)
		return func() error { _, err := m.placeAs(key, "ann", lines...); return err }
	}
	b := seats.Best{Quantity: ledger.Amount(1 + m.luck.IntN(4)), AcceptSplit: m.luck.IntN(2) == 0}
	switch m.luck.IntN(3) {
	case 0:
		b.Tier = "back"
	case 1:
		b.Section = fmt.Sprint("S", m.luck.IntN(m.charts))
	}
	m.placed = append(m.placed, key)
	return func() error { _, err := m.placeAs(key, "bob", holds.Line{BestAvailable: &b}); return err }
}

// Batches of everything at once, about few seats, by turns of two processes: whatever a
// batch has read and whatever it did before, it's written, or refused with a reason.
func TestBatchesOfEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := openHall(t, chart(section("S0", "front", 2, 4), section("S1", "back", 2, 4)))
			m := &mixer{luck: rand.New(rand.NewPCG(seed, 7)), charts: 2}
			processes := []*hall{h, h.another()}
			refused := make(map[string]int)
			for round := range 12 {
				m.hall = processes[round%2]
				asks := make([]func() error, 50)
				for i := range asks {
					asks[i] = m.next()
				}
				if round%3 == 2 {
					h.runOut()
				}
				for _, err := range m.oneBatch(asks...) {
					if f := fault.As(err); err != nil && f == nil {
						t.Error(err)
					} else if err != nil {
						refused[f.Code]++
					}
				}
			}
			t.Logf("600 commands, refused %v", refused)
			for code := range refused {
				if !slices.Contains([]string{"seat_not_found", "section_not_found", "seat_unavailable", "not_blocked", "not_together",
					"temporarily_held", "sold_out", "hold_not_found"}, code) {
					t.Errorf("refused with %s", code)
				}
			}
		})
	}
}
