package seats

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tierledger/tierledger/ledger"
)

// plan is the chart of an event as decisions use it. It's never changed: another load
// makes another plan.
type plan struct {
	sections []*section
	rows     []*row
	ranked   []*row // the best first
	names    map[string]*section
	spots    map[string]spot // by label
}

// section is a section that was loaded.
type section struct {
	Section
	position int
	first    int    // number of its first row
	ranked   []*row // the best first
	version  ledger.Seq
	text     []byte // of one that's being loaded: its rows, as they're kept
}

// row is a row of seats; its number is its index in the plan.
type row struct {
	number  int
	section *section
	name    string
	rank    int
	labels  []string
	seats   []Seat
}

// spot is where a seat is.
type spot struct {
	row   *row
	place int // index in the row
}

// noPlan is that of an event without seats.
var noPlan = &plan{names: map[string]*section{}, spots: map[string]spot{}}

// with gives a plan with further sections.
func (p *plan) with(sections ...*section) *plan {
	if len(sections) == 0 {
		return p
	}
	next := &plan{
		sections: append(p.sections[:len(p.sections):len(p.sections)], sections...),
		rows:     p.rows[:len(p.rows):len(p.rows)],
		names:    maps.Clone(p.names),
		spots:    maps.Clone(p.spots),
	}
	for i, s := range sections {
		s.position, s.first = len(p.sections)+i, len(next.rows)
		next.names[s.Section.Section] = s
		for i := range s.Rows {
			next.add(s, i)
		}
		s.ranked = ranked(next.rowsOf(s))
	}
	next.ranked = ranked(next.rows)
	return next
}

// ranked orders rows: the lowest rank first, as they were loaded where that's the same.
func ranked(rows []*row) []*row {
	return slices.SortedFunc(slices.Values(rows), func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.number, b.number))
	})
}

// add makes a row of a section.
func (p *plan) add(s *section, index int) {
	given := &s.Rows[index]
	r := &row{number: len(p.rows), section: s, name: given.Row, rank: index, seats: given.Seats,
		labels: make([]string, len(given.Seats))}
	if given.Rank != nil {
		r.rank = *given.Rank
	}
	for i, seat := range given.Seats {
		r.labels[i] = Label(s.Section.Section, given.Row, seat.Seat)
		p.spots[r.labels[i]] = spot{r, i}
	}
	p.rows = append(p.rows, r)
}

// rowsOf gives the rows of a section.
func (p *plan) rowsOf(s *section) []*row { return p.rows[s.first : s.first+len(s.Rows)] }

func (s spot) tier() ledger.Unit { return s.row.section.Tier }
