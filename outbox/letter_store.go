package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Redo does again what a letter is about, in the transaction that also records that it's
// done. It does nothing outside of the transaction, and may find part of it, or all, done.
// The letter is without its payload; the event is its entry, read from the journal. After
// an error the letter has died again. An error that is ErrAway, or says that the database
// is away, isn't the letter's fault: its replay pauses.
type Redo func(ctx context.Context, tx pgx.Tx, l DeadLetter, e Event) error

// Letters reads, replays and discards dead letters. It's safe for concurrent use, by any
// number of processes.
type Letters struct {
	pool  *pgxpool.Pool
	reads *pgxpool.Pool
	redo  map[string]Redo
	able  []string // consumers of redo
	log   *slog.Logger
	limit time.Duration // of a letter's turn
}

// NewLetters makes a store. redo has, for each consumer whose letters can be replayed, what
// does them again; letters of any other can only be discarded. log may be nil.
func NewLetters(pool, reads *pgxpool.Pool, redo map[string]Redo, log *slog.Logger) *Letters {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Letters{pool: pool, reads: reads, redo: redo, able: []string{}, log: log, limit: turnTimeout}
	for consumer := range redo {
		s.able = append(s.able, consumer)
	}
	return s
}

// LetterFilter selects letters; zero fields don't.
type LetterFilter struct {
	Consumer string             `json:"consumer,omitempty"`
	Kind     string             `json:"kind,omitempty"`
	Event    string             `json:"event,omitempty"` // for people: Journals are its
	Journal  *ledger.JournalID  `json:"journal,omitempty"`
	Journals []ledger.JournalID `json:"-"` // whichever of them
	Target   string             `json:"target,omitempty"`
	Reason   string             `json:"reason,omitempty"`    // a part of it
	Replay   *uuid.UUID         `json:"replay_id,omitempty"` // that has it, or had it last
	Since    time.Time          `json:"since,omitzero"`      // died then or later
	Until    time.Time          `json:"until,omitzero"`      // died before
}

// arguments are the first of each statement with a filter.
func (f *LetterFilter) arguments() []any {
	until := f.Until
	if until.IsZero() {
		until = forever
	}
	var journals []int64 // nil: all
	for _, j := range f.Journals {
		journals = append(journals, int64(j))
	}
	if f.Journal != nil {
		journals = []int64{int64(*f.Journal)}
	}
	return []any{f.Consumer, f.Kind, journals, f.Target, f.Reason, f.Replay, f.Since, until}
}

// validate refuses text that the database couldn't even compare. within is what the names
// of the fields begin with.
func (f *LetterFilter) validate(within string) error {
	for _, text := range []struct{ field, value string }{
		{"consumer", f.Consumer}, {"kind", f.Kind}, {"target", f.Target}, {"reason", f.Reason},
	} {
		if text.value != clean(text.value, maxName) {
			return fault.BadField(within+text.field, "must have at most %d bytes, of text", maxName)
		}
	}
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return fault.BadField(within+"until", "must be after since")
	}
	return nil
}

// forever is after all times, and last after all ids: the first page of a list ends there.
var (
	forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	last    = uuid.Max
)

// LetterPage is a page of letters, the newest first.
type LetterPage struct {
	LetterFilter
	Status LetterStatus // "" for any
	Before time.Time    // and Last: the last letter of the page before; zero for the first page
	Last   uuid.UUID
	Limit  int
}

// List reads a page of letters. The error is ErrInvalidRequest with the field, or
// ErrUnavailable.
func (s *Letters) List(ctx context.Context, p LetterPage) ([]DeadLetter, error) {
	if err := p.validate(""); err != nil {
		return nil, err
	}
	if p.Before.IsZero() {
		p.Before, p.Last = forever, last
	}
	sql := sqlLetters
	if p.Status == Dead {
		sql = sqlDeadLetters
	}
	rows, err := s.reads.Query(ctx, sql, append(p.arguments(), p.Status, p.Before, p.Last, p.Limit)...)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list dead letters: %w", err))
	}
	list, err := pgx.CollectRows(rows, scanLetter)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list dead letters: %w", err))
	}
	return list, nil
}

// Get reads a letter with its payload; ErrLetterNotFound when there's none.
func (s *Letters) Get(ctx context.Context, id uuid.UUID) (l DeadLetter, err error) {
	err = s.reads.QueryRow(ctx, sqlLetter, id).Scan(append(l.fields(), &l.Payload)...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return l, letterNotFound(id)
	case err != nil:
		return l, pg.Fault(fmt.Errorf("read dead letter %s: %w", id, err))
	}
	l.settle()
	return l, nil
}

func letterNotFound(id uuid.UUID) error {
	return ErrLetterNotFound.Because("%s", id).With("letter_id", id)
}

// LetterCounts tells how many letters need somebody.
type LetterCounts struct {
	Dead     []DeadCount // by consumer
	Awaiting int         // replays that await approval
	Running  int
	Stopped  int
}

// DeadCount is about the dead letters of one consumer.
type DeadCount struct {
	Consumer string
	Letters  int
	Oldest   time.Duration // since the one died that has waited longest
}

// Counts counts the letters that are dead, and the replays that haven't ended.
func (s *Letters) Counts(ctx context.Context) (c LetterCounts, err error) {
	rows, err := s.reads.Query(ctx, sqlCountDead)
	if err != nil {
		return c, pg.Fault(fmt.Errorf("count dead letters: %w", err))
	}
	c.Dead, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d DeadCount, err error) {
		var seconds float64
		err = row.Scan(&d.Consumer, &d.Letters, &seconds)
		d.Oldest = time.Duration(seconds * float64(time.Second))
		return d, err
	})
	if err == nil {
		err = s.reads.QueryRow(ctx, sqlCountReplays).Scan(&c.Awaiting, &c.Running, &c.Stopped)
	}
	if err != nil {
		return c, pg.Fault(fmt.Errorf("count dead letters: %w", err))
	}
	return c, nil
}
