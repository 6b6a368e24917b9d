package seats_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// journalReads counts how often the changes after each version are read.
type journalReads struct {
	mu    sync.Mutex
	after map[int64]int
}

func (r *journalReads) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (r *journalReads) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	if q.SQL == seats.Statements["sqlChangesAfter"] {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.after[q.Args[1].(int64)]++
	}
}

func (r *journalReads) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (r *journalReads) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (r *journalReads) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// of counts the readings after some versions.
func (r *journalReads) of(versions ...ledger.Seq) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range versions {
		n += r.after[int64(v)]
	}
	return n
}

// freshMaps gives maps that have read nothing yet, and counts what they read.
func (h *hall) freshMaps() (*seats.Maps, *journalReads) {
	h.Helper()
	config, err := pgxpool.ParseConfig(h.db.ServiceURL())
	if err != nil {
		h.Fatal(err)
	}
	reads := &journalReads{after: make(map[int64]int)}
	config.ConnConfig.Tracer = reads
	pool, err := pgxpool.NewWithConfig(h.Context(), config)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(pool.Close)
	m := seats.NewMaps(h.Events, pool, seats.NewCharts())
	h.Cleanup(m.Close)
	tooLong := time.AfterFunc(time.Minute, m.Close) // whoever waits for a batch waits no longer
	h.Cleanup(func() { tooLong.Stop() })
	return m, reads
}

func (h *hall) follow(m *seats.Maps, after ledger.Seq) *seats.Follower {
	h.Helper()
	f, err := m.Follow(h.Context(), "gig", after)
	if err != nil {
		h.Fatal(err)
	}
	return f
}

// version is the seq of the last change of a seat.
func (h *hall) version() (seq ledger.Seq) {
	h.Helper()
	if err := h.owner.QueryRow(h.Context(), `SELECT max(seq) FROM seat_changes`).Scan(&seq); err != nil {
		h.Fatal(err)
	}
	return seq
}

// told is what a follower heard who had seen a version.
type told struct {
	seen    ledger.Seq
	batches []seats.Batch
}

// heard reads a follower's batches up to the one that comes to a version; it must come.
func heard(f *seats.Follower, last ledger.Seq) (list []seats.Batch) {
	for b := range f.Batches {
		list = append(list, b)
		if b.Version >= last {
			break
		}
	}
	return list
}

// came is what the entries after a version, up to another, made of seats.
func came(history []seats.Delta, after, to ledger.Seq) map[string]seats.State {
	states := make(map[string]seats.State)
	for _, d := range history {
		if d.Version > after && d.Version <= to {
			for _, label := range d.Seats {
				states[label] = d.State
			}
		}
	}
	return states
}

