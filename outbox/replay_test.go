package outbox_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// all chooses whatever is dead and free.
func all(action outbox.Action) outbox.Request {
	return outbox.Request{Action: action, Filter: &outbox.LetterFilter{}, Reason: "mended"}
}

// these names letters.
func these(action outbox.Action, ids ...uuid.UUID) outbox.Request {
	return outbox.Request{Action: action, Letters: ids, Reason: "mended"}
}

// A dry run tells what a request would do, and does nothing.
func TestPreviewTellsWhatWouldBe(t *testing.T) {
	m := openMail(t)
	first := m.dead(2)[0]
	m.bury("tickets", m.entry(true, "a payment"), "")
	m.bury("nobody", m.entry(false, "hello"), "")
	mine := m.bury("tickets", m.entry(false, "hello"), "")
	_, _, err := m.store.Request(m.ctx, "bob", "k", these(outbox.ActReplay, mine))
	m.must(err)
	p, err := m.store.Preview(m.ctx, all(outbox.ActReplay))
	m.must(err)
	want := []outbox.LetterGroup{{Consumer: "tickets", Kind: "test.remarked", Letters: 2}, {Consumer: "tickets", Kind: ledger.KindPosted, Letters: 1}}
	if p.Letters != 3 || p.Money != 1 || !p.NeedsApproval || p.First.ID != first || p.Taken != 1 || p.NotReplayable != 1 ||
		!p.Canary || p.Rate != 10 || fmt.Sprint(p.Groups) != fmt.Sprint(want) {
		t.Errorf("%+v", p)
	}
	p, err = m.store.Preview(m.ctx, all(outbox.ActDiscard))
	m.must(err)
	if p.Letters != 4 || p.Taken != 1 || p.NotReplayable != 0 {
		t.Errorf("%+v", p)
	}
	if n := m.text(`SELECT count(*)::text FROM dead_letters WHERE taken`); n != "1" {
		t.Errorf("%s letters are taken", n)
	}
}

// A request takes its letters at once: what dies later isn't among them.
func TestAReplayDoesItsLettersOnce(t *testing.T) {
	m := openMail(t)
	ids := m.dead(3)
	r := m.replayAll("k")
	m.dead(1)
	if r.Status != outbox.ReplayRunning || r.RequestedBy != "ann" || r.DueAt == nil || r.Letters != 3 || r.Money != 0 {
		t.Errorf("%+v", r)
	}
	m.work()
	done := m.stands(r.ID, "done: 3 letters, 3 done, 0 failed, 0 freed, 0 left")
	if got := steps(done); got != "requested by ann, done by system" {
		t.Error(got)
	}
	if got := m.effects(); got != "1 2 3" {
		t.Errorf("effects of %s", got)
	}
	for _, id := range ids {
		if l := m.letter(id); l.Status != outbox.Replayed || l.Taken || *l.Replay != r.ID || l.EndedAt == nil || l.Attempts != outbox.MaxAttempts {
			t.Errorf("%+v", l)
		}
	}
	m.work()
	if got := m.effects(); got != "1 2 3" {
		t.Errorf("effects of %s", got)
	}
	_, _, err := m.store.Request(m.ctx, "ann", "k2", these(outbox.ActReplay, ids[0]))
	m.refused(err, outbox.ErrLetterEnded)
}

// A discarded letter has no effect, and stays.
func TestADiscardDoesNothing(t *testing.T) {
	m := openMail(t)
	id := m.bury("nobody", m.entry(false, "hello"), "")
	r, _, err := m.store.Request(m.ctx, "ann", "k", all(outbox.ActDiscard))
	m.must(err)
	m.work()
	m.stands(r.ID, "done: 1 letters, 1 done, 0 failed, 0 freed, 0 left")
	if l := m.letter(id); l.Status != outbox.Discarded || m.effects() != "" {
		t.Errorf("%+v", l)
	}
}

