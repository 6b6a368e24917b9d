package seats

import (
	"context"
	"time"

	"github.com/tierledger/tierledger/ledger"
)

// Unchecked is the row of a change that nobody checks: only the database can refuse it.
func Unchecked(c Change) ledger.Row { return unchecked{c} }

type unchecked struct{ Change }

func (u unchecked) Keep(s *ledger.State) { shelfOf(s).apply(&u.Change, s.Head()) }

// Charts gives the charts that a store reads by.
func (s *Store) Charts() *Charts { return s.charts }

// Idle makes all charts as if nobody had used them for longer than they're kept.
func (c *Charts) Idle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.swept = time.Time{}
	for _, known := range c.byJournal {
		known.used = known.used.Add(-2 * forgetAfter)
	}
}

// Known counts the charts in memory.
func (c *Charts) Known() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byJournal)
}

// Idle makes all maps as if nobody had asked for them for longer than they're kept.
func (m *Maps) Idle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.swept = time.Time{}
	for _, h := range m.houses {
		h.asked = h.asked.Add(-2 * forgetAfter)
	}
}

// Known counts the maps in memory.
func (m *Maps) Known() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.houses)
}

// Still leaves the telling of a map's followers to Turn.
func (m *Maps) Still(ctx context.Context, event string) error {
	h, err := m.house(ctx, event)
	if err == nil {
		h.mu.Lock()
		h.following = true
		h.mu.Unlock()
	}
	return err
}

// Turn brings a map up to date and tells all its groups.
func (m *Maps) Turn(ctx context.Context, event string) error {
	h, err := m.house(ctx, event)
	if err == nil {
		for range groups {
			h.mu.Lock()
			h.checked = h.checked.Add(-turnEvery) // or it'd be young enough
			h.mu.Unlock()
			h.goOn()
		}
	}
	return err
}

// Groups is how many groups followers are told in.
const Groups = groups

// Statements are the package's SQL, for the test that prepares them and those that use
// them as a wrong process would.
var Statements = map[string]string{
	"sqlSections":      sqlSections,
	"sqlBatchSeats":    sqlBatchSeats,
	"sqlBatchRows":     sqlBatchRows,
	"sqlChangeSeats":   sqlChangeSeats,
	"sqlSummarize":     sqlSummarize,
	"sqlInsertChanges": sqlInsertChanges,
	"sqlSeat":          sqlSeat,
	"sqlHead":          sqlHead,
	"sqlChangesAfter":  sqlChangesAfter,
	"sqlRows":          sqlRows,
	"sqlInsertSection": sqlInsertSection,
	"sqlInsertRows":    sqlInsertRows,
	"sqlInsertSeats":   sqlInsertSeats,
}
