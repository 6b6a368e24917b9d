package orders

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// naming is a command's body that needs an order, with its operations.
type naming interface{ OrderIDs() []uuid.UUID }

// shelf holds the orders of one batch that commands name, with their operations.
type shelf struct {
	orders    map[uuid.UUID]*Order
	pendingOf map[string]int64 // orders of a customer that are pending
	pending   int64            // of the event

	counted       bool // pending has changed
	newOrders     []*Order
	changedOrders []*Order
	newOps        []*Operation
	changedOps    []*Operation
	webhooks      []*webhook
}

// NewShelf makes an empty shelf.
func NewShelf() ledger.Shelf {
	return &shelf{orders: make(map[uuid.UUID]*Order), pendingOf: make(map[string]int64)}
}

func shelfOf(s *ledger.State) *shelf { return ledger.ShelfOf[*shelf](s) }

// Read queues the orders that commands name, and what bounds the number of checkouts.
func (s *shelf) Read(q *ledger.Reads) {
	if q.Journal == ledger.System {
		return
	}
	var ids [][16]byte
	var customers []string
	for _, c := range q.Commands {
		if n, ok := c.Body.(naming); ok {
			for _, id := range n.OrderIDs() {
				ids = append(ids, id)
			}
		}
		if b, ok := c.Body.(*checkout); ok && !slices.Contains(customers, b.customer) {
			customers = append(customers, b.customer)
		}
	}
	if len(ids) == 0 {
		return
	}
	q.Queue(func(rows pgx.Rows) error {
		o, err := scanOrder(rows)
		if err == nil {
			s.orders[o.ID] = o
		}
		return err
	}, sqlBatchOrders, ids)
	q.Queue(func(rows pgx.Rows) error {
		op, err := scanOperation(rows)
		if err == nil {
			s.add(op)
		}
		return err
	}, sqlBatchOperations, ids)
	q.Queue(func(rows pgx.Rows) error { return rows.Scan(&s.pending) }, sqlPending)
	if len(customers) > 0 {
		q.Queue(func(rows pgx.Rows) error {
			var customer string
			var n int64
			err := rows.Scan(&customer, &n)
			s.pendingOf[customer] = n
			return err
		}, sqlPendingOf, customers)
	}
}

// add puts an operation that was read with its order; one that two commands named is
// read twice.
func (s *shelf) add(op *Operation) {
	o := s.orders[op.Order]
	if o == nil {
		return
	}
	for _, known := range o.Operations {
		if known.ID == op.ID {
			return
		}
	}
	o.Operations = append(o.Operations, op)
	o.arrange()
}

// Due is empty: what is due of orders needs the provider, so the janitor does it.
func (s *shelf) Due(time.Time) ([]ledger.Command, bool) { return nil, false }

// Accounts is empty: the commands name theirs.
func (s *shelf) Accounts(time.Time) []string { return nil }

// Write queues the changed rows.
func (s *shelf) Write(q *ledger.Writes) {
	queueOrders(q, sqlInsertOrders, s.newOrders)
	queueOrders(q, sqlUpdateOrders, s.changedOrders)
	queueOperations(q, sqlInsertOperations, s.newOps)
	queueOperations(q, sqlUpdateOperations, s.changedOps)
	queueWebhooks(q, s.webhooks)
	if s.counted {
		q.Queue(sqlKeepPending, s.pending)
	}
}

// dealRow is an order with its operations, as a deal left them.
type dealRow struct{ *deal }

// Keep records what the deal changed.
func (r dealRow) Keep(s *ledger.State) {
	shelf := shelfOf(s)
	o := r.order
	o.Hold, o.Cases = nil, nil // they're the entry's
	before, found := shelf.orders[o.ID]
	if was, is := found && before.Status == Pending, o.Status == Pending; was != is {
		n := int64(1)
		if was {
			n = -1
		}
		shelf.pending += n
		shelf.pendingOf[o.Customer] += n
		shelf.counted = true
	}
	if !found {
		shelf.orders[o.ID] = o
		shelf.newOrders = append(shelf.newOrders, o)
		shelf.newOps = append(shelf.newOps, r.changedOps()...)
		return
	}
	ops := before.Operations
	*before = *o
	before.Operations = ops
	if !slices.Contains(shelf.newOrders, before) && !slices.Contains(shelf.changedOrders, before) {
		shelf.changedOrders = append(shelf.changedOrders, before)
	}
	for _, op := range r.changedOps() {
		shelf.keepOperation(before, op)
	}
}

// keepOperation records a new or changed operation of an order on the shelf.
func (s *shelf) keepOperation(o *Order, op *Operation) {
	i := slices.IndexFunc(o.Operations, func(known *Operation) bool { return known.ID == op.ID })
	if i < 0 {
		o.Operations = append(o.Operations, op)
		s.newOps = append(s.newOps, op)
		return
	}
	known := o.Operations[i]
	*known = *op
	if !slices.Contains(s.newOps, known) && !slices.Contains(s.changedOps, known) {
		s.changedOps = append(s.changedOps, known)
	}
}
