package subscribers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/subscribers"
)

// What a subscription is for is what its subscriber gets, in the order of the journal, with
// the entry's data.
func TestWhoIsToldOfWhat(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	d.event("other")
	d.hold("gig", "early") // nobody is told of it
	subscribe := func(spec subscribers.Spec) (*receiver, subscribers.Issued) {
		r := receive(t, nil)
		return r, d.subscribe(r, spec)
	}
	all, allMade := subscribe(subscribers.Spec{})
	gig, gigMade := subscribe(subscribers.Spec{Event: "gig"})
	held, heldMade := subscribe(subscribers.Spec{Kinds: []string{"hold.*", "hold.placed"}})
	_, noneMade := subscribe(subscribers.Spec{Kinds: []string{"hold", "order.*", "hold.placed.*", "hol.*"}})
	_, offMade := subscribe(subscribers.Spec{})
	if _, err := d.Disable(d.ctx, "tester", "off", offMade.ID, "not now"); err != nil {
		t.Fatal(err)
	}
	d.work(d.Store)
	placed := d.hold("gig", "ann")
	d.hold("other", "ann")
	if _, err := d.Events.Split(d.ctx, "tester", "split", "gig", 2, "busy", nil, false); err != nil {
		t.Fatal(err)
	}
	lanes, err := d.Events.Lanes(d.ctx, "gig")
	if err != nil || len(lanes) != 2 {
		t.Fatal(lanes, err)
	}
	d.fanOut()
	d.fanOut() // an entry that comes again makes no delivery
	total := column[int](d, `SELECT count(*) FROM entries WHERE at >= $1`, allMade.CreatedAt)[0]
	ofGig := column[int](d, `SELECT count(*) FROM entries WHERE at >= $1 AND journal_id = ANY ($2)`, allMade.CreatedAt, []int64{int64(lanes[0]), int64(lanes[1])})[0]
	if n := column[int](d, `SELECT count(*) FROM deliveries WHERE subscription_id = $1 AND journal_id = $2`, gigMade.ID, int64(lanes[1]))[0]; n == 0 {
		t.Error("nothing of the lane that came later")
	}
	d.await(allMade.ID, fmt.Sprintf("%d delivered", total))
	d.await(gigMade.ID, fmt.Sprintf("%d delivered", ofGig))
	d.await(heldMade.ID, "2 delivered")
	d.await(noneMade.ID, "none")
	d.await(offMade.ID, "none")
	if n := len(all.webhooks()); n != total || len(gig.webhooks()) != ofGig {
		t.Errorf("%d and %d came, want %d and %d", n, len(gig.webhooks()), total, ofGig)
	}
	i := slices.IndexFunc(held.webhooks(), func(w webhook) bool { return w.event.Journal == lanes[0] })
	w := held.webhooks()[i]
	if w.event.Seq != placed.Seq || w.event.Kind != "hold.placed" || string(w.event.Data) != string(placed.Data) ||
		w.id != subscribers.WebhookID(heldMade.ID, lanes[0], placed.Seq) || strings.Contains(w.id, ".") {
		t.Errorf("%s is %+v, the entry is %+v", w.id, w.event, placed)
	}
}

// A subscriber gets a journal's entries in their order, but for those that it's called with
// at one time.
func TestOrder(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, nil)
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	for range 40 {
		d.hold("gig", "ann-"+d.key())
	}
	d.fanOut()
	if due := column[int](d, `SELECT count(DISTINCT due_at) FROM deliveries`)[0]; due != 1 {
		t.Errorf("what came together is due at %d times", due)
	}
	leased := column[int64](d, `SELECT seq FROM deliveries WHERE subscription_id = $1 ORDER BY due_at, journal_id, seq`, made.ID)
	if !slices.IsSorted(leased) {
		t.Errorf("the queue is %v", leased)
	}
	turn := sync.NewCond(new(sync.Mutex))
	answered := 0 // each call is answered in its turn
	r.answers(func(w http.ResponseWriter, q *http.Request) {
		id := q.Header.Get("Webhook-Id")
		place := slices.IndexFunc(leased, func(seq int64) bool { return strings.HasSuffix(id, fmt.Sprintf("-%d", seq)) })
		turn.L.Lock()
		defer turn.L.Unlock()
		if place >= answered+subscribers.MaxCallsEach {
			t.Errorf("webhook %d came when %d were answered", place, answered)
		}
		for answered < place {
			turn.Wait()
		}
		answered = max(answered, place+1)
		turn.Broadcast()
		w.WriteHeader(http.StatusNoContent)
	})
	d.work(d.Store)
	d.await(made.ID, "40 delivered")
}

