package outbox

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// choose reads the letters that a request would have, in the order in which they're taken,
// and the stopped replay that some of them are taken over from; nil when there's none. sql
// reads that one, and may lock it. Letters that are named must all be free.
func (s *Letters) choose(ctx context.Context, q querier, r *Request, sql string) (letters []DeadLetter, over *Replay, err error) {
	if r.Filter == nil {
		letters, err = s.named(ctx, q, r)
		return letters, nil, err
	}
	if id := r.Filter.Replay; id != nil {
		named, err := one(ctx, q, scanReplay, sql, *id)
		if err != nil {
			return nil, nil, absent(err, *id)
		}
		if named.Status == ReplayStopped {
			over = &named
		}
	}
	rows, err := q.Query(ctx, sqlChoose, append(r.Filter.arguments(), r.Action, s.able, idOf(over), maxLetters+1)...)
	if err != nil {
		return nil, nil, err
	}
	letters, err = pgx.CollectRows(rows, scanLetter)
	if err == nil && len(letters) > maxLetters {
		err = ErrTooManyLetters.Because("a replay has at most %d: choose fewer, by since and until for one", maxLetters).
			With("most", maxLetters)
	}
	return letters, over, err
}

// leftOut counts the letters that a request's filter selects and that it can't have: those
// that other replays have, and those that nobody can do again.
func (s *Letters) leftOut(ctx context.Context, q querier, r *Request, over *Replay) (taken, notReplayable int, err error) {
	if r.Filter == nil {
		return 0, 0, nil
	}
	err = q.QueryRow(ctx, sqlLeftOut, append(r.Filter.arguments(), r.Action, s.able, idOf(over))...).Scan(&taken, &notReplayable)
	return taken, notReplayable, err
}

// named reads the letters that a request names, or tells which can't be had: the first
// reason that's true of any of them.
func (s *Letters) named(ctx context.Context, q querier, r *Request) ([]DeadLetter, error) {
	rows, err := q.Query(ctx, sqlNamedLetters, r.Letters)
	if err != nil {
		return nil, err
	}
	letters, err := pgx.CollectRows(rows, scanLetter)
	if err != nil {
		return nil, err
	}
	if len(letters) < len(r.Letters) {
		there := make(map[uuid.UUID]struct{}, len(letters))
		for i := range letters {
			there[letters[i].ID] = struct{}{}
		}
		for _, id := range r.Letters {
			if _, ok := there[id]; !ok {
				return nil, letterNotFound(id)
			}
		}
	}
	for i := range letters {
		if l := &letters[i]; l.Status != Dead {
			return nil, ErrLetterEnded.Because("letter %s is %s", l.ID, l.Status).With("letter_id", l.ID).With("letter_status", l.Status)
		}
	}
	for i := range letters {
		if l := &letters[i]; r.Action == ActReplay && !s.replayable(l) {
			return nil, ErrNotReplayable.Because("letter %s of %s", l.ID, l.Consumer).With("letter_id", l.ID)
		}
	}
	for i := range letters {
		if l := &letters[i]; l.Taken {
			return nil, ErrLetterTaken.Because("letter %s is replay %s's", l.ID, l.Replay).With("letter_id", l.ID).With("replay_id", l.Replay)
		}
	}
	return letters, nil
}

// replayable tells whether a letter can be done again: it names an entry, and its consumer
// is known.
func (s *Letters) replayable(l *DeadLetter) bool {
	return l.Seq > 0 && slices.Contains(s.able, l.Consumer)
}
