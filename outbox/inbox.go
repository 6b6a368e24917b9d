package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// maxEffects bounds the entries of one transaction.
	maxEffects = 200
	// window bounds how far a position moves at once, when few entries in between are of
	// the consumer's kinds: they're read over all the same.
	window = 5000
	// turnSteps is how many transactions a journal gets before others have their turn.
	turnSteps = 16
	// stepTimeout bounds one transaction.
	stepTimeout = 20 * time.Second
)

// InboxOptions configure an inbox.
type InboxOptions struct {
	Pool     *pgxpool.Pool
	Consumer Consumer
	Observe  func(Step) // told of every step; may be nil
	Log      *slog.Logger
}

// Step tells an observer how a step of a consumer went.
type Step struct {
	Consumer string
	Events   int // whose effects are there now
	Missed   int // of those: no message had told of them
	Failed   bool
	Dead     bool // a dead letter was written
}

// Inbox runs a consumer: it keeps the consumer's position in each journal, and moves it
// with the effects. It's safe for concurrent use, by any number of processes.
type Inbox struct{ InboxOptions }

// NewInbox makes the inbox of a consumer.
func NewInbox(o InboxOptions) *Inbox { return &Inbox{o} }

// Advance takes all entries of a journal that the consumer hasn't, up to the journal's
// end. It stops without an error at an entry whose turn to be tried again hasn't come. An
// entry's own failure is counted, and is no error of Advance.
func (i *Inbox) Advance(ctx context.Context, journal ledger.JournalID) error {
	for {
		if _, more, err := i.turn(ctx, journal, nil); err != nil || !more {
			return err
		}
	}
}

// turn takes up to turnSteps steps in a journal, told of which entries messages have come.
// It returns the position, and whether there's more to be done now.
func (i *Inbox) turn(ctx context.Context, journal ledger.JournalID, told map[ledger.Seq]bool) (at ledger.Seq, more bool, err error) {
	most := maxEffects
	for range turnSteps {
		s, err := i.step(ctx, journal, most)
		switch {
		case err == nil:
			i.observe(s, told)
			i.then(ctx, s.events)
			if at, more = s.at, s.more; !more {
				return at, false, nil
			}
			most = min(2*most, maxEffects)
		case !s.own || ctx.Err() != nil:
			return at, false, fmt.Errorf("consumer %s, journal %d: %w", i.Consumer.Name, journal, err)
		case len(s.events) > 1:
			most, more = len(s.events)/2, true // to find the one whose fault it is
		default:
			more, err = i.failed(ctx, journal, s, err)
			return s.at, more, err
		}
	}
	return at, more, nil
}

// step is what one transaction did, or tried.
type step struct {
	at       ledger.Seq // the position after it
	events   []Event
	attempts int // that the first of them has failed before
	more     bool
	own      bool // what failed is the effect itself
}

// step takes the next entries, at most so many.
func (i *Inbox) step(ctx context.Context, journal ledger.JournalID, most int) (s step, err error) {
	bounded, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	acted := false
	err = pgx.BeginFunc(bounded, i.Pool, func(tx pgx.Tx) error {
		head, ready, err := i.lock(bounded, tx, journal, &s)
		if err != nil || !ready {
			return err
		}
		if s.attempts > 0 {
			most = 1
		}
		end := head
		if idle, err := i.idle(bounded, tx); err != nil {
			return err
		} else if !idle {
			end = min(head, s.at+window)
			if s.events, err = i.next(bounded, tx, journal, s.at, end, most); err != nil {
				return err
			}
		}
		if len(s.events) == most {
			end = s.events[most-1].Seq
		}
		if len(s.events) > 0 && i.Consumer.Effect != nil {
			acted = true
			if err := i.guarded(func() error { return i.Consumer.Effect(bounded, tx, s.events) }); err != nil {
				s.own = own(err, bounded.Err() != nil && ctx.Err() == nil, tx.Conn().IsClosed())
				return err
			}
		}
		s.at, s.more = end, end < head
		_, err = tx.Exec(bounded, sqlMoveInbox, i.Consumer.Name, int64(journal), end)
		return err
	})
	// What an effect leaves behind may show only later, even at the commit.
	s.own = s.own || acted && err != nil && !errors.Is(err, ErrAway) && pg.Classify(err) == pg.Failed
	return s, err
}

// own tells whether an effect's error is its own fault: late says that it took too long,
// closed that the connection is gone.
func own(err error, late, closed bool) bool {
	const cancelled = "57014" // by a timeout of the effect's
	var server *pgconn.PgError
	switch {
	case errors.Is(err, ErrAway):
		return false
	case errors.As(err, &server):
		return pg.Classify(err) == pg.Failed || server.Code == cancelled
	}
	return late || !closed
}

