package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// A stream that has what the journal doesn't is another installation's, or is ahead of a
// database that was put back: nothing is published, and it's said why. Other journals
// aren't concerned.
func TestAStrangersEntryStopsItsJournal(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *relaying){
		"another entry is in its place": func(w *relaying) {
			w.tamper(`UPDATE entries SET id = $1 WHERE journal_id = 901 AND seq = 5`, uuid.New())
		},
		"the journal ends before": func(w *relaying) {
			w.tamper(`DELETE FROM entries WHERE journal_id = 901 AND seq > 3`)
			w.tamper(`UPDATE journals SET seq = 3 WHERE journal_id = 901`)
			w.tamper(`DELETE FROM relays`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openTampered(t)
			w.invent(901, 902, 5)
			w.relayed()
			spoil(w)
			w.append(901)
			r, _ := w.running(outbox.RelayOptions{})
			w.troubled(r, "another installation's stream")
			w.append(902)
			w.holding(11)
			b, err := r.Backlog(t.Context())
			w.must(err)
			if b.Troubled != 1 {
				t.Errorf("the backlog is %+v", b)
			}
			w.append(901)
			w.append(902)
			r.Hint(901)
			w.holding(12)
			if n := len(w.streamed()[901]); n != 5 {
				t.Errorf("the stream has %d events of the journal", n)
			}
		})
	}
}

// A journal with a gap is published up to that, and it's said why it doesn't go on.
func TestAGapStopsItsJournal(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	const batch, gap, n = outbox.MaxEvents, outbox.MaxEvents + 101, outbox.MaxEvents + 200
	w.invent(901, 902, n)
	w.tamper(`DELETE FROM entries WHERE journal_id = 901 AND seq = $1`, gap)
	r, _ := w.running(outbox.RelayOptions{})
	w.troubled(r, fmt.Sprintf("the journal has a gap: entry %d is followed by %d", gap-1, gap+1))
	w.holding(batch + n) // the batch that has the gap isn't published
	w.append(902)
	w.holding(batch + n + 1)
	// When it's mended, it goes on.
	w.tamper(`INSERT INTO entries SELECT 901, seq + 1, gen_random_uuid(), kind, at, principal, digest, data, hash FROM entries
		WHERE journal_id = 901 AND seq = $1`, gap-1)
	w.full()
	w.complete()
	w.calm(r)
}

// Somebody publishes to a journal's subjects what's none of ours, in each state of the
// cursor: the journal goes on after it, and has each entry once.
func TestJunkInAJournalsPlace(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"its message is removed": `SELECT`,
		"the cursor is there":    `SELECT`,
		"the cursor is behind":   `UPDATE relays SET seq = seq - 2, stream_seq = stream_seq - 2 WHERE journal_id = 901`,
		"the cursor is deleted":  `DELETE FROM relays`,
		"of another stream":      `UPDATE relays SET stream = 'another'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRelaying(t, jetstream.Options{})
			w.write(902, 2)
			r, stop := w.running(outbox.RelayOptions{})
			w.full()
			w.write(901, 5) // all in the last places
			w.full()
			w.published(r)
			stop()
			w.tamper(sql)
			if name == "its message is removed" {
				w.must(w.stream().DeleteMsg(t.Context(), uint64(w.cursor(901).Place)))
			}
			for _, subject := range []string{"tierledger.journal.901.test.noted", "tierledger.journal.901.junk"} {
				_, err := w.jetstream().Publish(t.Context(), subject, []byte("junk"))
				w.must(err)
			}
			r, _ = w.running(outbox.RelayOptions{})
			w.write(901, 2)
			w.write(902, 1)
			w.published(r)
			w.logged("none of ours")
			w.calm(r)
			w.removeJunk()
			w.complete()
		})
	}
}

// A trouble of a journal that has nothing to publish is forgotten when it has passed, by the
// process that had it or by the next.
func TestATroubleThatHasPassedIsForgotten(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 3)
	r, stop := w.running(outbox.RelayOptions{})
	w.full()
	w.published(r)
	for _, restart := range []bool{false, true} {
		stop()
		var cut atomic.Bool
		cut.Store(true)
		bus := &hooked{Bus: w.bus, onLast: func(_ context.Context, journal ledger.JournalID) error {
			if journal == 901 && cut.Load() {
				return errCut
			}
			return nil
		}}
		r, stop = w.running(outbox.RelayOptions{Bus: bus})
		w.write(902, 1)
		w.full() // now the stream is known, and a hint is enough
		r.Hint(901)
		w.troubled(r, "the connection was cut")
		if restart {
			stop()
			r, stop = w.running(outbox.RelayOptions{})
		}
		cut.Store(false)
		w.calm(r)
	}
	w.complete()
}

// The cursor can't be moved when a trouble has passed: it's forgotten later.
func TestATroubleThatCantBeForgottenAtOnce(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	w.invent(901, 901, 3)
	w.relayed()
	w.tamper(`UPDATE relays SET problem = 'was away'`)
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r, _ := w.running(outbox.RelayOptions{Bus: &hooked{Bus: w.bus, onLast: func(context.Context, ledger.JournalID) error {
		once.Do(func() { close(reached); <-goOn }) // the lease is taken
		return nil
	}}})
	<-reached
	w.tamper(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'refused'; END$$`)
	w.tamper(`CREATE TRIGGER refused BEFORE UPDATE ON relays EXECUTE FUNCTION refuse()`)
	close(goOn)
	w.logged("a journal isn't published")
	w.tamper(`DROP FUNCTION refuse() CASCADE`)
	w.calm(r)
}

