package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// changeTimeout bounds a change, whatever becomes of its client.
	changeTimeout = 10 * time.Second
	// maxUndone is how often a change is made that the database undid for another's sake.
	maxUndone = 3
	// takenAtOnce is how many letters are taken in one exchange.
	takenAtOnce = 500
)

// Preview tells what a request would do now. Errors are those of Request.
func (s *Letters) Preview(ctx context.Context, r Request) (Preview, error) {
	if err := r.validate(); err != nil {
		return Preview{}, err
	}
	letters, over, err := s.choose(ctx, s.reads, &r, sqlReplay)
	if err != nil {
		return Preview{}, pg.Fault(err)
	}
	taken, notReplayable, err := s.leftOut(ctx, s.reads, &r, over)
	if err != nil {
		return Preview{}, pg.Fault(err)
	}
	if len(letters) == 0 {
		return Preview{}, nothingChosen(taken, notReplayable)
	}
	p := r.preview(letters)
	p.Taken, p.NotReplayable = taken, notReplayable
	return p, nil
}

// Request takes letters for a replay or a discard. Whether any is about money decides
// whether it begins at once or awaits another person's approval. A repeat under its key
// gives the replay as it is now, and true. Errors: ErrInvalidRequest with the field,
// ErrReplayNotFound, ErrLetterNotFound, ErrLetterEnded, ErrNotReplayable, ErrLetterTaken,
// ErrNothingChosen, ErrTooManyLetters, ledger.ErrIdempotencyMismatch,
// ledger.ErrOutcomeUnknown.
func (s *Letters) Request(ctx context.Context, principal, key string, r Request) (made Replay, repeated bool, err error) {
	if err := r.validate(); err != nil {
		return made, false, err
	}
	chosen, err := r.chosen()
	if err != nil {
		return made, false, err
	}
	id := keyed(principal, key)
	err = s.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		repeated = false
		inserted, err := tx.Exec(ctx, sqlInsertReplay, id, r.Action, chosen, r.Rate, *r.Canary, r.Reason, principal)
		if err != nil {
			return err
		}
		if inserted.RowsAffected() == 0 {
			repeated = true
			if made, err = one(ctx, tx, scanReplay, sqlReplay, id); err == nil && !r.same(&made, chosen) {
				err = otherRequest()
			}
			return err
		}
		if first, err := s.note(ctx, tx, id, id, stepRequested, principal, r.Reason); err != nil || !first {
			return errors.Join(err, otherRequest()) // the key was a decision's
		}
		if err := s.take(ctx, tx, &r, id, principal); err != nil {
			return err
		}
		made, err = one(ctx, tx, scanReplay, sqlReplay, id)
		return err
	})
	return made, repeated, err
}

func otherRequest() error {
	return ledger.ErrIdempotencyMismatch.Because("the key was used for another request about dead letters")
}

func nothingChosen(taken, notReplayable int) error {
	return ErrNothingChosen.Because("of those that are dead, other replays have %d, and %d can only be discarded", taken, notReplayable).
		With("taken", taken).With("not_replayable", notReplayable)
}

// take gives the letters that a request chooses to its replay, and begins it.
func (s *Letters) take(ctx context.Context, tx pgx.Tx, r *Request, replay uuid.UUID, principal string) error {
	letters, over, err := s.choose(ctx, tx, r, sqlLockReplay)
	if err != nil {
		return err
	}
	taken, money, freed := 0, 0, 0
	for some := range slices.Chunk(letters, takenAtOnce) {
		q := &pgx.Batch{}
		for i := range some {
			if some[i].Taken {
				freed++ // nobody else can change that: its replay is locked
			}
			q.Queue(sqlTake, some[i].ID, replay, idOf(over)).QueryRow(func(row pgx.Row) error {
				var flag bool
				switch err := row.Scan(&flag); {
				case errors.Is(err, pgx.ErrNoRows):
					return nil
				case err != nil:
					return err
				}
				taken++
				if flag {
					money++
				}
				return nil
			})
		}
		if err := tx.SendBatch(ctx, q).Close(); err != nil {
			return err
		}
	}
	switch {
	case len(r.Letters) > 0 && taken < len(r.Letters): // somebody was first, and now it shows
		if _, _, err := s.choose(ctx, tx, r, sqlLockReplay); err != nil {
			return err
		}
		return fmt.Errorf("took %d of %d letters", taken, len(r.Letters))
	case taken == 0:
		have, notReplayable, err := s.leftOut(ctx, tx, r, over)
		if err != nil {
			return err
		}
		return nothingChosen(have, notReplayable)
	}
	if freed > 0 {
		if err := s.takeOver(ctx, tx, over, freed, replay, principal); err != nil {
			return err
		}
	}
	status := ReplayRunning
	if money > 0 {
		status = ReplayAwaiting
	}
	_, err = tx.Exec(ctx, sqlBeginReplay, replay, taken, money, status)
	return err
}

