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
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/outbox"
)

var errPrinter = errors.New("out of paper")

// The first letter goes alone: when it dies again nothing else is tried until somebody has
// seen to it, and then one goes alone again.
func TestACanaryThatFails(t *testing.T) {
	m := openMail(t)
	ids := m.dead(3)
	r := m.replayAll("k")
	tried := 0
	m.redo = func(context.Context, pgx.Tx, outbox.DeadLetter, outbox.Event) error { tried++; return errPrinter }
	m.work()
	m.work()
	stopped := m.stands(r.ID, "stopped: 3 letters, 0 done, 1 failed, 0 freed, 2 left")
	if tried != 1 || !strings.Contains(stopped.Note, ids[0].String()) || !strings.Contains(stopped.Note, "out of paper") {
		t.Errorf("%d tried: %s", tried, stopped.Note)
	}
	first := m.letter(ids[0])
	if first.Status != outbox.Dead || first.Taken || first.Attempts != outbox.MaxAttempts+1 || first.Reason != "out of paper" {
		t.Errorf("%+v", first)
	}
	_, _, err := m.store.Resume(m.ctx, "bob", "resume", r.ID)
	m.must(err)
	m.work()
	m.stands(r.ID, "stopped: 3 letters, 0 done, 2 failed, 0 freed, 1 left")
	m.redo = redone
	_, _, err = m.store.Resume(m.ctx, "bob", "resume 2", r.ID)
	m.must(err)
	m.work()
	r = m.stands(r.ID, "done: 3 letters, 1 done, 2 failed, 0 freed, 0 left")
	if got := steps(r); got != "requested by ann, stopped by system, resumed by bob, stopped by system, resumed by bob, done by system" {
		t.Error(got)
	}
	again := m.replayAll("again")
	if m.work(); again.Letters != 2 {
		t.Errorf("%+v", again)
	}
	if got := m.effects(); got != "3 1 2" {
		t.Errorf("effects of %s", got)
	}
}

// Without a canary, or after it, what dies again stops nothing, and stays the same letter.
func TestPoisonDiesAgain(t *testing.T) {
	m := openMail(t)
	ids := m.dead(4)
	m.redo = func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
		if err := redone(ctx, tx, l, e); err != nil || e.Seq%2 == 0 {
			return err
		}
		switch e.Seq {
		case 1:
			return errPrinter
		default:
			panic("no such tray")
		}
	}
	request := all(outbox.ActReplay)
	request.Canary = new(false)
	r, _, err := m.store.Request(m.ctx, "ann", "k", request)
	m.must(err)
	m.work()
	m.stands(r.ID, "done: 4 letters, 2 done, 2 failed, 0 freed, 0 left")
	if got := m.effects(); got != "2 4" {
		t.Errorf("effects of %s: what died again left something", got)
	}
	for i, says := range []string{"out of paper", "", "tickets panicked: no such tray", ""} {
		l := m.letter(ids[i])
		if says == "" && l.Status != outbox.Replayed ||
			says != "" && (l.Status != outbox.Dead || !strings.HasPrefix(l.Reason, says) || l.Attempts != outbox.MaxAttempts+1 || l.Taken || *l.Replay != r.ID) {
			t.Errorf("%+v", l)
		}
	}
	if n := m.text(`SELECT count(*)::text FROM dead_letters`); n != "4" {
		t.Errorf("%s letters: the business key is another's", n)
	}
	m.redo = redone
	failed, _, err := m.store.Request(m.ctx, "ann", "failed", outbox.Request{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{Replay: &r.ID}, Reason: "mended"})
	m.must(err)
	m.work()
	m.stands(failed.ID, "done: 2 letters, 2 done, 0 failed, 0 freed, 0 left")
}

// A statement that failed without a word from who made it is no effect.
func TestASwallowedErrorIsNoEffect(t *testing.T) {
	m := openMail(t)
	id := m.dead(1)[0]
	m.redo = func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
		_, _ = tx.Exec(ctx, `SELECT 1 / 0`)
		return nil
	}
	r := m.replayAll("k")
	m.work()
	m.stands(r.ID, "done: 1 letters, 0 done, 1 failed, 0 freed, 0 left")
	if l := m.letter(id); l.Status != outbox.Dead {
		t.Errorf("%+v", l)
	}
}

