package buckets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Store creates, changes and reads events and tiers. It's safe for concurrent use.
type Store struct {
	ledger *ledger.Ledger
	reader *ledger.Reader
	reads  *pgxpool.Pool

	// journals remembers which journal is the home of an event, and names which
	// event a journal records. That never changes, so it may be remembered;
	// nothing else is.
	journals sync.Map // event -> ledger.JournalID
	names    sync.Map // ledger.JournalID -> Name
	// layouts has how events were split when this process last looked; see Layout.
	layouts sync.Map // event -> Layout
}

// NewStore makes a store that commits through a ledger and reads from a pool.
func NewStore(l *ledger.Ledger, reader *ledger.Reader, reads *pgxpool.Pool) *Store {
	return &Store{ledger: l, reader: reader, reads: reads}
}

// Create makes an event on sale as a spec says. The receipt's data is the event.
// Errors: ErrInvalidRequest with the field, ErrEventExists, and those of
// ledger.Do. After an error a repeat under the same key finishes what was begun.
func (s *Store) Create(ctx context.Context, principal, key string, spec Spec) (ledger.Receipt, error) {
	return s.CreateWith(ctx, principal, key, spec, nil)
}

// CreateWith is Create for an event that was asked for together with something else, such
// as a chart: the same key with another is a mismatch.
func (s *Store) CreateWith(ctx context.Context, principal, key string, spec Spec, with any) (ledger.Receipt, error) {
	if err := spec.normalize(); err != nil {
		return ledger.Receipt{}, err
	}
	parameters := struct {
		Spec
		With any `json:"with,omitempty"`
	}{spec, with}
	c, err := ledger.NewCommand(ledger.System, principal, key, KindEventCreated, parameters, &create{&spec})
	if err != nil {
		return ledger.Receipt{}, err
	}
	created, err := s.ledger.Do(ctx, ledger.System, c)
	if err != nil {
		return ledger.Receipt{}, err
	}
	opened, err := s.open(ctx, ledger.JournalID(created.Seq), &spec)
	opened.Replayed = created.Replayed
	return opened, err
}

// open does the second step of a creation; it may have been done.
func (s *Store) open(ctx context.Context, journal ledger.JournalID, spec *Spec) (ledger.Receipt, error) {
	if err := s.ledger.Create(ctx, journal); err != nil {
		return ledger.Receipt{}, err
	}
	c, err := openCommand(journal, spec)
	if err != nil {
		return ledger.Receipt{}, err
	}
	return s.ledger.Do(ctx, journal, c)
}

// openTimeout bounds the opening of one event, so that it keeps no other waiting.
const openTimeout = 2 * time.Second

// OpenCreated opens the events that were created and not opened, because their
// process died in between. It's idempotent; any number may run at once. An event
// that can't be opened doesn't stop the others; the error joins theirs.
func (s *Store) OpenCreated(ctx context.Context) error {
	rows, err := s.reads.Query(ctx, sqlCreatedOnly, int64(ledger.System))
	if err != nil {
		return pg.Fault(fmt.Errorf("find created events: %w", err))
	}
	journals, err := pgx.CollectRows(rows, pgx.RowTo[ledger.Seq])
	if err != nil {
		return pg.Fault(fmt.Errorf("find created events: %w", err))
	}
	var failed []error
	for _, seq := range journals {
		if err := s.openCreated(ctx, seq); err != nil {
			failed = append(failed, fmt.Errorf("open the event of entry %d: %w", seq, err))
		}
	}
	return errors.Join(failed...)
}

// openCreated opens the event that an entry of the system journal created.
func (s *Store) openCreated(ctx context.Context, seq ledger.Seq) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	data, err := s.reader.EntryData(ctx, ledger.System, seq)
	if err != nil {
		return err
	}
	var spec Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return err
	}
	_, err = s.open(ctx, ledger.JournalID(seq), &spec)
	return err
}

// Journal finds the journal of an event, of its first lane when it's split;
// ErrEventNotFound when there's none.
func (s *Store) Journal(ctx context.Context, event string) (ledger.JournalID, error) {
	if j, ok := s.journals.Load(event); ok {
		return j.(ledger.JournalID), nil
	}
	if !ValidID(event) {
		return 0, eventNotFound(event)
	}
	var number int64
	err := s.reads.QueryRow(ctx, sqlFindJournal, int64(ledger.System), event).Scan(&number)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, eventNotFound(event)
	case err != nil:
		return 0, pg.Fault(fmt.Errorf("find event %s: %w", event, err))
	}
	s.journals.Store(event, ledger.JournalID(number))
	return ledger.JournalID(number), nil
}

func eventNotFound(event string) error {
	return ErrEventNotFound.Because("%q", event).With("event", event)
}

// Name is what never changes about an event.
type Name struct {
	Event     string
	Currency  ledger.Unit
	Organiser string
}

