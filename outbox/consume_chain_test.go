package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// chain is everything from the ledger to the effects.
type chain struct {
	*shop
	rand *rand.Rand
}

// reborn begins a process, ends it when that's due, and begins it anew, until ctx ends.
func reborn(ctx context.Context, due <-chan struct{}, begin func() (stop func())) {
	for ctx.Err() == nil {
		stop := begin()
		select {
		case <-due:
		case <-ctx.Done():
		}
		stop()
	}
}

// Thirty-two writers, four journals; relays and consumers' processes that end all the time,
// a bus that ends three times and once loses all it had: in the end the stream has every
// entry, and each effect is there once, in order.
func TestWholeChainLosesNothing(t *testing.T) {
	t.Parallel()
	const writers, each, kills = 32, 40, 20
	w := openRelaying(t, jetstream.Options{})
	c := &chain{shopOf(w.world), rand.New(rand.NewPCG(6, 1))}
	journals := []ledger.JournalID{1001, 1002, 1003, 1004}
	for _, journal := range journals {
		c.must(c.Ledger.Create(t.Context(), journal))
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	var parts sync.WaitGroup
	relays, processes := make(chan struct{}), make(chan struct{})
	parts.Go(func() {
		reborn(ctx, relays, func() func() {
			_, stop := w.running(outbox.RelayOptions{})
			return stop
		})
	})
	names := []string{"first", "second"}
	for _, name := range names {
		of := consumer(name, []string{noted}, nil)
		for range 2 {
			pool := c.process(c.db.URL())
			parts.Go(func() {
				reborn(ctx, processes, func() func() {
					i, _ := c.inbox(of, pool)
					return c.run(i, w.bus.Feed(of.Name, func(context.Context) ([]string, error) { return of.Kinds, nil }))
				})
			})
		}
	}
	done := c.writing(writers, each, journals)
	for kill := range kills {
		relays <- struct{}{}
		for range 1 + c.rand.IntN(3) {
			processes <- struct{}{}
		}
		if kill%7 == 3 { // three times
			w.endNATS()
			// A session of each process is gone too, in whatever it was about.
			c.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'outbox' AND state <> 'idle'`)
			if kill == 10 {
				w.dir = t.TempDir()
			}
			w.beginNATS()
		}
		n := int64((kill + 1) * writers * each / (kills + 1))
		pgtest.Until(t, "more is written", func() bool {
			return one[int64](c.world, `SELECT sum(seq)::bigint FROM journals`) >= n
		})
	}
	<-done
	for _, name := range names {
		i, _ := c.inbox(consumer(name, []string{noted}, nil), c.pool)
		c.arrived(i)
	}
	w.full()
	end()
	parts.Wait()
	c.complete()
	for _, name := range names {
		c.wantEach(name, []string{noted})
	}
	if n := one[int](c.world, `SELECT count(*) FROM dead_letters`); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// writing has writers write, each in one journal after the other; the channel is closed
// when they have.
func (c *chain) writing(writers, each int, journals []ledger.JournalID) <-chan struct{} {
	done := make(chan struct{})
	var all sync.WaitGroup
	for k := range writers {
		all.Go(func() {
			for n := range each {
				text := fmt.Sprintf("writer %d, entry %d", k, n)
				journal := journals[(k+n)%len(journals)]
				command, err := ledger.NewCommand(journal, "tester", text, "note", text, note{text})
				if err == nil {
					_, err = c.Ledger.Do(c.t.Context(), journal, command)
				}
				if err != nil {
					c.t.Error(err)
				}
			}
		})
	}
	go func() { all.Wait(); close(done) }()
	return done
}
