package bench

import (
	"context"
	"fmt"
	"time"
)

const (
	sqlNotPublished = `
SELECT coalesce(sum(j.seq - coalesce(r.seq, 0)), 0)::bigint
FROM journals j
LEFT JOIN relays r ON r.journal_id = j.journal_id`

	// Of whatever kind: a consumer passes over entries that aren't for it.
	sqlNotConsumed = `
SELECT coalesce(sum(j.seq - coalesce(i.seq, 0)), 0)::bigint
FROM journals j
CROSS JOIN (SELECT DISTINCT consumer FROM inbox) c
LEFT JOIN inbox i ON i.consumer = c.consumer
                 AND i.journal_id = j.journal_id`

	sqlHeads = `
SELECT journal_id, seq
FROM journals
WHERE seq > 0`

	sqlSample = `
SELECT journal_id, seq, id, kind, at, data
FROM entries
WHERE journal_id = (` + sqlJournal + `)
ORDER BY seq
LIMIT $2`
)

// notPublished counts the entries that the publisher hasn't noted as acknowledged.
func (db *database) notPublished(ctx context.Context) (n int64, err error) {
	err = db.pool.QueryRow(ctx, sqlNotPublished).Scan(&n)
	return n, err
}

// notConsumed counts what the consumers haven't come to, each its own.
func (db *database) notConsumed(ctx context.Context) (n int64, err error) {
	err = db.pool.QueryRow(ctx, sqlNotConsumed).Scan(&n)
	return n, err
}

// journal is the journal of an event.
func (db *database) journal(ctx context.Context, event string) (journal int64, err error) {
	err = db.pool.QueryRow(ctx, sqlJournal, event).Scan(&journal)
	return journal, err
}

// heads are the last seqs of all journals that have entries, and their sum.
func (db *database) heads(ctx context.Context) (heads map[int64]int64, sum int64, err error) {
	rows, err := db.pool.Query(ctx, sqlHeads)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	heads = make(map[int64]int64)
	for rows.Next() {
		var journal, seq int64
		if err := rows.Scan(&journal, &seq); err != nil {
			return nil, 0, err
		}
		heads[journal] = seq
		sum += seq
	}
	return heads, sum, rows.Err()
}

const (
	// catchUpEvery is how often a count is looked at that's waited for.
	catchUpEvery = 20 * time.Millisecond
	// catchUpPatience bounds that wait, in which nothing else happens.
	catchUpPatience = 10 * time.Minute
)

// caughtUp waits until counts are 0, and tells how long that took.
func (r *relayRun) caughtUp(ctx context.Context, doing string, counts ...func(context.Context) (int64, error)) (time.Duration, error) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, catchUpPatience)
	defer cancel()
	timer := time.NewTicker(catchUpEvery)
	defer timer.Stop()
	for {
		var left int64
		for _, count := range counts {
			n, err := count(ctx)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", doing, err)
			}
			left += n
		}
		if left == 0 {
			return time.Since(started), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%s: %d entries are left: %w", doing, left, ctx.Err())
		case <-timer.C:
		}
	}
}
