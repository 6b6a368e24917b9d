package subscribers

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// Filter selects deliveries of one subscription.
type Filter struct {
	Status DeliveryStatus // "": all
	Before Position       // where the page before ended; the zero value: from the newest on
	Limit  int
}

// Position is a delivery's place in the log.
type Position struct {
	At      time.Time
	Journal ledger.JournalID
	Seq     ledger.Seq
}

// Deliveries reads a page of what was and is to be sent to a subscriber, the newest first,
// with all attempts but the answers' bodies. ErrSubscriptionNotFound.
func (s *Store) Deliveries(ctx context.Context, id uuid.UUID, f Filter) ([]Delivery, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	if f.Before == (Position{}) {
		f.Before.At = endOfTime
	}
	list, err := s.deliveries(ctx, id, sqlDeliveries, id, f.Before.At, int64(f.Before.Journal), int64(f.Before.Seq), string(f.Status), f.Limit)
	for i := range list {
		for j := range list[i].Log {
			list[i].Log[j].Response = ""
		}
	}
	return list, err
}

// Delivery reads one delivery with its attempts; ErrSubscriptionNotFound,
// ErrDeliveryNotFound.
func (s *Store) Delivery(ctx context.Context, id uuid.UUID, journal ledger.JournalID, seq ledger.Seq) (Delivery, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return Delivery{}, err
	}
	list, err := s.deliveries(ctx, id, sqlDelivery, id, int64(journal), int64(seq))
	if err == nil && len(list) == 0 {
		err = deliveryNotFound(journal, seq)
	}
	if err != nil {
		return Delivery{}, err
	}
	return list[0], nil
}

// deliveries reads the deliveries of a query, and their attempts.
func (s *Store) deliveries(ctx context.Context, id uuid.UUID, sql string, args ...any) ([]Delivery, error) {
	rows, _ := s.Reads.Query(ctx, sql, args...) // its error comes with the rows
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Delivery, error) { return scanDelivery(row, id) })
	if err != nil || len(list) == 0 {
		return nil, fail(err, "read deliveries of %s", id)
	}
	type key struct {
		journal ledger.JournalID
		seq     ledger.Seq
	}
	place := make(map[key]int, len(list))
	journals, seqs := make([]int64, len(list)), make([]int64, len(list))
	for i, d := range list {
		place[key{d.Journal, d.Seq}] = i
		journals[i], seqs[i] = int64(d.Journal), int64(d.Seq)
	}
	if rows, err = s.Reads.Query(ctx, sqlAttempts, id, journals, seqs); err != nil {
		return nil, fail(err, "read attempts of %s", id)
	}
	var k key
	var a Attempt
	_, err = pgx.ForEachRow(rows, []any{&k.journal, &k.seq, &a.Attempt, &a.At, &a.Milliseconds, &a.StatusCode, &a.Error, &a.Response}, func() error {
		a.At = a.At.UTC()
		d := &list[place[k]]
		d.Log = append(d.Log, a)
		return nil
	})
	return list, fail(err, "read attempts of %s", id)
}

func scanDelivery(row pgx.CollectableRow, id uuid.UUID) (d Delivery, err error) {
	err = row.Scan(&d.Journal, &d.Seq, &d.Kind, &d.Status, &d.Attempts, &d.CreatedAt, &d.NextAttemptAt, &d.EndedAt)
	d.WebhookID, d.Log, d.CreatedAt = webhookID(id, d.Journal, d.Seq), []Attempt{}, d.CreatedAt.UTC()
	for _, at := range []*time.Time{d.NextAttemptAt, d.EndedAt} {
		if at != nil {
			*at = at.UTC()
		}
	}
	return d, err
}

// Backlog is what's pending.
type Backlog struct {
	Pending int64         // counted up to a million
	Oldest  time.Duration // since the oldest of them was made
}

// maxCounted bounds the counting.
const maxCounted = 1_000_000

// Backlog counts what's pending, of all subscriptions.
func (s *Store) Backlog(ctx context.Context) (b Backlog, err error) {
	var seconds float64
	err = s.Reads.QueryRow(ctx, sqlBacklog, maxCounted).Scan(&b.Pending, &seconds)
	b.Oldest = time.Duration(seconds * float64(time.Second))
	return b, fail(err, "count pending deliveries")
}
