package seats

import (
	"strings"
	"time"

	"github.com/tierledger/tierledger/ledger"
)

// Write queues the loaded sections, and what decisions did to seats.
func (s *shelf) Write(q *ledger.Writes) {
	for _, section := range s.loaded {
		s.queueSection(q, section)
	}
	if len(s.changes) == 0 {
		return
	}
	var touched columns
	for wave := 0; ; wave++ {
		c := s.wave(wave)
		if len(c.labels) == 0 {
			break
		}
		q.Queue(sqlChangeSeats, c.labels, c.states, c.holds, c.untils, c.allotments, c.versions)
		touched.labels = append(touched.labels, c.labels...)
		touched.versions = append(touched.versions, c.versions...)
	}
	q.Queue(sqlSummarize, touched.labels, touched.versions)
	s.queueChanges(q)
}

// columns are changes of seats as arrays, of basic types: pgx encodes those without
// reflection.
type columns struct {
	labels, states, allotments []string
	holds                      [][16]byte
	untils                     []*time.Time
	versions                   []int64
}

// wave gives each seat's change of a number: a statement can't change a row twice.
func (s *shelf) wave(number int) (c columns) {
	for i := range s.changes {
		r := &s.changes[i]
		for n, label := range r.Seats {
			if r.waves[n] != number {
				continue
			}
			c.labels = append(c.labels, label)
			c.states = append(c.states, string(r.To))
			c.holds = append(c.holds, r.Hold)
			c.untils = append(c.untils, r.Until)
			c.allotments = append(c.allotments, r.Allotment)
			c.versions = append(c.versions, int64(r.seq))
		}
	}
	return c
}

// queueChanges queues the lines of the entries that changed seats.
func (s *shelf) queueChanges(q *ledger.Writes) {
	n := len(s.changes)
	seqs, lines, states := make([]int64, n), make([]int16, n), make([]string, n)
	holds, labels := make([][16]byte, n), make([]string, n)
	for i := range s.changes {
		r := &s.changes[i]
		if i > 0 && s.changes[i-1].seq == r.seq {
			lines[i] = lines[i-1] + 1
		}
		seqs[i], states[i], holds[i], labels[i] = int64(r.seq), string(r.To), r.Hold, strings.Join(r.Seats, " ")
	}
	q.Queue(sqlInsertChanges, seqs, lines, states, holds, labels)
}

// queueSection queues a section that was loaded, its rows and its seats.
func (s *shelf) queueSection(q *ledger.Writes, section *section) {
	q.Queue(sqlInsertSection, section.Section.Section, section.position, section.Name, string(section.Tier),
		string(section.text), int64(section.version))
	var numbers, rows []int32
	var states, labels []string
	var places []int16
	for _, r := range s.plan.rowsOf(section) {
		numbers = append(numbers, int32(r.number))
		states = append(states, strings.Repeat(string(Available.letter()), len(r.labels)))
		for place, label := range r.labels {
			labels, rows, places = append(labels, label), append(rows, int32(r.number)), append(places, int16(place))
		}
	}
	q.Queue(sqlInsertRows, section.Section.Section, string(section.Tier), int64(section.version), numbers, states)
	q.Queue(sqlInsertSeats, string(section.Tier), int64(section.version), labels, rows, places)
	q.Queue(sqlInsertChanges, []int64{int64(section.version)}, []int16{int16(section.position)},
		[]string{string(Available)}, [][16]byte{{}}, []string{strings.Join(labels, " ")})
}
