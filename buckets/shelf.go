package buckets

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// Shelf holds an event and its tiers for one batch of the event's journal, or of one of
// its lanes; for the system journal, the names that are taken.
type Shelf struct {
	Event      *Event // nil when the journal has none
	Lane       *Lane  // nil when the event was never split
	Tiers      map[ledger.Unit]*Tier
	Allotments map[string]*Allotment
	Codes      map[string]*Code // those that commands name

	elsewhere map[*Route][]seen

	taken      map[laneName]bool
	created    []directoryRow
	opened     *Event
	newTiers   []*Tier
	changed    []*Tier
	prices     []priceRow
	lane       *Lane // changed
	allotments []*Allotment
	newCodes   []*Code
}

// laneName is a place in the directory.
type laneName struct {
	event string
	lane  int
}

type directoryRow struct {
	laneName
	journal ledger.Seq
}

type priceRow struct {
	tier ledger.Unit
	Price
}

// NewShelf makes an empty shelf.
func NewShelf() ledger.Shelf {
	return &Shelf{
		Tiers: make(map[ledger.Unit]*Tier), Allotments: make(map[string]*Allotment), Codes: make(map[string]*Code),
		taken: make(map[laneName]bool),
	}
}

// Shares tells whether the journal is a lane of a split event.
func (s *Shelf) Shares() bool { return s.Lane != nil }

// ShelfOf finds this package's shelf in a batch's state.
func ShelfOf(s *ledger.State) *Shelf { return ledger.ShelfOf[*Shelf](s) }

// Unpostable tells why a unit can't be posted by hand in the journal of a state; "" when
// it can: any currency, or a tier of its event that's sold by quantity.
func Unpostable(s *ledger.State, u ledger.Unit) string {
	if _, _, money := u.Currency(); money {
		return ""
	}
	switch t := ShelfOf(s).Tiers[u]; {
	case t == nil:
		return fmt.Sprintf("the event has no %q", u)
	case t.Seated:
		return fmt.Sprintf("%s is sold by seat: its tickets move with their seats", u)
	}
	return ""
}

// Read queues the event with its tiers, or the names that commands want to take.
func (s *Shelf) Read(q *ledger.Reads) {
	if q.Journal == ledger.System {
		s.readNames(q)
		return
	}
	q.Queue(func(rows pgx.Rows) (err error) {
		s.Event, s.Lane, err = scanEventLane(rows)
		return err
	}, sqlBatchEvent)
	q.Queue(func(rows pgx.Rows) error {
		t, err := scanTier(rows)
		if err == nil {
			s.Tiers[t.Tier] = t
		}
		return err
	}, sqlBatchTiers)
	q.Queue(func(rows pgx.Rows) error {
		a, err := scanAllotment(rows)
		if err == nil {
			s.Allotments[a.Allotment] = a
		}
		return err
	}, sqlBatchAllotments)
	s.readCodes(q)
	s.readElsewhere(q)
}

// readCodes queues the access codes that commands come with, or want to make.
func (s *Shelf) readCodes(q *ledger.Reads) {
	var codes []string
	for _, c := range q.Commands {
		switch body := c.Body.(type) {
		case Coded:
			if code := body.AccessCode(); code != "" {
				codes = append(codes, code)
			}
		case issuing:
			for _, c := range body.codes() {
				codes = append(codes, c.Code)
			}
		}
	}
	if len(codes) == 0 {
		return
	}
	q.Queue(func(rows pgx.Rows) error {
		c := &Code{}
		err := rows.Scan(&c.Code, &c.Allotment, &c.MaxUses, &c.Version)
		s.Codes[c.Code] = c
		return err
	}, sqlBatchCodes, codes)
}

// readElsewhere queues what other lanes have of the customers of commands.
func (s *Shelf) readElsewhere(q *ledger.Reads) {
	var routes []*Route
	var journals []int64
	var customers []string
	var ids [][16]byte
	for _, c := range q.Commands {
		routed, ok := c.Body.(Routed)
		if !ok {
			continue
		}
		r := routed.Route()
		for _, e := range r.Elsewhere {
			routes = append(routes, r)
			journals, customers, ids = append(journals, int64(e.Journal)), append(customers, r.Customer), append(ids, e.ID)
		}
	}
	if len(routes) == 0 {
		return
	}
	s.elsewhere = make(map[*Route][]seen)
	q.Queue(func(rows pgx.Rows) error {
		var n int
		var e seen
		err := rows.Scan(&n, &e.generation, &e.tickets, &e.accepted)
		if err == nil {
			s.elsewhere[routes[n-1]] = append(s.elsewhere[routes[n-1]], e)
		}
		return err
	}, sqlElsewhere, journals, customers, ids)
}

func (s *Shelf) readNames(q *ledger.Reads) {
	var events []string
	var lanes []int
	for _, c := range q.Commands {
		if n, ok := c.Body.(interface{ name() (string, int) }); ok {
			event, lane := n.name()
			events, lanes = append(events, event), append(lanes, lane)
		}
	}
	if len(events) == 0 {
		return
	}
	q.Queue(func(rows pgx.Rows) error {
		var n laneName
		err := rows.Scan(&n.event, &n.lane)
		s.taken[n] = true
		return err
	}, sqlTakenNames, events, lanes)
}

