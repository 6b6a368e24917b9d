package jetstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// A cluster refuses whoever doesn't know a journal's last message, of whatever kind that is,
// and takes nothing of what it refuses; other journals are in nobody's way.
func TestClusterFencesStaleWriters(t *testing.T) {
	t.Parallel()
	c := openCluster(t)
	ctx := t.Context()
	first, second := c.bus(), c.bus()
	publish := func(b *jetstream.Bus, after uint64, list []outbox.Event) (uint64, error) {
		t.Helper()
		return b.Publish(ctx, after, list)
	}
	place, err := publish(first, 0, events(1, 1, 5, "first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := publish(first, 0, events(2, 1, 4, "first")); err != nil { // after place, on other subjects
		t.Fatal(err)
	}
	for name, stale := range map[string]struct {
		after uint64
		list  []outbox.Event
	}{
		"a batch of who knows of nothing":   {0, events(1, 1, 5, "stale")},
		"an event of who knows of nothing":  {0, events(1, 1, 1, "stale")},
		"a batch after the last but one":    {place - 1, events(1, 5, 3, "stale")},
		"an event after the last but one":   {place - 1, events(1, 5, 1, "stale")},
		"a batch after another's journal's": {place + 4, events(1, 6, 2, "stale")},
		"a batch after what's to come":      {place + 5, events(1, 6, 2, "stale")},
	} {
		if at, err := publish(second, stale.after, stale.list); !errors.Is(err, outbox.ErrFenced) {
			t.Errorf("%s: place %d, %v", name, at, err)
		}
	}
	if place, err = publish(second, place, events(1, 6, 1, "second")); err != nil {
		t.Fatal(err)
	}
	if _, err := publish(first, place-1, events(1, 6, 2, "first")); !errors.Is(err, outbox.ErrFenced) {
		t.Errorf("who was overtaken: %v", err)
	}
	mark, err := second.Last(ctx, 1)
	if err != nil || mark.Place != place || mark.Seq != 6 || mark.Journal != 1 {
		t.Errorf("the last is %+v at %d: %v", mark, place, err)
	}

	// The next leader knows the same.
	led := c.leader()
	c.servers[led].Shutdown()
	c.servers[led].WaitForShutdown()
	c.look(first)
	c.look(second)
	if _, err := publish(first, place-1, events(1, 6, 2, "stale")); !errors.Is(err, outbox.ErrFenced) {
		t.Errorf("stale, at the next leader: %v", err)
	}
	if _, err = publish(second, place, events(1, 7, 2, "second")); err != nil {
		t.Error(err)
	}
	c.start(led)
	wantOrder(t, c.read(), map[ledger.JournalID]int{1: 8, 2: 4})
}

// wantOrder wants journals' events in their order, once, and none of who was refused.
func wantOrder(t *testing.T, read map[ledger.JournalID][]outbox.Event, want map[ledger.JournalID]int) {
	t.Helper()
	for journal, n := range want {
		list := read[journal]
		if len(list) != n {
			t.Errorf("journal %d has %d events, want %d", journal, len(list), n)
		}
		for i, e := range list {
			if e.Seq != ledger.Seq(i+1) || strings.Contains(string(e.Data), "stale") {
				t.Fatalf("journal %d: event %d is %d: %s", journal, i+1, e.Seq, e.Data)
			}
		}
	}
	if len(read) != len(want) {
		t.Errorf("%d journals, want %d", len(read), len(want))
	}
}

// Of many who publish after the same message at one time, one is taken, whole.
func TestClusterTakesOneOfMany(t *testing.T) {
	t.Parallel()
	const writers, rounds, size = 8, 40, 3
	c := openCluster(t)
	buses := make([]*jetstream.Bus, writers)
	for i := range buses {
		buses[i] = c.bus()
	}
	var place uint64
	for round := range rounds {
		type result struct {
			place uint64
			err   error
		}
		results := make([]result, writers)
		var all sync.WaitGroup
		for i, b := range buses {
			all.Go(func() {
				list := events(7, round*size+1, size, fmt.Sprintf("%d of round %d", i, round))
				results[i].place, results[i].err = b.Publish(t.Context(), place, list)
			})
		}
		all.Wait()
		taken := 0
		for i, r := range results {
			switch {
			case r.err == nil:
				taken++
				place = r.place
			case !errors.Is(r.err, outbox.ErrFenced):
				t.Errorf("round %d, writer %d: %v", round, i, r.err)
			}
		}
		if taken != 1 {
			t.Fatalf("round %d: %d were taken", round, taken)
		}
	}
	read := c.read()
	wantOrder(t, read, map[ledger.JournalID]int{7: rounds * size})
	for i := 0; i < len(read[7]); i += size {
		for _, e := range read[7][i : i+size] {
			if string(e.Data) != string(read[7][i].Data) {
				t.Fatalf("a batch has %s and %s", read[7][i].Data, e.Data)
			}
		}
	}
}

// Who publishes event by event isn't taken for somebody else who'd be in the way. A cluster
// acknowledges an event a moment before it takes the next one of the journal: whoever is that
// fast is refused, nothing has changed then, and a next attempt is taken.
func TestClusterTakesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const n = 500
	c := openCluster(t)
	b := c.bus()
	var place uint64
	refused := 0
	for i := range n {
		list := events(3, i+1, 1, "the only one")
		tries, next := 0, uint64(0)
		pgtest.Until(t, "the event is taken", func() bool {
			at, err := b.Publish(t.Context(), place, list)
			if tries, next = tries+1, at; !errors.Is(err, outbox.ErrFenced) {
				if err != nil {
					t.Fatalf("event %d: %v", i+1, err)
				}
				return true
			}
			if mark, err := b.Last(t.Context(), 3); err != nil || mark.Place != place {
				t.Fatalf("event %d: the last is %+v, not at %d: %v", i+1, mark, place, err)
			}
			return false
		})
		if place = next; tries > 1 {
			refused++
		}
	}
	if refused > n/100 {
		t.Errorf("%d of %d were refused", refused, n)
	}
	wantOrder(t, c.read(), map[ledger.JournalID]int{3: n})
}

