package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

var errRefused = errors.New("the bank's holiday has no date")

// refuse fails at one entry.
func refuse(journal ledger.JournalID, seqs ...ledger.Seq) func(outbox.Event) error {
	return func(e outbox.Event) error {
		for _, seq := range seqs {
			if e.Journal == journal && e.Seq == seq {
				return errRefused
			}
		}
		return nil
	}
}

// One entry that always fails among 200 others: those before it take effect at once, it's
// tried as often as it may be, by processes that end after each try, and then it's a dead
// letter, and those after it take effect.
func TestPoisonBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	const poison ledger.Seq = 120
	for name, fail := range map[string]func() error{
		"error": func() error { return errRefused },
		"panic": func() error { panic(errRefused) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.write(1001, 201)
			tries := 0
			c := outbox.Consumer{Name: "poisoned", Kinds: []string{noted}, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
				if refuseAny(events, poison) == nil {
					return act(ctx, tx, "poisoned", events)
				}
				if len(events) == 1 { // among others it isn't an attempt
					tries++
				}
				return errors.Join(act(ctx, tx, "poisoned", events), fail())
			}}
			for attempt := 1; attempt < outbox.MaxAttempts; attempt++ {
				s.due("poisoned")
				s.failsOnce(c, 1001, poison, attempt)
			}
			s.due("poisoned")
			i, seen := s.inbox(c, s.pool)
			s.must(i.Advance(t.Context(), 1001))
			s.wantEach("poisoned", []string{noted}, poison)
			if tries != outbox.MaxAttempts {
				t.Errorf("it was tried %d times", tries)
			}
			if events, _, failed, dead := seen.sum(); events != 81 || failed != 1 || dead != 1 {
				t.Errorf("the observer was told of %d effects, %d failures, %d dead", events, failed, dead)
			}
			s.wantLetter("poisoned", 1001, poison)
		})
	}
}

// failsOnce has a new process advance, which fails at an entry, again with those before it
// done; and then once more, when it's too early.
func (s *shop) failsOnce(c outbox.Consumer, journal ledger.JournalID, poison ledger.Seq, attempt int) {
	s.t.Helper()
	pause := time.Duration(200<<(attempt-1)) * time.Millisecond
	from := one[time.Time](s.world, `SELECT clock_timestamp()`)
	i, seen := s.inbox(c, s.process(s.db.URL()))
	s.must(i.Advance(s.t.Context(), journal))
	until := one[time.Time](s.world, `SELECT clock_timestamp()`)
	retry := one[time.Time](s.world, `SELECT retry_at FROM inbox WHERE consumer = $1 AND journal_id = $2`, c.Name, int64(journal))
	if retry.Before(from.Add(pause/2)) || retry.After(until.Add(pause)) {
		s.t.Errorf("after %d attempts: it's tried again %s after %s", attempt, retry.Sub(from), pause)
	}
	s.exec(`UPDATE inbox SET retry_at = clock_timestamp() + interval '9 minutes' WHERE consumer = $1`, c.Name)
	s.must(i.Advance(s.t.Context(), journal))
	at, attempts, _ := s.position(c.Name, journal)
	if at != poison-1 || attempts != attempt || len(s.effects(c.Name, journal)) != int(poison)-1 {
		s.t.Fatalf("after %d attempts: %d are counted, the position is %d, and there are %d effects", attempt, attempts, at,
			len(s.effects(c.Name, journal)))
	}
	if _, _, failed, dead := seen.sum(); failed != 1 || dead != 0 {
		s.t.Errorf("after %d attempts: the observer was told of %d failures, %d dead", attempt, failed, dead)
	}
}

// wantLetter checks the dead letter of an entry that errRefused has killed.
func (s *shop) wantLetter(name string, journal ledger.JournalID, seq ledger.Seq) {
	s.t.Helper()
	attempts, reason, got := s.letter(name, journal, seq)
	if attempts != outbox.MaxAttempts || !strings.Contains(reason, errRefused.Error()) || strings.Contains(reason, ".go:") {
		s.t.Errorf("the letter tells of %d attempts: %s", attempts, reason)
	}
	var e outbox.Event
	s.must(s.owner.QueryRow(s.t.Context(), `SELECT journal_id, seq, id, kind, at, data FROM entries WHERE journal_id = $1 AND seq = $2`,
		int64(journal), seq).Scan(&e.Journal, &e.Seq, &e.ID, &e.Kind, &e.At, &e.Data))
	if got.Journal != e.Journal || got.Seq != e.Seq || got.ID != e.ID || got.Kind != e.Kind || !got.At.Equal(e.At) || !bytes.Equal(got.Data, e.Data) {
		s.t.Errorf("the letter has %+v of %+v", got, e)
	}
}

