package cases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Store reads cases. It's safe for concurrent use.
type Store struct {
	events *buckets.Store
	reads  *pgxpool.Pool
}

// NewStore makes a store that reads from a pool.
func NewStore(events *buckets.Store, reads *pgxpool.Pool) *Store {
	return &Store{events: events, reads: reads}
}

// Get reads a case as it is now; ErrCaseNotFound when there's none.
func (s *Store) Get(ctx context.Context, id uuid.UUID) (Case, error) {
	journal, ok := ledger.JournalOf(id)
	if !ok {
		return Case{}, NotFound(id)
	}
	rows, err := s.reads.Query(ctx, sqlCase, int64(journal), id)
	if err != nil {
		return Case{}, pg.Fault(fmt.Errorf("read case %s: %w", id, err))
	}
	c, err := pgx.CollectExactlyOneRow(rows, readCase)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Case{}, NotFound(id)
	case err != nil:
		return Case{}, pg.Fault(fmt.Errorf("read case %s: %w", id, err))
	}
	return *c, s.name(ctx, c)
}

// name fills in the event.
func (s *Store) name(ctx context.Context, c *Case) error {
	journal, _ := ledger.JournalOf(c.ID)
	if journal == ledger.System {
		return nil
	}
	name, err := s.events.Named(ctx, journal)
	c.Event = name.Event
	return err
}

// Filter selects cases; empty fields select all.
type Filter struct {
	Event  string
	Status Status
	Reason Reason
	MinAge time.Duration
	After  uuid.UUID // the last case of the page before
	Limit  int
}

// List reads a page of cases in the order of their ids: of all journals, or of all lanes of
// an event.
func (s *Store) List(ctx context.Context, f Filter) ([]Case, error) {
	found, err := s.find(ctx, f)
	if err != nil {
		return nil, err
	}
	list := make([]Case, len(found))
	for i, c := range found {
		if err := s.name(ctx, c); err != nil {
			return nil, err
		}
		list[i] = *c
	}
	return list, nil
}

// find reads what a filter selects.
func (s *Store) find(ctx context.Context, f Filter) ([]*Case, error) {
	if f.Event == "" {
		return s.list(ctx, nil, f, f.Limit)
	}
	lanes, err := s.events.Lanes(ctx, f.Event)
	if err != nil {
		return nil, err
	}
	return buckets.Page(lanes, f.After, f.Limit, func(lane ledger.JournalID, limit int) ([]*Case, error) {
		return s.list(ctx, &lane, f, limit)
	})
}

// list reads a page of one journal's cases; of all journals' for nil.
func (s *Store) list(ctx context.Context, journal *ledger.JournalID, f Filter, limit int) ([]*Case, error) {
	rows, err := s.reads.Query(ctx, sqlListCases, journal, f.After, f.Status, f.Reason, f.MinAge.Seconds(), limit)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list cases: %w", err))
	}
	found, err := pgx.CollectRows(rows, readCase)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list cases: %w", err))
	}
	return found, nil
}

// readCase reads a row and the age.
func readCase(row pgx.CollectableRow) (*Case, error) {
	var age int64
	c, err := scanCase(row, &age)
	if err == nil {
		c.AgeSeconds = max(age, 0)
	}
	return c, err
}

// Due is a case that policy decides on now.
type Due struct {
	ID    uuid.UUID
	Order uuid.UUID
}

// Due lists up to limit cases that the program itself must act on by now.
func (s *Store) Due(ctx context.Context, limit int) ([]Due, error) {
	rows, err := s.reads.Query(ctx, sqlDueCases, limit)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("find due cases: %w", err))
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Due])
	return due, pg.Fault(err)
}

// CountOpen counts the cases that aren't resolved, by reason.
func (s *Store) CountOpen(ctx context.Context) (map[Reason]int64, error) {
	rows, err := s.reads.Query(ctx, sqlCountOpen)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("count open cases: %w", err))
	}
	counts := make(map[Reason]int64)
	var reason Reason
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&reason, &n}, func() error { counts[reason] = n; return nil })
	return counts, pg.Fault(err)
}
