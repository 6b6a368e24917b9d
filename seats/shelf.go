package seats

import (
	"bytes"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// Wanting is a command's body that needs seats; those are read with the batch.
type Wanting interface{ Wants() Want }

// Want says which seats a decision looks at; none, when it's empty.
type Want struct {
	Seats []string // by label
	Best  []Best   // by what may be chosen from
	Chart bool     // the chart alone
}

// shelf holds the seats of one batch: those that commands name, and the rows from which
// they may choose.
type shelf struct {
	journal ledger.JournalID
	charts  *Charts
	plan    *plan
	seats   map[string]*seat // by label: those that were read or changed
	rows    map[int][]byte   // letters of the rows that were read, by number

	fresh   []*section // of the chart, just read
	loaded  []*section // by a decision
	changes []recorded
}

// recorded is a change in the entry that makes it.
type recorded struct {
	Change
	seq   ledger.Seq
	waves []int // of each seat: how often this batch has changed it before
}

// Shelf makes an empty shelf for a batch.
func (c *Charts) Shelf() ledger.Shelf { return newShelf(c) }

func newShelf(c *Charts) *shelf {
	return &shelf{charts: c, plan: noPlan, seats: make(map[string]*seat), rows: make(map[int][]byte)}
}

func shelfOf(s *ledger.State) *shelf { return ledger.ShelfOf[*shelf](s) }

// Read queues what's new in the chart, the seats that commands name, and the rows from
// which they may choose.
func (s *shelf) Read(q *ledger.Reads) {
	if q.Journal == ledger.System {
		return
	}
	s.journal = q.Journal
	var all Want
	for _, c := range q.Commands {
		if w, ok := c.Body.(Wanting); ok {
			want := w.Wants()
			all.Seats, all.Best = append(all.Seats, want.Seats...), append(all.Best, want.Best...)
			all.Chart = all.Chart || want.Chart || len(want.Seats) > 0 || len(want.Best) > 0
		}
	}
	if all.Chart {
		s.plan = s.charts.of(q.Journal)
		s.readChart(q)
	}
	if len(all.Seats) > 0 {
		q.Queue(s.scan, sqlBatchSeats, all.Seats)
	}
	if len(all.Best) > 0 {
		sections, tiers, anywhere := poolsOf(all.Best)
		q.Queue(func(rows pgx.Rows) error {
			var number int
			var states string
			err := rows.Scan(&number, &states)
			s.rows[number] = []byte(states)
			return err
		}, sqlBatchRows, sections, tiers, anywhere)
	}
}

// readChart queues the sections that this process doesn't know.
func (s *shelf) readChart(q *ledger.Reads) {
	q.Queue(func(rows pgx.Rows) error {
		section, err := scanSection(rows)
		s.fresh = append(s.fresh, section)
		return err
	}, sqlSections, len(s.plan.sections))
}

// poolsOf tells which rows requests may choose from: those of some sections, those of some
// tiers, or all.
func poolsOf(best []Best) (sections, tiers []string, anywhere bool) {
	for _, b := range best {
		switch {
		case b.Section != "":
			sections = append(sections, b.Section)
		case b.Tier != "":
			tiers = append(tiers, string(b.Tier))
		default:
			anywhere = true
		}
	}
	return sections, tiers, anywhere
}

// Columns are those of a seat, by the name of s, as Queue takes them.
const Columns = `s.seat, s.state, coalesce(s.hold_id, ` + noHold + `), s.until, s.allotment`

// Queue adds a query for the seats to which another package's rows lead. It gives Columns.
func Queue(q *ledger.Reads, sql string, args ...any) {
	q.Queue(ledger.ShelfIn[*shelf](q).scan, sql, args...)
}

func (s *shelf) scan(rows pgx.Rows) error {
	var label string
	seat := &seat{}
	err := rows.Scan(&label, &seat.state, &seat.hold, &seat.until, &seat.allotment)
	s.seats[label] = seat
	return err
}

// chart gives the plan with what was just read of it.
func (s *shelf) chart() *plan {
	if len(s.fresh) > 0 {
		s.plan, s.fresh = s.charts.extend(s.journal, s.plan, s.fresh), nil
	}
	return s.plan
}

// find gives a seat as the batch left it so far; false when it isn't there, or wasn't asked
// for.
func (s *shelf) find(label string) (seat, bool) {
	at, charted := s.chart().spots[label]
	if known := s.seats[label]; known != nil {
		found := *known
		found.spot = at
		return found, true
	}
	if !charted || s.rows[at.row.number] == nil {
		return seat{}, false
	}
	return seat{spot: at, state: stateOf(s.rows[at.row.number][at.place])}, true
}

// check tells whether a change is legal for all its seats.
func (s *shelf) check(c *Change) error {
	for _, label := range c.Seats {
		found, ok := s.find(label)
		switch {
		case !ok:
			return fmt.Errorf("seats: %s isn't there, and can't become %s", label, c.To)
		case !found.legal(c):
			return fmt.Errorf("seats: %s is %s of hold %s, and can't become %s of hold %s", label, found.state, found.hold, c.To, c.Hold)
		}
	}
	return nil
}

// apply makes the seats of a change what it says, in the entry of a seq.
func (s *shelf) apply(c *Change, seq ledger.Seq) {
	if len(c.Seats) == 0 {
		return
	}
	record := recorded{*c, seq, make([]int, len(c.Seats))}
	for i, label := range c.Seats {
		was, _ := s.find(label)
		record.waves[i] = was.changes
		s.seats[label] = &seat{state: c.To, hold: c.Hold, until: c.Until, allotment: c.Allotment, changes: was.changes + 1}
		if at := was.spot; at.row != nil && s.rows[at.row.number] != nil {
			s.rows[at.row.number][at.place] = c.To.letter()
		}
	}
	s.changes = append(s.changes, record)
}

// Due is empty: seats come back with their holds.
func (s *shelf) Due(time.Time) ([]ledger.Command, bool) { return nil, false }

// Accounts is empty: the commands name theirs.
func (s *shelf) Accounts(time.Time) []string { return nil }

// The rows that decisions change.
type (
	changeRow struct{ Change }
	loadRow   struct{ sections []*section }
)

// Changed is the row of a change of seats, for the decision that makes it. The seats must
// have been read; a change of none is none.
func Changed(c Change) ledger.Checked { return changeRow{c} }

// Check refuses a change that isn't legal.
func (r changeRow) Check(s *ledger.State) error { return shelfOf(s).check(&r.Change) }

// Keep records the change of seats.
func (r changeRow) Keep(s *ledger.State) { shelfOf(s).apply(&r.Change, s.Head()) }

// Keep records the sections and their seats.
func (r loadRow) Keep(s *ledger.State) {
	shelf := shelfOf(s)
	shelf.plan = shelf.chart().with(r.sections...)
	for _, section := range r.sections {
		section.version = s.Head()
		shelf.loaded = append(shelf.loaded, section)
		for _, row := range shelf.plan.rowsOf(section) {
			shelf.rows[row.number] = bytes.Repeat([]byte{Available.letter()}, len(row.labels))
		}
	}
}
