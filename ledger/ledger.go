package ledger

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
)

const (
	// maxBatch bounds a transaction: beyond some hundred commands a larger batch
	// gains nothing, and everyone in it waits for it.
	maxBatch = 512
	// maxWaiting bounds a journal's queue: a second or so of work. Whoever comes
	// later is refused at once rather than served too late.
	maxWaiting = 8192
	// gatherTime bounds the pause before a batch of a journal that shares its load with
	// others. Long: it's added to what a request takes when nobody comes. Short: batches
	// are small, and their cost is most of the work.
	gatherTime = 3 * time.Millisecond
)

// Options configure a ledger.
type Options struct {
	Pool    *pgxpool.Pool  // for commits
	Shelves []func() Shelf // of the packages whose rows ride along, lower ones first
	Observe func(Batch)    // told of every answered batch; may be nil
	// Patience is how long a batch of unknown outcome is run again before its
	// callers are told so; 0 is 5 s. Short: callers repeat what would have been
	// answered. Long: a journal's queue stands still for as long.
	Patience time.Duration
}

const defaultPatience = 5 * time.Second

// Ledger commits commands to journals. It's safe for concurrent use.
type Ledger struct {
	options Options

	mu     sync.Mutex
	queues map[JournalID]*queue
	closed bool
	active sync.WaitGroup // queues being worked on
}

// New makes a ledger. Close it before its pool.
func New(o Options) *Ledger {
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	return &Ledger{options: o, queues: make(map[JournalID]*queue)}
}

// queue is what waits for one journal. The goroutine that works on it ends when
// it's empty, so an idle journal costs a map entry.
type queue struct {
	committer committer
	mu        sync.Mutex
	waiting   []*request
	working   bool
	gathering int           // how many it waits for before the next batch; 0 when it doesn't
	gathered  chan struct{} // closed when they're there
}

// request is a command that waits for its answer.
type request struct {
	command Command
	done    chan outcome // buffered: the committer never waits for a caller
	state   atomic.Int32
	// written is set when its entry was sent to the database. If a rerun then finds the
	// entry there, the request is no repeat: it's the first.
	written bool
}

// The states of a request.
const (
	stateWaiting int32 = iota
	stateTaken         // in a batch: it may be committed
	stateLeft          // its caller went away before it was taken
)

// answer gives the caller its outcome; the first one counts.
func (r *request) answer(o outcome) {
	select {
	case r.done <- o:
	default:
	}
}

// Do commits a command and returns its receipt. Errors are *fault.Error: what the
// decision refused with, ErrIdempotencyMismatch, ErrOverloaded, ErrClosing,
// pg.ErrUnavailable (nothing was changed) or ErrOutcomeUnknown. A ctx that ends
// while the command waits its turn gives ErrOverloaded and the command isn't
// done; one that ends later gives ErrOutcomeUnknown, and the command goes on.
func (l *Ledger) Do(ctx context.Context, journal JournalID, c Command) (Receipt, error) {
	r := &request{command: c, done: make(chan outcome, 1)}
	if err := l.enqueue(journal, r); err != nil {
		return Receipt{}, err
	}
	select {
	case o := <-r.done:
		return o.of(c), o.err
	case <-ctx.Done():
	}
	if r.state.CompareAndSwap(stateWaiting, stateLeft) {
		return Receipt{}, ErrOverloaded.Because("the request waited too long").
			After(retryOverloaded).From(ctx.Err())
	}
	select {
	case o := <-r.done:
		return o.of(c), o.err
	default:
		return Receipt{}, ErrOutcomeUnknown.Because("the commit took too long").
			After(retryOverloaded).From(ctx.Err())
	}
}

// of gives the receipt of a command; empty with an error.
func (o outcome) of(c Command) Receipt {
	if o.err == nil {
		o.receipt.ID = c.ID
	}
	return o.receipt
}

// Wake runs a batch on a journal that nobody asks anything of, so that what is
// due there happens. It returns when that batch has been committed.
func (l *Ledger) Wake(ctx context.Context, journal JournalID) error {
	_, err := l.Do(ctx, journal, Command{Body: wake{}})
	return err
}

// wake asks for nothing.
type wake struct{}

func (wake) Accounts() []string              { return nil }
func (wake) Decide(*State) (Decision, error) { return Decision{}, nil }

// Create makes an empty journal; one that exists stays as it is.
func (l *Ledger) Create(ctx context.Context, journal JournalID) error {
	if _, err := l.options.Pool.Exec(ctx, sqlCreateJournal, int64(journal)); err != nil {
		return pg.Fault(fmt.Errorf("create journal %d: %w", journal, err))
	}
	return nil
}

// Waiting counts the commands that wait for a journal's committer, over all
// journals.
func (l *Ledger) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, q := range l.queues {
		q.mu.Lock()
		n += len(q.waiting)
		q.mu.Unlock()
	}
	return n
}

// Close takes no more commands and waits until those taken are answered.
func (l *Ledger) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.active.Wait()
}

// enqueue puts a request in its journal's queue and sees that someone works on it.
func (l *Ledger) enqueue(journal JournalID, r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosing.Because("send it to another process").After(retryOverloaded)
	}
	q := l.queues[journal]
	if q == nil {
		q = &queue{committer: committer{
			journal: journal, pool: l.options.Pool, observe: l.options.Observe,
			shelves: l.openShelves, patience: l.options.Patience,
		}}
		l.queues[journal] = q
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxWaiting {
		return ErrOverloaded.Because("%d requests wait for this event", len(q.waiting)).After(retryOverloaded)
	}
	q.waiting = append(q.waiting, r)
	if q.gathering > 0 && len(q.waiting) >= q.gathering {
		q.gathering = 0
		close(q.gathered)
	}
	if !q.working {
		q.working = true
		l.active.Go(q.work)
	}
	return nil
}

func (l *Ledger) openShelves() []Shelf {
	shelves := make([]Shelf, len(l.options.Shelves))
	for i, open := range l.options.Shelves {
		shelves[i] = open()
	}
	return shelves
}

// work commits batches until the queue is empty.
func (q *queue) work() {
	for {
		batch := q.take()
		if batch == nil {
			return
		}
		if len(batch) > 0 {
			q.committer.commit(batch)
		}
		if q.committer.shares && len(batch) > 1 {
			q.gather(len(batch))
		}
	}
}

// gather waits a moment for as many requests as the last batch answered: who is served asks
// again, and a batch costs about the same however many share it.
func (q *queue) gather(n int) {
	q.mu.Lock()
	if len(q.waiting) >= 2*n {
		q.mu.Unlock()
		return
	}
	q.gathering, q.gathered = len(q.waiting)+n, make(chan struct{})
	q.mu.Unlock()
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-q.gathered:
	case <-timer.C:
		q.mu.Lock()
		q.gathering = 0
		q.mu.Unlock()
	}
}

// take gives the next batch, without requests whose callers have gone; nil when
// the queue is empty, and then nobody works on it any more.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), maxBatch)
	if n == 0 {
		q.waiting, q.working = nil, false
		return nil
	}
	batch := make([]*request, 0, n)
	for _, r := range q.waiting[:n] {
		if r.state.CompareAndSwap(stateWaiting, stateTaken) {
			batch = append(batch, r)
		}
	}
	clear(q.waiting[:n]) // the rest of the queue mustn't keep them in memory
	q.waiting = q.waiting[n:]
	return batch
}
