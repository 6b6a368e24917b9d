package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
)

// chunk is what one batch publishes.
type chunk struct {
	events []Event
	more   bool      // there were further ones
	now    time.Time // the database's clock when they were read
	read   time.Time // the process's clock then
	err    error
}

// publish brings the stream up to date with a journal, from where that's known to stand
// (nil: it isn't). It returns where the stream stands then, nil when another process has
// the journal, and whether there's more to publish.
func (r *Relay) publish(ctx context.Context, journal ledger.JournalID, at *cursor) (*cursor, bool, error) {
	stream := r.stream.Load()
	if stream == nil {
		return nil, false, nil // the next look at the stream brings the journal back
	}
	if at == nil || at.stream != stream.ID {
		var err error
		at, err = r.claim(ctx, journal)
		if errors.Is(err, errLeft) {
			r.Log.Info("another process took a journal while it was looked where that stands", slog.Int64("journal", int64(journal)))
			return nil, false, nil
		}
		if err != nil || at == nil {
			return nil, false, err
		}
	}
	next := r.fetch(ctx, journal, at.seq)
	for range turnBatches {
		c := next
		if c.err != nil {
			return nil, false, c.err
		}
		if len(c.events) == 0 {
			return r.idle(ctx, journal, at)
		}
		further := make(chan chunk, 1)
		if c.more { // read on meanwhile
			go func() { further <- r.fetch(ctx, journal, c.events[len(c.events)-1].Seq) }()
		} else {
			further <- chunk{}
		}
		began := time.Now()
		var err error
		at, err = r.send(ctx, journal, at, c)
		next = <-further
		switch {
		case errors.Is(err, ErrFenced), errors.Is(err, ErrUnseen), errors.Is(err, errLeft):
			return nil, false, nil // somebody else has published, or may have; the scan sees what's left
		case err != nil:
			return nil, false, err
		}
		r.yield(ctx, c, time.Since(began))
	}
	return at, len(next.events) > 0 || next.err != nil, nil
}

// yield leaves the machine to commits for a while, if they wait: publishing can be made up
// for, and a buyer's answer can't. What has waited for long doesn't wait for them.
func (r *Relay) yield(ctx context.Context, c chunk, took time.Duration) {
	if r.Busy != nil && c.now.Sub(c.events[0].At) < yieldUntil && r.Busy() {
		wait.For(ctx, min(yieldTimes*took, yieldMost))
	}
}

// idle is the end of a turn that finds nothing to publish: a trouble that the row tells of
// has passed.
func (r *Relay) idle(ctx context.Context, journal ledger.JournalID, at *cursor) (*cursor, bool, error) {
	if !at.ailing {
		return at, false, nil
	}
	err := r.move(ctx, journal, at, sqlMove)
	if errors.Is(err, errLeft) {
		return nil, false, nil
	}
	at.ailing = err != nil
	return at, false, err
}

// send publishes what was read, and moves the cursor. Of what's too much for a stream that
// is nearly full, it sends what fits, and returns ErrFull.
func (r *Relay) send(ctx context.Context, journal ledger.JournalID, at *cursor, c chunk) (*cursor, error) {
	whole := len(c.events)
	place, err := r.Bus.Publish(ctx, at.after, c.events)
	for errors.Is(err, ErrFull) && len(c.events) > 1 {
		c.events = c.events[:len(c.events)/2]
		place, err = r.Bus.Publish(ctx, at.after, c.events)
	}
	if err != nil {
		if !errors.Is(err, ErrFenced) && !errors.Is(err, ErrUnseen) && !errors.Is(err, ErrFull) {
			r.most.Store(max(r.most.Load()/2, 1))
		}
		return nil, err
	}
	r.most.Store(min(r.most.Load()*2, maxEvents))
	r.published(journal, at, c)
	at = &cursor{stream: at.stream, seq: c.events[len(c.events)-1].Seq, place: place, after: place, reached: at.reached}
	if err = r.move(ctx, journal, at, sqlMove); err == nil && len(c.events) < whole {
		err = ErrFull
	}
	if r.Then != nil { // whoever has the journal now
		r.Then(c.events)
	}
	return at, err
}

// fetch reads the next entries of a journal.
func (r *Relay) fetch(ctx context.Context, journal ledger.JournalID, after ledger.Seq) (c chunk) {
	most := int(r.most.Load())
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	rows, err := r.Pool.Query(ctx, sqlUnpublished, int64(journal), after, most+1)
	if err != nil {
		c.err = fmt.Errorf("read entries: %w", err)
		return c
	}
	defer rows.Close()
	c.read = time.Now()
	c.events = make([]Event, 0, most)
	for size, limit := 0, r.Bus.Limit(); rows.Next(); {
		if c.more = len(c.events) == most || size >= maxBytes; c.more {
			return c
		}
		e := Event{Journal: journal}
		if c.err = rows.Scan(&e.Seq, &e.ID, &e.Kind, &e.At, (*[]byte)(&e.Data), &c.now); c.err != nil {
			return c
		}
		if after++; e.Seq != after {
			c.err = fmt.Errorf("%w: entry %d is followed by %d", errGap, after-1, e.Seq)
			return c
		}
		if len(e.Data)+envelope > limit {
			e.Data = nil
		}
		size += len(e.Data)
		c.events = append(c.events, e)
	}
	if err := rows.Err(); err != nil {
		c.err = fmt.Errorf("read entries: %w", err)
	}
	return c
}

// envelope is more than what a CloudEvent has besides its data.
const envelope = 1024

// errLeft says that the lease is another's.
var errLeft = errors.New("outbox: the lease is another process's")

// move moves the cursor behind what the stream has acknowledged, by sqlMove, or by sqlNote
// while it isn't known how far that is. It prolongs the lease.
func (r *Relay) move(ctx context.Context, journal ledger.JournalID, at *cursor, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var moved int64
	err := pgx.BeginFunc(ctx, r.Pool, func(tx pgx.Tx) error {
		q := &pgx.Batch{}
		q.Queue(sqlNoWait)
		q.Queue(sql, r.holder, lease, int64(journal), at.seq, at.stream, int64(at.place)).
			Exec(func(tag pgconn.CommandTag) error { moved = tag.RowsAffected(); return nil })
		return tx.SendBatch(ctx, q).Close()
	})
	if err != nil {
		return fmt.Errorf("move the cursor: %w", err)
	}
	if moved == 0 {
		return errLeft
	}
	return nil
}

// published tells the observer.
func (r *Relay) published(journal ledger.JournalID, at *cursor, c chunk) {
	if r.Observe == nil {
		return
	}
	took := time.Since(c.read)
	p := Published{Journal: journal, Events: len(c.events), Lags: make([]time.Duration, len(c.events))}
	for i := range c.events {
		p.Lags[i] = c.now.Sub(c.events[i].At) + took
		if c.events[i].Seq <= at.reached {
			p.Again++
		}
	}
	r.Observe(p)
}
