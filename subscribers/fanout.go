package subscribers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// ConsumerName is under which this package's positions and dead letters are kept.
const ConsumerName = "webhooks"

// Consumer makes deliveries of entries, of all kinds.
func (s *Store) Consumer() outbox.Consumer {
	return outbox.Consumer{
		Name:   ConsumerName,
		Effect: s.fanOut,
		Idle:   idle,
		Then:   func(context.Context, []outbox.Event) { s.hint() },
	}
}

// idle tells that nobody is told of anything. A subscription that isn't seen yet isn't told
// of entries that are there already.
func idle(ctx context.Context, tx pgx.Tx) (none bool, err error) {
	err = tx.QueryRow(ctx, sqlNoneActive).Scan(&none)
	return none, err
}

// everything is the family of all kinds.
const everything = "*.*"

// Wanted gives the kinds, and families of kinds, that somebody is told of: what the bus
// shall wake the consumer for.
func (s *Store) Wanted(ctx context.Context) ([]string, error) {
	rows, _ := s.Reads.Query(ctx, sqlWanted) // its error comes with the rows
	lists, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("look for wanted kinds: %w", err))
	}
	var wanted []string
	for _, kinds := range lists {
		if len(kinds) == 0 {
			return []string{everything}, nil
		}
		wanted = append(wanted, kinds...)
	}
	return wanted, nil
}

// fanOut makes a delivery of each entry for each subscription that it's for. Entries that
// come again make none.
func (s *Store) fanOut(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
	if len(events) == 0 {
		return nil
	}
	journal := events[0].Journal
	name, err := s.eventOf(ctx, journal)
	if err != nil {
		return err
	}
	seqs, kinds, times := make([]int64, len(events)), make([]string, len(events)), make([]time.Time, len(events))
	for i := range events {
		seqs[i], kinds[i], times[i] = int64(events[i].Seq), events[i].Kind, events[i].At
	}
	_, err = tx.Exec(ctx, sqlFanOut, int64(journal), seqs, kinds, times, name)
	return err
}

// eventOf names the event that a journal records, whichever of its lanes' it is; "" when
// none. A lane that's added later is found like any.
func (s *Store) eventOf(ctx context.Context, journal ledger.JournalID) (string, error) {
	if journal == ledger.System {
		return "", nil
	}
	name, err := s.Events.Named(ctx, journal)
	switch e := fault.As(err); {
	case errors.Is(err, buckets.ErrEventNotFound):
		return "", nil
	case e != nil && e.Kind == fault.Unavailable:
		return "", fmt.Errorf("%w: %w", outbox.ErrAway, err)
	}
	return name.Event, err
}

// Redo makes the delivery of a dead letter pending again, with all attempts before it. One
// that was resent meanwhile stays as it is. Errors: ErrSubscriptionNotFound,
// ErrSubscriptionDisabled, ErrDeliveryNotFound.
func (s *Store) Redo(ctx context.Context, tx pgx.Tx, l outbox.Letter) error {
	id, err := parseTarget(l.Target)
	if err != nil {
		return err
	}
	if err := lockActive(ctx, tx, id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlRedo, id, int64(l.Event.Journal), int64(l.Event.Seq)); err != nil {
		return err
	}
	rows, _ := tx.Query(ctx, sqlDelivery, id, int64(l.Event.Journal), int64(l.Event.Seq)) // its error comes with the row
	_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (Delivery, error) { return scanDelivery(row, id) })
	if errors.Is(err, pgx.ErrNoRows) {
		return deliveryNotFound(l.Event.Journal, l.Event.Seq)
	}
	return err
}