// What a request names must be there, dead, and free; the first that isn't is named.
func TestARequestIsRefused(t *testing.T) {
	m := openMail(t)
	ids := m.dead(3)
	junk := m.bury("nobody", m.entry(false, "hello"), "")
	_, _, err := m.store.Request(m.ctx, "ann", "k", these(outbox.ActReplay, ids[0]))
	m.must(err)
	m.work()
	_, _, err = m.store.Request(m.ctx, "ann", "k1", these(outbox.ActReplay, ids[1]))
	m.must(err)
	none := uuid.New()
	for i, c := range []struct {
		request outbox.Request
		code    error
	}{
		{these("repair", ids[2]), fault.ErrInvalidRequest},
		{these(outbox.ActReplay), fault.ErrInvalidRequest},
		{outbox.Request{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{}, Letters: ids, Reason: "x"}, fault.ErrInvalidRequest},
		{these(outbox.ActReplay, ids[2], ids[2]), fault.ErrInvalidRequest},
		{these(outbox.ActReplay, make([]uuid.UUID, 1001)...), fault.ErrInvalidRequest},
		{outbox.Request{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{}}, fault.ErrInvalidRequest},
		{outbox.Request{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{}, Reason: "x", Rate: 1001}, fault.ErrInvalidRequest},
		{outbox.Request{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{}, Reason: "x", Rate: -1}, fault.ErrInvalidRequest},
		{outbox.Request{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{Replay: &none}, Reason: "x"}, outbox.ErrReplayNotFound},
		{these(outbox.ActReplay, ids[0], ids[1], ids[2], junk, none), outbox.ErrLetterNotFound},
		{these(outbox.ActReplay, ids[0], ids[1], ids[2], junk), outbox.ErrLetterEnded},
		{these(outbox.ActReplay, ids[1], ids[2], junk), outbox.ErrNotReplayable},
		{these(outbox.ActReplay, ids[1], ids[2]), outbox.ErrLetterTaken},
		{outbox.Request{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{Kind: "none"}, Reason: "x"}, outbox.ErrNothingChosen},
		{outbox.Request{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{Consumer: "nobody"}, Reason: "x"}, outbox.ErrNothingChosen},
	} {
		_, err := m.store.Preview(m.ctx, c.request)
		if !errors.Is(err, c.code) {
			t.Errorf("preview %d: %v, want %v", i, err, c.code)
		}
		_, _, err = m.store.Request(m.ctx, "ann", fmt.Sprint("refused ", i), c.request)
		if !errors.Is(err, c.code) {
			t.Errorf("%d: %v, want %v", i, err, c.code)
		}
	}
	if n := m.text(`SELECT count(*)::text FROM replays`); n != "2" {
		t.Errorf("%s replays: a refusal has left one", n)
	}
}

// A key is one request's or one decision's, and a repeat gets the same replay.
func TestAKeyIsOneRequest(t *testing.T) {
	m := openMail(t)
	m.bury("tickets", m.entry(true, "a payment"), "")
	r := m.replayAll("k")
	again, repeated, err := m.store.Request(m.ctx, "ann", "k", all(outbox.ActReplay))
	if m.must(err); !repeated || again.ID != r.ID {
		t.Errorf("%+v", again)
	}
	for _, other := range []outbox.Request{
		all(outbox.ActDiscard), these(outbox.ActReplay, uuid.New()), {Action: outbox.ActReplay, Filter: &outbox.LetterFilter{}, Reason: "other"},
		{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{}, Reason: "mended", Rate: 3},
		{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{}, Reason: "mended", Canary: new(false)},
		{Action: outbox.ActReplay, Filter: &outbox.LetterFilter{Kind: "x"}, Reason: "mended"},
	} {
		_, _, err := m.store.Request(m.ctx, "ann", "k", other)
		m.refused(err, ledger.ErrIdempotencyMismatch)
	}
	_, _, err = m.store.Stop(m.ctx, "ann", "k", r.ID, "no")
	m.refused(err, ledger.ErrIdempotencyMismatch)
	_, repeated, err = m.store.Approve(m.ctx, "bob", "a", r.ID)
	if m.must(err); repeated {
		t.Error("it was approved before")
	}
	m.work()
	approved, repeated, err := m.store.Approve(m.ctx, "bob", "a", r.ID)
	if m.must(err); !repeated || approved.Status != outbox.ReplayDone {
		t.Errorf("%+v", approved)
	}
	_, _, err = m.store.Reject(m.ctx, "bob", "a", r.ID, "no")
	m.refused(err, ledger.ErrIdempotencyMismatch)
	_, _, err = m.store.Request(m.ctx, "bob", "a", all(outbox.ActReplay))
	m.refused(err, ledger.ErrIdempotencyMismatch)
	if got := m.effects(); got != "1" {
		t.Errorf("effects of %s", got)
	}
}

