package buckets

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Kinds of entries about allotments, in the home's journal.
const (
	KindAllotmentOpened = "allotment.opened"
	KindAllotmentClosed = "allotment.closed"
	KindCodesAdded      = "allotment.codes_added"
)

// Limits of allotments.
const (
	maxAllotments = 50        // every batch reads them all
	maxCodes      = 1000      // of one request
	maxUses       = 1_000_000 // of one code
)

// AllotmentSpec is an allotment as its maker describes it.
type AllotmentSpec struct {
	Allotment    string     `json:"allotment"`
	Name         string     `json:"name,omitempty"`          // "": the allotment
	OpensAt      *Instant   `json:"opens_at,omitempty"`      // nil: with the event's sale
	ReleasesAt   *Instant   `json:"releases_at,omitempty"`   // nil: never
	CodeRequired bool       `json:"code_required,omitempty"` // as if, when it has codes
	Codes        []CodeSpec `json:"codes,omitempty"`
}

// CodeSpec is an access code with how many holds may use it. Upper and lower case are the
// same.
type CodeSpec struct {
	Code    string        `json:"code"`
	MaxUses ledger.Amount `json:"max_uses"`
}

// Allotment is an allotment's row, in the journal of the event's home.
type Allotment struct {
	Allotment    string     `json:"allotment"`
	Name         string     `json:"name"`
	OpensAt      *time.Time `json:"opens_at,omitempty"`
	ReleasesAt   *time.Time `json:"releases_at,omitempty"`
	CodeRequired bool       `json:"code_required,omitempty"`
	CreatedAt    time.Time  `json:"created_at"`
	ClosedAt     *time.Time `json:"closed_at,omitempty"`
	Version      ledger.Seq `json:"version"`

	// Left are the tiers of which it has free tickets in the journal of the batch, read
	// once it has ended.
	Left []ledger.Unit `json:"-"`
	// LeftVersion is the newest version of their accounts.
	LeftVersion ledger.Seq `json:"-"`
}

// Ended tells whether the allotment was closed or released by a time: its free tickets are
// everybody's.
func (a *Allotment) Ended(now time.Time) bool {
	return a.ClosedAt != nil || a.ReleasesAt != nil && !a.ReleasesAt.After(now)
}

// OnSale tells whether who buys from the allotment may do so at a time: from its own
// opening, which may be before the event's, until it ends or the event's sale does.
func (a *Allotment) OnSale(e *Event, now time.Time) bool {
	opens := e.SaleOpensAt
	if a.OpensAt != nil {
		opens = a.OpensAt
	}
	return !a.Ended(now) && (opens == nil || !now.Before(*opens)) && (e.SaleClosesAt == nil || now.Before(*e.SaleClosesAt))
}

// Code is an access code's row.
type Code struct {
	Code      string
	Allotment string
	MaxUses   ledger.Amount
	Version   ledger.Seq
}

// NormalCode gives a code as it's kept.
func NormalCode(code string) string { return strings.ToUpper(code) }

// Coded is a command's body that comes with an access code; "" for none.
type Coded interface{ AccessCode() string }

// normalize fills in the defaults and refuses what can't be an allotment.
func (s *AllotmentSpec) normalize() error {
	if s.Name == "" {
		s.Name = s.Allotment
	}
	for field, i := range map[string]*Instant{"opens_at": s.OpensAt, "releases_at": s.ReleasesAt} {
		if err := checkInstant(field, i); err != nil {
			return err
		}
		if i != nil {
			i.Time = i.Truncate(time.Microsecond)
		}
	}
	switch {
	case !ValidID(s.Allotment):
		return badID("allotment")
	case len(s.Name) > maxName:
		return fault.BadField("name", "must have at most %d bytes", maxName)
	case s.OpensAt != nil && s.ReleasesAt != nil && !s.OpensAt.Before(s.ReleasesAt.Time):
		return fault.BadField("releases_at", "must be after opens_at")
	}
	s.CodeRequired = s.CodeRequired || len(s.Codes) > 0
	return normalizeCodes(s.Codes)
}

func normalizeCodes(codes []CodeSpec) error {
	if len(codes) > maxCodes {
		return fault.BadField("codes", "at most %d at once", maxCodes)
	}
	seen := make(map[string]bool, len(codes))
	for i := range codes {
		c, field := &codes[i], fmt.Sprintf("codes[%d].", i)
		c.Code = NormalCode(c.Code)
		switch {
		case !ValidID(c.Code):
			return badID(field + "code")
		case seen[c.Code]:
			return fault.BadField(field+"code", "%q is given twice", c.Code)
		case c.MaxUses < 1 || c.MaxUses > maxUses:
			return fault.BadField(field+"max_uses", "must be 1 to %d", maxUses)
		}
		seen[c.Code] = true
	}
	return nil
}

// allot makes an allotment, without tickets: those are moved to it.
type allot struct{ spec *AllotmentSpec }

func (a *allot) Accounts() []string { return accountsOf(a.spec.Codes) }

func (a *allot) codes() []CodeSpec { return a.spec.Codes }

