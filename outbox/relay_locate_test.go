package outbox_test

import (
	"context"
	"sync"
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// A cursor is behind, and between the journal's messages are another's that go on in the
// same step: they aren't taken for the journal's own.
func TestACursorBehindAmongAnothersMessages(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	r, stop := w.running(outbox.RelayOptions{})
	// The places have 902's first, 901's first, 902's second and third, and 901's second.
	for _, journal := range []ledger.JournalID{902, 901, 902, 902, 901} {
		w.write(journal, 1)
		w.full()
	}
	w.published(r)
	stop()
	w.tamper(`UPDATE relays SET seq = 0, stream_seq = 0 WHERE journal_id = 901`)
	r, _ = w.running(outbox.RelayOptions{})
	w.published(r)
	w.write(901, 2)
	w.full()
	w.complete()
	w.calm(r)
	if w.log.has("none of ours") {
		t.Errorf("the log has\n%s", w.log)
	}
}

// The same with a stranger's message between the journal's own: those after it are its own
// nevertheless.
func TestACursorBehindAStrangersMessage(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	r, stop := w.running(outbox.RelayOptions{})
	w.write(901, 3)
	w.full()
	w.published(r)
	was := w.cursor(901)
	_, err := w.jetstream().Publish(t.Context(), "tierledger.journal.901.junk", []byte("junk"))
	w.must(err)
	w.write(901, 3)
	w.published(r)
	stop()
	w.tamper(`UPDATE relays SET seq = $1, stream_seq = $2`, was.Seq, was.Place)
	var seen tally
	r, _ = w.running(outbox.RelayOptions{Observe: seen.add})
	w.write(901, 1)
	w.published(r)
	w.logged("none of ours")
	w.removeJunk()
	w.complete()
	if p := seen.of(901); p.Events != 1 {
		t.Errorf("the observer was told of %+v", p)
	}
	w.calm(r)
}

// A cursor's place, which is the stream's first, has another entry: a journal's last one is
// lost, not too old.
func TestAnotherEntryInALostOnesPlace(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]ledger.JournalID{
		"another journal's of the same number": 902,
		"an earlier one of the journal":        901,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRelaying(t, jetstream.Options{})
			r, stop := w.running(outbox.RelayOptions{})
			for _, journal := range []ledger.JournalID{first, 901} {
				w.write(journal, 1)
				w.full()
			}
			w.published(r)
			stop()
			w.must(w.stream().DeleteMsg(t.Context(), 2))
			w.tamper(`UPDATE relays SET stream_seq = 1 WHERE journal_id = 901`)
			r, _ = w.running(outbox.RelayOptions{})
			w.full()
			w.complete()
			w.calm(r)
		})
	}
}

// A row that tells of another stream, under a relay that knows better, is put right.
func TestARowThatNamesAnotherStream(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 3)
	var seen tally
	r, _ := w.running(outbox.RelayOptions{Observe: seen.add})
	w.full()
	w.published(r)
	was := w.cursor(901)
	w.tamper(`UPDATE relays SET stream = 'another'`)
	pgtest.Until(t, "the row is put right", func() bool { return w.cursor(901) == was })
	w.calm(r)
	if p := seen.of(901); p.Events != 3 || p.Again != 0 {
		t.Errorf("the observer was told of %+v", p)
	}
}

// Messages go, because they're too old, while it's looked where the stream stands: what was
// known to be there isn't published again, and what wasn't is.
func TestMessagesThatGoMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behind string // sets the cursor back
		next   bool   // they go before the journal's next message is looked for, else before its last
		again  int
	}{
		"before the last is looked for": {`SELECT`, false, 0},
		"before the next is looked for": {`UPDATE relays SET seq = 2, stream_seq = 2, reached = 2`, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRelaying(t, jetstream.Options{})
			w.write(901, 5)
			w.relayed()
			w.tamper(c.behind)
			var once sync.Once
			purge := func(now bool) (err error) {
				if now {
					once.Do(func() { err = w.stream().Purge(context.Background()) })
				}
				return err
			}
			bus := &hooked{Bus: w.bus,
				onLast:    func(context.Context, ledger.JournalID) error { return purge(!c.next) },
				onReading: func(context.Context, ledger.JournalID) error { return purge(c.next) },
			}
			w.write(901, 1)
			var seen tally
			r, _ := w.running(outbox.RelayOptions{Bus: bus, Observe: seen.add})
			w.published(r)
			w.holding(uint64(c.again) + 1)
			w.write(901, 1)
			w.published(r)
			w.holding(uint64(c.again) + 2)
			if p := seen.of(901); p.Events != c.again+2 || p.Again != 0 {
				t.Errorf("the observer was told of %+v", p)
			}
			w.calm(r)
		})
	}
}