// removeJunk deletes the messages that have no entry.
func (w *relaying) removeJunk() {
	w.t.Helper()
	last := w.stream().CachedInfo().State.LastSeq
	for place := uint64(1); place <= last; place++ {
		msg, err := w.stream().GetMsg(w.t.Context(), place)
		if errors.Is(err, natsjs.ErrMsgNotFound) {
			continue
		}
		w.must(err)
		if msg.Header.Get("Tierledger-Seq") == "" {
			w.must(w.stream().DeleteMsg(w.t.Context(), place))
		}
	}
}

// A forged event in the very place of the next entry stops the journal, until people have
// removed it: it might be what a database had before it was put back.
func TestAForgedEventStopsItsJournal(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 3)
	r, _ := w.running(outbox.RelayOptions{})
	w.full()
	place := w.forge(outbox.Event{Journal: 901, Seq: 4, ID: uuid.New(), Kind: "test.noted", Data: []byte(`{}`)})
	w.write(901, 2)
	w.troubled(r, "another installation's stream")
	w.must(w.stream().DeleteMsg(t.Context(), place))
	w.full()
	w.complete()
	w.calm(r)
}

// forge publishes an event as a client would, and gives its place.
func (w *relaying) forge(e outbox.Event) uint64 {
	w.t.Helper()
	ack, err := w.jetstream().PublishMsg(w.t.Context(), &nats.Msg{Subject: e.Subject(), Data: e.Append(nil),
		Header: nats.Header{"Tierledger-Id": {e.ID.String()}, "Tierledger-Seq": {strconv.FormatInt(int64(e.Seq), 10)}}})
	w.must(err)
	return ack.Sequence
}

// Copies of events, and inventions that don't go on from where the journal stands, are
// passed over: nothing is published again for them.
func TestCopiesAndInventionsArePassedOver(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 5)
	r, stop := w.running(outbox.RelayOptions{})
	w.full()
	w.complete()
	forged := []uint64{
		w.forge(w.streamed()[901][1]), // a copy
		w.forge(outbox.Event{Journal: 901, Seq: 100_000, ID: w.streamed()[901][2].ID, Kind: "test.noted", Data: []byte(`{}`)}),
		w.forge(outbox.Event{Journal: 901, Seq: 5, ID: uuid.New(), Kind: "test.noted", Data: []byte(`{}`)}),
	}
	w.write(901, 2)
	w.published(r)
	w.logged("none of ours")
	stop()
	r, _ = w.running(outbox.RelayOptions{}) // another process finds the same
	w.write(901, 2)
	w.published(r)
	w.calm(r)
	if strings.Contains(w.log.String(), "published again") {
		t.Error("it was taken for a loss")
	}
	for _, place := range forged {
		w.must(w.stream().DeleteMsg(t.Context(), place))
	}
	w.complete()
}

// Two installations have one stream by mistake: each journal goes to who was first.
func TestTwoInstallationsOnOneStream(t *testing.T) {
	t.Parallel()
	w, other := openRelaying(t, jetstream.Options{}), openRelaying(t, jetstream.Options{})
	w.write(901, 3)
	w.running(outbox.RelayOptions{})
	w.full()
	other.db.Tampered()
	other.invent(901, 902, 4)
	_, bus := w.busTo(jetstream.Options{})
	r, _ := other.running(outbox.RelayOptions{Bus: bus})
	other.troubled(r, "another installation's stream")
	w.holding(7)
	events := w.streamed()
	for journal, of := range map[ledger.JournalID]*relaying{901: w, 902: other} {
		for i, e := range of.entries(journal) {
			if got := events[journal]; len(got) <= i || got[i].ID != e.ID {
				t.Errorf("journal %d has other events", journal)
			}
		}
	}
	w.write(901, 1)
	w.holding(8)
}
