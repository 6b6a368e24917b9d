package outbox_test

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// Entries take effect once and in order while they're written, whoever and however many
// advance.
func TestEachEffectOnceInOrder(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	c := consumer("counts", []string{noted}, nil)
	one, _ := s.inbox(c, s.pool)
	two, _ := s.inbox(c, s.process(s.db.URL()))
	journals := []ledger.JournalID{1001, 1002, 1003}
	for _, journal := range journals {
		s.must(s.Ledger.Create(t.Context(), journal))
	}
	var writers, readers sync.WaitGroup
	written := make(chan struct{})
	for _, journal := range journals {
		writers.Go(func() { s.fill(journal, 300) })
		for _, i := range []*outbox.Inbox{one, two, one} {
			readers.Go(func() {
				for going := true; going; {
					select {
					case <-written:
						going = false // once more
					default:
					}
					if err := i.Advance(t.Context(), journal); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	writers.Wait()
	close(written)
	readers.Wait()
	s.wantEach("counts", []string{noted})
}

// A process that comes while another is at a journal waits, and finds it done.
func TestProcessesTakeTurnsInAJournal(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 5) // the consumer has a position, which isn't made while the two are at it
	first, _ := s.inbox(consumer("turns", []string{noted}, nil), s.pool)
	s.must(first.Advance(t.Context(), 1001))
	s.write(1001, 20)
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	c := outbox.Consumer{Name: "turns", Kinds: []string{noted}, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
		entered <- struct{}{}
		<-leave
		return act(ctx, tx, "turns", events)
	}}
	var processes sync.WaitGroup
	for range 2 {
		i, _ := s.inbox(c, s.process(s.db.URL()))
		processes.Go(func() {
			if err := i.Advance(t.Context(), 1001); err != nil {
				t.Error(err)
			}
		})
	}
	<-entered
	pgtest.Until(t, "the other waits", func() bool { return s.waiting() > 0 || len(entered) > 0 })
	close(leave)
	processes.Wait()
	s.wantEach("turns", []string{noted})
}

// An effect and its position are there together or not at all, also for those who look in
// between.
func TestEffectAndPositionComeTogether(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 10)
	c := outbox.Consumer{Name: "both", Kinds: []string{noted}, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
		if err := act(ctx, tx, "both", events); err != nil {
			return err
		}
		if at, _, _ := s.position("both", 1001); at != 0 || len(s.effects("both", 1001)) != 0 {
			t.Errorf("the position is %d, and there are %d effects, before the commit", at, len(s.effects("both", 1001)))
		}
		return nil
	}}
	told := 0
	c.Then = func(_ context.Context, events []outbox.Event) {
		if at, _, _ := s.position("both", 1001); at != 10 || len(s.effects("both", 1001)) != 10 {
			t.Errorf("the position is %d, and there are %d effects, after the commit", at, len(s.effects("both", 1001)))
		}
		told += len(events)
	}
	i, _ := s.inbox(c, s.pool)
	s.must(i.Advance(t.Context(), 1001))
	s.must(i.Advance(t.Context(), 1001))
	if told != 10 {
		t.Errorf("Then was told of %d entries", told)
	}
	s.wantEach("both", []string{noted})
}

// A consumer without kinds is one of all of them.
func TestNoKindsAreAll(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 5)
	s.file(1001, "a file")
	for name, kinds := range map[string][]string{"nil": nil, "empty": {}} {
		i, _ := s.inbox(consumer(name, kinds, nil), s.pool)
		s.must(i.Advance(t.Context(), 1001))
		s.wantEach(name, nil)
	}
}

// Entries of other kinds have no effect, and the position moves over them.
func TestOnlyItsKindsTakeEffect(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 3)
	s.file(1001, "first")
	s.write(1001, 2)
	s.file(1001, "second")
	s.write(1001, 1)
	files, seen := s.inbox(consumer("files", []string{filed}, nil), s.pool)
	s.must(files.Advance(t.Context(), 1001))
	s.wantEach("files", []string{filed})
	both, _ := s.inbox(consumer("both", []string{filed, noted}, nil), s.pool)
	s.must(both.Advance(t.Context(), 1001))
	s.wantEach("both", nil)
	if events, _, _, _ := seen.sum(); events != 2 {
		t.Errorf("the observer was told of %d effects", events)
	}
}

