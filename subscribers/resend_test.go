package subscribers_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/subscribers"
)

// redo does what the replay of a dead letter does.
func (d *desk) redo(s *subscribers.Store, l outbox.Letter, want error) {
	d.Helper()
	err := pgx.BeginFunc(d.ctx, s.Pool, func(tx pgx.Tx) error { return s.Redo(d.ctx, tx, l) })
	if !errors.Is(err, want) {
		d.Errorf("redo of %v: %v, want %v", l.Event, err, want)
	}
}

// connections counts those that are opened.
func connections(n *atomic.Int32) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
}

func TestResend(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, nil)
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	stop := d.work(d.Store)
	var placed []ledger.Seq
	for range 4 {
		placed = append(placed, d.hold("gig", "ann-"+d.key()).Seq)
	}
	d.fanOut()
	d.await(made.ID, "4 delivered")
	stop()
	count := func(r subscribers.Resend) int64 {
		t.Helper()
		done, _, err := d.Resend(d.ctx, "tester", "", made.ID, r, true)
		if err != nil {
			t.Error(err)
		}
		return done.Deliveries
	}
	now := time.Now()
	for want, r := range map[int64]subscribers.Resend{
		0: {},
		4: {Status: []subscribers.DeliveryStatus{subscribers.Delivered}, Since: new(now.Add(-time.Hour)), Until: new(now.Add(time.Hour))},
		1: {Journal: new(ledger.JournalID(1)), Seq: new(placed[1])},
	} {
		if got := count(r); got != want {
			t.Errorf("%+v: %d would be resent, want %d", r, got, want)
		}
	}
	if got := count(subscribers.Resend{Status: []subscribers.DeliveryStatus{subscribers.Delivered}, Since: new(now.Add(time.Hour))}); got != 0 {
		t.Errorf("%d are from the future", got)
	}
	if d.statuses(made.ID) != "4 delivered" {
		t.Error("a dry run has resent")
	}

	one := subscribers.Resend{Journal: new(ledger.JournalID(1)), Seq: new(placed[1])}
	for range 2 { // a repeat does nothing, also when it has been delivered again
		done, _, err := d.Resend(d.ctx, "tester", "k", made.ID, one, false)
		if err != nil || done.Deliveries != 1 {
			t.Errorf("resent %+v: %v", done, err)
		}
		stop := d.work(d.process(nil))
		d.await(made.ID, "4 delivered")
		stop()
	}
	ids := make(map[string]int)
	for _, w := range r.webhooks() {
		ids[w.id]++
	}
	if len(ids) != 4 || ids[subscribers.WebhookID(made.ID, 1, placed[1])] != 2 {
		t.Errorf("came as %v", ids)
	}
}

func TestResendsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	made := d.subscribe(nil, subscribers.Spec{URL: "http://example.com"})
	for name, c := range map[string]struct {
		id   uuid.UUID
		r    subscribers.Resend
		want *fault.Def
	}{
		"half a name":      {made.ID, subscribers.Resend{Seq: new(ledger.Seq(3))}, fault.ErrInvalidRequest},
		"name and filter":  {made.ID, subscribers.Resend{Seq: new(ledger.Seq(3)), Journal: new(ledger.JournalID(1)), Since: new(time.Now())}, fault.ErrInvalidRequest},
		"unknown status":   {made.ID, subscribers.Resend{Status: []subscribers.DeliveryStatus{"lost"}}, fault.ErrInvalidRequest},
		"no subscription":  {uuid.New(), subscribers.Resend{}, subscribers.ErrSubscriptionNotFound},
		"no such delivery": {made.ID, subscribers.Resend{Seq: new(ledger.Seq(3)), Journal: new(ledger.JournalID(1))}, subscribers.ErrDeliveryNotFound},
	} {
		for _, dry := range []bool{true, false} {
			if _, _, err := d.Resend(d.ctx, "tester", "k", c.id, c.r, dry); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	d.redo(d.Store, outbox.Letter{Target: made.ID.String(), Event: outbox.Event{Journal: 1, Seq: 99}}, subscribers.ErrDeliveryNotFound)
	d.redo(d.Store, outbox.Letter{Target: "x"}, subscribers.ErrSubscriptionNotFound)
	if _, err := d.Disable(d.ctx, "tester", "off", made.ID, "x"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Resend(d.ctx, "tester", "k", made.ID, subscribers.Resend{}, false); !errors.Is(err, subscribers.ErrSubscriptionDisabled) {
		t.Errorf("to a disabled one: %v", err)
	}
	d.redo(d.Store, outbox.Letter{Target: made.ID.String()}, subscribers.ErrSubscriptionDisabled)
	if _, err := d.Try(d.ctx, "tester", "k", made.ID); !errors.Is(err, subscribers.ErrSubscriptionDisabled) {
		t.Errorf("a test of a disabled one: %v", err)
	}
}

// A test is sent at once, signed like any webhook, and tells what came of it.
func TestTry(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	made := d.subscribe(nil, subscribers.Spec{URL: "https://example.com"})
	secrets, err := payments.ParseSecrets(made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		id := ""
		if err == nil {
			id, err = secrets.Verify(q.Header, body, time.Now())
		}
		if err != nil || !strings.HasPrefix(id, made.ID.String()+"-test-") || !strings.Contains(string(body), `"kind":"subscription.test"`) {
			t.Errorf("webhook-id %s, %s: %v", id, body, err)
		}
		http.Error(w, "not today", http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	d.exec(`UPDATE subscriptions SET url = $1`, server.URL)
	first, err := d.Try(d.ctx, "ann", "k", made.ID)
	if err != nil || first.Delivered || first.StatusCode != http.StatusTeapot || first.Response != "not today\n" || first.Error != "the answer was 418" {
		t.Errorf("test %+v: %v", first, err)
	}
	again, err := d.Try(d.ctx, "ann", "k", made.ID)
	if err != nil || again.WebhookID != first.WebhookID {
		t.Errorf("again %+v: %v", again, err)
	}
	if d.statuses(made.ID) != "none" {
		t.Error("a test is in the log")
	}
}

// Pages go from the newest to the oldest, each delivery once.
func TestLog(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "thanks", http.StatusAccepted) })
	made := d.subscribe(r, subscribers.Spec{Kinds: []string{"hold.placed"}})
	d.work(d.Store)
	for range 7 {
		d.hold("gig", "ann-"+d.key())
	}
	d.fanOut()
	d.await(made.ID, "7 delivered")
	var seqs []ledger.Seq
	f := subscribers.Filter{Limit: 3}
	for {
		page, err := d.Deliveries(d.ctx, made.ID, f)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, one := range page {
			seqs = append(seqs, one.Seq)
			if len(one.Log) != 1 || one.Log[0].Response != "" {
				t.Errorf("listed %+v", one)
			}
		}
		last := page[len(page)-1]
		f.Before = subscribers.Position{At: last.CreatedAt, Journal: last.Journal, Seq: last.Seq}
	}
	for i := range seqs[1:] {
		if seqs[i+1] != seqs[i]-1 {
			t.Errorf("listed %v", seqs)
		}
	}
	if len(seqs) != 7 {
		t.Errorf("listed %v", seqs)
	}
	one, err := d.Delivery(d.ctx, made.ID, 1, seqs[0])
	if err != nil || one.Log[0].Response != "thanks\n" {
		t.Errorf("one %+v: %v", one, err)
	}
	if list, err := d.Deliveries(d.ctx, made.ID, subscribers.Filter{Status: subscribers.Dead, Limit: 3}); err != nil || len(list) != 0 {
		t.Errorf("dead %v: %v", list, err)
	}
	if b, err := d.Backlog(d.ctx); err != nil || b != (subscribers.Backlog{}) {
		t.Errorf("backlog %+v: %v", b, err)
	}
}
