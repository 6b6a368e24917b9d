package outbox_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// A relay is ended at twenty points of its way, each time another follows.
func TestARelayThatIsEndedAnywhere(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	for i := range 20 {
		w.write(901, 5)
		w.write(902, 1)
		// The end comes at one of the calls of the bus, before or after it's done.
		var mu sync.Mutex
		calls, last, after := 0, rand.IntN(6), rand.IntN(2) == 0
		reached := make(chan struct{})
		call := func(do func()) {
			mu.Lock()
			calls++
			now := calls == last+1
			mu.Unlock()
			if now && !after {
				close(reached)
			}
			do()
			if now && after {
				close(reached)
			}
		}
		bus := &hooked{Bus: w.bus,
			onStream: func(ctx context.Context, stream func(context.Context) (outbox.Stream, error)) (s outbox.Stream, err error) {
				call(func() { s, err = stream(ctx) })
				return s, err
			},
			onPublish: func(ctx context.Context, place uint64, events []outbox.Event, publish publishing) (p uint64, err error) {
				call(func() { p, err = publish(ctx, place, events) })
				return p, err
			},
		}
		r, stop := w.running(outbox.RelayOptions{Bus: bus})
		if i%2 == 0 {
			r.Hint(901)
		}
		<-reached
		stop()
	}
	w.running(outbox.RelayOptions{})
	w.full()
	w.complete()
}

// errCut is what a relay is told that has lost its connection.
var errCut = errors.New("the connection was cut")

// What comes of a batch isn't told, or the cursor isn't moved: the next try, or the next
// process, looks in the stream.
func TestOutcomesThatNobodyIsTold(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(ctx context.Context, w *relaying, do func() (uint64, error), cut func()) (uint64, error){
		"it was never sent": func(context.Context, *relaying, func() (uint64, error), func()) (uint64, error) { return 0, errCut },
		"the acknowledgement is lost": func(_ context.Context, _ *relaying, do func() (uint64, error), _ func()) (uint64, error) {
			if _, err := do(); err != nil {
				return 0, err
			}
			return 0, errCut
		},
		"the database is away afterwards": func(_ context.Context, _ *relaying, do func() (uint64, error), cut func()) (uint64, error) {
			place, err := do()
			cut()
			return place, err
		},
		"it arrives after all, later": func(ctx context.Context, w *relaying, do func() (uint64, error), _ func()) (uint64, error) {
			w.late(do)
			return 0, errCut
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRelaying(t, jetstream.Options{})
			for range 3 {
				w.write(901, 20)
				w.write(902, 3)
				pool := w.anotherPool()
				var mu sync.Mutex
				lost := make(map[ledger.JournalID]bool)
				bus := &hooked{Bus: w.bus, onPublish: func(ctx context.Context, after uint64, events []outbox.Event, publish publishing) (uint64, error) {
					mu.Lock()
					first := !lost[events[0].Journal]
					lost[events[0].Journal] = true
					mu.Unlock()
					do := func() (uint64, error) { return publish(ctx, after, events) }
					if !first {
						return do()
					}
					return lose(ctx, w, do, func() { go pool.Close() })
				}}
				_, stop := w.running(outbox.RelayOptions{Bus: bus, Pool: pool})
				if name == "the database is away afterwards" {
					w.running(outbox.RelayOptions{}) // another process has one
				}
				w.full()
				w.complete()
				stop()
			}
			w.letters.Wait()
			w.complete()
		})
	}
}

// So many batches have an outcome that nobody is told that the next ones are as small as can
// be: they go on.
func TestManyOutcomesThatNobodyIsTold(t *testing.T) {
	t.Parallel()
	const journals = 20 // a batch may have half as many events after each
	w := openTampered(t)
	w.invent(1, journals, 3)
	var mu sync.Mutex
	lost := make(map[ledger.JournalID]bool)
	bus := &hooked{Bus: w.bus, onPublish: func(ctx context.Context, after uint64, events []outbox.Event, publish publishing) (uint64, error) {
		mu.Lock()
		defer mu.Unlock()
		if journal := events[0].Journal; len(lost) < journals {
			lost[journal] = true
			return 0, errCut
		}
		return publish(ctx, after, events)
	}}
	r, _ := w.running(outbox.RelayOptions{Bus: bus})
	w.full()
	w.complete()
	w.calm(r)
}

// late has something done when the relay has gone on: its next publishing races with it.
func (w *relaying) late(do func() (uint64, error)) {
	w.letters.Go(func() {
		if _, err := do(); err != nil && !errors.Is(err, outbox.ErrFenced) {
			w.t.Log(err)
		}
	})
}
