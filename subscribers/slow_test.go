package subscribers_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/subscribers"
)

// A subscriber that hangs costs a few calls and holds up nobody.
func TestHangs(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	release := make(chan struct{})
	slow := receive(t, func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-release:
		case <-q.Context().Done():
		}
	})
	slowMade := d.subscribe(slow, subscribers.Spec{Kinds: []string{"hold.placed"}})
	fast := receive(t, nil)
	fastMade := d.subscribe(fast, subscribers.Spec{Kinds: []string{"hold.placed"}})
	begun := time.Now()
	d.work(d.Store)
	const n = 60
	for range n {
		d.hold("gig", "ann-"+d.key())
	}
	d.fanOut()
	d.await(fastMade.ID, fmt.Sprintf("%d delivered", n))
	if got := d.statuses(slowMade.ID); got != fmt.Sprintf("%d pending", n) {
		t.Errorf("the slow one has %s", got)
	}
	calls := len(slow.webhooks())
	if ended := int(time.Since(begun) / subscribers.CallTimeout); calls > 2+ended {
		t.Errorf("%d calls to the slow one, of which %d can have ended", calls, ended)
	}
	close(release)
	d.await(slowMade.ID, fmt.Sprintf("%d delivered", n))
}

// Subscribers that take their time keep nobody else from being served: neither those that
// don't answer yet, nor those that say that all is well in answers without an end.
func TestSlowOnesLeaveRoom(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	var came atomic.Int32
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		came.Add(1)
		select {
		case <-release:
		case <-q.Context().Done():
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-q.Context().Done()
	}))
	t.Cleanup(slow.Close)
	const many, n = 150, 20
	for range many {
		d.subscribe(nil, subscribers.Spec{URL: slow.URL, Kinds: []string{"hold.placed"}})
	}
	told := func() {
		t.Helper()
		for range n {
			d.hold("gig", "ann-"+d.key())
		}
		d.fanOut()
	}
	told()
	begun := time.Now()
	d.work(d.Store)
	pgtest.Until(t, "each slow one is called", func() bool { return came.Load() >= many })
	r := receive(t, nil)
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	told()
	d.await(made.ID, fmt.Sprintf("%d delivered", n))
	got := came.Load()
	if ended := int32(time.Since(begun) / subscribers.CallTimeout); got > many*(1+ended) { // one at a time
		t.Errorf("%d calls to %d that aren't known yet, of which %d each can have ended", got, many, ended)
	}
	close(release)
	pgtest.Until(t, "slow ones are called again", func() bool { return came.Load() > got })
	told()
	d.await(made.ID, fmt.Sprintf("%d delivered", 2*n))
	if left := column[int](d, `SELECT count(*) FROM deliveries WHERE status = 'pending'`)[0]; left < many {
		t.Errorf("it had to wait until the slow ones had all but %d", left)
	}
}

// An answer's status counts, however its body hangs; what came of that is kept.
func TestBodyHangs(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, "taken")
		_ = http.NewResponseController(w).Flush()
		<-q.Context().Done()
	})
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	d.work(d.Store)
	d.hold("gig", "ann")
	d.fanOut()
	d.await(made.ID, "1 delivered")
	got := column[string](d, `SELECT response FROM delivery_attempts`)[0]
	if took := column[int64](d, `SELECT milliseconds FROM delivery_attempts`)[0]; got != "taken" || took >= subscribers.CallTimeout.Milliseconds() {
		t.Errorf("%q after %d ms", got, took)
	}
}

// A call that hangs is given up at its deadline, and is a failure.
func TestDeadline(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	made := d.subscribe(r, subscribers.Spec{})
	d.work(d.Store)
	d.hold("gig", "ann")
	d.fanOut()
	d.attempted(made.ID, 1)
	got := column[string](d, `SELECT error FROM delivery_attempts`)[0]
	if took := column[int64](d, `SELECT milliseconds FROM delivery_attempts`)[0]; got != "no answer within 15s" || took < 15_000 {
		t.Errorf("%q after %d ms", got, took)
	}
}

