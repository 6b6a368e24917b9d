package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// maxTurns bounds the letters of one call of Work.
	maxTurns = 500
	// turnTimeout bounds the transaction of one letter.
	turnTimeout = 15 * time.Second
	// pausedFor is how long a replay waits for what's away.
	pausedFor = 5 * time.Second
)

// Work does what is due of replays: a letter a transaction, each replay at its rate, the
// one whose turn is due longest first. It doesn't wait for what isn't due yet: call it
// again, several times a second. Any number of processes may: a replay is worked on by one
// at a time. The error says that the database is away.
func (s *Letters) Work(ctx context.Context) error {
	for range maxTurns {
		worked, err := s.turn(ctx)
		if err != nil || !worked {
			return err
		}
	}
	return nil
}

// turn does the next letter of the replay that's due; false when none is. In its
// transaction the replay's row is locked first: a letter is nobody else's meanwhile, and
// who stops the replay waits for its end. A crash before the commit leaves nothing, and
// after it everything: effect, letter and counters.
func (s *Letters) turn(ctx context.Context) (worked bool, err error) {
	limited, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	var r Replay
	var l DeadLetter
	err = pgx.BeginFunc(limited, s.pool, func(tx pgx.Tx) error {
		var err error
		r, err = one(limited, tx, scanReplay, sqlDueReplay)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		worked = true
		return s.next(limited, tx, &r, &l)
	})
	switch {
	case err == nil || !worked || ctx.Err() != nil:
		return worked, pg.Fault(err)
	case errors.Is(err, errTooLong):
		err = s.tooLong(ctx, r.ID, l.ID)
	}
	if err == nil {
		return true, nil
	}
	// Whatever it was, nothing has happened. Other replays go on meanwhile.
	s.log.Warn("a replay pauses", slog.String("replay_id", r.ID.String()), slog.Any("error", err))
	if _, e := s.pool.Exec(ctx, sqlPauseReplay, r.ID, pausedFor, clean("pauses: "+err.Error(), maxTold)); e != nil {
		return false, pg.Fault(fmt.Errorf("pause replay %s: %w", r.ID, e))
	}
	return true, nil
}

// next does the next letter of a replay, which is locked; l is that letter. An error isn't
// the letter's fault.
func (s *Letters) next(ctx context.Context, tx pgx.Tx, r *Replay, l *DeadLetter) error {
	var e entryOf
	err := tx.QueryRow(ctx, sqlNextLetter, r.ID).Scan(append(l.fields(), &e.id, &e.kind, &e.at, &e.data)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return s.end(ctx, tx, r, ReplayDone, "")
	}
	if err != nil {
		return err
	}
	l.settle()
	if _, err := tx.Exec(ctx, sqlHoldInbox, l.Consumer, int64(l.Journal)); err != nil {
		return err
	}
	var cause error
	if r.Action == ActReplay {
		if cause, err = s.again(ctx, tx, *l, e); err != nil {
			return err
		}
	}
	return s.count(ctx, tx, r, l, cause)
}

// errTooLong is about a letter whose effect didn't end within its turn. That's its own fault,
// but there's no transaction any more in which it could be told.
var errTooLong = errors.New("it takes too long")

// tooLong counts a letter that took too long as one that died again.
func (s *Letters) tooLong(ctx context.Context, replay, letter uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		r, err := one(ctx, tx, scanReplay, sqlLockReplay, replay)
		if err != nil || r.Status != ReplayRunning {
			return err
		}
		l, err := one(ctx, tx, scanLetter, sqlTakenLetter, replay)
		if err != nil || l.ID != letter {
			return err // somebody else has done it meanwhile
		}
		return s.count(ctx, tx, &r, &l, errTooLong)
	})
}

// count ends a letter's turn: it's done, or it has died again, for a cause.
func (s *Letters) count(ctx context.Context, tx pgx.Tx, r *Replay, l *DeadLetter, cause error) (err error) {
	done, failed, status := 1, 0, Replayed
	if r.Action == ActDiscard {
		status = Discarded
	}
	if cause == nil {
		_, err = tx.Exec(ctx, sqlEndLetter, l.ID, status)
	} else {
		done, failed = 0, 1
		s.log.Warn("a dead letter died again", slog.String("letter_id", l.ID.String()), slog.String("consumer", l.Consumer),
			slog.String("replay_id", r.ID.String()), slog.Any("error", cause))
		_, err = tx.Exec(ctx, sqlDieAgain, l.ID, clean(cause.Error(), maxTold))
	}
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlCountLetter, r.ID, done, failed); err != nil {
		return err
	}
	switch {
	case r.Left <= 1:
		return s.end(ctx, tx, r, ReplayDone, "")
	case cause != nil && r.Canary && r.Done == 0:
		return s.end(ctx, tx, r, ReplayStopped, fmt.Sprintf("the first letter, %s, died again: %v", l.ID, cause))
	}
	return nil
}

// end stops a replay by itself.
func (s *Letters) end(ctx context.Context, tx pgx.Tx, r *Replay, status ReplayStatus, note string) error {
	note = clean(note, maxTold)
	if _, err := tx.Exec(ctx, sqlChangeReplay, r.ID, status, note, "", 0); err != nil {
		return err
	}
	step := stepDone
	if status == ReplayStopped {
		step = stepStopped
	}
	_, err := s.note(ctx, tx, uuid.New(), r.ID, step, ledger.SystemPrincipal, note)
	return err
}

// entryOf is a letter's entry; it has none when id is nil.
type entryOf struct {
	id   *uuid.UUID
	kind *string
	at   *time.Time
	data []byte
}

// again does a letter again. cause is why it has died again: whatever was done is undone.
// err isn't the letter's fault.
func (s *Letters) again(ctx context.Context, tx pgx.Tx, l DeadLetter, e entryOf) (cause, err error) {
	redo := s.redo[l.Consumer]
	switch {
	case redo == nil:
		return nil, fmt.Errorf("%w: this process doesn't know the consumer %s", ErrAway, l.Consumer)
	case e.id == nil:
		return errors.New("the journal has no such entry"), nil
	}
	event := Event{Journal: l.Journal, Seq: l.Seq, ID: *e.id, Kind: *e.kind, At: e.at.UTC(), Data: e.data}
	if _, err := tx.Exec(ctx, `SAVEPOINT letter`); err != nil {
		return nil, err
	}
	if cause = s.called(ctx, tx, redo, l, event); cause == nil {
		// A statement that failed, and that nobody told of, shows here.
		_, cause = tx.Exec(ctx, `RELEASE SAVEPOINT letter`)
	}
	switch {
	case cause == nil:
		return nil, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, errTooLong
	case errors.Is(cause, ErrAway) || pg.Classify(cause) == pg.Transient || tx.Conn().IsClosed() || ctx.Err() != nil:
		return nil, cause
	}
	_, err = tx.Exec(ctx, `ROLLBACK TO SAVEPOINT letter`)
	return cause, err
}

// called calls redo. Its panic is the letter's fault like any other error.
func (s *Letters) called(ctx context.Context, tx pgx.Tx, redo Redo, l DeadLetter, e Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a replay panicked", slog.String("letter_id", l.ID.String()), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("%s panicked: %v", l.Consumer, p)
		}
	}()
	return redo(ctx, tx, l, e)
}
