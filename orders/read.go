package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Get reads an order as it is now; ErrOrderNotFound when there's none.
func (s *Store) Get(ctx context.Context, id uuid.UUID) (Order, error) {
	journal, err := s.journalOf(ctx, id)
	if err != nil {
		return Order{}, err
	}
	conn, err := s.Reads.Acquire(ctx)
	if err != nil {
		return Order{}, pg.Fault(fmt.Errorf("read order %s: %w", id, err))
	}
	defer conn.Release()
	q := &pgx.Batch{}
	q.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`) // both of one instant
	var o *Order
	var ops []*Operation
	q.Queue(sqlOrder, int64(journal), id).Query(func(rows pgx.Rows) (err error) {
		for rows.Next() && err == nil {
			o, err = scanOrder(rows)
		}
		return errors.Join(err, rows.Err())
	})
	q.Queue(sqlBatchOperations, int64(journal), [][16]byte{id}).Query(func(rows pgx.Rows) (err error) {
		ops, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Operation, error) { return scanOperation(row) })
		return err
	})
	q.Queue(`COMMIT`)
	if err := pg.Exchange(ctx, conn.Conn(), q); err != nil {
		return Order{}, pg.Fault(fmt.Errorf("read order %s: %w", id, err))
	}
	if o == nil {
		return Order{}, notFound(id)
	}
	name, err := s.Events.Named(ctx, journal)
	complete(name, ops, o)
	return *o, err
}

// journalOf finds the journal of an order from its id; ErrOrderNotFound when the id tells
// none that exists.
func (s *Store) journalOf(ctx context.Context, id uuid.UUID) (ledger.JournalID, error) {
	journal, ok, err := s.Events.JournalOf(ctx, id)
	if err == nil && !ok {
		err = notFound(id)
	}
	return journal, err
}

// complete puts operations with their orders and fills in what the event says.
func complete(name buckets.Name, ops []*Operation, list ...*Order) {
	for _, o := range list {
		for _, op := range ops {
			if op.Order == o.ID {
				o.Operations = append(o.Operations, op)
			}
		}
		o.arrange()
		o.of(name.Event, name.Currency)
	}
}

// Filter selects orders of an event; empty fields select all.
type Filter struct {
	Customer string
	Status   Status
	After    uuid.UUID // the last order of the page before
	Limit    int
}

// List reads a page of an event's orders, of all its lanes at one instant, in the order of
// their ids.
func (s *Store) List(ctx context.Context, event string, f Filter) ([]Order, error) {
	lanes, err := s.Events.Lanes(ctx, event)
	if err != nil {
		return nil, err
	}
	// Asked for before a connection is taken: it may take one itself.
	name, err := s.Events.Named(ctx, lanes[0])
	if err != nil {
		return nil, err
	}
	tx, err := s.Reads.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list orders of %s: %w", event, err))
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // it has only read
	found, err := buckets.Page(lanes, f.After, f.Limit, func(lane ledger.JournalID, limit int) ([]*Order, error) {
		return listLane(ctx, tx, name, lane, f, limit)
	})
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list orders of %s: %w", event, err))
	}
	page := make([]Order, len(found))
	for i, o := range found {
		page[i] = *o
	}
	return page, nil
}

// listLane reads a page of one lane's orders, with their operations.
func listLane(ctx context.Context, tx pgx.Tx, name buckets.Name, lane ledger.JournalID, f Filter, limit int) ([]*Order, error) {
	sql, args := sqlAllOrders, []any{int64(lane), f.After, f.Status, limit}
	if f.Customer != "" {
		sql, args = sqlOrdersOfCustomer, append(args, f.Customer)
	}
	rows, _ := tx.Query(ctx, sql, args...) // its error comes with the rows
	found, err := pgx.CollectRows(rows, scanOrder)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	ids := make([][16]byte, len(found))
	for i, o := range found {
		ids[i] = o.ID
	}
	rows, _ = tx.Query(ctx, sqlBatchOperations, int64(lane), ids)
	ops, err := pgx.CollectRows(rows, scanOperation)
	complete(name, ops, found...)
	return found, err
}
