package outbox

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// maxPatrolled is how many journals each scan compares with the stream.
const maxPatrolled = 8

// look sees how the stream stands, suspects what it has lost, and finds the journals that
// it doesn't have all of.
func (r *Relay) look(ctx context.Context) error {
	stream, err := r.end(ctx)
	if err != nil {
		r.stream.Store(nil)
		return err
	}
	r.Bus.Seen(stream.Session)
	r.stream.Store(&stream)
	if err := r.scan(ctx, stream); err != nil {
		return fmt.Errorf("look for new entries: %w", err)
	}
	r.well()
	if err := r.patrol(ctx, stream); err != nil && ctx.Err() == nil {
		r.Log.Debug("the patrol was cut short", slog.Any("error", err))
	}
	return nil
}

// scan finds the journals that the stream doesn't have all of.
func (r *Relay) scan(ctx context.Context, stream Stream) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	rows, err := r.Pool.Query(ctx, sqlBehind, r.holder, lease, stream.ID, maxBehind, r.scanned)
	if err != nil {
		return err
	}
	var journal int64
	var suspect bool
	_, err = pgx.ForEachRow(rows, []any{&journal, &suspect}, func() error {
		r.scanned = journal
		r.found(ledger.JournalID(journal), suspect)
		return nil
	})
	return err
}

// end reads how the stream stands. If it has less than what it had acknowledged before it
// was asked, its end is lost: that's kept before anything is published to it again, for
// what's beyond the end would soon look as if it were there.
func (r *Relay) end(ctx context.Context) (Stream, error) {
	before := r.stream.Load()
	if before == nil {
		stream, err := r.Bus.Stream(ctx)
		if err != nil {
			return stream, fmt.Errorf("look at the stream: %w", err)
		}
		before = &stream
	}
	acknowledged, err := r.acknowledged(ctx, before.ID)
	if err != nil {
		return Stream{}, fmt.Errorf("look for the stream's end: %w", err)
	}
	stream, err := r.Bus.Stream(ctx)
	if err != nil {
		return stream, fmt.Errorf("look at the stream: %w", err)
	}
	if stream.ID == before.ID && stream.Last < acknowledged {
		r.Log.Warn("the stream has lost its end", slog.Uint64("last", stream.Last), slog.Uint64("acknowledged", acknowledged))
		limited, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		if _, err := r.Pool.Exec(limited, sqlSuspectTail, stream.ID, int64(stream.Last)); err != nil {
			return stream, fmt.Errorf("suspect the stream's end: %w", err)
		}
	}
	return stream, nil
}

// acknowledged reads the last place that a stream has acknowledged.
func (r *Relay) acknowledged(ctx context.Context, stream string) (place uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err = r.Pool.QueryRow(ctx, sqlEnd, stream).Scan(&place)
	return place, err
}

// patrol compares the cursors of the next few journals with the stream. What's lost of a
// journal that nobody writes to any more shows in no other way, once others have filled
// its places.
func (r *Relay) patrol(ctx context.Context, stream Stream) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout) // what it doesn't come to is the next one's
	defer cancel()
	rows, err := r.Pool.Query(ctx, sqlPatrol, r.patrolled, stream.ID, maxPatrolled)
	if err != nil {
		return fmt.Errorf("patrol: %w", err)
	}
	type row struct {
		Journal int64
		Seq     ledger.Seq
		Place   int64
		There   bool
	}
	cursors, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return fmt.Errorf("patrol: %w", err)
	}
	for _, c := range cursors {
		r.patrolled = c.Journal
		if !c.There || uint64(c.Place) < stream.First {
			continue // nothing was published, or it's older than the stream keeps it
		}
		mark, err := r.Bus.At(ctx, uint64(c.Place))
		if err != nil {
			return fmt.Errorf("patrol: %w", err)
		}
		if mark.Place != 0 && mark.Journal == ledger.JournalID(c.Journal) && mark.Seq == c.Seq {
			continue
		}
		if stream, err = r.Bus.Stream(ctx); err != nil {
			return fmt.Errorf("patrol: %w", err)
		}
		if uint64(c.Place) < stream.First {
			continue // it has become too old just now
		}
		tag, err := r.Pool.Exec(ctx, sqlSuspect, c.Journal, stream.ID, c.Seq)
		if err != nil {
			return fmt.Errorf("patrol: %w", err)
		}
		if tag.RowsAffected() == 0 {
			continue // the cursor has moved on, or is another stream's now
		}
		r.Log.Warn("the stream has lost the last entry of a journal", slog.Int64("journal", c.Journal), slog.Int64("seq", int64(c.Seq)))
	}
	if len(cursors) < maxPatrolled {
		r.patrolled = -1
	}
	return nil
}

// Backlog is what isn't published yet.
type Backlog struct {
	Entries  int64  // over all journals
	Troubled int    // journals that can't be published
	Trouble  string // why, of one of them or of the relay; "" when all is well
}

// Backlog counts what isn't published yet.
func (r *Relay) Backlog(ctx context.Context) (b Backlog, err error) {
	err = r.Pool.QueryRow(ctx, sqlBacklog).Scan(&b.Entries, &b.Troubled, &b.Trouble)
	if text := r.trouble.Load(); text != nil {
		b.Trouble = *text
	}
	return b, err
}
