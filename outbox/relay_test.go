package outbox_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

func TestEveryEntryIsPublishedOnceInOrder(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.write(901, 1200)
	w.write(902, 3)
	r, _ := w.relay(nil)
	w.published(r)
	w.complete()
	w.write(901, 700)
	w.write(903, 1)
	r.Hint(901)
	w.published(r)
	w.complete()
}

// Entries that nobody hints at are those of other processes.
func TestEntriesOfOtherProcessesAreFound(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	var seen tally
	began := time.Now()
	r, _ := w.running(outbox.RelayOptions{Observe: seen.add})
	for range 3 {
		w.write(901, 2)
		w.full()
	}
	w.complete()
	w.published(r)
	took := time.Since(began)
	if p := seen.of(901); p.Events != 6 || p.Again != 0 || len(p.Lags) != 6 {
		t.Errorf("the observer was told of %+v", p)
	}
	for _, lag := range seen.of(901).Lags {
		if lag < 0 || lag > took {
			t.Errorf("an entry was published %v after its time, within %v", lag, took)
		}
	}
}

// A large entry is published without its data, and those after it follow.
func TestALargeEntryIsPublishedWithoutItsData(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	w.invent(901, 901, 12)
	// Two that no bus takes, two below and above its limit, and one of two bytes.
	w.tamper(`UPDATE entries SET data = json_build_object('text', repeat('x', 2 << 20)) WHERE seq IN (3, 4)`)
	limit := w.bus.Limit() - 1024
	w.tamper(`UPDATE entries SET data = to_json(repeat('x', $1 - 2)) WHERE seq = 6`, limit)
	w.tamper(`UPDATE entries SET data = to_json(repeat('x', $1 - 1)) WHERE seq = 7`, limit)
	w.tamper(`UPDATE entries SET data = '{}' WHERE seq = 8`)
	w.running(outbox.RelayOptions{})
	w.full()
	events, entries := w.streamed()[901], w.entries(901)
	for i, e := range events {
		want := string(entries[i].Data)
		if e.Seq == 3 || e.Seq == 4 || e.Seq == 7 {
			want = ""
		}
		if e.Seq != ledger.Seq(i+1) || e.ID != entries[i].ID || string(e.Data) != want {
			t.Errorf("event %d of entry %d has %d bytes, not %d", e.Seq, i+1, len(e.Data), len(want))
		}
	}
	if len(events) != 12 {
		t.Errorf("%d events of 12 entries", len(events))
	}
}

// The data of many entries is more than one batch takes.
func TestManyLargeEntries(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	w.invent(901, 901, 13)
	w.tamper(`UPDATE entries SET data = to_json(repeat('x', 400000))`)
	var seen tally
	r, stop := w.running(outbox.RelayOptions{Observe: seen.add})
	w.full()
	w.complete()
	w.published(r)
	stop()
	for _, n := range seen.sizes {
		if n > 11 { // 4 MiB, and the one that goes beyond
			t.Errorf("a batch has %d entries of 400,000 bytes", n)
		}
	}
}

func TestManyJournals(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	w.invent(1, 2*outbox.MaxBehind+100, 1) // more than two scans take up
	r, _ := w.running(outbox.RelayOptions{})
	w.published(r)
	w.full()
	w.complete()
}

