package subscribers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// keep is how long the log has a delivery that was taken or dropped. A dead one stays:
	// its dead letter can be replayed at any time.
	keep = 30 * 24 * time.Hour
	// pruneEvery is how often it's looked for what's older.
	pruneEvery = 10 * time.Minute
	// maxPruned bounds what one transaction removes.
	maxPruned = 1000
)

// prune removes from the log what's older than it keeps, until ctx ends.
func (w *worker) prune(ctx context.Context) {
	every := time.NewTicker(pruneEvery)
	defer every.Stop()
	for {
		if err := w.pruneAll(ctx); err != nil && ctx.Err() == nil {
			w.Log.Warn("pruning the log of webhooks failed", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

func (w *worker) pruneAll(ctx context.Context) error {
	rows, _ := w.Pool.Query(ctx, sqlSubscriptionsToPrune, keep) // its error comes with the rows
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("look for old deliveries: %w", err)
	}
	for _, id := range ids {
		for n := maxPruned; n == maxPruned; {
			if n, err = w.pruneSome(ctx, id); err != nil {
				return fmt.Errorf("prune deliveries of %s: %w", id, err)
			}
		}
	}
	return nil
}

// pruneSome removes some old deliveries of a subscription with their attempts. It waits for
// nobody: what's being resent stays.
func (w *worker) pruneSome(ctx context.Context, id uuid.UUID) (n int, err error) {
	err = pgx.BeginFunc(ctx, w.Pool, func(tx pgx.Tx) error {
		var journals, seqs []int64
		var journal, seq int64
		rows, _ := tx.Query(ctx, sqlPrune, id, keep, maxPruned) // its error comes with the rows
		_, err := pgx.ForEachRow(rows, []any{&journal, &seq}, func() error {
			journals, seqs = append(journals, journal), append(seqs, seq)
			return nil
		})
		if err != nil {
			return err
		}
		n = len(seqs)
		_, err = tx.Exec(ctx, sqlPruneAttempts, id, journals, seqs)
		return err
	})
	return n, err
}
