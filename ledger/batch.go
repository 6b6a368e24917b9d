package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
)

// Batch tells an observer how a batch went.
type Batch struct {
	Journal  JournalID
	Commands int  // answered
	Entries  int  // written, expiries included
	Snapshot bool // judged without the lock
	LockWait time.Duration
	// ClockBehind is how far the database's clock is behind the journal's time, which
	// stands still meanwhile: nothing runs out.
	ClockBehind time.Duration
	Read        time.Duration // lock and read, the wait included
	Decide      time.Duration
	Write       time.Duration // write and commit
	Err         error         // a command that time had made failed; nothing else did
}

// batch is one run of the five steps.
type batch struct {
	requests []*request
	outcomes []outcome // of the requests, in their order
	state    *State
	observe  func(Batch)
	stats    Batch

	contended bool // another batch had the lock when the snapshot was taken
	standby   bool // commits wait for a synchronous standby
	replays   int  // requests that were answered from entries of earlier batches
}

// outcome is what a caller gets.
type outcome struct {
	receipt Receipt
	err     error
}

func (c *committer) newBatch(requests []*request) *batch {
	return &batch{
		requests: requests,
		outcomes: make([]outcome, len(requests)),
		state: &State{
			Journal:  c.journal,
			loaded:   make(map[string]struct{}),
			accounts: make(map[AccountKey]*balance),
			past:     make(map[uuid.UUID]pastEntry),
			shelves:  c.shelves(),
		},
		observe: c.observe,
		stats:   Batch{Journal: c.journal},
	}
}

// Reads queues a batch's reads for one round trip.
type Reads struct {
	Journal  JournalID
	Commands []Command
	// Locked says that the journal is locked: no other batch is under way, and what
	// is read is all there is.
	Locked bool
	state  *State
	batch  *pgx.Batch
}

// ShelfIn finds the shelf of type S of the batch that's being read, for a package whose
// rows lead to those of another.
func ShelfIn[S Shelf](r *Reads) S { return ShelfOf[S](r.state) }