// Letters are taken at the replay's rate, by the database's clock: each one puts off the
// next, and what wasn't done for long isn't made up for but for a second's worth.
func TestAReplayKeepsItsRate(t *testing.T) {
	m := openMail(t)
	m.dead(40) // more than come to be done, however slow it is
	request := all(outbox.ActReplay)
	request.Rate = 4
	r, _, err := m.store.Request(m.ctx, "ann", "k", request)
	m.must(err)
	start, begun := *r.DueAt, m.now()
	m.must(m.store.Work(m.ctx))
	missed := max(m.now().Sub(start)-time.Second, 0) // at most: on a machine that's slow
	r, err = m.store.Replay(m.ctx, r.ID)
	m.must(err)
	if got, want := r.DueAt.Sub(start), time.Duration(r.Done)*time.Second/4; r.Done == 0 || got < want || got > want+missed {
		t.Errorf("after %d letters the next is due after %v, want %v", r.Done, got, want)
	}
	if !r.DueAt.After(begun) {
		t.Errorf("due at %v, it was %v: there was time for more", r.DueAt, begun)
	}
	m.exec(`UPDATE replays SET due_at = clock_timestamp() + interval '1 hour'`)
	m.must(m.store.Work(m.ctx))
	if again, err := m.store.Replay(m.ctx, r.ID); err != nil || again.Done != r.Done {
		t.Errorf("%+v was done before it was due, %v", again, err)
	}
	m.exec(`UPDATE replays SET due_at = clock_timestamp() - interval '1 hour'`)
	before := m.now()
	m.must(m.store.Work(m.ctx))
	took := m.now().Sub(before)
	again, err := m.store.Replay(m.ctx, r.ID)
	m.must(err)
	most := 5 + int(took*4/time.Second) + 1
	if did := again.Done - r.Done; did < 4 || did > most {
		t.Errorf("after an hour %d letters were done at once, at 4 a second", did)
	}
}

// now is the database's time.
func (m *mail) now() (at time.Time) {
	m.Helper()
	m.must(m.owner.QueryRow(m.ctx, `SELECT clock_timestamp()`).Scan(&at))
	return at
}

// Killed between effect and commit, nothing is half done; the letter is done once, later.
func TestAKilledTurnLeavesNothing(t *testing.T) {
	m := openMail(t)
	ids := m.dead(2)
	r := m.replayAll("k")
	m.redo = func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
		if err := redone(ctx, tx, l, e); err != nil {
			return err
		}
		var pid int
		if err := tx.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			return err
		}
		_, err := m.owner.Exec(ctx, `SELECT pg_terminate_backend($1, 10000)`, pid)
		return err
	}
	m.exec(`UPDATE replays SET due_at = clock_timestamp() - interval '1 second'`)
	before := m.now()
	m.must(m.store.Work(m.ctx))
	if got := m.effects(); got != "" {
		t.Errorf("effects of %s", got)
	}
	if l := m.letter(ids[0]); l.Status != outbox.Dead || !l.Taken || l.Attempts != outbox.MaxAttempts {
		t.Errorf("%+v", l)
	}
	paused := m.stands(r.ID, "running: 2 letters, 0 done, 0 failed, 0 freed, 2 left")
	if !strings.HasPrefix(paused.Note, "pauses: ") || paused.DueAt.Before(before.Add(5*time.Second)) {
		t.Errorf("%+v", paused)
	}
	m.redo = redone
	m.work()
	r = m.stands(r.ID, "done: 2 letters, 2 done, 0 failed, 0 freed, 0 left")
	if got := m.effects(); got != "1 2" || r.Note != "" {
		t.Errorf("effects of %s: %s", got, r.Note)
	}
}

