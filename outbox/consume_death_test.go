package outbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/outbox"
)

// death is how a process of a consumer ends in the transaction of an effect.
type death struct {
	proxy  *pgtest.Proxy
	end    context.CancelFunc // of what Advance was given
	owner  *pgx.Conn
	tx     pgx.Tx
	events []outbox.Event
}

// Whenever a process ends, its effects are there with the position or not at all, nothing
// is counted against an entry, and another process does the rest.
func TestConsumerDies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		die  func(ctx context.Context, d death) error
		done bool // the effects are there when it has ended
		well bool // it isn't told of it
	}{
		{name: "before its effect", die: func(ctx context.Context, d death) error {
			d.end()
			return ctx.Err()
		}},
		{name: "in its effect", die: func(ctx context.Context, d death) error {
			d.end()
			return act(ctx, d.tx, "mortal", d.events)
		}},
		{name: "after its effect", die: func(ctx context.Context, d death) error {
			err := act(ctx, d.tx, "mortal", d.events)
			d.end()
			return err
		}},
		{name: "with its session", die: func(ctx context.Context, d death) error {
			if err := act(ctx, d.tx, "mortal", d.events); err != nil {
				return err
			}
			_, err := d.owner.Exec(ctx, `SELECT pg_terminate_backend($1, 10000)`, int64(d.tx.Conn().PgConn().PID()))
			return err
		}},
		{name: "with its session, before its effect", die: func(ctx context.Context, d death) error {
			if _, err := d.owner.Exec(ctx, `SELECT pg_terminate_backend($1, 10000)`, int64(d.tx.Conn().PgConn().PID())); err != nil {
				return err
			}
			return act(ctx, d.tx, "mortal", d.events)
		}},
		{name: "with its connection", die: func(ctx context.Context, d death) error {
			err := act(ctx, d.tx, "mortal", d.events)
			d.proxy.LoseNextWrite()
			return err
		}},
		{name: "before it's told of the commit", done: true, die: func(ctx context.Context, d death) error {
			err := act(ctx, d.tx, "mortal", d.events)
			d.proxy.LoseNextAnswer()
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.write(1001, 9)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			d := death{proxy: pgtest.NewProxy(t, s.db), end: end, owner: s.owner}
			mortal := outbox.Consumer{Name: "mortal", Kinds: []string{noted}, Effect: func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
				d.tx, d.events = tx, events
				return c.die(ctx, d)
			}}
			i, seen := s.inbox(mortal, s.process(d.proxy.ServiceURL(t, s.db)))
			if err := i.Advance(ctx, 1001); err == nil {
				t.Error("it hasn't ended")
			}
			pgtest.Until(t, "the server has ended its transaction", func() bool {
				return one[int](s.world, `SELECT count(*) FROM pg_locks WHERE relation = 'inbox'::regclass`) == 0
			})
			want := 0
			if c.done {
				want = 9
			}
			if at, attempts, _ := s.position("mortal", 1001); int(at) != want || len(s.effects("mortal", 1001)) != want || attempts != 0 {
				t.Errorf("the position is %d, there are %d effects and %d attempts", at, len(s.effects("mortal", 1001)), attempts)
			}
			if events, _, failed, _ := seen.sum(); events+failed != 0 {
				t.Errorf("the observer was told of %d effects, %d failures", events, failed)
			}
			other, _ := s.inbox(consumer("mortal", []string{noted}, nil), s.pool)
			s.must(other.Advance(t.Context(), 1001))
			s.wantEach("mortal", []string{noted})
		})
	}
}

// A dependency that's away pauses the consumer, and no attempt is counted, however the
// effect says so.
func TestDependencyAwayBurnsNoAttempts(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 3)
	for _, err := range awayErrors() {
		i, seen := s.inbox(consumer("depends", []string{noted}, func(outbox.Event) error { return err }), s.pool)
		if got := i.Advance(t.Context(), 1001); got == nil {
			t.Errorf("%v: it goes on", err)
		}
		if _, attempts, _ := s.position("depends", 1001); attempts != 0 || len(s.effects("depends", 1001)) != 0 || len(seen.list) != 0 {
			t.Errorf("%v: %d attempts, %d effects, %d steps", err, attempts, len(s.effects("depends", 1001)), len(seen.list))
		}
	}
	i, _ := s.inbox(consumer("depends", []string{noted}, nil), s.pool)
	s.must(i.Advance(t.Context(), 1001))
	s.wantEach("depends", []string{noted})
}

// The database goes away under a running consumer, and comes back: it goes on, and no
// attempt is counted.
func TestConsumerOutlivesItsDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	db.Except("events_listed")
	s := shopOf(openOn(t, db))
	s.write(1001, 20)
	i, seen := s.inbox(consumer("patient", []string{noted}, nil), s.pool)
	stop := s.run(i, nil)
	s.arrived(i)
	seen.told(t, 20)
	s.must(db.Server().Kill())
	pgtest.Until(t, "the consumer pauses", func() bool { return s.logged("a consumer pauses") })
	s.must(db.Server().Restart(t.Context()))
	s.reconnect()
	s.write(1001, 20)
	s.arrived(i)
	seen.told(t, 40)
	stop()
	s.wantEach("patient", []string{noted})
	if events, _, failed, _ := seen.sum(); failed != 0 || events != 40 {
		t.Errorf("the observer was told of %d effects, %d failures", events, failed)
	}
}

// A process that's to end lets go of what it's doing, and doesn't call that a failure.
func TestEndIsNoFailure(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 5)
	entered, ended := make(chan struct{}), make(chan error, 1)
	i, seen := s.inbox(outbox.Consumer{Name: "ends", Kinds: []string{noted}, Effect: func(ctx context.Context, _ pgx.Tx, _ []outbox.Event) error {
		close(entered)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}}, s.pool)
	stop := s.run(i, nil)
	<-entered
	stop()
	if err := <-ended; err != context.Canceled { // else it was let go when its time was up
		t.Errorf("its effect ended with %v", err)
	}
	if len(seen.list) != 0 || s.logged("a consumer pauses") {
		t.Errorf("the observer was told of %+v; the log is\n%s", seen.list, s.log)
	}
	if _, attempts, _ := s.position("ends", 1001); attempts != 0 {
		t.Errorf("%d attempts", attempts)
	}
}
