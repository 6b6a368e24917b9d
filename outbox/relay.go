package outbox

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// relayWorkers publish at one time, each a journal of its own.
	relayWorkers = 2
	// gatherTime is the pause after a commit before its journal is published, and gatherEach
	// what each entry of the last batch adds to it, up to gatherMost: the commits of that time
	// share one batch, whose cost is much the same however many they are. It's what
	// publishing adds to an event's way.
	gatherTime = 20 * time.Millisecond
	gatherEach = 500 * time.Microsecond
	gatherMost = 250 * time.Millisecond
	// While commits wait, the relay rests after each batch for yieldTimes as long as the batch
	// took, until what it publishes is yieldUntil old; for no longer than yieldMost at once, as
	// the lease ends soon after.
	yieldTimes = 5
	yieldMost  = 2 * time.Second
	yieldUntil = 10 * time.Second
	// scanEvery is how often all journals are looked at, for entries that other processes
	// have committed and for what the stream has lost.
	scanEvery = 250 * time.Millisecond
	// lease is how long a journal stays with a process that has died.
	lease = 5 * time.Second
	// answerTimeout bounds a call to the database: one that hangs is a trouble, and told.
	answerTimeout = 10 * time.Second
	// turnBatches is how many batches a journal gets before others have their turn.
	turnBatches = 32
	// maxEvents and maxBytes bound a batch. JetStream takes 1,000 messages in one.
	maxEvents = 1000
	maxBytes  = 4 << 20
	// maxBehind bounds the journals that one scan takes up.
	maxBehind = 256

	// lastTrouble is the longest pause of the relay when the bus doesn't take events.
	lastTrouble = 2 * time.Second
)

// RelayOptions configure a relay.
type RelayOptions struct {
	Pool    *pgxpool.Pool
	Bus     Bus
	Observe func(Published) // told of every published batch; may be nil
	// Then is told of the events of every published batch, for what is only a hint to
	// somebody; may be nil.
	Then func([]Event)
	// Busy tells that commits wait for the machine; may be nil.
	Busy func() bool
	Log  *slog.Logger
}

// Published tells an observer how a batch went.
type Published struct {
	Journal ledger.JournalID
	Events  int
	Again   int             // of those: how many the stream had, and lost
	Lags    []time.Duration // from each entry's time to the acknowledgement of the stream
}

// Relay publishes the journals' entries, in order and without a gap. Any number of
// processes may run one: a journal is published by whoever has its lease, and the stream
// refuses everybody else.
type Relay struct {
	RelayOptions
	holder uuid.UUID

	mu     sync.Mutex
	tracks map[ledger.JournalID]*track
	queue  chan ledger.JournalID
	stream atomic.Pointer[Stream]

	// The journals that the scan and the patrol have come to; only Run's goroutine goes there.
	scanned, patrolled int64

	// How many events a batch may have: fewer after one whose outcome nobody told in time, for
	// a machine that's busy takes a small one sooner.
	most atomic.Int64

	trouble atomic.Pointer[string] // why nothing can be published; nil when it can
}

// track is what's known of a journal that this process publishes.
type track struct {
	waiting   bool // for its pause, or in the queue
	running   bool
	again     bool    // something has come while it was running
	elsewhere bool    // another process has the lease: a scan tells when it's free
	stale     bool    // what at says may be wrong
	failures  int     // in a row
	last      int     // how many entries its last turn published
	at        *cursor // where the stream stands; nil when that must be looked up
}

// NewRelay makes a relay. Run runs it.
func NewRelay(o RelayOptions) *Relay {
	r := &Relay{
		RelayOptions: o, holder: uuid.New(),
		tracks: make(map[ledger.JournalID]*track), queue: make(chan ledger.JournalID, maxBehind),
		scanned: -1, patrolled: -1,
	}
	r.most.Store(maxEvents)
	return r
}

// Hint says that a journal has new entries. It never waits.
func (r *Relay) Hint(journal ledger.JournalID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.track(journal); !t.elsewhere {
		r.wait(journal, t)
	}
}