// Queue adds a query; each is called for every row. The first argument of the
// query is the journal, args follow.
func (r *Reads) Queue(each func(pgx.Rows) error, sql string, args ...any) {
	r.batch.Queue(sql, append([]any{int64(r.Journal)}, args...)...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := each(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// read locks the journal and loads what the batch needs.
func (b *batch) read(ctx context.Context, conn *pgx.Conn) error {
	started := time.Now()
	q := &pgx.Batch{}
	q.Queue(sqlBegin)
	b.queueReads(q, sqlLockJournal, true)
	if err := pg.Exchange(ctx, conn, q); err != nil {
		return err
	}
	if codes := b.furtherAccounts(); len(codes) > 0 {
		q := &pgx.Batch{}
		b.queueAccounts(&Reads{Journal: b.state.Journal, batch: q}, codes)
		if err := pg.Exchange(ctx, conn, q); err != nil {
			return err
		}
	}
	b.stats.Read = time.Since(started)
	return nil
}

// readSnapshot loads the same from a snapshot, in a transaction that is over when
// it returns. It's not complete when rows lead to accounts that weren't read, nor
// when another batch was under way, which may be about the same commands.
func (b *batch) readSnapshot(ctx context.Context, conn *pgx.Conn) (complete bool, err error) {
	started := time.Now()
	b.stats.Snapshot = true
	q := &pgx.Batch{}
	q.Queue(sqlBeginSnapshot)
	b.queueReads(q, sqlReadJournal, false)
	q.Queue(sqlCommit)
	if err := pg.Exchange(ctx, conn, q); err != nil {
		return false, err
	}
	b.stats.Read = time.Since(started)
	return !b.contended && len(b.furtherAccounts()) == 0, nil
}

// queueReads queues the reads of step 2 behind the statement that reads, and
// perhaps locks, the journal. Each later statement sees what was committed before
// the lock was granted.
func (b *batch) queueReads(q *pgx.Batch, journal string, locked bool) {
	s := b.state
	var last time.Time
	found := false
	commands := make([]Command, len(b.requests))
	ids := make([][16]byte, len(b.requests))
	var codes []string
	for i, r := range b.requests {
		commands[i] = r.command
		ids[i] = r.command.ID
		codes = append(codes, r.command.Body.Accounts()...)
	}
	reads := &Reads{Journal: s.Journal, Commands: commands, Locked: locked, state: s, batch: q}
	reads.Queue(func(rows pgx.Rows) error {
		found = true
		var hash []byte
		err := rows.Scan(&s.seq, &last, &hash, &b.contended)
		copy(s.hash[:], hash)
		return err
	}, journal)
	q.Queue(sqlClock).QueryRow(func(row pgx.Row) error {
		var wait float64
		if err := row.Scan(&s.Now, &wait, &b.standby); err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("ledger: journal %d doesn't exist", s.Journal)
		}
		if s.Now.Before(last) {
			b.stats.ClockBehind = last.Sub(s.Now)
			s.Now = last
		}
		s.Now = s.Now.UTC()
		b.stats.LockWait = time.Duration(wait * float64(time.Second))
		return nil
	})
	reads.Queue(func(rows pgx.Rows) error {
		var id uuid.UUID
		var digest []byte
		var p pastEntry
		err := rows.Scan(&id, &digest, &p.receipt.Kind, &p.receipt.Seq, &p.receipt.At, &p.receipt.Data)
		copy(p.digest[:], digest)
		s.past[id] = p
		return err
	}, sqlPastEntries, ids)
	for _, shelf := range s.shelves {
		shelf.Read(reads)
	}
	b.queueAccounts(reads, codes)
}

// queueAccounts queues the accounts of codes that haven't been read, and of the
// control accounts above them.
func (b *batch) queueAccounts(reads *Reads, codes []string) {
	s := b.state
	var fresh []string
	for _, code := range codes {
		for _, code := range withControl(code) {
			if _, ok := s.loaded[code]; !ok {
				s.loaded[code] = struct{}{}
				fresh = append(fresh, code)
			}
		}
	}
	if len(fresh) == 0 {
		return
	}
	reads.Queue(func(rows pgx.Rows) error {
		a := &balance{}
		err := rows.Scan(&a.Code, &a.Unit, &a.Type, &a.Control, &a.Balance, &a.Version)
		s.accounts[a.AccountKey] = a
		return err
	}, sqlBatchAccounts, fresh)
}

// furtherAccounts gives the codes that the shelves' rows lead to and that haven't
// been read.
func (b *batch) furtherAccounts() []string {
	var codes []string
	for _, shelf := range b.state.shelves {
		codes = append(codes, shelf.Accounts(b.state.Now)...)
	}
	return slices.DeleteFunc(codes, func(code string) bool {
		_, ok := b.state.loaded[code]
		return ok
	})
}

// decideDue is the first half of step 3: what time has made. It tells whether there
// is more of that than the batch has read.
func (b *batch) decideDue() (more bool) {
	started := time.Now()
	for _, shelf := range b.state.shelves {
		due, rest := shelf.Due(b.state.Now)
		more = more || rest
		for _, c := range due {
			if _, err := b.state.judge(c); err != nil && b.stats.Err == nil {
				b.stats.Err = err
			}
		}
	}
	b.stats.Decide = time.Since(started)
	return more && len(b.state.entries) > 0
}

// shares tells whether a shelf says that the journal is one of several.
func (b *batch) shares() bool {
	return slices.ContainsFunc(b.state.shelves, func(s Shelf) bool {
		sharing, ok := s.(Sharing)
		return ok && sharing.Shares()
	})
}

// decide is the second half: the commands as they arrived.
func (b *batch) decide() {
	started := time.Now()
	for i, r := range b.requests {
		o := &b.outcomes[i]
		o.receipt, o.err = b.state.judge(r.command)
		if o.receipt.Replayed {
			b.replays++
			o.receipt.Replayed = !r.written
		}
	}
	b.stats.Decide += time.Since(started)
}

// answer is step 6.
func (b *batch) answer() {
	for i, r := range b.requests {
		o := b.outcomes[i]
		if o.err != nil && fault.As(o.err) == nil {
			o.err = fault.ErrInternal.Because("").From(o.err)
		}
		r.answer(o)
	}
	b.stats.Commands = len(b.requests)
	b.report()
}

// report tells the observer.
func (b *batch) report() {
	b.stats.Entries = len(b.state.entries)
	if b.observe != nil {
		b.observe(b.stats)
	}
}

// refuse gives every request of a batch the same error.
func refuse(requests []*request, err error) {
	for _, r := range requests {
		r.answer(outcome{err: err})
	}
}
