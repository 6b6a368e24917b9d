package cases

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// Naming is a command's body that needs cases: those are read with the batch.
type Naming interface{ CaseIDs() []uuid.UUID }

// orderNaming is a command's body that needs the cases of orders.
type orderNaming interface{ OrderIDs() []uuid.UUID }

// shelf holds the cases of one batch.
type shelf struct {
	cases   map[uuid.UUID]*Case
	changed []*Case
}

// NewShelf makes an empty shelf.
func NewShelf() ledger.Shelf { return &shelf{cases: make(map[uuid.UUID]*Case)} }

func shelfOf(s *ledger.State) *shelf { return ledger.ShelfOf[*shelf](s) }

// Find gives a case that a command named, as the batch left it so far.
func Find(s *ledger.State, id uuid.UUID) (Case, bool) {
	c, ok := shelfOf(s).cases[id]
	if !ok {
		return Case{}, false
	}
	found := *c
	if event := buckets.ShelfOf(s).Event; event != nil {
		found.Event = event.Event
	}
	return found, true
}

// OfOrder gives the cases of an order that a command named, as the batch left them so
// far.
func OfOrder(s *ledger.State, order uuid.UUID) []Case {
	var list []Case
	for _, c := range shelfOf(s).cases {
		if c.OrderID != nil && *c.OrderID == order {
			list = append(list, *c)
		}
	}
	return list
}

// Row is the row of an opened or changed case, for the decision that did it.
func Row(c Case) ledger.Row { return keptRow{&c} }

type keptRow struct{ *Case }

// Keep records the case.
func (r keptRow) Keep(s *ledger.State) {
	shelf := shelfOf(s)
	c, ok := shelf.cases[r.ID]
	if !ok {
		c = &Case{}
		shelf.cases[r.ID] = c
	}
	*c = *r.Case
	if !slices.Contains(shelf.changed, c) {
		shelf.changed = append(shelf.changed, c)
	}
}

// Read queues the cases that commands name.
func (s *shelf) Read(q *ledger.Reads) {
	var ids, orders [][16]byte
	for _, c := range q.Commands {
		if n, ok := c.Body.(Naming); ok {
			for _, id := range n.CaseIDs() {
				ids = append(ids, id)
			}
		}
		if n, ok := c.Body.(orderNaming); ok {
			for _, id := range n.OrderIDs() {
				orders = append(orders, id)
			}
		}
	}
	each := func(rows pgx.Rows) error {
		c, err := scanCase(rows)
		if err == nil {
			s.cases[c.ID] = c
		}
		return err
	}
	if len(ids) > 0 {
		q.Queue(each, sqlBatchCases, ids)
	}
	if len(orders) > 0 {
		q.Queue(each, sqlCasesOfOrders, orders)
	}
}

// Due is empty: what is due of a case is for the janitor, which asks by command.
func (s *shelf) Due(time.Time) ([]ledger.Command, bool) { return nil, false }

// Accounts is empty: the commands and the orders name theirs.
func (s *shelf) Accounts(time.Time) []string { return nil }

// Write queues the opened and changed cases.
func (s *shelf) Write(q *ledger.Writes) {
	for _, c := range s.changed {
		q.Queue(sqlKeepCase, c.ID, c.Reason, c.Status, int64(c.Amount.Amount), c.Amount.Currency, int64(c.Suspended),
			c.HoldID, c.OrderID, c.OperationID, c.Provider, c.ToldAt, c.OpenedAt, c.Owner, c.LastFact, c.Deadline, c.NextAttemptAt,
			c.Resolution, c.ResolvedReason, c.Evidence, c.ProposedBy, c.DecidedBy, c.ResolvedAt, int64(c.Version))
	}
}