// Due is empty: nothing here happens by time alone.
func (s *Shelf) Due(time.Time) ([]ledger.Command, bool) { return nil, false }

// Accounts names those of the allotments that access codes open; the commands name the
// others.
func (s *Shelf) Accounts(time.Time) (accounts []string) {
	for _, c := range s.Codes {
		accounts = append(accounts, ledger.FreeOf(c.Allotment))
	}
	return accounts
}

// Write queues the changed rows.
func (s *Shelf) Write(q *ledger.Writes) {
	for _, d := range s.created {
		q.Queue(sqlInsertDirectory, d.event, d.lane, d.journal)
	}
	if e := s.opened; e != nil {
		q.Queue(sqlInsertEvent, e.Event, e.Name, e.Currency, e.HoldSeconds, e.GraceSeconds,
			e.LimitPerCustomer, e.SaleOpensAt, e.SaleClosesAt, e.Organiser, e.LatePaymentPolicy,
			e.HonourUntil, e.ApproveMovesFrom, e.CreatedAt, e.Version)
	}
	for _, t := range s.newTiers {
		q.Queue(sqlInsertTier, t.Tier, t.Position, t.Name, t.Price.Version, t.LimitPerCustomer, t.Seated, t.Version)
	}
	for _, t := range s.changed {
		q.Queue(sqlUpdateTier, t.Tier, t.Name, t.Price.Version, t.LimitPerCustomer, t.Version)
	}
	for _, p := range s.prices {
		q.Queue(sqlInsertPrice, p.tier, p.Version, p.Amount, p.Fee, p.TaxRate.String())
	}
	if l := s.lane; l != nil {
		q.Queue(sqlKeepLane, l.Home(), l.Lane, l.Generation, l.Counts, l.Journals, l.Version)
	}
	for _, a := range s.allotments {
		q.Queue(sqlKeepAllotment, a.Allotment, a.Name, a.OpensAt, a.ReleasesAt, a.CodeRequired, a.CreatedAt, a.ClosedAt,
			a.Version)
	}
	s.writeCodes(q)
}

func (s *Shelf) writeCodes(q *ledger.Writes) {
	if len(s.newCodes) == 0 {
		return
	}
	var codes, allotments []string
	var uses, versions []int64
	for _, c := range s.newCodes {
		codes, allotments = append(codes, c.Code), append(allotments, c.Allotment)
		uses, versions = append(uses, int64(c.MaxUses)), append(versions, int64(c.Version))
	}
	q.Queue(sqlInsertCodes, codes, allotments, uses, versions)
}

// The rows that decisions of this package change.
type (
	createdRow   directoryRow
	openedRow    struct{ *Event }
	laneRow      struct{ Lane }
	newTierRow   struct{ Tier }
	allotmentRow struct{ Allotment }
	codeRow      struct{ Code }
	tierRow      struct {
		Tier
		repriced bool
	}
)

// Keep records the name.
func (r createdRow) Keep(s *ledger.State) {
	shelf := ShelfOf(s)
	shelf.taken[r.laneName] = true
	shelf.created = append(shelf.created, directoryRow(r))
}

// Keep records the event.
func (r openedRow) Keep(s *ledger.State) {
	shelf := ShelfOf(s)
	shelf.Event, shelf.opened = r.Event, r.Event
}

// Keep records a tier that the event didn't have.
func (r newTierRow) Keep(s *ledger.State) {
	shelf := ShelfOf(s)
	t := r.Tier
	shelf.Tiers[t.Tier] = &t
	shelf.newTiers = append(shelf.newTiers, &t)
	shelf.prices = append(shelf.prices, priceRow{t.Tier, t.Price})
}

// Keep records a tier's change, and its new price.
func (r tierRow) Keep(s *ledger.State) {
	shelf := ShelfOf(s)
	t := r.Tier
	shelf.Tiers[t.Tier] = &t
	shelf.changed = append(shelf.changed, &t)
	if r.repriced {
		shelf.prices = append(shelf.prices, priceRow{t.Tier, t.Price})
	}
}

// Keep records what the lane knows of the split.
func (r laneRow) Keep(s *ledger.State) {
	shelf := ShelfOf(s)
	l := r.Lane
	shelf.Lane, shelf.lane = &l, &l
}

// Keep records an allotment's change.
func (r allotmentRow) Keep(s *ledger.State) {
	shelf := ShelfOf(s)
	a := r.Allotment
	if old := shelf.Allotments[a.Allotment]; old != nil && slices.Contains(shelf.allotments, old) {
		*old = a // a statement for each would be right too; this one is enough
		return
	}
	shelf.Allotments[a.Allotment] = &a
	shelf.allotments = append(shelf.allotments, &a)
}

// Keep records a new code.
func (r codeRow) Keep(s *ledger.State) {
	shelf := ShelfOf(s)
	c := r.Code
	shelf.Codes[c.Code] = &c
	shelf.newCodes = append(shelf.newCodes, &c)
}
