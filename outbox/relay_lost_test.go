package outbox_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// The row is behind the stream, or gone: the stream is believed.
func TestACursorBehindTheStream(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"set back":                  `UPDATE relays SET seq = 2, stream_seq = 2 WHERE journal_id = 901`,
		"set back to the beginning": `UPDATE relays SET seq = 0, stream_seq = 0`,
		"of no stream":              `UPDATE relays SET seq = 0, stream_seq = 0, stream = ''`,
		"of another stream":         `UPDATE relays SET stream = 'TIERLEDGER 2020-01-01T00:00:00Z'`,
		"suspected":                 `UPDATE relays SET suspect = true`,
		"deleted":                   `DELETE FROM relays`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRelaying(t, jetstream.Options{})
			w.write(901, 5)
			w.write(902, 1)
			w.relayed()
			w.tamper(sql)
			var seen tally
			r, _ := w.running(outbox.RelayOptions{Observe: seen.add})
			w.calm(r)
			w.write(901, 1)
			w.full()
			w.complete()
			w.published(r)
			if p := seen.of(901); p.Events != 1 || p.Again != 0 {
				t.Errorf("the observer was told of %+v", p)
			}
		})
	}
}

// The stream's end is gone as that of a server whose machine has failed: a store from
// before is there. Nobody writes to the first journal any more.
func TestAStreamThatHasLostItsEnd(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"under a running relay": false, "between two relays": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRelaying(t, jetstream.Options{})
			w.write(901, 4)
			w.write(902, 1)
			_, stop := w.running(outbox.RelayOptions{})
			w.full()
			stop()
			w.endNATS()
			putBack := w.keep()
			w.beginNATS()
			var seen tally
			r, stop := w.running(outbox.RelayOptions{Observe: seen.add})
			w.write(901, 3)
			w.full()
			w.write(902, 2)
			w.full()
			w.published(r)
			if restart {
				stop()
			}
			w.endNATS()
			putBack()
			w.beginNATS()
			if restart {
				r, _ = w.running(outbox.RelayOptions{Observe: seen.add})
			}
			w.full()
			w.logged("the stream has lost its end")
			w.write(902, 2)
			w.full()
			w.complete()
			w.published(r)
			for journal, want := range map[ledger.JournalID][2]int{901: {6, 3}, 902: {6, 2}} {
				if p := seen.of(journal); p.Events != want[0] || p.Again != want[1] {
					t.Errorf("of journal %d %d events were published, %d of them again", journal, p.Events, p.Again)
				}
			}
			w.calm(r)
		})
	}
}

// The end of a journal is gone, and its places are taken by another's: only the patrol can
// see that.
func TestALostEndWhosePlacesAreTaken(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 4)
	w.write(902, 1)
	_, stop := w.running(outbox.RelayOptions{})
	w.full()
	stop()
	w.endNATS()
	putBack := w.keep()
	w.beginNATS()
	r, stop := w.running(outbox.RelayOptions{})
	w.write(901, 3)
	w.full()
	w.published(r)
	stop()
	w.endNATS()
	putBack()
	w.beginNATS()
	// The second journal's next ones take the places, by a relay that doesn't look at the
	// stream's end, such as one of another program version.
	w.tamper(`UPDATE relays SET stream = 'hidden' WHERE journal_id = 901`)
	w.write(902, 5)
	_, stop = w.running(outbox.RelayOptions{Bus: &hooked{Bus: w.bus, onLast: func(_ context.Context, journal ledger.JournalID) error {
		if journal == 901 {
			return errCut
		}
		return nil
	}}})
	pgtest.Until(t, "the places are taken", func() bool { return w.messages() == 10 })
	pgtest.Until(t, "the cursor is moved", func() bool { return w.cursor(902).Seq == 6 })
	stop()
	w.tamper(`UPDATE relays SET stream = (SELECT stream FROM relays WHERE journal_id = 902), problem = '' WHERE journal_id = 901`)
	r, _ = w.running(outbox.RelayOptions{})
	w.full()
	w.complete()
	w.calm(r)
	if !w.log.has("the stream has lost the last entry of a journal") || w.log.has("the stream has lost its end") {
		t.Errorf("the log has\n%s", w.log)
	}
}