// takeOver ends a stopped replay, or leaves it with what the other one didn't choose.
func (s *Letters) takeOver(ctx context.Context, tx pgx.Tx, over *Replay, freed int, by uuid.UUID, principal string) error {
	status := ReplayStopped
	if freed == over.Left {
		status = ReplayDone
	}
	note := fmt.Sprintf("replay %s took over %d", by, freed)
	if _, err := tx.Exec(ctx, sqlChangeReplay, over.ID, status, note, "", freed); err != nil {
		return err
	}
	_, err := s.note(ctx, tx, uuid.New(), over.ID, stepTakenOver, principal, note)
	return err
}

// Approve lets a replay begin that awaits it. Errors: ErrReplayNotFound, ErrReplayStatus,
// fault.ErrSamePerson, ledger.ErrIdempotencyMismatch, ledger.ErrOutcomeUnknown. A repeat
// under its key, here and below, gives the replay as it is now, and true.
func (s *Letters) Approve(ctx context.Context, principal, key string, id uuid.UUID) (Replay, bool, error) {
	return s.act(ctx, id, verdict{principal, key, stepApproved, "", ReplayAwaiting, ReplayRunning})
}

// Reject ends a replay that awaits approval; its letters are free again. Errors are those
// of Approve, and ErrInvalidRequest with the field.
func (s *Letters) Reject(ctx context.Context, principal, key string, id uuid.UUID, reason string) (Replay, bool, error) {
	return s.act(ctx, id, verdict{principal, key, stepRejected, reason, ReplayAwaiting, ReplayRejected})
}

// Stop stops a replay between two letters: soon, and for sure when it returns. It keeps its
// letters, until it's resumed, or until another request takes them over. Errors are those of
// Reject.
func (s *Letters) Stop(ctx context.Context, principal, key string, id uuid.UUID, reason string) (Replay, bool, error) {
	return s.act(ctx, id, verdict{principal, key, stepStopped, reason, ReplayRunning, ReplayStopped})
}

// Resume goes on with a stopped replay. Nothing that it did is done again; a canary that
// hasn't gone well is sent again. Errors are those of Approve.
func (s *Letters) Resume(ctx context.Context, principal, key string, id uuid.UUID) (Replay, bool, error) {
	return s.act(ctx, id, verdict{principal, key, stepResumed, "", ReplayStopped, ReplayRunning})
}

// verdict is what somebody does with a replay.
type verdict struct {
	principal, key string
	step, reason   string
	from, to       ReplayStatus
}

// act moves a replay from one state to another.
func (s *Letters) act(ctx context.Context, id uuid.UUID, v verdict) (r Replay, repeated bool, err error) {
	if v.to == ReplayRejected || v.to == ReplayStopped {
		if err := checkWhy(v.reason); err != nil {
			return r, false, err
		}
	}
	err = s.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		repeated = false
		var err error
		if r, err = one(ctx, tx, scanReplay, sqlLockReplay, id); err != nil {
			return absent(err, id)
		}
		first, err := s.note(ctx, tx, keyed(v.principal, v.key), id, v.step, v.principal, v.reason)
		if err != nil {
			return err
		}
		if !first {
			repeated = true
			return s.sameStep(ctx, tx, id, v)
		}
		if err := v.judge(&r); err != nil {
			return err
		}
		if err := s.apply(ctx, tx, &r, v); err != nil {
			return err
		}
		r, err = one(ctx, tx, scanReplay, sqlReplay, id)
		return err
	})
	return r, repeated, err
}

