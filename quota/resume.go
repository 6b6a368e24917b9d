package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Resume finishes moves between lanes whose process died in between, once they're older
// than the last call. It's idempotent; any number may run at once.
func (s *Store) Resume(ctx context.Context) error {
	events, err := s.Events.InTransit(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, event := range events {
		journals, err := s.Events.Lanes(ctx, event)
		if err != nil {
			return err
		}
		for _, j := range journals {
			ctx, cancel := context.WithTimeout(ctx, eventTimeout)
			if err := s.resume(ctx, j); err != nil {
				failed = append(failed, fmt.Errorf("resume moves of journal %d: %w", j, err))
			}
			cancel()
		}
	}
	return errors.Join(failed...)
}

// maxResumed bounds the moves that one look finishes; the next goes on.
const maxResumed = 1000

// resume finishes the moves out of one journal. Those up to its mark have arrived.
func (s *Store) resume(ctx context.Context, journal ledger.JournalID) error {
	s.watch.mu.Lock()
	after, seen := s.watch.marks[journal], s.watch.heads[journal]
	s.watch.mu.Unlock()
	head, err := s.Reader.Head(ctx, journal)
	if err != nil {
		return err
	}
	rows, err := s.Reads.Query(ctx, sqlUnderWay, int64(journal), after, maxResumed)
	if err != nil {
		return pg.Fault(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[underWay])
	if err != nil {
		return pg.Fault(err)
	}
	mark := head
	if len(list) == maxResumed { // there may be more
		mark = list[maxResumed-1].Version
	}
	var failed []error
	for _, m := range list {
		if m.Version <= seen { // it was there the last time too: nobody is about to finish it
			err := s.receive(ctx, m.ID, m.To)
			if err == nil {
				s.Log.Info("finished a quota move", slog.String("move_id", m.ID.String()))
				continue
			}
			failed = append(failed, err)
		}
		mark = min(mark, m.Version-1)
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	if s.watch.marks == nil {
		s.watch.marks, s.watch.heads = make(map[ledger.JournalID]ledger.Seq), make(map[ledger.JournalID]ledger.Seq)
	}
	s.watch.marks[journal], s.watch.heads[journal] = max(after, mark), head
	return errors.Join(failed...)
}

// underWay is a move whose tickets haven't arrived.
type underWay struct {
	ID      uuid.UUID
	To      ledger.JournalID
	Version ledger.Seq
}