// What the stream has lost is suspected before anything can be published to it again: what
// comes next would take the lost places.
func TestALostEndIsSuspectedFirst(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 4)
	w.relayed()
	w.endNATS()
	putBack := w.keep()
	w.beginNATS()
	var lost atomic.Bool
	var last, seen, unsuspected atomic.Uint64 // last and seen are sessions
	bus := &hooked{Bus: w.bus, onSeen: func(session uint64) {
		if !lost.Load() {
			last.Store(session)
		} else if session > last.Load() && seen.CompareAndSwap(0, session) {
			var n uint64
			if err := w.pool.QueryRow(context.Background(), `SELECT count(*) FROM relays WHERE stream_seq > 4 AND NOT suspect`).Scan(&n); err != nil {
				t.Error(err)
			}
			unsuspected.Store(n)
		}
	}}
	r, _ := w.running(outbox.RelayOptions{Bus: bus})
	w.write(901, 3)
	w.write(902, 2)
	w.full()
	w.published(r)
	w.endNATS()
	putBack()
	lost.Store(true)
	w.beginNATS()
	w.full()
	if seen.Load() == 0 || unsuspected.Load() != 0 {
		t.Errorf("in session %d %d losses weren't suspected", seen.Load(), unsuspected.Load())
	}
	w.complete()
	w.calm(r)
}

// An administrator removes a journal's last messages.
func TestRemovedMessagesComeAgain(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"under a running relay": false, "between two relays": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRelaying(t, jetstream.Options{})
			w.write(901, 5)
			w.write(902, 2)
			var seen tally
			patrolled := &hooked{Bus: w.bus}
			r, stop := w.running(outbox.RelayOptions{Observe: seen.add, Bus: patrolled})
			w.full()
			w.published(r)
			pgtest.Until(t, "each journal was patrolled more than once", func() bool { return patrolled.looks.Load() > 4 })
			if restart {
				stop()
			}
			events := w.cursor(901) // its message goes last: the patrol sees that at once, and what goes later not at all
			w.must(w.stream().DeleteMsg(t.Context(), uint64(events.Place-1)))
			w.must(w.stream().DeleteMsg(t.Context(), uint64(events.Place)))
			if restart {
				r, _ = w.running(outbox.RelayOptions{Observe: seen.add})
			}
			w.full()
			w.complete()
			w.calm(r)
			if p := seen.of(901); p.Events != 7 || p.Again != 2 {
				t.Errorf("the observer was told of %+v", p)
			}
		})
	}
}

// Another stream is in the place of the one that was: everything is published again.
func TestAnotherStream(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(w *relaying){
		"the store is removed": func(w *relaying) {
			w.endNATS()
			w.dir = w.t.TempDir()
			w.beginNATS()
		},
		"the stream is deleted": func(w *relaying) { w.deleteStream() },
		"the stream is made anew": func(w *relaying) {
			config := w.stream().CachedInfo().Config
			w.deleteStream()
			_, err := w.jetstream().CreateStream(w.t.Context(), config)
			w.must(err)
		},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restart), func(t *testing.T) {
				t.Parallel()
				w := openRelaying(t, jetstream.Options{})
				w.write(901, 5)
				w.write(902, 2)
				var seen tally
				r, stop := w.running(outbox.RelayOptions{Observe: seen.add})
				w.full()
				w.published(r)
				if restart {
					stop()
				}
				was := w.cursor(901).Stream
				replace(w)
				if restart {
					r, _ = w.running(outbox.RelayOptions{Observe: seen.add})
				}
				pgtest.Until(t, "another stream has all", func() bool {
					return w.cursor(901).Stream != was && w.cursor(902).Stream != was && w.messages() == 7
				})
				w.write(901, 1)
				w.full()
				w.complete()
				w.published(r)
				if p := seen.of(901); p.Events != 11 || p.Again != 5 {
					t.Errorf("the observer was told of %+v", p)
				}
				w.logged("the stream has lost entries; they're published again")
				w.calm(r)
			})
		}
	}
}

// What comes again is counted as such, also when the first attempt to publish it fails.
func TestWhatComesAgainIsCounted(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 5)
	w.relayed()
	w.deleteStream()
	var seen tally
	var failed atomic.Bool
	r, _ := w.running(outbox.RelayOptions{Observe: seen.add, Bus: &hooked{Bus: w.bus,
		onPublish: func(ctx context.Context, after uint64, events []outbox.Event, publish publishing) (uint64, error) {
			if failed.CompareAndSwap(false, true) {
				return 0, outbox.ErrUnseen
			}
			return publish(ctx, after, events)
		}}})
	w.full()
	w.write(901, 1)
	w.full()
	w.published(r)
	if p := seen.of(901); p.Events != 6 || p.Again != 5 {
		t.Errorf("the observer was told of %+v", p)
	}
	w.complete()
	w.calm(r)
}