// found says that a scan has found a journal whose lease can be had. Of a
// suspect one it's asked anew where the stream stands.
func (r *Relay) found(journal ledger.JournalID, suspect bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.track(journal)
	t.stale = t.stale || suspect
	r.wait(journal, t)
}

// track gives the track of a journal; r is locked.
func (r *Relay) track(journal ledger.JournalID) *track {
	t := r.tracks[journal]
	if t == nil {
		t = &track{}
		r.tracks[journal] = t
	}
	return t
}

// wait has a journal's turn come after a pause; r is locked.
func (r *Relay) wait(journal ledger.JournalID, t *track) {
	switch {
	case t.running:
		t.again = true
	case !t.waiting:
		t.waiting = true
		pause := min(gatherTime+time.Duration(t.last)*gatherEach, gatherMost)
		if t.failures > 0 {
			pause = backoff(t.failures, firstRetry, lastTrouble)
		}
		time.AfterFunc(pause, func() { r.enqueue(journal) })
	}
}

// enqueue puts a journal in the queue; when that's full, the next scan finds it.
func (r *Relay) enqueue(journal ledger.JournalID) {
	select {
	case r.queue <- journal:
	default:
		r.mu.Lock()
		r.tracks[journal].waiting = false
		r.mu.Unlock()
	}
}

// Run publishes until ctx ends, and then leaves its journals to others at once.
func (r *Relay) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range relayWorkers {
		workers.Go(func() { r.work(ctx) })
	}
	failures := 0
	for ctx.Err() == nil {
		pause := scanEvery
		if err := r.look(ctx); err != nil && ctx.Err() == nil {
			pause = backoff(failures, scanEvery, lastTrouble)
			failures++
			r.say(err)
		} else {
			failures = 0
		}
		wait.For(ctx, pause)
	}
	workers.Wait()
	r.leave()
}

// work publishes one journal after the other.
func (r *Relay) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case journal := <-r.queue:
			r.take(ctx, journal)
		}
	}
}

// take gives a journal its turn, and puts it back if there's more.
func (r *Relay) take(ctx context.Context, journal ledger.JournalID) {
	r.mu.Lock()
	t := r.tracks[journal]
	if t.stale {
		t.at = nil
	}
	t.waiting, t.running, t.again, t.elsewhere, t.stale = false, true, false, false, false
	at := t.at
	r.mu.Unlock()

	was := at
	at, more, err := r.publish(ctx, journal, at)
	if err != nil && ctx.Err() == nil {
		r.failed(ctx, journal, t.failures == 0, err)
	}

	r.mu.Lock()
	again := t.again || more || err != nil
	t.running, t.at, t.last = false, at, 0
	if was != nil && at != nil {
		t.last = int(at.seq - was.seq)
	}
	if t.failures++; err == nil {
		t.failures = 0
	}
	t.elsewhere = at == nil && err == nil && !t.stale
	if again && !t.elsewhere {
		r.wait(journal, t)
	}
	r.mu.Unlock()
}

// failed keeps what's wrong with a journal where people look for it, and logs it when it's
// new: the first failure in a row, or another one than before.
func (r *Relay) failed(ctx context.Context, journal ledger.JournalID, first bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	tag, failed := r.Pool.Exec(ctx, sqlTrouble, r.holder, int64(journal), err.Error())
	if first || failed == nil && tag.RowsAffected() > 0 {
		r.Log.Warn("a journal isn't published", slog.Int64("journal", int64(journal)), slog.Any("error", err))
	}
}

// say logs a trouble of the whole relay when it's new, and keeps it for Backlog.
func (r *Relay) say(err error) {
	text := err.Error()
	if was := r.trouble.Swap(&text); was == nil || *was != text {
		r.Log.Warn("nothing is published", slog.Any("error", err))
	}
}

// well says that publishing goes on.
func (r *Relay) well() {
	if was := r.trouble.Swap(nil); was != nil {
		r.Log.Info("publishing goes on")
	}
}

// leave gives up the leases, so that others needn't wait for them.
func (r *Relay) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), lease)
	defer cancel()
	if _, err := r.Pool.Exec(ctx, sqlLeave, r.holder); err != nil {
		r.Log.Warn("leases weren't given up; they run out", slog.Any("error", err))
	}
}