func (a *allot) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf, spec := ShelfOf(s), a.spec
	switch {
	case shelf.Allotments[spec.Allotment] != nil:
		return ledger.Decision{}, ErrAllotmentExists.Because("%s", spec.Allotment).With("allotment", spec.Allotment)
	case len(shelf.Allotments) >= maxAllotments:
		return ledger.Decision{}, fault.BadField("allotment", "an event has at most %d allotments", maxAllotments)
	case spec.ReleasesAt != nil && !spec.ReleasesAt.After(s.Now):
		return ledger.Decision{}, fault.BadField("releases_at", "has passed")
	}
	row := Allotment{
		Allotment: spec.Allotment, Name: spec.Name, OpensAt: spec.OpensAt.utc(), ReleasesAt: spec.ReleasesAt.utc(),
		CodeRequired: spec.CodeRequired, CreatedAt: s.Now, Version: s.NextSeq(),
	}
	d := ledger.Decision{Kind: KindAllotmentOpened, Rows: []ledger.Row{allotmentRow{row}}}
	if err := issue(s, &d, spec.Allotment, spec.Codes); err != nil {
		return ledger.Decision{}, err
	}
	var err error
	d.Data, err = json.Marshal(struct {
		Event string `json:"event"`
		Allotment
		Codes []CodeSpec `json:"codes,omitempty"`
	}{shelf.Event.Event, row, spec.Codes})
	return d, err
}

// addCodes adds access codes to an allotment.
type addCodes struct {
	allotment string
	list      []CodeSpec
}

func (a *addCodes) Accounts() []string { return accountsOf(a.list) }

func (a *addCodes) codes() []CodeSpec { return a.list }

func (a *addCodes) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf := ShelfOf(s)
	row, err := shelf.Live(s, a.allotment)
	if err != nil {
		return ledger.Decision{}, err
	}
	d := ledger.Decision{Kind: KindCodesAdded}
	if err := issue(s, &d, row.Allotment, a.list); err != nil {
		return ledger.Decision{}, err
	}
	d.Data, err = json.Marshal(struct {
		Event     string     `json:"event"`
		Allotment string     `json:"allotment"`
		Codes     []CodeSpec `json:"codes"`
		Version   ledger.Seq `json:"version"`
	}{shelf.Event.Event, row.Allotment, a.list, s.NextSeq()})
	return d, err
}

// issue adds codes to a decision: their rows, and their uses.
func issue(s *ledger.State, d *ledger.Decision, allotment string, codes []CodeSpec) error {
	for i, c := range codes {
		if ShelfOf(s).Codes[c.Code] != nil {
			return ErrCodeExists.Because("%s", c.Code).With("field", fmt.Sprintf("codes[%d].code", i)).With("access_code", c.Code)
		}
		d.Rows = append(d.Rows, codeRow{Code{c.Code, allotment, c.MaxUses, s.NextSeq()}})
		d.Legs = append(d.Legs,
			ledger.Leg{Account: ledger.Capacity, Unit: ledger.Uses, Amount: -c.MaxUses},
			ledger.Leg{Account: ledger.FreeUses(c.Code), Unit: ledger.Uses, Amount: c.MaxUses})
	}
	return nil
}

func accountsOf(codes []CodeSpec) []string {
	names := []string{ledger.Capacity}
	for _, c := range codes {
		names = append(names, ledger.FreeUses(c.Code))
	}
	return names
}

// issuing is a body that makes codes, which may exist.
type issuing interface{ codes() []CodeSpec }

// closeAllotment ends an allotment: nobody buys from it any more, and every batch of a
// lane returns what is free there, now or later.
type closeAllotment struct {
	allotment string
	reason    string
	ifMatch   *ledger.Seq
}

func (c *closeAllotment) Accounts() []string { return nil }

func (c *closeAllotment) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf := ShelfOf(s)
	old := shelf.Allotments[c.allotment]
	switch {
	case old == nil:
		return ledger.Decision{}, AllotmentNotFound(c.allotment)
	case c.ifMatch != nil && *c.ifMatch != old.Version:
		return ledger.Decision{}, ErrVersionConflict.Because("allotment %s has version %d", c.allotment, old.Version).
			With("version", old.Version)
	case old.ClosedAt != nil:
		data, err := json.Marshal(closedView{shelf.Event.Event, *old, ""})
		return ledger.Decision{Data: data}, err
	}
	row := *old
	row.ClosedAt, row.Version = new(s.Now), s.NextSeq()
	data, err := json.Marshal(closedView{shelf.Event.Event, row, c.reason})
	return ledger.Decision{Kind: KindAllotmentClosed, Rows: []ledger.Row{allotmentRow{row}}, Data: data}, err
}

type closedView struct {
	Event string `json:"event"`
	Allotment
	Reason string `json:"reason,omitempty"`
}

// Live finds an allotment that hasn't ended. Errors: ErrAllotmentNotFound,
// ErrAllotmentClosed.
func (s *Shelf) Live(state *ledger.State, allotment string) (*Allotment, error) {
	a := s.Allotments[allotment]
	switch {
	case a == nil:
		return nil, AllotmentNotFound(allotment)
	case a.Ended(state.Now):
		return nil, ErrAllotmentClosed.Because("%s", allotment).With("allotment", allotment)
	}
	return a, nil
}

// AllotmentNotFound is ErrAllotmentNotFound about an allotment.
func AllotmentNotFound(allotment string) error {
	return ErrAllotmentNotFound.Because("%q", allotment).With("allotment", allotment)
}
