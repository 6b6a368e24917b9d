package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

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
	return *o, s.complete(ctx, journal, ops, o)
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
func (s *Store) complete(ctx context.Context, journal ledger.JournalID, ops []*Operation, list ...*Order) error {
	name, err := s.Events.Named(ctx, journal)
	if err != nil {
		return err
	}
	for _, o := range list {
		for _, op := range ops {
			if op.Order == o.ID {
				o.Operations = append(o.Operations, op)
			}
		}
		o.arrange()
		o.of(name.Event, name.Currency)
	}
	return nil
}

// Filter selects orders of an event; empty fields select all.
type Filter struct {
	Customer string
	Status   Status
	After    uuid.UUID // the last order of the page before
	Limit    int
}

// List reads a page of an event's orders in the order of their ids.
func (s *Store) List(ctx context.Context, event string, f Filter) ([]Order, error) {
	journal, err := s.Events.Journal(ctx, event)
	if err != nil {
		return nil, err
	}
	sql, args := sqlAllOrders, []any{int64(journal), f.After, f.Status, f.Limit}
	if f.Customer != "" {
		sql, args = sqlOrdersOfCustomer, append(args, f.Customer)
	}
	// Asked for before a connection is taken: it may take one itself.
	if _, err := s.Events.Named(ctx, journal); err != nil {
		return nil, err
	}
	tx, err := s.Reads.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list orders of %s: %w", event, err))
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // it has only read
	rows, _ := tx.Query(ctx, sql, args...)        // its error comes with the rows
	found, err := pgx.CollectRows(rows, scanOrder)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list orders of %s: %w", event, err))
	}
	ids := make([][16]byte, len(found))
	for i, o := range found {
		ids[i] = o.ID
	}
	rows, _ = tx.Query(ctx, sqlBatchOperations, int64(journal), ids)
	ops, err := pgx.CollectRows(rows, scanOperation)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list orders of %s: %w", event, err))
	}
	if err := s.complete(ctx, journal, ops, found...); err != nil {
		return nil, err
	}
	list := make([]Order, len(found))
	for i, o := range found {
		list[i] = *o
	}
	return list, nil
}