// The first entry of a journal may be the one that fails, when the consumer has no position
// there yet; so may the last, several in a row, and all.
func TestPoisonAnywhere(t *testing.T) {
	t.Parallel()
	for name, seqs := range map[string][]ledger.Seq{
		"first": {1}, "last": {6}, "in a row": {3, 4}, "first and last": {1, 6}, "all": {1, 2, 3, 4, 5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.write(1001, 6)
			i, seen := s.inbox(consumer("poisoned", []string{noted}, refuse(1001, seqs...)), s.pool)
			for range len(seqs) * outbox.MaxAttempts {
				s.due("poisoned")
				s.must(i.Advance(t.Context(), 1001))
			}
			s.wantEach("poisoned", []string{noted}, seqs...)
			for _, seq := range seqs {
				s.wantLetter("poisoned", 1001, seq)
			}
			if _, _, failed, dead := seen.sum(); failed != len(seqs)*outbox.MaxAttempts || dead != len(seqs) {
				t.Errorf("the observer was told of %d failures, %d dead", failed, dead)
			}
		})
	}
}

// An entry that succeeds after it has failed leaves nothing of that: the next one that
// fails has all its attempts.
func TestCountBeginsAnewAfterSuccess(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 4)
	left := map[ledger.Seq]int{2: 6, 3: 1 + outbox.MaxAttempts - 1}
	i, _ := s.inbox(consumer("recovers", []string{noted}, func(e outbox.Event) error {
		if left[e.Seq]--; left[e.Seq] >= 0 {
			return errRefused
		}
		return nil
	}), s.pool)
	for range 2 * outbox.MaxAttempts {
		s.due("recovers")
		s.must(i.Advance(t.Context(), 1001))
	}
	s.wantEach("recovers", []string{noted})
	if n := one[int](s.world, `SELECT count(*) FROM dead_letters`); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// meeting is an error that's counted when two processes have met it.
type meeting struct{ meet func() }

func (e meeting) Error() string { e.meet(); return errRefused.Error() }

// meetings gives the errors of one try: each waits until there are two.
func meetings() func() error {
	var met sync.WaitGroup
	met.Add(2)
	return func() error { return meeting{sync.OnceFunc(func() { met.Done(); met.Wait() })} }
}

// Two processes that try the same entry at the same time count one attempt.
func TestTwoProcessesCountOneFailureOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 3)
	var fail func() error
	c := outbox.Consumer{Name: "twice", Kinds: []string{noted}, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
		err := refuseAny(events, 2)
		if err != nil && len(events) == 1 { // among others it isn't an attempt
			err = fail()
		}
		return errors.Join(act(ctx, tx, "twice", events), err)
	}}
	one, seen := s.inbox(c, s.process(s.db.URL()))
	two, _ := s.inbox(c, s.process(s.db.URL()))
	two.Observe = seen.add
	for try := range outbox.MaxAttempts {
		if _, attempts, _ := s.position("twice", 1001); attempts != try {
			t.Fatalf("%d tries, but %d attempts", try, attempts)
		}
		s.due("twice")
		fail = meetings()
		var both sync.WaitGroup
		for _, i := range []*outbox.Inbox{one, two} {
			both.Go(func() {
				if err := i.Advance(t.Context(), 1001); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	s.wantEach("twice", []string{noted}, 2)
	s.wantLetter("twice", 1001, 2)
	if _, _, failed, dead := seen.sum(); failed != outbox.MaxAttempts || dead != 1 {
		t.Errorf("the observers were told of %d failures, %d dead", failed, dead)
	}
}

// tardy is an error that something else comes before it's counted.
type tardy struct{ before func() }

func (e tardy) Error() string { e.before(); return "too late" }

// A failure isn't counted when another process has done the entry meanwhile.
func TestFailureOfWhatAnotherHasDoneIsNotCounted(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 1)
	other, _ := s.inbox(consumer("tardy", []string{noted}, nil), s.process(s.db.URL()))
	meanwhile := sync.OnceFunc(func() {
		if err := other.Advance(t.Context(), 1001); err != nil {
			t.Error(err)
		}
	})
	i, seen := s.inbox(consumer("tardy", []string{noted}, func(outbox.Event) error { return tardy{meanwhile} }), s.pool)
	s.must(i.Advance(t.Context(), 1001))
	s.wantEach("tardy", []string{noted})
	if _, attempts, _ := s.position("tardy", 1001); attempts != 0 || len(seen.list) != 0 {
		t.Errorf("%d attempts, %d steps", attempts, len(seen.list))
	}
}

// refuseAny fails when an entry is among others.
func refuseAny(events []outbox.Event, seq ledger.Seq) error {
	for _, e := range events {
		if e.Seq == seq {
			return errRefused
		}
	}
	return nil
}

// What an effect says may be text that the database doesn't take, or very long.
func TestReasonMayBeAnyText(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"zero": "bad \x00 byte", "not utf-8": "bad \xff\xfe", "long": strings.Repeat("ä", 1<<20), "empty": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.write(1001, 3)
			s.diesOf(errors.New(text))
		})
	}
}

