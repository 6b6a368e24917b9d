package buckets

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// Shelf holds an event and its tiers for one batch of the event's journal; for the
// system journal, the names that are taken.
type Shelf struct {
	Event *Event // nil when the journal has none
	Tiers map[ledger.Unit]*Tier

	taken    map[string]bool
	created  []directoryRow
	opened   *Event
	newTiers []*Tier
	changed  []*Tier
	prices   []priceRow
}

type directoryRow struct {
	event   string
	journal ledger.Seq
}

type priceRow struct {
	tier ledger.Unit
	Price
}

// NewShelf makes an empty shelf.
func NewShelf() ledger.Shelf {
	return &Shelf{Tiers: make(map[ledger.Unit]*Tier), taken: make(map[string]bool)}
}

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
	q.Queue(func(rows pgx.Rows) error {
		e, err := scanEvent(rows)
		s.Event = e
		return err
	}, sqlBatchEvent)
	q.Queue(func(rows pgx.Rows) error {
		t, err := scanTier(rows)
		if err == nil {
			s.Tiers[t.Tier] = t
		}
		return err
	}, sqlBatchTiers)
}

func (s *Shelf) readNames(q *ledger.Reads) {
	var names []string
	for _, c := range q.Commands {
		if create, ok := c.Body.(*create); ok {
			names = append(names, create.spec.Event)
		}
	}
	if len(names) == 0 {
		return
	}
	q.Queue(func(rows pgx.Rows) error {
		var name string
		err := rows.Scan(&name)
		s.taken[name] = true
		return err
	}, sqlTakenNames, names)
}

// Due is empty: nothing here happens by time alone.
func (s *Shelf) Due(time.Time) ([]ledger.Command, bool) { return nil, false }

// Accounts is empty: the commands name theirs.
func (s *Shelf) Accounts(time.Time) []string { return nil }

// Write queues the changed rows.
func (s *Shelf) Write(q *ledger.Writes) {
	for _, d := range s.created {
		q.Queue(sqlInsertDirectory, d.event, d.journal)
	}
	if e := s.opened; e != nil {
		q.Queue(sqlInsertEvent, e.Event, e.Name, e.Currency, e.HoldSeconds, e.GraceSeconds,
			e.LimitPerCustomer, e.SaleOpensAt, e.SaleClosesAt, e.Organiser, e.LatePaymentPolicy,
			e.HonourUntil, e.CreatedAt, e.Version)
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
}

// The rows that decisions of this package change.
type (
	createdRow directoryRow
	openedRow  struct{ *Event }
	newTierRow struct{ Tier }
	tierRow    struct {
		Tier
		repriced bool
	}
)

// Keep records the name.
func (r createdRow) Keep(s *ledger.State) {
	shelf := ShelfOf(s)
	shelf.taken[r.event] = true
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