// Letters about money wait for somebody else, whatever is to be done with them.
func TestMoneyNeedsASecondPerson(t *testing.T) {
	m := openMail(t)
	plain := m.dead(1)[0]
	paid := m.bury("tickets", m.entry(true, "a payment"), "")
	for _, action := range outbox.Actions() {
		key := string(action)
		r, _, err := m.store.Request(m.ctx, "ann", key, all(action))
		if m.must(err); r.Status != outbox.ReplayAwaiting || r.Letters != 2 || r.Money != 1 || r.DueAt != nil {
			t.Fatalf("%+v", r)
		}
		m.work()
		m.stands(r.ID, "awaiting_approval: 2 letters, 0 done, 0 failed, 0 freed, 2 left")
		_, _, err = m.store.Approve(m.ctx, "ann", key+" mine", r.ID)
		m.refused(err, fault.ErrSamePerson)
		_, _, err = m.store.Reject(m.ctx, "ann", key+" mine", r.ID, "no")
		m.refused(err, fault.ErrSamePerson)
		_, _, err = m.store.Resume(m.ctx, "bob", key+" resume", r.ID)
		m.refused(err, outbox.ErrReplayStatus)
		_, _, err = m.store.Stop(m.ctx, "bob", key+" stop", r.ID, "no")
		m.refused(err, outbox.ErrReplayStatus)
		_, _, err = m.store.Request(m.ctx, "cid", key+" other", these(action, plain))
		m.refused(err, outbox.ErrLetterTaken)
		r, _, err = m.store.Reject(m.ctx, "bob", key+" reject", r.ID, "not yet")
		if m.must(err); r.DecidedBy != "bob" || r.Note != "rejected by bob: not yet" {
			t.Errorf("%+v", r)
		}
		m.work()
		m.stands(r.ID, "rejected: 2 letters, 0 done, 0 failed, 2 freed, 0 left")
		_, _, err = m.store.Approve(m.ctx, "cid", key+" late", r.ID)
		m.refused(err, outbox.ErrReplayStatus)
	}
	if l := m.letter(paid); l.Status != outbox.Dead || l.Taken {
		t.Errorf("%+v", l)
	}
	r := m.replayAll("again")
	r, _, err := m.store.Approve(m.ctx, "bob", "approve", r.ID)
	if m.must(err); r.Status != outbox.ReplayRunning || r.DecidedBy != "bob" {
		t.Errorf("%+v", r)
	}
	m.work()
	r = m.stands(r.ID, "done: 2 letters, 2 done, 0 failed, 0 freed, 0 left")
	if got := steps(r); got != "requested by ann, approved by bob, done by system" {
		t.Error(got)
	}
}