// An error that looks like one of a connection or a deadline, but is the effect's own, is
// the entry's fault.
func TestEffectsOwnErrorsAreItsFault(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"truncated": fmt.Errorf("read the seat map: %w", io.ErrUnexpectedEOF),
		"end":       io.EOF,
		"deadline":  fmt.Errorf("work it out: %w", context.DeadlineExceeded),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.write(1001, 3)
			s.diesOf(err)
		})
	}
}

// diesOf has entry 2 of journal 1001 fail with an error until it's dead.
func (s *shop) diesOf(cause error) {
	s.t.Helper()
	i, _ := s.inbox(consumer("dies", []string{noted}, func(e outbox.Event) error {
		if e.Seq == 2 {
			return cause
		}
		return nil
	}), s.pool)
	for attempt := range outbox.MaxAttempts {
		if _, n, _ := s.position("dies", 1001); n != attempt {
			s.t.Fatalf("%d attempts are counted, not %d", n, attempt)
		}
		s.due("dies")
		s.must(i.Advance(s.t.Context(), 1001))
	}
	s.wantEach("dies", []string{noted}, 2)
	s.letter("dies", 1001, 2)
}

// An effect that swallows an error of the database, which has ended its transaction, has
// failed.
func TestEffectCantSwallowTheDatabasesError(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 3)
	i, _ := s.inbox(outbox.Consumer{Name: "swallows", Kinds: []string{noted}, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
		if refuseAny(events, 2) != nil {
			_, _ = tx.Exec(ctx, `SELECT 1 / 0`)
		}
		_ = act(ctx, tx, "swallows", events)
		return nil
	}}, s.pool)
	for range outbox.MaxAttempts {
		s.due("swallows")
		s.must(i.Advance(t.Context(), 1001))
	}
	s.wantEach("swallows", []string{noted}, 2)
}

// An entry stays where it is until its dead letter is written.
func TestNoLetterNoMove(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 3)
	i, _ := s.inbox(consumer("unburied", []string{noted}, refuse(1001, 2)), s.pool)
	s.exec(`REVOKE INSERT ON dead_letters FROM tierledger_service`)
	for range outbox.MaxAttempts - 1 {
		s.due("unburied")
		s.must(i.Advance(t.Context(), 1001))
	}
	for range 3 {
		s.due("unburied")
		if err := i.Advance(t.Context(), 1001); err == nil {
			t.Error("a letter that can't be written is no error")
		}
		if at, attempts, _ := s.position("unburied", 1001); at != 1 || attempts != outbox.MaxAttempts-1 {
			t.Errorf("the position is %d after %d attempts", at, attempts)
		}
	}
	s.exec(`GRANT INSERT ON dead_letters TO tierledger_service`)
	s.must(i.Advance(t.Context(), 1001))
	s.wantEach("unburied", []string{noted}, 2)
	s.wantLetter("unburied", 1001, 2)
}

// What's refused only at the commit is the entry's fault too.
func TestCommitMayFail(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 6)
	s.exec(`CREATE TABLE stubs (stub bigint PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)`)
	s.exec(`INSERT INTO stubs VALUES (4)`)
	s.exec(`GRANT INSERT, SELECT ON stubs TO tierledger_service`)
	i, _ := s.inbox(outbox.Consumer{Name: "late", Kinds: []string{noted}, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
		for _, e := range events {
			if _, err := tx.Exec(ctx, `INSERT INTO stubs VALUES ($1)`, e.Seq); err != nil {
				return err
			}
		}
		return act(ctx, tx, "late", events)
	}}, s.pool)
	for range outbox.MaxAttempts {
		s.due("late")
		s.must(i.Advance(t.Context(), 1001))
	}
	s.wantEach("late", []string{noted}, 4)
	if n := one[int](s.world, `SELECT count(*) FROM stubs`); n != 6 {
		t.Errorf("%d stubs", n)
	}
}

// What the database can't do now, because it's full or being switched over, is no entry's
// fault, even when it says so on a connection that stays.
func TestDatabasesTroubleBurnsNoAttempts(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"full disk": "53100", "out of memory": "53200", "input and output": "58030", "standby": "25006", "deadlock": "40P01", "shutdown": "57P01",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.write(1001, 3)
			trouble := true
			i, seen := s.inbox(outbox.Consumer{Name: "troubled", Kinds: []string{noted}, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
				if trouble {
					_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'trouble' USING ERRCODE = '`+code+`'; END $$`)
					return err
				}
				return act(ctx, tx, "troubled", events)
			}}, s.pool)
			for range 2 {
				if err := i.Advance(t.Context(), 1001); err == nil {
					t.Error("trouble is no error")
				}
			}
			trouble = false
			if _, attempts, _ := s.position("troubled", 1001); attempts != 0 {
				t.Errorf("%d attempts", attempts)
			}
			s.must(i.Advance(t.Context(), 1001))
			s.wantEach("troubled", []string{noted})
			if _, _, failed, _ := seen.sum(); failed != 0 {
				t.Errorf("%d failures", failed)
			}
		})
	}
}
