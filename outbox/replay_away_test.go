package outbox_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/outbox"
)

// What a letter needs is away: its replay waits, others go on, and no attempt is counted.
func TestWhatIsAwayBurnsNothing(t *testing.T) {
	m := openMail(t)
	ids := m.dead(3)
	waits, _, err := m.store.Request(m.ctx, "ann", "k", these(outbox.ActReplay, ids[0], ids[1]))
	m.must(err)
	other, _, err := m.store.Request(m.ctx, "ann", "k2", these(outbox.ActReplay, ids[2]))
	m.must(err)
	m.redo = func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
		if err := redone(ctx, tx, l, e); err != nil || l.ID == ids[2] {
			return err
		}
		return fmt.Errorf("printer: %w", outbox.ErrAway)
	}
	before := m.now()
	m.work()
	m.stands(other.ID, "done: 1 letters, 1 done, 0 failed, 0 freed, 0 left")
	r := m.stands(waits.ID, "running: 2 letters, 0 done, 0 failed, 0 freed, 2 left")
	if l := m.letter(ids[0]); l.Attempts != outbox.MaxAttempts || !l.Taken || !strings.Contains(r.Note, "printer") || r.DueAt.Before(before.Add(5*time.Second)) {
		t.Errorf("%+v of %+v", l, r)
	}
	m.redo = redone
	m.work()
	r = m.stands(waits.ID, "done: 2 letters, 2 done, 0 failed, 0 freed, 0 left")
	if r.Note != "" || m.effects() != "3 1 2" {
		t.Errorf("%s: effects of %s", r.Note, m.effects())
	}
}

// Without a secret no ticket is signed: replays of those letters wait for one.
func TestAReplayOfTicketsWaitsForASecret(t *testing.T) {
	m := openMail(t)
	id := m.dead(1)[0]
	r := m.replayAll("k")
	issue := m.stores.Tickets.Consumer()
	m.redo = func(ctx context.Context, tx pgx.Tx, _ outbox.DeadLetter, e outbox.Event) error {
		return issue.Effect(ctx, tx, []outbox.Event{e})
	}
	m.work()
	r = m.stands(r.ID, "running: 1 letters, 0 done, 0 failed, 0 freed, 1 left")
	if l := m.letter(id); l.Attempts != outbox.MaxAttempts || !l.Taken || !strings.HasSuffix(r.Note, keyring.ErrEmpty.Error()) {
		t.Errorf("%+v of %+v", l, r)
	}
}

// A process that doesn't know a letter's consumer leaves it to one that does.
func TestAnUnknownConsumerIsAway(t *testing.T) {
	m := openMail(t)
	m.dead(1)
	r := m.replayAll("k")
	m.must(outbox.NewLetters(m.pool, m.pool, nil, nil).Work(m.ctx))
	m.stands(r.ID, "running: 1 letters, 0 done, 0 failed, 0 freed, 1 left")
	m.work()
	m.stands(r.ID, "done: 1 letters, 1 done, 0 failed, 0 freed, 0 left")
}

// An effect that failed and a letter whose entry isn't there are told apart: the second has
// died again for good.
func TestALetterWithoutItsEntry(t *testing.T) {
	m := openMail(t)
	m.db.Tampered()
	e := outbox.Event{Journal: mailed, Seq: 77, Kind: "test.remarked"}
	id := m.bury("tickets", e, "")
	r := m.replayAll("k")
	m.work()
	m.stands(r.ID, "done: 1 letters, 0 done, 1 failed, 0 freed, 0 left")
	if l := m.letter(id); l.Reason != "the journal has no such entry" {
		t.Errorf("%+v", l)
	}
}

// A letter that takes longer than its turn has died again: it doesn't hold up the others.
func TestALetterTakesTooLong(t *testing.T) {
	m := openMail(t)
	ids := m.dead(2)
	request := all(outbox.ActReplay)
	request.Canary = new(false)
	r, _, err := m.store.Request(m.ctx, "ann", "k", request)
	m.must(err)
	m.redo = func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
		if l.ID == ids[1] {
			return redone(ctx, tx, l, e)
		}
		if err := redone(ctx, tx, l, e); err != nil {
			return err
		}
		<-ctx.Done()
		m.store.LimitTurns(time.Minute) // of the other letter, which has all the time it may need
		return ctx.Err()
	}
	m.store.LimitTurns(5 * time.Second) // a turn takes some milliseconds
	m.work()
	m.stands(r.ID, "done: 2 letters, 1 done, 1 failed, 0 freed, 0 left")
	if l := m.letter(ids[0]); l.Reason != "it takes too long" || l.Attempts != outbox.MaxAttempts+1 || m.effects() != "2" {
		t.Errorf("%+v, effects of %s", l, m.effects())
	}
}

// What an effect says of its own reading isn't the database's.
func TestAnErrorLikeTheNetworksIsTheLetters(t *testing.T) {
	m := openMail(t)
	id := m.dead(1)[0]
	r := m.replayAll("k")
	m.redo = func(context.Context, pgx.Tx, outbox.DeadLetter, outbox.Event) error {
		return fmt.Errorf("read: %w", io.ErrUnexpectedEOF)
	}
	m.work()
	m.stands(r.ID, "done: 1 letters, 0 done, 1 failed, 0 freed, 0 left")
	if l := m.letter(id); l.Reason != "read: unexpected EOF" {
		t.Errorf("%+v", l)
	}
}