// sameStep refuses a key that was used for something else.
func (s *Letters) sameStep(ctx context.Context, tx pgx.Tx, id uuid.UUID, v verdict) error {
	made, err := one(ctx, tx, scanStep, sqlStep, keyed(v.principal, v.key))
	if err == nil && (made.replay != id || made.Step != v.step || made.Reason != v.reason) {
		err = otherRequest()
	}
	return err
}

// judge tells whether it may be done.
func (v *verdict) judge(r *Replay) error {
	switch {
	case r.Status != v.from:
		return ErrReplayStatus.Because("it's %s; only one that's %s can be %s", r.Status, v.from, v.step).
			With("replay_status", r.Status)
	case v.from == ReplayAwaiting && v.principal == r.RequestedBy:
		return fault.ErrSamePerson.Because("%s asked for the replay", v.principal)
	}
	return nil
}

// apply writes what was decided.
func (s *Letters) apply(ctx context.Context, tx pgx.Tx, r *Replay, v verdict) error {
	note, decidedBy, freed := "", "", 0
	switch v.step {
	case stepApproved:
		decidedBy = v.principal
	case stepRejected:
		note, decidedBy, freed = fmt.Sprintf("rejected by %s: %s", v.principal, v.reason), v.principal, r.Left
		if _, err := tx.Exec(ctx, sqlFree, r.ID); err != nil {
			return err
		}
	case stepStopped:
		note = fmt.Sprintf("stopped by %s: %s", v.principal, v.reason)
	}
	_, err := tx.Exec(ctx, sqlChangeReplay, r.ID, v.to, note, decidedBy, freed)
	return err
}

// note keeps a step; false when there's one of the id.
func (s *Letters) note(ctx context.Context, tx pgx.Tx, step, replay uuid.UUID, what, principal, reason string) (first bool, err error) {
	tag, err := tx.Exec(ctx, sqlInsertStep, step, replay, what, principal, reason)
	return tag.RowsAffected() == 1, err
}

// change makes a change in a transaction, again when the database undid it for another's
// sake. It ends whether the client waits or not.
func (s *Letters) change(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	for tried := 1; ; tried++ {
		decided := false
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			err := do(ctx, tx)
			decided = err == nil
			return err
		})
		switch {
		case err == nil || fault.As(err) != nil:
			return err
		case pg.Classify(err) == pg.Transient && tried < maxUndone:
			continue
		case decided && pg.Classify(err) == pg.Lost: // in COMMIT
			return ledger.ErrOutcomeUnknown.Because("repeat the request under the same key").After(time.Second).From(err)
		}
		return pg.Fault(fmt.Errorf("change a replay: %w", err))
	}
}

// Replay reads a replay with its steps; ErrReplayNotFound when there's none.
func (s *Letters) Replay(ctx context.Context, id uuid.UUID) (Replay, error) {
	r, err := one(ctx, s.reads, scanReplay, sqlReplay, id)
	if err != nil {
		return r, pg.Fault(absent(err, id))
	}
	rows, err := s.reads.Query(ctx, sqlSteps, id)
	if err == nil {
		r.Steps, err = pgx.CollectRows(rows, scanStep)
	}
	return r, pg.Fault(err)
}

// absent makes ErrReplayNotFound of no row.
func absent(err error, id uuid.UUID) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrReplayNotFound.Because("%s", id).With("replay_id", id)
	}
	return err
}

// ReplayPage is a page of replays, the newest first; zero fields don't select.
type ReplayPage struct {
	Status ReplayStatus
	Action Action
	Before time.Time // and Last: the last replay of the page before
	Last   uuid.UUID
	Limit  int
}

// Replays reads a page of replays.
func (s *Letters) Replays(ctx context.Context, p ReplayPage) ([]Replay, error) {
	if p.Before.IsZero() {
		p.Before, p.Last = forever, last
	}
	rows, err := s.reads.Query(ctx, sqlReplays, p.Before, p.Last, p.Status, p.Action, p.Limit)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list replays: %w", err))
	}
	list, err := pgx.CollectRows(rows, scanReplay)
	return list, pg.Fault(err)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// one reads exactly one row; pgx.ErrNoRows when there's none.
func one[T any](ctx context.Context, q querier, scan func(pgx.CollectableRow) (T, error), sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var none T
		return none, err
	}
	return pgx.CollectExactlyOneRow(rows, scan)
}

func idOf(r *Replay) *uuid.UUID {
	if r == nil {
		return nil
	}
	return &r.ID
}