// What the stream doesn't keep any longer is never published again, whoever looks when.
func TestWhatTheStreamLetGoStaysAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ restart, between bool }{
		"a running relay":                   {},
		"between two relays":                {restart: true},
		"before the relay has looked again": {between: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRelaying(t, jetstream.Options{})
			w.db.Tampered() // it's quicker
			w.invent(901, 901, 6)
			w.invent(902, 902, 2)
			// What a scan asks for is told from what a journal's turn asks for, which comes
			// after the journal's last message.
			var hold, turn atomic.Bool
			gate := make(chan struct{})
			var seen tally
			bus := &hooked{Bus: w.bus}
			bus.onLast = func(context.Context, ledger.JournalID) error { turn.Store(true); return nil }
			bus.onStream = func(ctx context.Context, stream func(context.Context) (outbox.Stream, error)) (outbox.Stream, error) {
				if !turn.Swap(false) && hold.Load() {
					<-gate
				}
				return stream(ctx)
			}
			r, stop := w.running(outbox.RelayOptions{Observe: seen.add, Bus: bus})
			w.full()
			w.published(r)
			if c.restart {
				stop()
			}
			hold.Store(c.between)
			w.must(w.stream().Purge(t.Context()))
			if c.restart {
				r, _ = w.running(outbox.RelayOptions{Observe: seen.add})
			}
			for n := uint64(1); n <= 3; n++ {
				w.append(901)
				r.Hint(901)
				if n == 2 {
					hold.Store(false)
					close(gate)
				}
				if n >= 2 || !c.between {
					w.holding(n)
				}
			}
			w.published(r)
			if got := w.streamed(); len(got) != 1 || len(got[901]) != 3 || got[901][0].Seq != 7 || got[901][2].Seq != 9 {
				t.Errorf("the stream has %+v", got)
			}
			if p := seen.of(901); p.Events != 9 || p.Again != 0 {
				t.Errorf("the observer was told of %+v", p)
			}
			w.calm(r)
		})
	}
}

// Messages that the stream lets go one by one, as they become old, aren't missed.
func TestMessagesThatAgeAway(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	_, w.bus = w.busTo(jetstream.Options{MaxAge: shortest})
	w.invent(1, 40, 3)
	var seen tally
	r, stop := w.running(outbox.RelayOptions{Observe: seen.add})
	w.published(r)
	for round := range 3 {
		pgtest.Until(t, "the stream is empty", func() bool { return w.messages() == 0 })
		if round == 1 {
			stop()
			r, _ = w.running(outbox.RelayOptions{Observe: seen.add})
		}
		for journal := ledger.JournalID(1); journal <= 40; journal += 3 {
			w.append(journal)
			r.Hint(journal)
		}
		w.published(r)
	}
	for journal := ledger.JournalID(1); journal <= 40; journal++ {
		want := 3
		if journal%3 == 1 {
			want = 6
		}
		if p := seen.of(journal); p.Events != want || p.Again != 0 {
			t.Errorf("of journal %d %d events were published, %d of them again", journal, p.Events, p.Again)
		}
	}
	w.calm(r)
}

// They become too old while it's looked where the stream stands: what a cursor says isn't
// missed then either.
func TestMessagesThatAgeAwayUnderALook(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 3)
	w.relayed()
	w.write(901, 2)
	var seen tally
	var looking atomic.Bool
	purge := sync.OnceFunc(func() { w.must(w.stream().Purge(t.Context())) }) // it looks like age
	r, _ := w.running(outbox.RelayOptions{Observe: seen.add, Bus: &hooked{Bus: w.bus,
		onLast: func(context.Context, ledger.JournalID) error { looking.Store(true); return nil },
		onAt: func() {
			if looking.Load() {
				purge()
			}
		}}})
	w.published(r)
	if p := seen.of(901); p.Events != 2 || p.Again != 0 {
		t.Errorf("the observer was told of %+v", p)
	}
	w.calm(r)
}

// Somebody limits the stream so that it would drop what nobody has read: it's put back.
func TestAChangedStreamIsPutBack(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 3)
	r, _ := w.running(outbox.RelayOptions{})
	w.full()
	config := w.stream().CachedInfo().Config
	config.Discard, config.MaxMsgs = natsjs.DiscardOld, 5
	_, err := w.jetstream().UpdateStream(t.Context(), config)
	w.must(err)
	pgtest.Until(t, "it's put back", func() bool {
		info, err := w.stream().Info(t.Context())
		return err == nil && info.Config.Discard == natsjs.DiscardNew && info.Config.MaxMsgs < 0
	})
	w.write(901, 20)
	w.full()
	w.complete()
	w.calm(r)
}