// While the breaker is open nothing is attempted, so no attempt is lost; then one call at a
// time finds out whether the subscriber is well again.
func TestBreaker(t *testing.T) {
	t.Parallel()
	d := open(t, func(o *subscribers.Options) { o.Cooldown = time.Hour })
	r := receive(t, status(500))
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	other := receive(t, nil)
	otherMade := d.subscribe(other, subscribers.Spec{Kinds: []string{"hold.placed"}})
	stop := d.work(d.Store)
	const n = 40
	for range n {
		d.hold("gig", "ann-"+d.key())
	}
	d.fanOut()
	d.attempted(made.ID, subscribers.MaxFailures)
	d.await(otherMade.ID, fmt.Sprintf("%d delivered", n))
	d.passTime()
	d.hold("gig", "bob")
	d.fanOut()
	d.await(otherMade.ID, fmt.Sprintf("%d delivered", n+1))
	if got := d.attempts(made.ID); got > subscribers.MaxFailures+1 { // two are under way at first
		t.Errorf("%d attempts with the breaker open", got)
	}
	if got := column[int](d, `SELECT max(attempts) FROM deliveries WHERE subscription_id = $1`, made.ID)[0]; got > 1 {
		t.Errorf("one delivery lost %d attempts", got)
	}
	stop()
	r.answers(nil)
	d.passTime()
	d.work(d.process(nil)) // another process knows nothing of it
	d.await(made.ID, fmt.Sprintf("%d delivered", n+1))
}

// What a process was doing when it died is done by another under the same id, once its lease
// has run out; what it then still records changes nothing.
func TestCrashBetweenCallAndRecord(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	came, release := make(chan struct{}, 10), make(chan struct{})
	r := receive(t, func(http.ResponseWriter, *http.Request) { came <- struct{}{}; <-release })
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	d.work(d.Store)
	placed := d.hold("gig", "ann")
	d.fanOut()
	<-came
	r.answers(nil)
	d.passTime() // to the lease's end
	d.await(made.ID, "1 delivered")
	close(release)
	pgtest.Until(t, "the first call ends", func() bool { return strings.Contains(d.log.String(), "couldn't be recorded") })
	var ids []string
	for _, w := range r.webhooks() {
		ids = append(ids, w.id)
	}
	id := subscribers.WebhookID(made.ID, 1, placed.Seq)
	if !slices.Equal(ids, []string{id, id}) || d.attempts(made.ID) != 1 {
		t.Errorf("came as %v, %d attempts are recorded", ids, d.attempts(made.ID))
	}
}

// A worker that's told to stop gives calls up that don't end, and what came of them isn't
// known: they're made again.
func TestStop(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	came := make(chan struct{}, 10)
	r := receive(t, func(_ http.ResponseWriter, q *http.Request) { came <- struct{}{}; <-q.Context().Done() })
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	stop := d.work(d.Store)
	d.hold("gig", "ann")
	d.fanOut()
	<-came
	stop()
	if got := d.statuses(made.ID); got != "1 pending" || d.attempts(made.ID) != 0 {
		t.Errorf("stopped: %s, %d attempts", got, d.attempts(made.ID))
	}
	r.answers(nil)
	d.passTime()
	d.work(d.process(nil))
	d.await(made.ID, "1 delivered")
}

// Connections are used again, also after failures and long answers.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	var mu atomic.Int32
	r := &receiver{t: t, answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("y", 30_000)) }}
	r.Server = httptest.NewUnstartedServer(r.handler())
	r.Config.ConnState = connections(&mu)
	r.Start()
	t.Cleanup(r.Close)
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	d.work(d.Store)
	for i := range 30 {
		d.hold("gig", "ann-"+d.key())
		d.fanOut()
		d.await(made.ID, fmt.Sprintf("%d delivered", i+1))
	}
	// One whose answer couldn't be read to its end in time can't be used again.
	cut := column[int32](d, `SELECT count(*) FROM delivery_attempts WHERE milliseconds >= $1`, subscribers.BodyTimeout.Milliseconds())[0]
	if n := mu.Load(); n > 2+cut {
		t.Errorf("%d connections for 30 calls, one at a time, of which %d were cut off", n, cut)
	}
}
