package outbox_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// Commits always wait for the machine: after each batch it's asked whether they do, and
// everything is published nevertheless. For what has waited for long nobody is asked.
func TestCommitsThatAlwaysWait(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	var asked atomic.Int64
	r, _ := w.running(outbox.RelayOptions{Busy: func() bool { asked.Add(1); return true }})
	w.tamper(`INSERT INTO journals (journal_id, seq) VALUES (901, 0)`)
	w.tamper(`WITH j AS (UPDATE journals SET seq = 3 WHERE journal_id = 901)
		INSERT INTO entries SELECT 901, i, gen_random_uuid(), 'test.noted', clock_timestamp() + interval '1 hour', 'tester', sha256('a'), '{}', sha256('b')
		FROM generate_series(1, 3) i`) // new for as long as the test takes
	w.full()
	w.published(r)
	pgtest.Until(t, "it's asked whether commits wait", func() bool { return asked.Load() > 0 })
	was := asked.Load()
	w.tamper(`INSERT INTO journals (journal_id, seq) VALUES (902, 0)`)
	w.tamper(`WITH j AS (UPDATE journals SET seq = 3 WHERE journal_id = 902)
		INSERT INTO entries SELECT 902, seq, gen_random_uuid(), kind, at - interval '2 hours', principal, digest, data, hash
		FROM entries WHERE journal_id = 901`)
	w.full()
	w.published(r)
	if n := asked.Load() - was; n != 0 {
		t.Errorf("it was asked %d times for what has waited for an hour", n)
	}
	w.complete()
}

// Whoever is hinted at what's published has each event once, in order.
func TestWhatIsPublishedIsHinted(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	var mu sync.Mutex
	told := make(map[ledger.JournalID][]ledger.Seq)
	r, stop := w.running(outbox.RelayOptions{Then: func(events []outbox.Event) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range events {
			told[e.Journal] = append(told[e.Journal], e.Seq)
		}
	}})
	w.write(901, 4)
	w.write(902, 2)
	w.published(r)
	stop() // the cursor, which says that all is published, moves before anybody is hinted
	for journal, n := range map[ledger.JournalID]int{901: 4, 902: 2} {
		if len(told[journal]) != n {
			t.Errorf("of journal %d the events %v were told, not %d", journal, told[journal], n)
		}
		for i, seq := range told[journal] {
			if seq != ledger.Seq(i+1) {
				t.Errorf("of journal %d the events %v were told", journal, told[journal])
			}
		}
	}
}
