package outbox_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// Thirty-two writers fill four journals, while the relay is ended and another begins twenty
// times, and the server is restarted three times: once with nothing of what it had.
func TestStorm(t *testing.T) {
	t.Parallel()
	const writers, each, journals = 32, 50, 4
	w := openRelaying(t, jetstream.Options{})
	for journal := range journals {
		w.must(w.Ledger.Create(t.Context(), ledger.JournalID(901+journal)))
	}
	var relay atomic.Pointer[outbox.Relay]
	var seen tally
	begin := func() (stop func()) {
		r, stop := w.running(outbox.RelayOptions{Observe: seen.add})
		relay.Store(r)
		return stop
	}
	stop := begin()
	var done atomic.Int64
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() {
			journal := ledger.JournalID(901 + writer%journals)
			for i := range each {
				text := fmt.Sprintf("note %d of writer %d", i, writer)
				c, err := ledger.NewCommand(journal, "tester", text, "note", text, note{text})
				if err == nil {
					_, err = w.Ledger.Do(t.Context(), journal, c)
				}
				if err != nil {
					t.Error(err)
					return
				}
				relay.Load().Hint(journal)
				done.Add(1)
			}
		})
	}
	for i := range 20 {
		pgtest.Until(t, "the writers go on", func() bool { return done.Load() >= int64(i*writers*each/22) })
		pgtest.Until(t, "something is published", func() bool { return w.messages() > uint64(rand.IntN(20)) })
		restart := func() {}
		switch i {
		case 4, 10:
			restart = w.beginNATS
			w.endNATS()
		case 15:
			w.endNATS()
			w.dir = t.TempDir()
			restart = w.beginNATS
		}
		if i%2 == 0 {
			stop()
			restart()
			stop = begin()
		} else {
			restart()
			was := stop
			stop = begin() // there are two for a moment
			was()
		}
	}
	all.Wait()
	w.full()
	w.complete()
	r, _ := w.running(outbox.RelayOptions{})
	w.published(r)
	w.complete()
	w.calm(r)
}
