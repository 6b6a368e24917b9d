package tickets

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
)

// Options are what a Store stands on. Events and Reads are required.
type Options struct {
	// Ring signs tickets with its first key, and all its keys are told to gates. Without any
	// no ticket is issued.
	Ring   keyring.Ring
	Events *buckets.Store
	Reads  *pgxpool.Pool
}

// Store issues tickets as a consumer of the journals, and reads them. It's safe for
// concurrent use.
type Store struct{ Options }

// NewStore makes a store. It writes in the transactions of whoever runs its Consumer only.
func NewStore(o Options) *Store { return &Store{o} }

// Keys gives the public keys that tokens are verified with, the one in use first;
// ErrNoTicketKeys when there's none.
func (s *Store) Keys() (keyring.KeySet, error) {
	if len(s.Ring) == 0 {
		return keyring.KeySet{}, ErrNoTicketKeys.Because("no secret is configured")
	}
	return s.Ring.KeySet(), nil
}

// Get reads a ticket as it is now; ErrTicketNotFound when there's none.
func (s *Store) Get(ctx context.Context, id uuid.UUID) (Ticket, error) {
	rows, _ := s.Reads.Query(ctx, sqlTicket, id) // its error comes with the rows
	t, err := pgx.CollectExactlyOneRow(rows, readTicket)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Ticket{}, notFound(id)
	case err != nil:
		return Ticket{}, pg.Fault(fmt.Errorf("read ticket %s: %w", id, err))
	}
	return *t, s.name(ctx, t)
}

// List reads a page of an order's tickets, valid or not, by number: at most so many of
// those after a number. An order without tickets has none, and so has one that doesn't
// exist.
func (s *Store) List(ctx context.Context, order uuid.UUID, after, limit int) ([]Ticket, error) {
	journal, ok := ledger.JournalOf(order)
	if !ok {
		return nil, nil
	}
	rows, _ := s.Reads.Query(ctx, sqlTicketsOfOrder, int64(journal), order, after, limit)
	found, err := pgx.CollectRows(rows, readTicket)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list tickets of order %s: %w", order, err))
	}
	list := make([]Ticket, len(found))
	for i, t := range found {
		if err := s.name(ctx, t); err != nil {
			return nil, err
		}
		list[i] = *t
	}
	return list, nil
}

// name fills in the event.
func (s *Store) name(ctx context.Context, t *Ticket) error {
	journal, _ := ledger.JournalOf(t.Order)
	name, err := s.Events.Named(ctx, journal)
	t.Event = name.Event
	return err
}
