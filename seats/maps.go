package seats

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// followEvery is how often a follower of a map is told its changes.
	followEvery = 500 * time.Millisecond
	// groups is how many groups of followers are told one after the other in that time: to
	// tell all at once would keep everything else waiting.
	groups = 5
	// turnEvery is how often the changes are read, for one group.
	turnEvery = followEvery / groups
	// snapshotEvery is how old a snapshot may be before it's made anew.
	snapshotEvery = time.Second
	// renderEvery is how old a snapshot's word on as of when it is may be, while nothing
	// happens.
	renderEvery = 10 * time.Second
	// heartbeatEvery is how long nothing happens until followers are told so.
	heartbeatEvery = 5 * time.Second
	// MaxChanges bounds how far behind a reader may be to get the changes since: beyond
	// it the snapshot is smaller.
	MaxChanges = 10_000
	// maxChangedSeats bounds the seats of those changes.
	maxChangedSeats = 50_000
	// maxPending bounds what waits for a follower that reads slowly, in batches: some
	// seconds. Then it's cut.
	maxPending = 8
	// maxFollowers bounds those of a process: each is a connection with its buffers.
	maxFollowers = 20_000
	// readTimeout bounds one reading of the database.
	readTimeout = 5 * time.Second
)

// Maps are the maps of events as shoppers see them: advisory, of one moment, and seconds
// old at most while the database can be read. All readers of a map in a process share one
// copy, which is brought up to date by the changes since. It's safe for concurrent use.
type Maps struct {
	events *buckets.Store
	reads  *pgxpool.Pool
	charts *Charts

	mu        sync.Mutex
	houses    map[ledger.JournalID]*house
	swept     time.Time // by the process's clock
	closed    bool
	loops     sync.WaitGroup
	followers atomic.Int64
	cut       atomic.Int64

	life context.Context // of the loops
	end  context.CancelFunc
}

// NewMaps makes maps that read from a pool. Close them before it.
func NewMaps(events *buckets.Store, reads *pgxpool.Pool, charts *Charts) *Maps {
	m := &Maps{events: events, reads: reads, charts: charts, houses: make(map[ledger.JournalID]*house)}
	m.life, m.end = context.WithCancel(context.Background())
	return m
}

// Followers counts those who follow a map now.
func (m *Maps) Followers() int64 { return m.followers.Load() }

// Cut counts the followers that were cut off because they read too slowly.
func (m *Maps) Cut() int64 { return m.cut.Load() }

// house finds the map of an event.
func (m *Maps) house(ctx context.Context, event string) (*house, error) {
	journal, err := m.events.Journal(ctx, event)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
	h := m.houses[journal]
	if h == nil {
		h = &house{maps: m, event: event, journal: journal, plan: noPlan}
		m.houses[journal] = h
	}
	h.asked = time.Now()
	return h, nil
}

// forget gives back the maps that nobody has asked for in a while; it looks now and then.
// The caller holds mu.
func (m *Maps) forget() {
	if time.Since(m.swept) < forgetAfter/10 {
		return
	}
	m.swept = time.Now()
	for journal, h := range m.houses {
		if h.mu.TryLock() { // else somebody asks now
			if h.followed() == 0 && time.Since(h.asked) > forgetAfter {
				delete(m.houses, journal)
			}
			h.mu.Unlock()
		}
	}
}

// Snapshot gives the whole map, rendered once for all who ask. When the database can't be
// read it's the last one known, and says as of when. Errors: ErrEventNotFound,
// pg.ErrUnavailable.
func (m *Maps) Snapshot(ctx context.Context, event string) (*Snapshot, error) {
	h, err := m.house(ctx, event)
	if err != nil {
		return nil, err
	}
	return h.snapshot(ctx)
}

// Changes gives what happened to seats after a version, in order. Errors:
// ErrEventNotFound, ErrGap, pg.ErrUnavailable.
func (m *Maps) Changes(ctx context.Context, event string, after ledger.Seq) (Changes, error) {
	h, err := m.house(ctx, event)
	if err != nil {
		return Changes{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.upTo(ctx, after); err != nil {
		return Changes{}, err
	}
	list, err := h.since(ctx, after)
	return h.changes(list), err
}

// Follower gets the changes of a map as they come.
type Follower struct {
	// Batches gets what has happened since the batch before. It's closed when the
	// follower was cut off, because it reads too slowly, must load the map anew, or the
	// process stops.
	Batches <-chan Batch

	group   *group
	batches chan Batch
}

// Batch is what happened up to a version; perhaps nothing, as a sign of life.
type Batch struct {
	Version ledger.Seq
	Data    []byte // Changes as JSON: of each seat the last
}

// Follow begins to follow a map after a version; what has happened since comes first. Stop
// it. Errors: ErrEventNotFound, ErrGap, pg.ErrUnavailable, ErrOverloaded, ErrClosing.
func (m *Maps) Follow(ctx context.Context, event string, after ledger.Seq) (*Follower, error) {
	h, err := m.house(ctx, event)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.upTo(ctx, after); err != nil {
		return nil, err
	}
	missed, err := h.since(ctx, after)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.followers.Load() >= maxFollowers:
		return nil, ledger.ErrOverloaded.Because("%d follow maps here", maxFollowers).After(time.Second)
	case m.closed:
		return nil, ledger.ErrClosing.Because("follow the map at another process").After(time.Second)
	}
	f := h.join(after, missed)
	if !h.following {
		h.following = true
		m.loops.Go(h.follow)
	}
	return f, nil
}

// Stop ends the following.
func (f *Follower) Stop() {
	f.group.house.mu.Lock()
	defer f.group.house.mu.Unlock()
	f.group.drop(f)
}

// Close cuts off all followers, and lets nobody follow any more. It may be called again.
func (m *Maps) Close() {
	m.end()
	m.mu.Lock()
	m.closed = true
	houses := make([]*house, 0, len(m.houses))
	for _, h := range m.houses {
		houses = append(houses, h)
	}
	m.mu.Unlock()
	for _, h := range houses {
		h.mu.Lock()
		h.dropAll()
		h.mu.Unlock()
	}
	m.loops.Wait()
}