// All attempts of a delivery have one id and are made by the schedule; the last ends it
// with a dead letter. Then it can be done again, by a schedule that begins anew.
func TestAnswers500ForADay(t *testing.T) {
	t.Parallel()
	outcomes, sent := make(map[subscribers.Outcome]int), make(chan subscribers.Outcome)
	d := open(t, func(o *subscribers.Options) {
		o.Observe = func(s subscribers.Sent) { // until it's read there's no other attempt
			select {
			case sent <- s.Outcome:
			case <-t.Context().Done():
			}
		}
	})
	r := receive(t, status(500))
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	d.work(d.Store)
	placed := d.hold("gig", "ann")
	d.fanOut()
	want := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	for n, pause := range want {
		d.attempted(made.ID, n+1)
		if since, left := d.next(); left > pause*11/10 || since < pause {
			t.Errorf("after attempt %d: the next in %s, %s after it began, want about %s", n+1, left, since, pause)
		}
		d.passTime()
		outcomes[<-sent]++
	}
	d.await(made.ID, "1 dead")
	outcomes[<-sent]++
	ids := make(map[string]int)
	for _, w := range r.webhooks() {
		ids[w.id]++
	}
	if id := subscribers.WebhookID(made.ID, 1, placed.Seq); len(ids) != 1 || ids[id] != subscribers.Tries {
		t.Errorf("came as %v", ids)
	}
	letter := column[string](d, `SELECT concat_ws(' ', consumer, journal_id, seq, target, kind, attempts, status, reason) FROM dead_letters`)
	if len(letter) != 1 || letter[0] != fmt.Sprintf("webhooks 1 %d %s hold.placed 10 dead the answer was 500", placed.Seq, made.ID) {
		t.Errorf("dead letters: %q", letter)
	}
	if outcomes[subscribers.OutcomeFailed] != 9 || outcomes[subscribers.OutcomeDead] != 1 {
		t.Errorf("observed %v", outcomes)
	}

	d.redo(d.Store, outbox.Letter{Target: made.ID.String(), Event: outbox.Event{Journal: 1, Seq: placed.Seq}}, nil)
	d.attempted(made.ID, 11)
	d.await(made.ID, "1 pending")
	if _, left := d.next(); left > 6*time.Second {
		t.Errorf("done again, the next attempt is in %s", left)
	}
	r.answers(nil)
	d.passTime()
	<-sent
	d.await(made.ID, "1 delivered")
	<-sent
	d.redo(d.Store, outbox.Letter{Target: made.ID.String(), Event: outbox.Event{Journal: 1, Seq: placed.Seq}}, nil)
	d.await(made.ID, "1 delivered") // what isn't dead stays
	got, err := d.Delivery(d.ctx, made.ID, 1, placed.Seq)
	if err != nil || got.Attempts != 12 || len(got.Log) != 12 || got.Log[0].StatusCode != 500 || got.Log[11].StatusCode != 204 || got.EndedAt == nil {
		t.Errorf("delivery %+v: %v", got, err)
	}
}

// next tells when the only delivery is due: how long after its last attempt began, and from
// now on.
func (d *desk) next() (since, left time.Duration) {
	d.Helper()
	return column[time.Duration](d, `SELECT due_at - (SELECT max(at) FROM delivery_attempts) FROM deliveries`)[0],
		column[time.Duration](d, `SELECT due_at - clock_timestamp() FROM deliveries`)[0]
}

// Redirects aren't followed, wherever they lead.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for _, code := range []int{301, 302, 303, 307, 308} {
		var led atomic.Int32
		inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led.Add(1) }))
		t.Cleanup(inner.Close)
		d := open(t, nil)
		r := receive(t, status(code, "Location", inner.URL))
		made := d.subscribe(r, subscribers.Spec{})
		d.work(d.Store)
		d.hold("gig", "ann")
		d.fanOut()
		d.attempted(made.ID, 1)
		if led.Load() > 0 || d.statuses(made.ID) != "1 pending" {
			t.Errorf("%d: followed %d times, %s", code, led.Load(), d.statuses(made.ID))
		}
		if got := column[string](d, `SELECT error FROM delivery_attempts`)[0]; got != fmt.Sprintf("the answer was %d: redirects aren't followed", code) {
			t.Errorf("%d: %q", code, got)
		}
	}
}

// An answer that doesn't end isn't read to its end, and its beginning is kept without what
// a text can't have.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	var written atomic.Int64
	cut := make(chan struct{}, 100)
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat("x\x00\xff\x1b", 1<<12))
		for {
			n, err := w.Write(chunk)
			written.Add(int64(n))
			if err != nil {
				cut <- struct{}{}
				return
			}
		}
	})
	made := d.subscribe(r, subscribers.Spec{})
	d.work(d.Store)
	d.hold("gig", "ann")
	d.fanOut()
	d.await(made.ID, "1 delivered")
	<-cut
	const buffers = 16 << 20 // what the sockets between may have taken
	if n := written.Load(); n > subscribers.MaxAnswer+buffers {
		t.Errorf("%d bytes were taken", n)
	}
	if got := column[string](d, `SELECT response FROM delivery_attempts`)[0]; got != strings.Repeat("x", 256) {
		t.Errorf("kept %q", got)
	}
}

