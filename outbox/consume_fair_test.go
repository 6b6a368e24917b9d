package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// One journal that can't go on, whatever the reason, holds up no other one, neither in
// sweeps nor for messages.
func TestOneJournalDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	causes := map[string]func() error{
		"refused":   func() error { return errRefused },
		"panic":     func() error { panic("out of paper") },
		"uncounted": func() error { return errRefused },
	}
	for k, err := range awayErrors() {
		causes[fmt.Sprintf("away %d", k)] = func() error { return err }
	}
	for name, cause := range causes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.write(1001, 3)
			s.write(1002, 3)
			if name == "uncounted" { // not even the count of its failures can be kept
				s.exec(`ALTER TABLE inbox ADD CHECK (journal_id <> 1001 OR attempts = 0)`)
			}
			c := consumer("sick", []string{noted}, func(e outbox.Event) error {
				if e.Journal == 1001 {
					return cause()
				}
				return nil
			})
			i, _ := s.inbox(c, s.pool)
			feed, _ := s.subscribed(c)
			s.run(i, nil)
			pgtest.Until(t, "the other journal is swept", func() bool { return len(s.effects("sick", 1002)) == 3 })
			other, _ := s.inbox(c, s.process(s.db.URL()))
			var delivered atomic.Int64
			s.run(other, counting(feed, &delivered))
			s.relay(nil)
			s.write(1001, 1)
			s.write(1003, 3)
			pgtest.Until(t, "the messages are taken", func() bool {
				return delivered.Load() >= 10 && len(s.effects("sick", 1003)) == 3
			})
			if n := len(s.effects("sick", 1001)); n != 0 {
				t.Errorf("%d effects of the sick journal", n)
			}
		})
	}
}

// growing makes an effect after each of which its journal has n entries more.
func (s *shop) growing(name string, n int, grows func(ledger.JournalID) bool) outbox.Consumer {
	return outbox.Consumer{Name: name, Kinds: []string{noted}, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
		if journal := events[0].Journal; grows(journal) {
			_, err := s.owner.Exec(context.WithoutCancel(ctx), `WITH j AS (UPDATE journals SET seq = seq + $2 WHERE journal_id = $1 RETURNING seq)
				INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
				SELECT $1, j.seq - $2 + n, gen_random_uuid(), $3, clock_timestamp(), 'tester', sha256(''), '{}', sha256('')
				FROM j, generate_series(1, $2::bigint) n`, int64(journal), n, noted)
			if err != nil {
				return err
			}
		}
		return act(ctx, tx, name, events)
	}}
}

// A journal that grows faster than its effects take place doesn't keep the others from
// their turn, nor the process from its end.
func TestBusyJournalLeavesOthersTheirTurn(t *testing.T) {
	t.Parallel()
	for _, with := range []string{"sweeps", "messages"} {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.db.Tampered()
			s.plant(1001, 500, noted)
			s.plant(1002, 5, noted)
			var done atomic.Bool
			c := s.growing("busy", 300, func(journal ledger.JournalID) bool { return journal == 1001 })
			c.Then = func(_ context.Context, events []outbox.Event) {
				if events[0].Journal == 1002 {
					done.Store(true)
				}
			}
			var feed outbox.Feed
			if with == "messages" {
				feed = feedFunc(func(context.Context, int) ([]outbox.Message, error) {
					nothing := func() {}
					return []outbox.Message{{Journal: 1001, Seq: 1 << 40, Done: nothing, Again: discard}}, nil
				})
			}
			i, _ := s.inbox(c, s.pool)
			stop := s.run(i, feed)
			pgtest.Until(t, "the other journal has its turn", done.Load)
			stop() // or the test never ends
			if _, attempts, _ := s.position("busy", 1001); attempts != 0 {
				t.Errorf("%d attempts", attempts)
			}
		})
	}
}

// More journals than one sweep takes, of which the first ones always have something new:
// the last ones have their turn all the same.
func TestSweepsComeRound(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.db.Tampered()
	const journals = 300
	for k := range ledger.JournalID(journals) {
		s.plant(1001+k, 1, noted)
	}
	i, _ := s.inbox(s.growing("round", 1, func(journal ledger.JournalID) bool { return journal <= 1256 }), s.pool)
	stop := s.run(i, nil)
	var reached int
	pgtest.Until(t, "the last journals are reached", func() bool {
		err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM inbox WHERE journal_id > 1256`).Scan(&reached)
		return err == nil && reached == journals-256
	})
	stop()
}

// A backlog is taken without the pauses between sweeps.
func TestSweepGoesOnWhileThereIsMore(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.db.Tampered()
	s.plant(1001, 30000, noted)
	i, _ := s.inbox(consumer("backlog", []string{filed}, nil), s.pool)
	notes, seen := s.inbox(consumer("notes", []string{noted}, nil), s.pool)
	stop := s.run(i, nil)
	stopNotes := s.run(notes, feedFunc(func(ctx context.Context, _ int) ([]outbox.Message, error) {
		l, err := notes.Lag(ctx)
		if end, _ := ctx.Deadline(); err == nil && l.Entries > 0 && time.Until(end) > time.Second {
			t.Errorf("it waits %s for messages while %d entries are left", time.Until(end), l.Entries)
		}
		<-ctx.Done()
		return nil, nil
	}))
	s.arrived(i)
	s.arrived(notes)
	seen.told(t, 30000)
	stop()
	stopNotes()
	s.wantEach("backlog", []string{filed})
	s.wantEach("notes", []string{noted})
	if n := len(seen.list); n != 150 {
		t.Errorf("%d steps", n)
	}
}

// An entry that must wait keeps its place: nothing of its journal is done meanwhile, not
// even for messages, and they're let go.
func TestOrderIsKeptWhileAnEntryWaits(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 4)
	c := consumer("orderly", []string{noted}, refuse(1001, 2))
	i, _ := s.inbox(c, s.pool)
	s.must(i.Advance(t.Context(), 1001))
	s.exec(`UPDATE inbox SET retry_at = clock_timestamp() + interval '9 minutes'`)
	feed, info := s.subscribed(c)
	s.run(i, feed)
	s.relay(nil)
	s.write(1001, 4)
	pgtest.Until(t, "the messages are let go", func() bool {
		i := info()
		return i.Delivered.Stream == 8 && i.NumAckPending == 0 // each of them, however often
	})
	if at, attempts, _ := s.position("orderly", 1001); at != 1 || attempts != 1 || len(s.effects("orderly", 1001)) != 1 {
		t.Errorf("the position is %d after %d attempts", at, attempts)
	}
}

// A clock that was put back doesn't hold a journal: a time to try again that's farther away
// than any pause isn't one.
func TestClockMayBePutBack(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 4)
	i, _ := s.inbox(consumer("timeless", []string{noted}, nil), s.pool)
	s.exec(`INSERT INTO inbox VALUES ('timeless', 1001, 1, 3, clock_timestamp() + interval '1 day')`)
	s.run(i, nil)
	s.arrived(i)
	if got := s.effects("timeless", 1001); len(got) != 3 {
		t.Errorf("%d effects", len(got))
	}
}

// What's told after the commit may panic: the effects are there, and the consumer goes on.
func TestThenMayPanic(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 4)
	c := consumer("then", []string{noted}, nil)
	c.Then = func(context.Context, []outbox.Event) { panic("nobody listens") }
	i, _ := s.inbox(c, s.pool)
	s.must(i.Advance(t.Context(), 1001))
	s.write(1001, 4)
	s.must(i.Advance(t.Context(), 1001))
	s.wantEach("then", []string{noted})
}
