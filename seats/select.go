package seats

import (
	"slices"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Selection is what one request chooses of the seats that are free, line after line: a
// later line sees what the earlier ones took. Nothing changes by it.
type Selection struct {
	shelf *shelf
	view  *view
}

// Select begins the selection of a request that said what it wants; see Wanting.
func Select(s *ledger.State) *Selection {
	shelf := shelfOf(s)
	shelf.chart()
	return &Selection{shelf, &view{shelf: shelf, rows: make(map[int][]byte)}}
}

// view is the batch's rows as a request sees them while it's choosing.
type view struct {
	shelf *shelf
	rows  map[int][]byte // changed ones
}

// states gives the letters of a row; none when the row wasn't read, as nothing is free.
func (v *view) states(r *row) []byte {
	if changed, ok := v.rows[r.number]; ok {
		return changed
	}
	return v.shelf.rows[r.number]
}

// take makes seats no longer free in the view.
func (v *view) take(r *row, from, n int) {
	before := v.states(r)
	if before == nil {
		return // nobody chooses from it
	}
	after := slices.Clone(before)
	for i := from; i < from+n; i++ {
		after[i] = Held.letter()
	}
	v.rows[r.number] = after
}

// TierOf tells of which tier a seat is; false when the event has no such seat.
func (x *Selection) TierOf(label string) (ledger.Unit, bool) {
	at, ok := x.shelf.plan.spots[label]
	if !ok {
		return "", false
	}
	return at.tier(), true
}

// TierOfSection tells of which tier a section is; false when the event has no such section.
func (x *Selection) TierOfSection(name string) (ledger.Unit, bool) {
	s, ok := x.shelf.plan.names[name]
	if !ok {
		return "", false
	}
	return s.Tier, true
}

// Taken is a seat that can't be had, and why. It tells nothing of who has it.
type Taken struct {
	Seat        string     `json:"seat"`
	Reason      string     `json:"reason"`                  // sold, held, blocked or other_allotment
	MayReturnAt *time.Time `json:"may_return_at,omitempty"` // of a held one: end of its hold
}

// OtherAllotment is the reason for a seat that's set aside for somebody else.
const OtherAllotment = "other_allotment"

// Named takes seats by name, all or none. Errors: ErrSeatUnavailable, which names every
// seat that can't be had.
func (x *Selection) Named(labels []string, now time.Time) error {
	var taken []Taken
	for _, label := range labels {
		s, _ := x.shelf.find(label)
		if t, free := s.reason(label, now); !free {
			taken = append(taken, t)
		}
	}
	if len(taken) > 0 {
		return unavailable(taken)
	}
	for _, label := range labels {
		if at, ok := x.shelf.plan.spots[label]; ok {
			x.view.take(at.row, at.place, 1)
		}
	}
	return nil
}

func unavailable(taken []Taken) error {
	err := ErrSeatUnavailable.Because("%s is %s", taken[0].Seat, taken[0].Reason)
	if len(taken) > 1 {
		err = ErrSeatUnavailable.Because("%s is %s, and %d more aren't free", taken[0].Seat, taken[0].Reason, len(taken)-1)
	}
	return err.With("seats", taken)
}

// reason tells why a seat can't be had; true when it can.
func (s *seat) reason(label string, now time.Time) (Taken, bool) {
	t := Taken{Seat: label, Reason: string(s.state)}
	switch {
	case s.state == Available:
		return t, true
	case s.state == Held && s.until.After(now):
		t.MayReturnAt = new(s.until.UTC())
	case s.state == Blocked && s.allotment != "":
		t.Reason = OtherAllotment
	}
	return t, false
}

// Best takes the best available seats of the tiers that a function allows. It gives their
// labels, or else what there is.
func (x *Selection) Best(b Best, allowed func(ledger.Unit) bool) ([]string, Shortage) {
	candidates := x.shelf.plan.ranked
	if b.Section != "" {
		candidates = x.shelf.plan.names[b.Section].ranked
	}
	p := &pool{view: x.view, accessible: b.Accessible}
	for _, r := range candidates {
		tier := r.section.Tier
		if len(x.view.states(r)) > 0 && (b.Tier == "" || tier == b.Tier) && allowed(tier) {
			p.rows = append(p.rows, r)
		}
	}
	blocks, short := p.choose(int(b.Quantity), b.AcceptSplit)
	var labels []string
	for _, b := range blocks {
		labels = append(labels, b.labels()...)
	}
	return labels, short
}

// Required refuses a quantity of a tier that's sold by seat, and seats of one that isn't.
func Required(t *buckets.Tier, bySeat bool, field string) error {
	switch {
	case t.Seated && !bySeat:
		return ErrSeatsRequired.Because("%s: name the seats of %s, or ask for the best available", field, t.Tier).
			With("field", field).With("tier", t.Tier)
	case !t.Seated && bySeat:
		return fault.BadField(field, "%s is sold by quantity, not by seat", t.Tier)
	}
	return nil
}