// history is what the entries did to seats.
func (h *hall) history() (list []seats.Delta) {
	h.Helper()
	for _, text := range h.query(`SELECT json_build_object('version', seq, 'state', state, 'seats', seats)::text
		FROM seat_changes ORDER BY seq, line`) {
		var d seats.Delta
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			h.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

// wantTold compares what a follower was told with what happened, up to a version: between
// each batch and the one before exactly the seats that changed, each once.
func (h *hall) wantTold(c told, last ledger.Seq, history []seats.Delta) {
	h.Helper()
	seen := c.seen
	for _, b := range c.batches {
		var c seats.Changes
		if err := json.Unmarshal(b.Data, &c); err != nil || c.Version != b.Version || c.Event != "gig" || b.Version < seen {
			h.Errorf("after %d came %d: %s %v", seen, b.Version, b.Data, err)
			return
		}
		got := make(map[string]seats.State)
		for _, d := range c.Changes {
			for _, label := range d.Seats {
				if d.Version != b.Version || got[label] != "" {
					h.Errorf("%s is told twice, or at %d, in %s", label, d.Version, b.Data)
				}
				got[label] = d.State
			}
		}
		if want := came(history, seen, b.Version); !maps.Equal(got, want) {
			h.Errorf("from %d to %d %v was told, want %v", seen, b.Version, got, want)
		}
		seen = b.Version
	}
	if seen != last {
		h.Errorf("it came to %d, not to %d", seen, last)
	}
}

// stir makes changes that touch all seats of a row of ten again and again.
func (h *hall) stir(rounds int) {
	h.Helper()
	for n := range rounds {
		hold := h.take("ann", named(fmt.Sprint("A-1-", n%10+1), fmt.Sprint("A-1-", (n+3)%10+1)))
		if err := h.release(hold.ID); err != nil {
			h.Fatal(err)
		}
	}
}

// Many come back at once, far behind, to a process that has just read the map: the journal
// is read once for all of them, none misses anything, and what happens meanwhile and
// afterwards they're told once.
func TestManyFollowersFarBehindAFreshMap(t *testing.T) {
	t.Parallel()
	const many, meanwhile, after = 300, 20, 30
	h := openHall(t, chart(section("A", "front", 2, 10)))
	loaded := h.version()
	h.stir(150)
	last := h.version() + 2*meanwhile + 2*after + 1
	m, reads := h.freshMaps()
	all := make([]told, many)
	var joining, reading sync.WaitGroup
	for i := range all {
		c := &all[i]
		c.seen = loaded + ledger.Seq(i%3*50)
		join := func() {
			f, err := m.Follow(t.Context(), "gig", c.seen)
			if err != nil {
				t.Error(err)
				return
			}
			reading.Go(func() { c.batches = heard(f, last) })
		}
		if i == 0 {
			join() // the first is as far behind as any
		} else {
			joining.Go(join)
		}
	}
	h.stir(meanwhile)
	joining.Wait()
	if list, err := m.Changes(t.Context(), "gig", loaded); err != nil || len(list.Changes) < 300 {
		t.Errorf("%d changes, %v", len(list.Changes), err)
	}
	h.stir(after)
	h.block("A-2-1")
	reading.Wait()
	if n := reads.of(loaded, loaded+50, loaded+100); n != 1 {
		t.Errorf("the changes were read %d times", n)
	}
	history := h.history()
	for _, c := range all {
		h.wantTold(c, last, history)
	}
	if m.Cut() != 0 || m.Followers() != many {
		t.Errorf("%d follow, %d were cut", m.Followers(), m.Cut())
	}
}

// Changes of exactly as many seats are given as may be, and not of one more: by a map that
// has just been read, and by one that remembers.
func TestTooManySeatsHaveChanged(t *testing.T) {
	t.Parallel()
	const most, each = 50_000, seats.MaxBlock
	h := openHall(t, chart(section("A", "front", 5, 200), section("B", "back", 1, 1)))
	loaded := h.version()
	old, _ := h.freshMaps()
	if _, err := old.Snapshot(t.Context(), "gig"); err != nil {
		t.Fatal(err)
	}
	var labels []string
	for i := range each {
		labels = append(labels, fmt.Sprintf("A-%d-%d", i/200+1, i%200+1))
	}
	for range most / each / 2 {
		h.block(labels...)
		h.unblock(labels...)
	}
	fresh, _ := h.freshMaps()
	processes := map[string]*seats.Maps{"old": old, "fresh": fresh}
	for name, m := range processes {
		last := h.version()
		if list, err := m.Changes(t.Context(), "gig", last); err != nil || list.Version != last { // it comes to that
			t.Errorf("%s: up to %d, %v", name, list.Version, err)
		}
		if list, err := m.Changes(t.Context(), "gig", loaded); err != nil || len(list.Changes) != most/each {
			t.Errorf("%s: %d changes, %v", name, len(list.Changes), err)
		}
	}
	h.block("B-1-1")
	for name, m := range processes {
		if list, err := m.Changes(t.Context(), "gig", h.version()); err != nil || list.Version != h.version() {
			t.Errorf("%s: up to %d, %v", name, list.Version, err)
		}
		if list, err := m.Changes(t.Context(), "gig", loaded); !errors.Is(err, seats.ErrGap) {
			t.Errorf("%s: %d changes, %v", name, len(list.Changes), err)
		}
		if list, err := m.Changes(t.Context(), "gig", loaded+1); err != nil || len(list.Changes) != most/each {
			t.Errorf("%s: %d changes, %v", name, len(list.Changes), err)
		}
	}
}
