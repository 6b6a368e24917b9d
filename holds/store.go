package holds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// Store places, ends and reads holds. It's safe for concurrent use.
type Store struct {
	ledger *ledger.Ledger
	events *buckets.Store
	quotas *quota.Store
	reads  *pgxpool.Pool
	nexts  singleflight.Group // readings of when holds of an event run out
}

// NewStore makes a store that commits through a ledger, gets tickets from other lanes by
// way of a store of quotas, and reads from a pool.
func NewStore(l *ledger.Ledger, events *buckets.Store, quotas *quota.Store, reads *pgxpool.Pool) *Store {
	return &Store{ledger: l, events: events, quotas: quotas, reads: reads}
}

// Release gives a hold's tickets back, with ifMatch only if it still has that
// version. The receipt's data is the hold; one that had ended stays as it was.
// Errors: ErrHoldNotFound, buckets.ErrVersionConflict, ErrHoldConfirmed,
// ErrPaymentInProgress, and those of ledger.Do.
func (s *Store) Release(ctx context.Context, principal, key string, id uuid.UUID, ifMatch *ledger.Seq) (ledger.Receipt, error) {
	journal, err := s.journalOf(ctx, id)
	if err != nil {
		return ledger.Receipt{}, err
	}
	parameters := struct {
		HoldID  uuid.UUID
		IfMatch *ledger.Seq
	}{id, ifMatch}
	c, err := ledger.NewCommand(journal, principal, key, KindReleased, parameters, &release{id, ifMatch})
	if err != nil {
		return ledger.Receipt{}, err
	}
	return s.ledger.Do(ctx, journal, c)
}

// journalOf finds the journal of a hold from its id; ErrHoldNotFound when the id
// tells none that exists.
func (s *Store) journalOf(ctx context.Context, id uuid.UUID) (ledger.JournalID, error) {
	journal, ok, err := s.events.JournalOf(ctx, id)
	if err == nil && !ok {
		err = NotFound(id)
	}
	return journal, err
}

// Get reads a hold as it is now: one that has run out reads as expired. The error
// is ErrHoldNotFound when there's none.
func (s *Store) Get(ctx context.Context, id uuid.UUID) (Hold, error) {
	journal, err := s.journalOf(ctx, id)
	if err != nil {
		return Hold{}, err
	}
	rows, err := s.reads.Query(ctx, sqlHold, int64(journal), id)
	if err != nil {
		return Hold{}, pg.Fault(fmt.Errorf("read hold %s: %w", id, err))
	}
	h, err := pgx.CollectExactlyOneRow(rows, readHold)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Hold{}, NotFound(id)
	case err != nil:
		return Hold{}, pg.Fault(fmt.Errorf("read hold %s: %w", id, err))
	}
	name, err := s.events.Named(ctx, journal)
	h.of(name.Event, name.Currency)
	return *h, err
}

// Filter selects holds of an event; empty fields select all.
type Filter struct {
	Customer string
	Status   Status
	After    uuid.UUID // the last hold of the page before
	Limit    int
}

// List reads a page of an event's holds, of all its lanes, in the order of their ids.
func (s *Store) List(ctx context.Context, event string, f Filter) ([]Hold, error) {
	lanes, err := s.events.Lanes(ctx, event)
	if err != nil {
		return nil, err
	}
	found, err := buckets.Page(lanes, f.After, f.Limit, func(lane ledger.JournalID, limit int) ([]*Hold, error) {
		return s.list(ctx, lane, f, limit)
	})
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list holds of %s: %w", event, err))
	}
	name, err := s.events.Named(ctx, lanes[0])
	list := make([]Hold, len(found))
	for i, h := range found {
		h.of(name.Event, name.Currency)
		list[i] = *h
	}
	return list, err
}

// list reads a page of one lane's holds.
func (s *Store) list(ctx context.Context, lane ledger.JournalID, f Filter, limit int) ([]*Hold, error) {
	sql, args := sqlAllHolds, []any{int64(lane), f.After, f.Status, limit}
	switch {
	case f.Customer != "":
		sql, args = sqlHoldsOfCustomer, append(args, f.Customer)
	case f.Status == Held:
		sql, args = sqlOpenHolds, []any{int64(lane), f.After, limit}
	}
	rows, err := s.reads.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, readHold)
}

// readHold reads a row and the clock, and shows a due hold as expired.
func readHold(rows pgx.CollectableRow) (*Hold, error) {
	var now time.Time
	h, err := scanHold(rows, &now)
	if err == nil && h.Due(now) {
		h.Status = Expired
	}
	return h, err
}

// Overdue is a journal whose holds have run out and not been expired yet.
type Overdue struct {
	Journal ledger.JournalID
	Since   time.Duration // since the first of them ran out
}

// Overdue lists the journals that have overdue holds.
func (s *Store) Overdue(ctx context.Context) ([]Overdue, error) {
	rows, err := s.reads.Query(ctx, sqlFirstDue)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("find overdue holds: %w", err))
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Overdue, err error) {
		var seconds float64
		err = row.Scan(&o.Journal, &seconds)
		o.Since = time.Duration(seconds * float64(time.Second))
		return o, err
	})
	return list, pg.Fault(err)
}

// Limits of a sweep.
const (
	maxSweeps   = 64              // rounds, each with some thousand expiries a journal; the next sweep goes on
	wakeTimeout = 2 * time.Second // a journal that doesn't answer keeps no other waiting for longer
)

// Sweep expires what is due in journals that nobody asks anything of, and tells
// how old the oldest overdue hold was. It's idempotent; any number may run at
// once, and none need to for holds to expire on time for the next buyer. A journal
// that fails doesn't stop the others; the error joins theirs.
func (s *Store) Sweep(ctx context.Context) (oldest time.Duration, err error) {
	failed := make(map[ledger.JournalID]error)
	for range maxSweeps {
		overdue, err := s.Overdue(ctx)
		if err != nil {
			return oldest, errors.Join(append(slices.Collect(maps.Values(failed)), err)...)
		}
		worked := false
		for _, o := range overdue {
			oldest = max(oldest, o.Since)
			if failed[o.Journal] != nil {
				continue
			}
			worked = true
			if err := s.wake(ctx, o.Journal); err != nil {
				failed[o.Journal] = fmt.Errorf("sweep journal %d: %w", o.Journal, err)
			}
		}
		if !worked {
			break
		}
	}
	return oldest, errors.Join(slices.Collect(maps.Values(failed))...)
}

func (s *Store) wake(ctx context.Context, journal ledger.JournalID) error {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	return s.ledger.Wake(ctx, journal)
}