// A subscriber that's gone is asked no more, and what's pending for it is dropped; when it's
// enabled again, what was dropped can be resent.
func TestGone(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, status(410))
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	for range 5 {
		d.hold("gig", "ann-"+d.key())
	}
	d.fanOut()
	d.work(d.Store)
	d.await(made.ID, "5 dropped")
	sub, err := d.Get(d.ctx, made.ID)
	if err != nil || sub.Status != subscribers.Disabled || !strings.Contains(sub.Reason, "410") || sub.ChangedBy != ledger.SystemPrincipal {
		t.Errorf("subscription %+v: %v", sub, err)
	}
	came := len(r.webhooks())
	d.hold("gig", "bob")
	d.fanOut()
	if d.statuses(made.ID) != "5 dropped" {
		t.Errorf("disabled: %s", d.statuses(made.ID))
	}
	if n := len(r.webhooks()); n != came || n > 2 { // two are under way at first
		t.Errorf("%d came, then %d", came, n)
	}
	r.answers(nil)
	if _, err := d.Enable(d.ctx, "tester", "on", made.ID); err != nil {
		t.Fatal(err)
	}
	done, _, err := d.Resend(d.ctx, "tester", "again", made.ID, subscribers.Resend{}, false)
	if err != nil || done.Deliveries != 5 {
		t.Errorf("resent %+v: %v", done, err)
	}
	d.await(made.ID, "5 delivered") // and not bob's, which happened while it was disabled
}

// A fan-out that hasn't seen that the subscription was disabled leaves a delivery, which is
// dropped all the same.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, nil)
	made := d.subscribe(r, subscribers.Spec{})
	d.hold("gig", "ann")
	d.fanOut()
	d.exec(`UPDATE subscriptions SET status = 'disabled', reason = 'x'`)
	d.work(d.Store)
	d.await(made.ID, "1 dropped")
	if len(r.webhooks()) > 0 {
		t.Error("a disabled subscriber was told")
	}
}

// Whoever asks to be left alone for a while is: the delivery waits as long as it's asked,
// within a day, but never shorter than by the schedule.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code  int
		after string
		want  time.Duration
	}{
		{429, "600", 10 * time.Minute},
		{503, "600", 10 * time.Minute},
		{503, "1", 5 * time.Second},
		{429, "999999999", 24 * time.Hour},
		{429, "-7", 5 * time.Second},
		{429, "soon", 5 * time.Second},
		{429, "in an hour", time.Hour},
		{500, "600", 5 * time.Second}, // it has no meaning there
	} {
		looked := make(chan struct{})
		d := open(t, func(o *subscribers.Options) {
			o.Observe = func(subscribers.Sent) { // until then there's no other attempt
				select {
				case <-looked:
				case <-t.Context().Done():
				}
			}
		})
		r := receive(t, func(w http.ResponseWriter, q *http.Request) {
			after := c.after
			if after == "in an hour" {
				after = time.Now().Add(time.Hour + time.Second).UTC().Format(http.TimeFormat) // without fractions
			}
			status(c.code, "Retry-After", after)(w, q)
		})
		made := d.subscribe(r, subscribers.Spec{})
		d.work(d.Store)
		d.hold("gig", "ann")
		d.fanOut()
		d.attempted(made.ID, 1)
		if since, left := d.next(); left > c.want*11/10+time.Second || since < c.want {
			t.Errorf("%d with %q: the next in %s, %s after the call began, want %s", c.code, c.after, left, since, c.want)
		}
		close(looked)
		d.passTime() // but the subscriber is left alone: its other deliveries wait too, and lose no attempt
		d.hold("gig", "bob")
		d.fanOut()
		if c.code != 500 && c.want > time.Minute {
			other := receive(t, nil)
			after := d.subscribe(other, subscribers.Spec{})
			d.hold("gig", "eve")
			d.fanOut()
			d.await(after.ID, "1 delivered")
			if n := d.attempts(made.ID); n != 1 {
				t.Errorf("%d attempts while it rests", n)
			}
		}
	}
}

// Two processes that send at the same time send each webhook once.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, nil)
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	d.work(d.Store)
	d.work(d.process(nil))
	const n = 150
	for range n {
		d.hold("gig", "ann-"+d.key())
	}
	d.fanOut()
	d.await(made.ID, fmt.Sprintf("%d delivered", n))
	seen := make(map[string]bool)
	for _, w := range r.webhooks() {
		if seen[w.id] {
			t.Errorf("%s came twice", w.id)
		}
		seen[w.id] = true
	}
	if len(seen) != n {
		t.Errorf("%d came", len(seen))
	}
}
