package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
)

const (
	// runTimeout bounds one run of a batch, the wait for a connection and for the
	// journal's lock included: another process may hold it for a batch or two. It's
	// shorter than callers wait.
	runTimeout = 5 * time.Second
	// unknownPause is the wait between the runs of a batch of unknown outcome.
	unknownPause = 50 * time.Millisecond
	// maxAttempts bounds the repeats of a batch that the database undid or that met
	// a connection already dead; nothing was changed by any of them.
	maxAttempts = 5
	// maxRounds bounds how many batches of what is due go before the commands of one
	// run. Beyond that they're judged with more still due.
	maxRounds = 16
)

// committer commits batches to one journal; one goroutine at a time uses it.
type committer struct {
	journal JournalID
	pool    *pgxpool.Pool
	shelves func() []Shelf
	observe func(Batch)
	// patience is how long a batch of unknown outcome is run again.
	patience time.Duration

	// refusing is set when the last batch changed nothing: the next one is first
	// judged on a snapshot, without the lock, so that a storm of refusals or
	// repeats neither waits for writers nor writes a byte of WAL.
	refusing bool
	// doubt is set while a commit's outcome is unknown: batches then take the lock
	// and commit even when they change nothing, so that what they answer is as
	// durable as their own commit.
	doubt bool
	// shares is set while the journal is one of several; see Sharing.
	shares bool
}

// errUnknown marks a failure between the write and the answer of COMMIT.
var errUnknown = errors.New("outcome of commit unknown")

// commit answers every request of a batch. It repeats what may be repeated, and
// separates a bad command from the others.
func (c *committer) commit(batch []*request) { c.commitSince(batch, time.Time{}) }

// commitSince is commit for a batch whose outcome has been unknown since a time; the
// zero time for one that hasn't been sent.
func (c *committer) commitSince(batch []*request, unknownSince time.Time) {
	for attempt := 1; ; attempt++ {
		err := c.run(batch)
		switch {
		case err == nil:
			return
		case errors.Is(err, errUnknown):
			c.doubt = true
			if unknownSince.IsZero() {
				unknownSince = time.Now()
			}
		case pg.Classify(err) == pg.Failed && len(batch) > 1:
			for _, r := range batch {
				c.commitSince([]*request{r}, unknownSince)
			}
			return
		case pg.Classify(err) == pg.Failed:
			refuse(batch, fault.ErrInternal.Because("").From(err))
			return
		case pg.Classify(err) == pg.Lost:
			// Idle connections of the pool have probably died with this one.
			c.pool.Reset()
		}
		if !unknownSince.IsZero() {
			if time.Since(unknownSince) > c.patience {
				refuse(batch, ErrOutcomeUnknown.Because("repeat the request under the same key").
					After(retryOverloaded).From(err))
				return
			}
			time.Sleep(unknownPause)
			continue
		}
		if attempt == maxAttempts || hopeless(err) {
			refuse(batch, pg.Fault(err))
			return
		}
	}
}

// errAcquire marks a failure to get a connection.
var errAcquire = errors.New("no connection")

// hopeless tells whether running the batch again at once would only fail again:
// the server takes no connections, or the time for a run was spent on waiting.
func hopeless(err error) bool {
	return errors.Is(err, errAcquire) || errors.Is(err, context.DeadlineExceeded)
}

// run commits one batch in the five steps. When it returns nil every request has
// its answer; with an error it may be run again. errUnknown says that the batch
// may have been committed, any other error that it wasn't, but for a panic: that's
// a bug, and the ids tell what had been committed.
func (c *committer) run(batch []*request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("ledger: batch panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if c.refusing && !c.doubt {
		settled, err := c.judgeOnSnapshot(batch)
		if settled || err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errAcquire, err)
	}
	defer conn.Release() // one that's still in a transaction is closed, not reused
	for round := 1; ; round++ {
		b := c.newBatch(batch)
		// 1 lock, 2 read: one round trip, and a second when rows lead to further accounts.
		if err := b.read(ctx, conn.Conn()); err != nil {
			return err
		}
		// 3 decide: pure, what is due first. If that's more than a batch takes, it's
		// committed, and nobody is judged before the rest has been seen.
		if more := b.decideDue(); more && round < maxRounds {
			if err := b.write(ctx, conn.Conn()); err != nil {
				return err
			}
			b.report()
			continue
		}
		b.decide()
		c.shares = b.shares()
		// Nothing changed: nothing is written, and nothing is remembered.
		if len(b.state.entries) == 0 && !c.doubt && !b.unsureReplay() {
			if _, err := conn.Exec(ctx, sqlRollback); err != nil {
				return err
			}
			c.refusing = true
			b.answer()
			return nil
		}
		// 4 write, 5 commit: one round trip. Past this point the outcome is unknown
		// until the server answers; no client's context can cut it short.
		if err := b.write(ctx, conn.Conn()); err != nil {
			return err
		}
		c.refusing, c.doubt = false, false
		// 6 answer.
		b.answer()
		return nil
	}
}

// unsureReplay tells whether the batch repeats an answer whose entry may not have
// reached the synchronous standby: another process may have stopped waiting for it.
// A commit of our own, with the lock that it took, waits for all that came before.
func (b *batch) unsureReplay() bool { return b.standby && b.replays > 0 }

// judgeOnSnapshot decides a batch on a consistent snapshot of committed rows. If
// nothing would change it answers and reports true: the snapshot is younger than
// every request in the batch, and no batch was under way that could be about the
// same commands. Else it leaves no trace and reports false.
func (c *committer) judgeOnSnapshot(batch []*request) (settled bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), runTimeout)
	defer cancel()
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errAcquire, err)
	}
	defer conn.Release()
	b := c.newBatch(batch)
	if complete, err := b.readSnapshot(ctx, conn.Conn()); err != nil || !complete {
		return false, err
	}
	b.decideDue()
	b.decide()
	if len(b.state.entries) > 0 || b.unsureReplay() {
		c.refusing = false
		return false, nil
	}
	b.answer()
	return true, nil
}

// write sends the changes and COMMIT in one round trip.
func (b *batch) write(ctx context.Context, conn *pgx.Conn) error {
	for i, r := range b.requests {
		r.written = r.written || b.outcomes[i].err == nil && b.outcomes[i].receipt.Seq > 0 && !b.outcomes[i].receipt.Replayed
	}
	pg.TakeWarning(conn)
	started := time.Now()
	q := &pgx.Batch{}
	b.queueWrites(q)
	q.Queue(sqlCommit)
	err := pg.Exchange(ctx, conn, q)
	b.stats.Write = time.Since(started)
	switch {
	case err != nil && pg.Classify(err) == pg.Lost:
		return fmt.Errorf("%w: %w", errUnknown, err)
	case err != nil:
		_, rollback := conn.Exec(ctx, sqlRollback)
		return errors.Join(err, rollback)
	case pg.TakeWarning(conn):
		return fmt.Errorf("%w: the server warned about the commit", errUnknown)
	}
	return nil
}
