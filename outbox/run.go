package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// sweepEvery is how often all journals are looked at for what no message has told of.
	sweepEvery = 2 * time.Second
	// followAtLeast is how long messages are taken before a sweep that has more to do.
	followAtLeast = 50 * time.Millisecond
	// maxMessages bounds what's taken from the bus at once.
	maxMessages = 500
	// maxSwept bounds the journals of one sweep.
	maxSwept = 256
	// maxJunk bounds what's kept of a message that names no entry, in bytes: enough to see
	// whose it is.
	maxJunk = 4 << 10
	// lastPause is the longest pause of a consumer whose dependency is away.
	lastPause = 10 * time.Second
)

// Run has the consumer take what comes from the bus, and looks for what doesn't come,
// until ctx ends. Feed may be nil: then it only looks.
func (i *Inbox) Run(ctx context.Context, feed Feed) {
	failures, swept := 0, int64(-1)
	for ctx.Err() == nil {
		more, err := i.sweep(ctx, &swept)
		pause := sweepEvery
		switch {
		case err != nil:
			i.pause(ctx, failures, err)
			failures++
			pause = 0
		case more:
			failures, pause = 0, 0
		default:
			failures = 0
		}
		switch {
		case err != nil && lost(err): // nothing can be done
		case feed != nil:
			i.follow(ctx, feed, max(pause, followAtLeast))
		default:
			wait.For(ctx, pause)
		}
	}
}

// sweep gives journals their turn in which there's something to do, from after the one
// where the last sweep ended. It tells whether there's more.
func (i *Inbox) sweep(ctx context.Context, swept *int64) (more bool, err error) {
	journals, err := i.behind(ctx, *swept)
	if err != nil {
		return false, fmt.Errorf("look for entries: %w", err)
	}
	more = len(journals) == maxSwept
	var first error
	for _, j := range journals {
		*swept = j
		_, further, err := i.turn(ctx, ledger.JournalID(j), nil)
		if err != nil && (lost(err) || ctx.Err() != nil) {
			return false, err
		}
		more = more || further
		first = cmp.Or(first, err) // the other journals aren't at fault
	}
	return more, first
}

// behind lists journals in which there's something to do, after one.
func (i *Inbox) behind(ctx context.Context, after int64) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	rows, err := i.Pool.Query(ctx, sqlInboxBehind, i.Consumer.Name, maxSwept, after)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// follow takes messages for a while.
func (i *Inbox) follow(ctx context.Context, feed Feed, while time.Duration) {
	bounded, cancel := context.WithTimeout(ctx, while)
	defer cancel()
	for bounded.Err() == nil {
		messages, err := feed.Next(bounded, maxMessages)
		if err != nil {
			wait.For(bounded, sweepEvery) // the bus is away: the sweep does the same, later
			return
		}
		if err := i.take(ctx, messages); err != nil {
			return // the sweep meets the same error, and says so
		}
	}
}

// take advances in the journals that messages tell of, and lets the messages go that are
// taken care of: their effects are there, or their entries wait for another try.
func (i *Inbox) take(ctx context.Context, messages []Message) error {
	told := make(map[ledger.JournalID]map[ledger.Seq]bool)
	for _, m := range messages {
		if m.Err != nil {
			continue
		}
		if told[m.Journal] == nil {
			told[m.Journal] = make(map[ledger.Seq]bool)
		}
		told[m.Journal][m.Seq] = true
	}
	type outcome struct {
		at   ledger.Seq
		more bool
		err  error
	}
	outcomes := make(map[ledger.JournalID]outcome, len(told))
	for journal, seqs := range told {
		at, more, err := i.turn(ctx, journal, seqs)
		outcomes[journal] = outcome{at, more, err}
	}
	var first error
	for _, m := range messages {
		switch o := outcomes[m.Journal]; {
		case m.Err != nil:
			if err := i.bury(ctx, m); err != nil {
				m.Again(sweepEvery)
				first = cmp.Or(first, err)
			} else {
				m.Drop()
			}
		case o.err != nil:
			m.Again(sweepEvery)
			first = cmp.Or(first, o.err)
		case o.more && m.Seq > o.at:
			m.Again(0)
		default:
			m.Done()
		}
	}
	return first
}

// bury writes a dead letter of a message that names no entry. The row comes first: a
// message that's dropped is gone.
func (i *Inbox) bury(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	l := Letter{Consumer: i.Consumer.Name, Target: m.Origin, Payload: m.Data[:min(len(m.Data), maxJunk)], Attempts: 1,
		Reason: "the message names no entry: " + m.Err.Error()}
	err := pgx.BeginFunc(ctx, i.Pool, func(tx pgx.Tx) error { return Bury(ctx, tx, l) })
	if err == nil {
		i.Log.Error("a message names no entry", slog.String("consumer", i.Consumer.Name),
			slog.String("origin", m.Origin), slog.String("subject", m.Subject), slog.Any("error", m.Err))
		if i.Observe != nil {
			i.Observe(Step{Consumer: i.Consumer.Name, Failed: true, Dead: true})
		}
	}
	return err
}

// pause waits before the consumer looks again for what's away.
func (i *Inbox) pause(ctx context.Context, failures int, err error) {
	if ctx.Err() != nil {
		return
	}
	i.Log.Warn("a consumer pauses", slog.String("consumer", i.Consumer.Name), slog.Any("error", err))
	wait.For(ctx, backoff(failures, firstRetry, lastPause))
}

// Lag is how far a consumer is behind.
type Lag struct {
	Entries int64 // over all journals, of whatever kind
	Failing int64 // journals whose next entry has failed
}

// Lag counts what the consumer hasn't seen.
func (i *Inbox) Lag(ctx context.Context) (l Lag, err error) {
	err = i.Pool.QueryRow(ctx, sqlInboxLag, i.Consumer.Name).Scan(&l.Entries, &l.Failing)
	return l, err
}