// note is a command that records something and moves nothing.
type note struct{ Text string }

func (n note) Accounts() []string { return nil }
func (n note) Decide(*ledger.State) (ledger.Decision, error) {
	data, err := json.Marshal(n)
	return ledger.Decision{Kind: "test.noted", Data: data}, err
}

// write adds n entries to a journal, some at a time.
func write(t *testing.T, s service.Stores, journal ledger.JournalID, n int) {
	t.Helper()
	ctx := t.Context()
	if err := s.Ledger.Create(ctx, journal); err != nil {
		t.Error(err)
		return
	}
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := w; i < n; i += 8 {
				text := fmt.Sprintf("note %d of %d", i, journal)
				c, err := ledger.NewCommand(journal, "tester", text, "note", text, note{text})
				if err == nil {
					_, err = s.Ledger.Do(ctx, journal, c)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}

// The stream's leader ends in the midst of publishing, and comes back, and then the next one:
// publishing goes on with what's left, and the stream has every entry once, in order.
func TestClusterOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	const journals, entries = 3, 600
	c := openCluster(t)
	ctx := t.Context()
	db := pgtest.New(t)
	db.Except("events_listed") // the journals are made without an event
	stores := pgtest.Stores(t, db, nil)
	pool, err := pg.Open(ctx, pg.Options{URL: db.URL(), Name: "outbox", Role: migrations.ServiceRole, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	seen, told := &progress{}, &bytes.Buffer{}
	r := outbox.NewRelay(outbox.RelayOptions{Pool: pool, Bus: c.bus(), Observe: seen.add, Log: slog.New(slog.NewTextHandler(told, nil))})
	running, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	end := func() { stop(); work.Wait() }
	work.Go(func() { r.Run(running) })
	defer func() {
		if end(); t.Failed() {
			t.Log(told.String())
		}
	}()
	var writers sync.WaitGroup
	want := make(map[ledger.JournalID]int)
	begin := func() { // writes to journals of its own
		for range journals {
			journal := ledger.JournalID(len(want) + 1)
			want[journal] = entries
			writers.Go(func() { write(t, stores, journal, entries) })
		}
	}
	for range 2 {
		was := seen.count()
		begin()
		seen.await(t, was+500)
		led := c.leader()
		c.servers[led].Shutdown()
		c.servers[led].WaitForShutdown()
		was = seen.count()
		begin()
		seen.await(t, was+300) // without it
		c.start(led)
	}
	writers.Wait()
	pgtest.Until(t, "everything is published", func() bool {
		b, err := r.Backlog(ctx)
		return err == nil && b.Entries == 0
	})
	wantOrder(t, c.read(), want)
	end()
	if strings.Contains(told.String(), "lost") {
		t.Errorf("nothing was lost: %s", told.String())
	}
}

// progress counts what's published.
type progress struct {
	mu     sync.Mutex
	events int
}

func (p *progress) add(batch outbox.Published) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events += batch.Events
}

func (p *progress) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events
}

// await waits until so many are published.
func (p *progress) await(t *testing.T, n int) {
	t.Helper()
	pgtest.Until(t, fmt.Sprintf("%d entries are published", n), func() bool { return p.count() >= n })
}
