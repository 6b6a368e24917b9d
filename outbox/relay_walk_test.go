package outbox_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// wantSeqs wants the stream to have entries of the first journal, in this order.
func (w *relaying) wantSeqs(want ...ledger.Seq) {
	w.t.Helper()
	var got []ledger.Seq
	for _, e := range w.streamed()[901] {
		got = append(got, e.Seq)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("the stream has %v, not %v", got, want)
	}
}

// published opens a world whose journal has entries that a relay has published, which has
// ended.
func published(t *testing.T, journal ledger.JournalID, entries int) *relaying {
	t.Helper()
	w := openTampered(t)
	w.invent(journal, journal, entries)
	w.relayed()
	return w
}

// Processes ended again and again before they moved the cursor. One that's ended while it
// looks where the stream stands leaves what it has found to the next.
func TestACursorFarBehindTheStream(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 1500)
	w.write(902, 5)
	w.relayed()
	w.tamper(`UPDATE relays SET seq = 0, stream_seq = 0`)

	ended := make(chan ledger.Seq, 1) // where the second exchange begins
	times := 0
	ending := &hooked{Bus: w.bus, onRead: func(journal ledger.JournalID, marks []outbox.Mark) error {
		if journal == 902 {
			return nil
		}
		if times++; times == 1 {
			return nil
		}
		if times == 2 {
			ended <- marks[0].Seq
		}
		return errors.New("ended")
	}}
	_, stop := w.running(outbox.RelayOptions{Bus: ending})
	begins := <-ended
	stop()
	if c := w.cursor(901); c.Seq != begins-1 || begins < 100 {
		t.Errorf("it left %+v, the second exchange began with %d", c, begins)
	}

	r, _ := w.running(outbox.RelayOptions{})
	w.published(r)
	w.write(901, 1)
	w.published(r)
	w.complete()
}

// The database was put back, and clients repeated their commands, whose ids are the same, in
// another order: the stream has another meaning of an entry, though the last one fits.
func TestAJournalInAnotherOrder(t *testing.T) {
	t.Parallel()
	w := published(t, 901, 7)
	w.tamper(`UPDATE relays SET seq = 4, stream_seq = 4`)
	w.tamper(`UPDATE entries SET seq = CASE seq WHEN 5 THEN 60 ELSE 50 END WHERE seq IN (5, 6)`)
	w.tamper(`UPDATE entries SET seq = seq / 10 WHERE seq IN (50, 60)`)
	w.append(901)
	r, _ := w.running(outbox.RelayOptions{})
	w.troubled(r, "another installation's stream")
	w.wantSeqs(1, 2, 3, 4, 5, 6, 7)
}

// A process died before it moved the cursor, and until somebody took over, part of what it
// had published was purged, or became too old.
func TestACursorWhoseNextIsTooOld(t *testing.T) {
	t.Parallel()
	w := published(t, 901, 5)
	w.forge(outbox.Event{Journal: 901, Seq: 100_000, ID: uuid.New(), Kind: "test.noted", Data: []byte(`{}`)})
	for range 3 {
		w.append(901)
	}
	w.relayed()
	w.tamper(`UPDATE relays SET seq = 2, stream_seq = 2`)
	w.must(w.stream().Purge(t.Context(), natsjs.WithPurgeSequence(6)))
	w.forge(w.entries(901)[6])
	r, _ := w.running(outbox.RelayOptions{})
	w.append(901)
	w.published(r)
	w.logged("none of ours")
	w.wantSeqs(100_000, 6, 7, 8, 7, 9)
}

// Before a journal's first entry is published, somebody publishes in its place.
func TestMessagesBeforeTheFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		forge func(w *relaying) outbox.Event
		first ledger.Seq
	}{
		"an invention": {func(*relaying) outbox.Event {
			return outbox.Event{Journal: 901, Seq: 100_000, ID: uuid.New(), Kind: "test.noted", Data: []byte(`{}`)}
		}, 100_000},
		"an entry to come": {func(w *relaying) outbox.Event { return w.entries(901)[2] }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := published(t, 902, 1)
			w.invent(901, 901, 4)
			w.forge(test.forge(w))
			r, _ := w.running(outbox.RelayOptions{})
			w.published(r)
			w.wantSeqs(test.first, 1, 2, 3, 4)
		})
	}
}

// The last message is a copy, and no cursor tells where the stream stood: nothing is doubled
// for it.
func TestACopyAndNoCursor(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *relaying){
		"deleted": func(w *relaying) { w.tamper(`DELETE FROM relays`) },
		"its message is removed": func(w *relaying) {
			w.must(w.stream().DeleteMsg(w.t.Context(), uint64(w.cursor(901).Place)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := published(t, 901, 5)
			w.forge(w.entries(901)[2])
			w.append(901)
			lose(w)
			r, _ := w.running(outbox.RelayOptions{})
			w.published(r)
			if name == "deleted" {
				w.wantSeqs(1, 2, 3, 4, 5, 3, 6)
			} else {
				w.wantSeqs(1, 2, 3, 4, 3, 5, 6)
			}
		})
	}
}

// A replica that's behind doesn't show the last messages yet: nothing is published on what
// it shows.
func TestAReplicaThatIsBehind(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 5)
	w.relayed()
	w.tamper(`UPDATE relays SET seq = 0, stream_seq = 0`)
	w.write(901, 1)
	behind := &hooked{Bus: w.bus, shows: 3}
	r, stop := w.running(outbox.RelayOptions{Bus: behind})
	w.troubled(r, "doesn't show all it has")
	stop()
	w.wantSeqs(1, 2, 3, 4, 5)
	r, _ = w.running(outbox.RelayOptions{})
	w.published(r)
	w.complete()
}
