package seats

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// house is the map of one event in memory.
type house struct {
	maps    *Maps
	event   string
	journal ledger.JournalID
	asked   time.Time                // by the process's clock: the last time; the maps' mu guards it
	latest  atomic.Pointer[Snapshot] // the last that was rendered

	mu      sync.Mutex
	checked time.Time // by the process's clock: when it was last brought up to date
	asOf    time.Time // by the database's
	plan    *plan
	letters [][]byte   // of the plan's rows
	version ledger.Seq // of the last change of a seat
	head    ledger.Seq // of the journal
	heads   [][]byte   // of rows, as JSON

	recent []Delta    // all changes after a version, as many as a reader gets
	weight int        // seats of those
	first  ledger.Seq // that version

	groups    [groups]group
	turn      int // of the group that's told next
	following bool
}

// Delta is what an entry did to seats.
type Delta struct {
	Version ledger.Seq `json:"version"`
	State   State      `json:"state"`
	Seats   []string   `json:"seats"`
}

// Changes are what happened to seats, in order, up to a version.
type Changes struct {
	Event   string     `json:"event"`
	Version ledger.Seq `json:"version"`
	AsOf    time.Time  `json:"as_of"`
	Changes []Delta    `json:"changes"`
}

// refresh brings the map up to date, if it's older than some time. The caller holds mu.
func (h *house) refresh(ctx context.Context, age time.Duration) error {
	if !h.checked.IsZero() && time.Since(h.checked) < age {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := time.Now()
	fresh, err := h.catchUp(ctx)
	if err == nil && !fresh {
		err = h.load(ctx)
	}
	if err != nil {
		return pg.Fault(fmt.Errorf("read the map of %s: %w", h.event, err))
	}
	h.checked = began
	return nil
}

// upTo brings the map up to date for a reader who has seen a version: a hold's answer, or
// another process, may be ahead of it. The caller holds mu.
func (h *house) upTo(ctx context.Context, seen ledger.Seq) error {
	err := h.refresh(ctx, followEvery)
	if err == nil && seen > h.head {
		err = h.refresh(ctx, 0)
	}
	return err
}

// catchUp applies the changes since the last time. It reports false when that can't be
// done: the first time, after too many, or when the chart has grown.
func (h *house) catchUp(ctx context.Context) (bool, error) {
	if h.checked.IsZero() {
		return false, nil
	}
	var head ledger.Seq
	var asOf time.Time
	var deltas []Delta
	q := &pgx.Batch{}
	q.Queue(sqlHead, int64(h.journal)).QueryRow(func(row pgx.Row) error { return row.Scan(&head, &asOf) })
	q.Queue(sqlChangesAfter, int64(h.journal), int64(h.version), MaxChanges+1, maxChangedSeats).Query(collect(&deltas))
	if err := h.maps.reads.SendBatch(ctx, q).Close(); err != nil {
		return false, err
	}
	if tooMany(deltas) || !h.knows(deltas) {
		return false, nil
	}
	for _, d := range deltas {
		for _, label := range d.Seats {
			at := h.plan.spots[label]
			h.letters[at.row.number][at.place] = d.State.letter()
		}
		h.version = d.Version
	}
	h.remember(deltas)
	h.head, h.asOf = max(head, h.version), asOf.UTC()
	return true, nil
}

// tooMany tells whether changes are more than a reader gets.
func tooMany(deltas []Delta) bool {
	return len(deltas) > MaxChanges || seatsOf(deltas) > maxChangedSeats
}

// seatsOf counts the seats of changes, one of several changes as often.
func seatsOf(deltas []Delta) (n int) {
	for i := range deltas {
		n += len(deltas[i].Seats)
	}
	return n
}

// knows tells whether the chart has all seats that changed.
func (h *house) knows(deltas []Delta) bool {
	for _, d := range deltas {
		for _, label := range d.Seats {
			if _, ok := h.plan.spots[label]; !ok {
				return false
			}
		}
	}
	return true
}

// remember keeps the last changes, for readers that are a little behind.
func (h *house) remember(deltas []Delta) {
	h.recent = append(h.recent, deltas...)
	h.weight += seatsOf(deltas)
	drop := 0
	for len(h.recent)-drop > MaxChanges || h.weight > maxChangedSeats {
		h.weight -= len(h.recent[drop].Seats)
		h.first = h.recent[drop].Version
		drop++
	}
	if drop > 0 {
		h.recent = append([]Delta(nil), h.recent[drop:]...)
	}
}

// load reads the whole map, of one moment. Whoever follows must do so too.
func (h *house) load(ctx context.Context) error {
	known := h.maps.charts.of(h.journal)
	tx, err := h.maps.reads.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // it has only read
	var sections []*section
	var letters [][]byte
	var head, version ledger.Seq
	var asOf time.Time
	q := &pgx.Batch{}
	q.Queue(sqlHead, int64(h.journal)).QueryRow(func(row pgx.Row) error { return row.Scan(&head, &asOf) })
	q.Queue(sqlSections, int64(h.journal), len(known.sections)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			s, err := scanSection(rows)
			if err != nil {
				return err
			}
			sections = append(sections, s)
		}
		return rows.Err()
	})
	q.Queue(sqlRows, int64(h.journal)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var states string
			var of ledger.Seq
			if err := rows.Scan(&states, &of); err != nil {
				return err
			}
			letters, version = append(letters, []byte(states)), max(version, of)
		}
		return rows.Err()
	})
	if err := tx.SendBatch(ctx, q).Close(); err != nil {
		return err
	}
	h.dropAll()
	h.plan, h.letters, h.version, h.head, h.asOf = h.maps.charts.extend(h.journal, known, sections), letters, version, head, asOf.UTC()
	h.recent, h.weight, h.first, h.heads = nil, 0, version, headsOf(h.plan)
	h.latest.Store(nil)
	return nil
}