// Committed, but told that it failed: it isn't done again.
func TestALostAnswerIsNoSecondEffect(t *testing.T) {
	m := openMail(t)
	m.dead(2)
	r := m.replayAll("k")
	ctx, cancel := context.WithCancel(m.ctx)
	m.redo = func(c context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
		defer cancel() // the process is told to stop: what comes after it fails
		return redone(c, tx, l, e)
	}
	m.exec(`UPDATE replays SET due_at = clock_timestamp() - interval '1 second'`)
	if err := m.store.Work(ctx); err == nil {
		t.Error("it worked to its end")
	}
	m.redo = redone
	m.work()
	m.stands(r.ID, "done: 2 letters, 2 done, 0 failed, 0 freed, 0 left")
	if got := m.effects(); got != "1 2" {
		t.Errorf("effects of %s", got)
	}
}

// Whoever stops a replay waits for the letter that's under way; none comes after the stop.
func TestAStopComesBetweenTwoLetters(t *testing.T) {
	m := openMail(t)
	m.dead(100)
	// At this rate some are due at once, but not all: a stop that's woken late, and that the
	// next letter comes before, gets its turn before the last.
	r := m.replayAll("k")
	stopped := make(chan int, 1)
	m.redo = func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
		if e.Seq == 2 {
			go func() {
				made, _, err := m.store.Stop(m.ctx, "bob", "stop", r.ID, "too hot")
				if err != nil {
					t.Error(err)
				}
				stopped <- made.Done
			}()
			m.untilLockWaits(1)
		}
		return redone(ctx, tx, l, e)
	}
	m.work()
	done := <-stopped
	m.stands(r.ID, fmt.Sprintf("stopped: 100 letters, %d done, 0 failed, 0 freed, %d left", done, 100-done))
	if n := m.text(`SELECT count(*)::text FROM redone`); n != fmt.Sprint(done) || done < 2 {
		t.Errorf("%s effects, %d done", n, done)
	}
}

// untilLockWaits waits until n sessions wait for a lock.
func (m *mail) untilLockWaits(n int) {
	m.Helper()
	pgtest.Until(m, "sessions wait for a lock", func() bool {
		return m.text(`SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == strconv.Itoa(n)
	})
}

// A letter isn't done while its consumer is at the same journal.
func TestALetterWaitsForItsConsumer(t *testing.T) {
	m := openMail(t)
	m.dead(1)
	r := m.replayAll("k")
	m.exec(`BEGIN`)
	m.exec(`SELECT FROM inbox WHERE consumer = 'tickets' FOR UPDATE`)
	worked := make(chan error, 1)
	go func() { worked <- m.store.Work(m.ctx) }()
	m.untilLockWaits(1)
	if got := m.effects(); got != "" {
		t.Errorf("effects of %s", got)
	}
	m.exec(`COMMIT`)
	m.must(<-worked)
	m.stands(r.ID, "done: 1 letters, 1 done, 0 failed, 0 freed, 0 left")
}

// Processes share the work; a replay is one's at a time, and each letter is done once.
func TestProcessesShareReplays(t *testing.T) {
	m := openMail(t)
	ids := m.dead(60)
	for i := range 3 {
		request := these(outbox.ActReplay, ids[20*i:20*i+20]...)
		request.Rate = 1000
		_, _, err := m.store.Request(m.ctx, "ann", fmt.Sprint(i), request)
		m.must(err)
	}
	var busy sync.Map
	var clashes atomic.Int32
	m.redo = func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
		if _, others := busy.LoadOrStore(*l.Replay, true); others {
			clashes.Add(1)
		}
		defer busy.Delete(*l.Replay)
		return redone(ctx, tx, l, e)
	}
	m.exec(`UPDATE replays SET due_at = clock_timestamp() - interval '1 second'`)
	var processes sync.WaitGroup
	for range 4 {
		store := m.letters()
		processes.Go(func() {
			pgtest.Until(t, "all is done", func() bool {
				m.must(store.Work(m.ctx))
				c, err := store.Counts(m.ctx)
				return err == nil && c.Running == 0
			})
		})
	}
	processes.Wait()
	if n := m.text(`SELECT count(*) || ' ' || count(DISTINCT letter) FROM redone`); n != "60 60" || clashes.Load() != 0 {
		t.Errorf("effects, of letters: %s; %d clashes", n, clashes.Load())
	}
}
