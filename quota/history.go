package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Get reads a move; ErrMoveNotFound when there's none.
func (s *Store) Get(ctx context.Context, id uuid.UUID) (*Move, error) {
	journal, ok, err := s.Events.JournalOf(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, moveNotFound(id)
	}
	m, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	name, err := s.Events.Named(ctx, journal)
	m.Event = name.Event
	return m, err
}

func (s *Store) read(ctx context.Context, id uuid.UUID) (*Move, error) {
	journal, _ := ledger.JournalOf(id)
	rows, err := s.Reads.Query(ctx, sqlMove, int64(journal), id)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("read move %s: %w", id, err))
	}
	m, err := pgx.CollectExactlyOneRow(rows, scanMove)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, moveNotFound(id)
	}
	return m, pg.Fault(err)
}

// Filter selects moves of an event; zero fields don't.
type Filter struct {
	Status Status
	Tier   ledger.Unit
	Cause  Cause
	Before time.Time // and Last: the last move of the page before
	Last   uuid.UUID
	Limit  int
}

// History reads a page of an event's moves, newest first: all lanes, whatever moved them.
func (s *Store) History(ctx context.Context, event string, f Filter) ([]*Move, error) {
	journals, err := s.Events.Lanes(ctx, event)
	if err != nil {
		return nil, err
	}
	if f.Before.IsZero() {
		f.Before = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	rows, err := s.Reads.Query(ctx, sqlMoves, journals, f.Before, f.Last, f.Status, f.Tier, f.Cause, f.Limit, ledger.Uses)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list moves of %s: %w", event, err))
	}
	list, err := pgx.CollectRows(rows, scanMove)
	for _, m := range list {
		m.Event = event
	}
	return list, pg.Fault(err)
}