// A stopped replay keeps its letters: it's resumed, or another request takes them over.
func TestAStoppedReplayKeepsItsLetters(t *testing.T) {
	m := openMail(t)
	ids := m.dead(25)
	request := all(outbox.ActReplay)
	request.Rate = 5
	r, _, err := m.store.Request(m.ctx, "ann", "k", request)
	m.must(err)
	const did = 6 // that are due at once: those of a second, and the next one
	m.redo = m.puttingOff(did)
	m.work()
	_, _, err = m.store.Stop(m.ctx, "bob", "stop", r.ID, "")
	m.refused(err, fault.ErrInvalidRequest)
	r, _, err = m.store.Stop(m.ctx, "bob", "stop", r.ID, "too hot")
	if m.must(err); r.Status != outbox.ReplayStopped || r.Note != "stopped by bob: too hot" || r.DueAt != nil {
		t.Errorf("%+v", r)
	}
	if r.Done != did {
		t.Errorf("%d done in a second, at 5 a second", r.Done)
	}
	m.work()
	if again := m.stands(r.ID, fmt.Sprintf("stopped: 25 letters, %d done, 0 failed, 0 freed, %d left", did, 25-did)); again.DueAt != nil {
		t.Errorf("%+v", again)
	}
	_, _, err = m.store.Request(m.ctx, "cid", "other", these(outbox.ActDiscard, ids[24]))
	m.refused(err, outbox.ErrLetterTaken)
	_, _, err = m.store.Request(m.ctx, "cid", "others", all(outbox.ActDiscard))
	m.refused(err, outbox.ErrNothingChosen)
	_, _, err = m.store.Resume(m.ctx, "cid", "resume", r.ID)
	m.must(err)
	_, _, err = m.store.Request(m.ctx, "cid", "running", outbox.Request{Action: outbox.ActDiscard, Filter: &outbox.LetterFilter{Replay: &r.ID}, Reason: "x"})
	m.refused(err, outbox.ErrNothingChosen)
	_, _, err = m.store.Stop(m.ctx, "bob", "stop again", r.ID, "still")
	m.must(err)

	p, err := m.store.Preview(m.ctx, outbox.Request{Action: outbox.ActDiscard, Filter: &outbox.LetterFilter{Replay: &r.ID}, Reason: "x"})
	if m.must(err); p.Letters != 25-did || p.Taken != 0 {
		t.Errorf("%+v", p)
	}
	rest, _, err := m.store.Request(m.ctx, "cid", "rest", outbox.Request{Action: outbox.ActDiscard, Filter: &outbox.LetterFilter{Replay: &r.ID}, Reason: "x", Rate: 1000})
	m.must(err)
	over := m.stands(r.ID, fmt.Sprintf("done: 25 letters, %d done, 0 failed, %d freed, 0 left", did, 25-did))
	if got := steps(over); got != "requested by ann, stopped by bob, resumed by cid, stopped by bob, taken_over by cid" {
		t.Error(got)
	}
	m.work()
	m.stands(rest.ID, fmt.Sprintf("done: %d letters, %d done, 0 failed, 0 freed, 0 left", 25-did, 25-did))
}

// What a request takes over is what it selects of the rest; the other letters stay with the
// stopped replay.
func TestAPartIsTakenOver(t *testing.T) {
	m := openMail(t)
	m.dead(2)
	m.bury("tickets", m.entry(false, "hello"), "x")
	r := m.replayAll("k")
	_, _, err := m.store.Stop(m.ctx, "bob", "stop", r.ID, "too hot")
	m.must(err)
	_, _, err = m.store.Request(m.ctx, "cid", "rest", outbox.Request{Action: outbox.ActDiscard,
		Filter: &outbox.LetterFilter{Replay: &r.ID, Target: "x"}, Reason: "x"})
	m.must(err)
	m.stands(r.ID, "stopped: 3 letters, 0 done, 0 failed, 1 freed, 2 left")
	_, _, err = m.store.Resume(m.ctx, "bob", "resume", r.ID)
	m.must(err)
	m.work()
	m.stands(r.ID, "done: 3 letters, 2 done, 0 failed, 1 freed, 0 left")
}

// Replays are listed, the newest first.
func TestReplaysAreListed(t *testing.T) {
	m := openMail(t)
	ids := m.dead(3)
	var made []outbox.Replay
	for i, id := range ids {
		action := outbox.Actions()[i%2]
		r, _, err := m.store.Request(m.ctx, "ann", fmt.Sprint(i), these(action, id))
		m.must(err)
		made = append([]outbox.Replay{r}, made...)
	}
	page := outbox.ReplayPage{Limit: 1}
	for i := range 4 {
		found, err := m.store.Replays(m.ctx, page)
		m.must(err)
		if i == 3 != (len(found) == 0) || i < 3 && found[0].ID != made[i].ID {
			t.Fatalf("page %d: %+v", i, found)
		}
		if i < 3 {
			page.Before, page.Last = found[0].RequestedAt, found[0].ID
		}
	}
	found, err := m.store.Replays(m.ctx, outbox.ReplayPage{Action: outbox.ActDiscard, Status: outbox.ReplayRunning, Limit: 9})
	if m.must(err); len(found) != 1 || found[0].ID != made[1].ID {
		t.Errorf("%+v", found)
	}
	_, err = m.store.Replay(m.ctx, uuid.New())
	m.refused(err, outbox.ErrReplayNotFound)
	_, _, err = m.store.Approve(m.ctx, "bob", "k", uuid.New())
	m.refused(err, outbox.ErrReplayNotFound)
}
