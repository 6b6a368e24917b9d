package outbox_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// A process stops between reading entries and publishing them, for longer than its lease.
// The others have published meanwhile: the stream refuses it.
func TestAPausedRelayIsFenced(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 5)
	_, bus := w.busTo(jetstream.Options{})
	reached, goOn, answer := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var times int
	slow := &hooked{Bus: bus, onPublish: func(ctx context.Context, after uint64, events []outbox.Event, publish publishing) (uint64, error) {
		if times++; times > 1 {
			return publish(ctx, after, events)
		}
		close(reached)
		<-goOn
		place, err := publish(ctx, after, events)
		answer <- err
		return place, err
	}}
	w.running(outbox.RelayOptions{Bus: slow, Pool: w.anotherPool()})
	<-reached
	w.write(901, 4)
	var seen tally
	r, _ := w.running(outbox.RelayOptions{Observe: seen.add})
	w.full() // after the paused one's lease has run out
	close(goOn)
	if err := <-answer; err != outbox.ErrFenced {
		t.Errorf("the paused relay was told %v", err)
	}
	w.write(901, 3)
	r.Hint(901)
	w.full()
	w.complete()
	w.published(r)
}

// A process stops after publishing, before it moves the cursor, for longer than its lease:
// the cursor is another's.
func TestARelayThatHasLostItsLeaseMovesNoCursor(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 5)
	_, bus := w.busTo(jetstream.Options{})
	reached, goOn := make(chan struct{}), make(chan struct{})
	var times int
	slow := &hooked{Bus: bus, onPublish: func(ctx context.Context, after uint64, events []outbox.Event, publish publishing) (uint64, error) {
		place, err := publish(ctx, after, events)
		if times++; times == 1 {
			close(reached)
			<-goOn
		}
		return place, err
	}}
	_, stop := w.running(outbox.RelayOptions{Bus: slow, Pool: w.anotherPool()})
	<-reached
	w.write(901, 4)
	r, _ := w.running(outbox.RelayOptions{})
	w.full()
	w.published(r)
	was := w.cursor(901)
	close(goOn)
	stop()
	if now := w.cursor(901); now != was || now.Seq != 9 {
		t.Errorf("the cursor went from %+v to %+v", was, now)
	}
	w.complete()
}

// Rows of processes that ended without a word: whose lease is, and whose was, and those
// whose lease has an end that none has, because the clock was put back.
func TestLeasesOfDeadProcesses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left  string        // of the lease
		after time.Duration // not before it's taken over; 0: by the first look
	}{
		"just claimed":           {"5 seconds", 4900 * time.Millisecond},
		"about to end":           {"0.5 seconds", 400 * time.Millisecond},
		"ended":                  {"-1 second", 0},
		"ended long ago":         {"-10 years", 0},
		"the clock was put back": {"1 hour", 0},
		"it was put back by far": {"10 years", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openRelaying(t, jetstream.Options{})
			w.write(901, 3)
			var began time.Time
			w.must(w.owner.QueryRow(t.Context(), `INSERT INTO relays (journal_id, holder, held_until)
				VALUES (901, $1, clock_timestamp() + $2::interval) RETURNING clock_timestamp()`, uuid.New(), c.left).Scan(&began))
			// When it's free from the start the first look finds it: there's no other before it's published.
			looks, goOn := 0, make(chan struct{})
			w.running(outbox.RelayOptions{Bus: &hooked{Bus: w.bus, onSeen: func(uint64) {
				if looks++; looks > 1 && c.after == 0 {
					<-goOn
				}
			}}})
			further := sync.OnceFunc(func() { close(goOn) })
			t.Cleanup(further)
			w.full()
			further()
			w.complete()
			// The row says when it was taken over: a lease has 5 seconds.
			var taken time.Time
			pgtest.Until(t, "the cursor is moved", func() bool { return w.cursor(901).Seq == 3 })
			w.must(w.owner.QueryRow(t.Context(), `SELECT held_until - interval '5 seconds' FROM relays`).Scan(&taken))
			if took := taken.Sub(began); took < c.after {
				t.Errorf("it was taken over after %v", took)
			}
		})
	}
}

// What fails in a process that has lost its lease is no trouble of the journal: another
// publishes it.
func TestATroubleOfWhoHasLostTheLease(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 5)
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow := &hooked{Bus: w.bus, onPublish: func(context.Context, uint64, []outbox.Event, publishing) (uint64, error) {
		once.Do(func() { close(reached); <-goOn })
		return 0, errCut
	}}
	_, stop := w.running(outbox.RelayOptions{Bus: slow, Pool: w.anotherPool()})
	<-reached
	w.tamper(`UPDATE relays SET held_until = clock_timestamp() - interval '1 second'`)
	r, _ := w.running(outbox.RelayOptions{})
	w.full()
	w.published(r)
	close(goOn)
	w.logged("a journal isn't published")
	stop()
	w.calm(r)
	w.complete()
}

// A process needn't wait for its own lease when another has written.
func TestALeaseOfOnesOwn(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	w.write(901, 3)
	r, _ := w.running(outbox.RelayOptions{})
	w.full()
	w.published(r)
	longer := func() { w.tamper(`UPDATE relays SET held_until = clock_timestamp() + interval '9 seconds'`) }
	longer()
	w.write(901, 1)
	pgtest.Until(t, "it's published, though the lease doesn't run out", func() bool {
		longer()
		return w.messages() == 4
	})
	w.published(r)
	w.complete()
}