// since gives the changes after a version: from memory, or else from the journal. The
// caller holds mu.
func (h *house) since(ctx context.Context, after ledger.Seq) ([]Delta, error) {
	switch loaded := h.plan.version(); {
	case after > h.head:
		return nil, h.gap("version %d is still to come", after)
	case after < loaded:
		return nil, h.gap("the chart has changed since version %d", after)
	case after >= h.first:
		return h.recentAfter(after), nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var older []Delta
	q := &pgx.Batch{}
	q.Queue(sqlChangesAfter, int64(h.journal), int64(after), MaxChanges+1, maxChangedSeats).Query(collect(&older))
	if err := h.maps.reads.SendBatch(ctx, q).Close(); err != nil {
		return nil, pg.Fault(fmt.Errorf("read the changes of %s: %w", h.event, err))
	}
	if tooMany(older) {
		return nil, h.gap("too much has happened since version %d", after)
	}
	for i, d := range older {
		if d.Version > h.version { // the map doesn't have it yet
			older = older[:i]
			break
		}
	}
	h.recent, h.weight, h.first = older, seatsOf(older), after // whoever comes next may be as far behind
	return older, nil
}

func (h *house) gap(format string, args ...any) error {
	return ErrGap.Because(format, args...).With("version", h.version)
}

// recentAfter gives the remembered changes after a version.
func (h *house) recentAfter(after ledger.Seq) []Delta {
	for i := len(h.recent); i > 0; i-- {
		if h.recent[i-1].Version <= after {
			return h.recent[i:]
		}
	}
	return h.recent
}

// version is the seq of the last entry that loaded sections; 0 for none.
func (p *plan) version() ledger.Seq {
	if len(p.sections) == 0 {
		return 0
	}
	return p.sections[len(p.sections)-1].version
}

// collect reads changes.
func collect(into *[]Delta) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var d Delta
			if err := rows.Scan(&d.Version, &d.State, &d.Seats); err != nil {
				return err
			}
			*into = append(*into, d)
		}
		return rows.Err()
	}
}

// changes makes a list of changes complete.
func (h *house) changes(list []Delta) Changes {
	if list == nil {
		list = []Delta{}
	}
	return Changes{Event: h.event, Version: h.version, AsOf: h.asOf, Changes: list}
}