// Journals with a large backlog are in nobody's way: after so many batches another has its
// turn. What's to be published of them isn't, for it would take long.
func TestALargeBacklogStarvesNobody(t *testing.T) {
	t.Parallel()
	const workers = outbox.RelayWorkers
	w := openTampered(t)
	w.invent(1, workers-1, 1)
	w.invent(workers, workers, (outbox.TurnBatches+1)*outbox.MaxEvents)
	var busy, looks, batches atomic.Int64
	goOn, done := make(chan struct{}), make(chan struct{})
	bus := &hooked{Bus: w.bus,
		onStream: func(ctx context.Context, stream func(context.Context) (outbox.Stream, error)) (outbox.Stream, error) {
			looks.Add(1)
			return stream(ctx)
		},
		onPublish: func(ctx context.Context, after uint64, events []outbox.Event, publish publishing) (uint64, error) {
			journal := events[0].Journal
			switch {
			case journal > workers:
				defer close(done)
				return publish(ctx, after, events)
			case journal < workers:
				busy.Add(1)
				<-done // these workers do nothing else
			case batches.Add(1) == 1:
				busy.Add(1)
				<-goOn
			case batches.Load() > outbox.TurnBatches:
				<-done // in vain if it's still the first turn
			}
			return after + uint64(len(events)), ctx.Err()
		},
	}
	w.running(outbox.RelayOptions{Bus: bus})
	pgtest.Until(t, "each worker has a journal", func() bool { return busy.Load() == workers })
	w.invent(workers+1, workers+1, 1)
	was := looks.Load()
	pgtest.Until(t, "the scan has found it", func() bool { return looks.Load() >= was+4 })
	close(goOn)
	pgtest.Until(t, "it has had its turn", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	w.holding(1)
}

// Journals that can't be published are in nobody's way, however many there are.
func TestTroubledJournalsStarveNobody(t *testing.T) {
	t.Parallel()
	const troubled = outbox.MaxBehind + 10
	w := openTampered(t)
	w.invent(1, troubled, 2)
	w.tamper(`DELETE FROM entries WHERE seq = 1`)
	r, _ := w.running(outbox.RelayOptions{})
	w.troubled(r, "the journal has a gap")
	pgtest.Until(t, "all of them were tried", func() bool {
		b, err := r.Backlog(t.Context())
		return err == nil && b.Troubled == troubled
	})
	w.invent(troubled+1, troubled+1, 3)
	w.holding(3)
	pgtest.Until(t, "the backlog is that of the troubled", func() bool {
		b, err := r.Backlog(t.Context())
		return err == nil && b.Entries == 2*troubled && b.Troubled == troubled
	})
	if n := strings.Count(w.log.String(), "journal=77 "); n != 1 {
		t.Errorf("the log tells of a journal %d times", n)
	}
}

// Two processes publish the same journals, and each hints at all that is written.
func TestTwoRelays(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	_, bus := w.busTo(jetstream.Options{})
	var seen tally
	r1, _ := w.running(outbox.RelayOptions{Observe: seen.add})
	r2, stop := w.running(outbox.RelayOptions{Pool: w.anotherPool(), Bus: bus, Observe: seen.add})
	journals := []ledger.JournalID{901, 902, 903}
	for range 20 {
		for _, journal := range journals {
			w.write(journal, 10)
			r1.Hint(journal)
			r2.Hint(journal)
		}
	}
	w.full()
	w.complete()
	stop() // what it had goes to the other
	for _, journal := range journals {
		w.write(journal, 10)
		r1.Hint(journal)
	}
	w.full()
	w.complete()
	w.published(r1)
	for _, journal := range journals {
		if p := seen.of(journal); p.Again != 0 {
			t.Errorf("%d entries of journal %d were published again", p.Again, journal)
		}
	}
	if w.log.has("level=WARN") { // a lease that runs out while its holder is kept from the machine is none
		t.Errorf("the log has\n%s", w.log)
	}
}

// The relay that's told to stop leaves its journals at once.
func TestARelayThatEndsLeavesItsJournals(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 3)
	w.write(902, 3)
	w.relayed()
	var held int
	w.must(w.owner.QueryRow(t.Context(), `SELECT count(holder) FROM relays`).Scan(&held))
	if held != 0 {
		t.Errorf("%d journals are held by nobody", held)
	}
	w.complete()
}

// entries reads a journal.
func (w *relaying) entries(journal ledger.JournalID) []outbox.Event {
	w.t.Helper()
	rows, err := w.owner.Query(context.Background(),
		`SELECT journal_id, seq, id, kind, at, data FROM entries WHERE journal_id = $1 ORDER BY seq`, int64(journal))
	w.must(err)
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[outbox.Event])
	w.must(err)
	return entries
}
