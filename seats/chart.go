package seats

import (
	"fmt"
	"strings"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Limits of a chart.
const (
	MaxSeats      = 100_000   // of an event: the largest arenas, and a load that fits one transaction
	MaxSections   = 1_000     // of an event
	MaxRowSeats   = 200       // of a row
	MaxChartBytes = 32 << 20  // of its JSON: what has far too many seats is told so
	MaxCoordinate = 1_000_000 // in whatever unit the chart is drawn
	maxPart       = 16        // bytes of a section's, row's or seat's name
	maxName       = 200       // bytes of a section's display name
	maxRank       = 10_000    // far more rows than any house has
)

// Chart is where the seats of an event are.
type Chart struct {
	Sections []Section `json:"sections"`
}

// Section is a part of the house; its seats are of one tier.
type Section struct {
	Section string      `json:"section"`
	Name    string      `json:"name,omitempty"` // for display; "": the section
	Tier    ledger.Unit `json:"tier"`
	Rows    []Row       `json:"rows"`
}

// Row is a row of seats from its one end to the other.
type Row struct {
	Row   string `json:"row"`
	Rank  *int   `json:"rank,omitempty"` // how good it is, 0 the best; nil: its index in the section
	Seats []Seat `json:"seats"`
}

// Seat is one place in a row.
type Seat struct {
	Seat       string `json:"seat"`
	X          int    `json:"x"`
	Y          int    `json:"y"`
	Accessible bool   `json:"accessible,omitempty"` // of the protected pool
	Aisle      bool   `json:"aisle,omitempty"`      // the next seat of the row isn't beside it
}

// Label names a seat within its event.
func Label(section, row, seat string) string { return section + "-" + row + "-" + seat }

// Size counts the seats.
func (c *Chart) Size() (n int) {
	for i := range c.Sections {
		n += c.Sections[i].size()
	}
	return n
}

func (s *Section) size() (n int) {
	for i := range s.Rows {
		n += len(s.Rows[i].Seats)
	}
	return n
}

// Validate refuses what can't be a chart, whatever the event has; the error is
// ErrInvalidRequest with the field.
func (c *Chart) Validate() error { return c.ValidateIn("") }

// ValidateIn is Validate for a chart that's part of something; outer begins the names of
// the fields in errors.
func (c *Chart) ValidateIn(outer string) error {
	switch n := c.Size(); {
	case len(c.Sections) == 0 || len(c.Sections) > MaxSections:
		return fault.BadField(outer+"sections", "a chart has 1 to %d sections, this has %d", MaxSections, len(c.Sections))
	case n > MaxSeats:
		return fault.BadField(outer+"sections", "an event has at most %d seats, this chart has %d", MaxSeats, n)
	}
	seen := make(map[string]bool, len(c.Sections))
	for i := range c.Sections {
		s, field := &c.Sections[i], fmt.Sprintf("%ssections[%d].", outer, i)
		if seen[s.Section] {
			return fault.BadField(field+"section", "%q is given twice", s.Section)
		}
		seen[s.Section] = true
		if err := s.validate(field); err != nil {
			return err
		}
	}
	return nil
}

func (s *Section) validate(field string) error {
	switch {
	case !validPart(s.Section):
		return badPart(field + "section")
	case len(s.Name) > maxName || strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' }):
		return fault.BadField(field+"name", "must have at most %d bytes, and no control characters", maxName)
	case s.Tier == "":
		return fault.BadField(field+"tier", "is missing")
	case len(s.Rows) == 0:
		return fault.BadField(field+"rows", "a section has at least one row")
	}
	seen := make(map[string]bool, len(s.Rows))
	for i := range s.Rows {
		r, field := &s.Rows[i], fmt.Sprintf("%srows[%d].", field, i)
		if seen[r.Row] {
			return fault.BadField(field+"row", "%q is given twice in section %s", r.Row, s.Section)
		}
		seen[r.Row] = true
		if err := r.validate(field); err != nil {
			return err
		}
	}
	return nil
}

func (r *Row) validate(field string) error {
	switch {
	case !validPart(r.Row):
		return badPart(field + "row")
	case r.Rank != nil && (*r.Rank < 0 || *r.Rank > maxRank):
		return fault.BadField(field+"rank", "must be 0 to %d", maxRank)
	case len(r.Seats) == 0 || len(r.Seats) > MaxRowSeats:
		return fault.BadField(field+"seats", "a row has 1 to %d seats, this has %d", MaxRowSeats, len(r.Seats))
	}
	seen := make(map[string]bool, len(r.Seats))
	for i, s := range r.Seats {
		field := fmt.Sprintf("%sseats[%d].", field, i)
		switch {
		case !validPart(s.Seat):
			return badPart(field + "seat")
		case seen[s.Seat]:
			return fault.BadField(field+"seat", "%q is given twice in row %s", s.Seat, r.Row)
		case s.X < 0 || s.X > MaxCoordinate:
			return fault.BadField(field+"x", "must be 0 to %d", MaxCoordinate)
		case s.Y < 0 || s.Y > MaxCoordinate:
			return fault.BadField(field+"y", "must be 0 to %d", MaxCoordinate)
		}
		seen[s.Seat] = true
	}
	return nil
}

// validPart allows names of which labels are made, joined by '-'.
func validPart(s string) bool {
	if s == "" || len(s) > maxPart {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

func badPart(field string) error {
	return fault.BadField(field, "must have 1 to %d letters, digits, '.' or '_'", maxPart)
}