// A consumer that's new at a journal with many entries of other kinds gets through them in
// steps, of which each is bounded: shop.wantEach looks at the moves.
func TestNewConsumerGetsThroughOtherKinds(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.db.Tampered()
	s.plant(1001, 20000, noted)
	s.exec(`UPDATE entries SET kind = $1 WHERE journal_id = 1001 AND seq IN (4999, 5000, 12345, 20000)`, filed)
	i, _ := s.inbox(consumer("rare", []string{filed}, nil), s.pool)
	s.must(i.Advance(t.Context(), 1001))
	s.wantEach("rare", []string{filed})
	if n := one[int](s.world, `SELECT count(*) FROM moves`); n < 4 || n > 8 {
		t.Errorf("it took %d moves", n)
	}
}

// A backlog is taken in batches, none of them too large.
func TestBacklogIsTakenInBatches(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.db.Tampered()
	s.plant(1001, 1001, noted)
	i, seen := s.inbox(consumer("batches", []string{noted}, nil), s.pool)
	s.must(i.Advance(t.Context(), 1001))
	s.wantEach("batches", []string{noted})
	if n := len(seen.list); n != 6 {
		t.Errorf("it took %d steps", n)
	}
}

// A journal that isn't there has no entries, and no position is kept of it.
func TestNoJournalNoPosition(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	i, _ := s.inbox(consumer("none", nil, nil), s.pool)
	s.must(i.Advance(t.Context(), 4711))
	if n := one[int](s.world, `SELECT count(*) FROM inbox`); n != 0 {
		t.Errorf("there are %d positions", n)
	}
}

// Lag counts what wasn't seen, and the journals that stand.
func TestLag(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 7)
	s.write(1002, 5)
	i, _ := s.inbox(consumer("lags", []string{noted}, refuse(1002, 3)), s.pool)
	for _, want := range []outbox.Lag{{Entries: 12}, {Entries: 3, Failing: 1}} {
		if l, err := i.Lag(t.Context()); err != nil || l != want {
			t.Errorf("the lag is %+v (%v), not %+v", l, err, want)
		}
		s.must(i.Advance(t.Context(), 1001))
		s.must(i.Advance(t.Context(), 1002))
	}
}

// A consumer that has nothing to do gets over everything at once, without a look at it, and
// takes effect again from what comes after that.
func TestIdleConsumerPassesOver(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.db.Tampered()
	s.plant(1001, 20000, noted)
	s.exec(`CREATE TABLE subscribed (); GRANT SELECT ON subscribed TO tierledger_service`)
	c := consumer("idle", []string{noted}, nil)
	c.Idle = func(ctx context.Context, tx pgx.Tx) (idle bool, err error) {
		err = tx.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM subscribed)`).Scan(&idle)
		return idle, err
	}
	i, seen := s.inbox(c, s.pool)
	s.must(i.Advance(t.Context(), 1001))
	if moves := one[int](s.world, `SELECT count(*) FROM moves`); moves != 1 || len(s.effects("idle", 1001)) != 0 || len(seen.list) != 0 {
		t.Errorf("%d moves, %d effects, %d steps", moves, len(s.effects("idle", 1001)), len(seen.list))
	}
	s.exec(`INSERT INTO subscribed DEFAULT VALUES`)
	s.exec(`UPDATE journals SET seq = 20001 WHERE journal_id = 1001`)
	s.exec(`INSERT INTO entries SELECT journal_id, 20001, gen_random_uuid(), kind, at, principal, digest, data, hash FROM entries WHERE seq = 20000`)
	s.must(i.Advance(t.Context(), 1001))
	if got := s.effects("idle", 1001); len(got) != 1 || got[0] != 20001 {
		t.Errorf("the effects are of %v", got)
	}
	if at, _, _ := s.position("idle", 1001); at != 20001 {
		t.Errorf("the position is %d", at)
	}
}