// Named tells which event a journal records; ErrEventNotFound when none.
func (s *Store) Named(ctx context.Context, journal ledger.JournalID) (Name, error) {
	if n, ok := s.names.Load(journal); ok {
		return n.(Name), nil
	}
	var n Name
	err := s.reads.QueryRow(ctx, sqlNameJournal, int64(journal)).Scan(&n.Event, &n.Currency, &n.Organiser)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return n, ErrEventNotFound.Because("journal %d", journal)
	case err != nil:
		return n, pg.Fault(fmt.Errorf("name journal %d: %w", journal, err))
	}
	s.names.Store(journal, n)
	return n, nil
}

// JournalOf finds the journal of an event from an id that was made in it; false when the
// id tells none that exists.
func (s *Store) JournalOf(ctx context.Context, id uuid.UUID) (ledger.JournalID, bool, error) {
	journal, ok := ledger.JournalOf(id)
	if !ok {
		return 0, false, nil
	}
	_, err := s.Named(ctx, journal)
	if errors.Is(err, ErrEventNotFound) {
		return 0, false, nil
	}
	return journal, err == nil, err
}

// AddTier adds a tier to an event. The receipt's data is the tier. Errors:
// ErrEventNotFound, ErrInvalidRequest with the field, ErrTierExists, and those of
// ledger.Do.
func (s *Store) AddTier(ctx context.Context, principal, key, event string, spec TierSpec) (ledger.Receipt, error) {
	journal, err := s.Journal(ctx, event)
	if err != nil {
		return ledger.Receipt{}, err
	}
	c, err := ledger.NewCommand(journal, principal, key, KindTierAdded, spec, &addTier{&spec})
	if err != nil {
		return ledger.Receipt{}, err
	}
	return s.ledger.Do(ctx, journal, c)
}

// ChangeTier changes a tier's name, limit, price (a new price version; holds keep
// theirs) or capacity; with ifMatch only if the tier still has that version. The
// receipt's data is the tier. Errors: ErrEventNotFound, ErrTierNotFound, ErrVersionConflict,
// ErrInvalidRequest with the field, ErrBelowCommitted with the minimum, and those of
// ledger.Do.
func (s *Store) ChangeTier(ctx context.Context, principal, key, event string, tier ledger.Unit, change TierChange, ifMatch *ledger.Seq, dryRun bool) (ledger.Receipt, error) {
	return s.ChangeTierIn(ctx, principal, key, event, tier, change, ifMatch, dryRun, 0)
}

// ChangeTierIn is ChangeTier, where a dry run may count on free tickets in other lanes.
func (s *Store) ChangeTierIn(ctx context.Context, principal, key, event string, tier ledger.Unit, change TierChange, ifMatch *ledger.Seq, dryRun bool, elsewhere ledger.Amount) (ledger.Receipt, error) {
	journal, err := s.Journal(ctx, event)
	if err != nil {
		return ledger.Receipt{}, err
	}
	parameters := struct {
		Tier    ledger.Unit
		Change  TierChange
		IfMatch *ledger.Seq
	}{tier, change, ifMatch}
	body := &changeTier{tier: tier, change: change, ifMatch: ifMatch}
	if dryRun {
		body.elsewhere = elsewhere
	}
	c, err := ledger.NewCommand(journal, principal, key, KindTierChanged, parameters, body)
	if err != nil {
		return ledger.Receipt{}, err
	}
	c.DryRun = dryRun
	return s.ledger.Do(ctx, journal, c)
}

// Get reads an event; ErrEventNotFound when there's none.
func (s *Store) Get(ctx context.Context, event string) (EventView, error) {
	journal, err := s.Journal(ctx, event)
	if err != nil {
		return EventView{}, err
	}
	return s.get(ctx, journal)
}

func (s *Store) get(ctx context.Context, journal ledger.JournalID) (EventView, error) {
	q := &pgx.Batch{}
	var event *Event
	var tiers []*Tier
	q.Queue(sqlBatchEvent, int64(journal)).Query(func(rows pgx.Rows) (err error) {
		for rows.Next() && err == nil {
			event, _, err = scanEventLane(rows)
		}
		return err
	})
	q.Queue(sqlBatchTiers, int64(journal)).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			t, err := scanTier(rows)
			if err != nil {
				return err
			}
			tiers = append(tiers, t)
		}
		return rows.Err()
	})
	if err := s.reads.SendBatch(ctx, q).Close(); err != nil {
		return EventView{}, pg.Fault(fmt.Errorf("read event of journal %d: %w", journal, err))
	}
	stock, err := s.reader.Stock(ctx, journal)
	if err != nil {
		return EventView{}, err
	}
	views := make([]TierView, 0, len(tiers))
	for _, t := range tiers {
		capacity := stock.Tiers[t.Tier][ledger.Capacity]
		event.Version = max(event.Version, t.Version, capacity.Version) // it's shown with its tiers, and a chart adds to those
		views = append(views, viewTier(t, -capacity.Balance, event.Currency))
	}
	return viewEvent(event, views), nil
}

// List reads up to limit events in order of their names, after one.
func (s *Store) List(ctx context.Context, after string, limit int) ([]EventView, error) {
	rows, err := s.reads.Query(ctx, sqlListEvents, after, limit)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list events: %w", err))
	}
	journals, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list events: %w", err))
	}
	views := make([]EventView, 0, len(journals))
	for _, j := range journals {
		v, err := s.get(ctx, ledger.JournalID(j))
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}