// lost tells whether an error says that nothing can be done now, in any journal.
func lost(err error) bool { return !errors.Is(err, ErrAway) && pg.Classify(err) == pg.Lost }

// lock takes the consumer's row of a journal, and reads where it stands and where the
// journal ends. Not ready: there's nothing to do now.
func (i *Inbox) lock(ctx context.Context, tx pgx.Tx, journal ledger.JournalID, s *step) (head ledger.Seq, ready bool, err error) {
	early := false
	q := &pgx.Batch{}
	q.Queue(sqlOpenInbox, i.Consumer.Name, int64(journal))
	q.Queue(sqlLockInbox, i.Consumer.Name, int64(journal)).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&s.at, &s.attempts, &early, &head)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // there's no such journal, and so nothing in it
		}
		return err
	})
	err = tx.SendBatch(ctx, q).Close()
	return head, !early && s.at < head, err
}

// idle tells whether entries needn't be read.
func (i *Inbox) idle(ctx context.Context, tx pgx.Tx) (yes bool, err error) {
	if i.Consumer.Idle != nil {
		err = i.guarded(func() error { yes, err = i.Consumer.Idle(ctx, tx); return err })
	}
	return yes, err
}

// next reads the next entries of the consumer's kinds.
func (i *Inbox) next(ctx context.Context, tx pgx.Tx, journal ledger.JournalID, after, end ledger.Seq, most int) ([]Event, error) {
	rows, err := tx.Query(ctx, sqlInboxEntries, int64(journal), after, end, i.Consumer.Kinds, most)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Event, error) {
		e := Event{Journal: journal}
		err := row.Scan(&e.Seq, &e.ID, &e.Kind, &e.At, (*[]byte)(&e.Data))
		return e, err
	})
}

// guarded calls a consumer. Its panic is an error like any other, and its stack is logged.
func (i *Inbox) guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			i.Log.Error("a consumer panicked", slog.String("consumer", i.Consumer.Name), slog.Any("panic", p),
				slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("the consumer panicked: %v", p)
		}
	}()
	return call()
}

// then tells of what's committed. It's a hint: what goes wrong with it is logged, and that's
// all.
func (i *Inbox) then(ctx context.Context, events []Event) {
	if i.Consumer.Then != nil && len(events) > 0 {
		_ = i.guarded(func() error { i.Consumer.Then(ctx, events); return nil })
	}
}

// failed counts an attempt; after the last, the entry becomes a dead letter and the
// position moves on, in one transaction. More says that the next entry's turn has come.
func (i *Inbox) failed(ctx context.Context, journal ledger.JournalID, s step, cause error) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	e := s.events[0]
	reason := clean(cause.Error(), maxTold)
	counted, dead := false, false
	err = pgx.BeginFunc(ctx, i.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlOpenInbox, i.Consumer.Name, int64(journal)); err != nil {
			return err // the effect's failure has taken the row back, if it was a new one
		}
		var attempts int
		err := tx.QueryRow(ctx, sqlFailInbox, i.Consumer.Name, int64(journal), e.Seq, s.attempts, retry(s.attempts), reason).Scan(&attempts)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // another process has counted it, or got past it
		}
		if counted = err == nil; err != nil || attempts < MaxAttempts {
			return err
		}
		dead = true
		l := Letter{Consumer: i.Consumer.Name, Event: e, Reason: reason, Attempts: attempts}
		if err := Bury(ctx, tx, l); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, sqlMoveInbox, i.Consumer.Name, int64(journal), e.Seq)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("count an attempt of consumer %s: %w", i.Consumer.Name, err)
	}
	if !counted {
		return false, nil
	}
	log := i.Log.Warn
	if dead {
		log = i.Log.Error
	}
	log("an entry had no effect", slog.String("consumer", i.Consumer.Name), slog.Int64("journal", int64(journal)),
		slog.Int64("seq", int64(e.Seq)), slog.String("kind", e.Kind), slog.Int("attempt", s.attempts+1),
		slog.Bool("dead", dead), slog.Any("error", cause))
	if i.Observe != nil {
		i.Observe(Step{Consumer: i.Consumer.Name, Failed: true, Dead: dead})
	}
	return dead, nil
}

// observe tells the observer of a step.
func (i *Inbox) observe(s step, told map[ledger.Seq]bool) {
	if i.Observe == nil || len(s.events) == 0 {
		return
	}
	missed := 0
	var last ledger.Seq // what's newer may be on its way
	for seq := range told {
		last = max(last, seq)
	}
	for _, e := range s.events {
		if e.Seq < last && !told[e.Seq] {
			missed++
		}
	}
	i.Observe(Step{Consumer: i.Consumer.Name, Events: len(s.events), Missed: missed})
}
