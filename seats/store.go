package seats

import (
	"context"
	"encoding/json"
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

// Store loads charts, blocks seats and reads them. It's safe for concurrent use.
type Store struct {
	ledger *ledger.Ledger
	events *buckets.Store
	reads  *pgxpool.Pool
	charts *Charts
}

// NewStore makes a store that commits through a ledger and reads from a pool.
func NewStore(l *ledger.Ledger, events *buckets.Store, reads *pgxpool.Pool, charts *Charts) *Store {
	return &Store{ledger: l, events: events, reads: reads, charts: charts}
}

// Load adds a chart's sections to an event, and their seats as tickets to the tiers, all
// or none. The receipt's data is a ChartView. Errors: ErrEventNotFound, ErrInvalidRequest
// with the field, ErrTierNotFound, ErrSectionExists, and those of ledger.Do.
func (s *Store) Load(ctx context.Context, principal, key, event string, chart Chart) (ledger.Receipt, error) {
	journal, err := s.events.Journal(ctx, event)
	if err != nil {
		return ledger.Receipt{}, err
	}
	c, err := LoadCommand(journal, principal, key, chart)
	if err != nil {
		return ledger.Receipt{}, err
	}
	return s.ledger.Do(ctx, journal, c)
}

// Block takes free seats off sale, all or none. The receipt's data is a BlockView. Errors:
// ErrEventNotFound, ErrInvalidRequest with the field, ErrSeatNotFound, ErrSeatUnavailable,
// and those of ledger.Do.
func (s *Store) Block(ctx context.Context, principal, key, event string, r BlockRequest, dryRun bool) (ledger.Receipt, error) {
	return s.setAside(ctx, principal, key, event, r, Blocked, dryRun)
}

// Unblock puts blocked seats back on sale, all or none. The receipt's data is a BlockView.
// Errors: those of Block, with ErrNotBlocked for ErrSeatUnavailable.
func (s *Store) Unblock(ctx context.Context, principal, key, event string, r BlockRequest, dryRun bool) (ledger.Receipt, error) {
	return s.setAside(ctx, principal, key, event, r, Available, dryRun)
}

func (s *Store) setAside(ctx context.Context, principal, key, event string, r BlockRequest, to State, dryRun bool) (ledger.Receipt, error) {
	journal, err := s.events.Journal(ctx, event)
	if err != nil {
		return ledger.Receipt{}, err
	}
	c, err := BlockCommand(journal, principal, key, r, to)
	if err != nil {
		return ledger.Receipt{}, err
	}
	c.DryRun = dryRun
	return s.ledger.Do(ctx, journal, c)
}

// SeatView is a seat as operators see it.
type SeatView struct {
	Seat       string      `json:"seat"`
	Section    string      `json:"section"`
	Row        string      `json:"row"`
	Tier       ledger.Unit `json:"tier"`
	Accessible bool        `json:"accessible,omitempty"`
	State      State       `json:"state"`
	HoldID     *uuid.UUID  `json:"hold_id,omitempty"` // that has it, or had it last
	Until      *time.Time  `json:"until,omitempty"`   // of a held seat: end of its hold
	Allotment  string      `json:"allotment,omitempty"`
	Version    ledger.Seq  `json:"version"`
}

// Get reads a seat. Errors: ErrEventNotFound, ErrSeatNotFound.
func (s *Store) Get(ctx context.Context, event, label string) (SeatView, error) {
	journal, err := s.events.Journal(ctx, event)
	if err != nil {
		return SeatView{}, err
	}
	v := SeatView{Seat: label}
	err = s.reads.QueryRow(ctx, sqlSeat, int64(journal), label).
		Scan(&v.State, &v.HoldID, &v.Until, &v.Allotment, &v.Version)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return SeatView{}, notFound([]string{label})
	case err != nil:
		return SeatView{}, pg.Fault(fmt.Errorf("read seat %s of %s: %w", label, event, err))
	}
	chart, err := s.charts.read(ctx, s.reads, journal)
	if err != nil {
		return SeatView{}, err
	}
	at := chart.spots[label]
	v.Section, v.Tier, v.Row, v.Accessible = at.row.section.Section.Section, at.tier(), at.row.name, at.row.seats[at.place].Accessible
	return v, nil
}

// scanSection reads a section of the chart.
func scanSection(row pgx.CollectableRow) (*section, error) {
	s := &section{}
	var text []byte
	err := row.Scan(&s.Section.Section, &s.Name, &s.Tier, &text, &s.version)
	if err != nil {
		return nil, err
	}
	return s, json.Unmarshal(text, &s.Rows)
}
