package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/subscribers"
)

// newSubscribers makes subscriptions whose subscribers are on this machine. Nothing is sent
// but by sending.
func (w *world) newSubscribers(s service.Stores, metrics *httpapi.Metrics) *subscribers.Store {
	w.t.Helper()
	ring, err := keyring.Parse(keyring.New())
	if err != nil {
		w.t.Fatal(err)
	}
	return subscribers.NewStore(subscribers.Options{
		Pool: s.Quotas.Reads, Reads: s.Quotas.Reads, Reader: s.Reader, Events: s.Events, Ring: ring, AllowPrivate: true,
		Every: 2 * time.Millisecond, Observe: metrics.ObserveSent,
		Log: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

// sending has due webhooks sent until the test ends, or the function is called.
func (w *world) sending() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.subscribers.Work(ctx) }()
	stop = func() { cancel(); <-done }
	w.t.Cleanup(stop)
	return stop
}

// fanOut makes deliveries of all entries of a journal.
func (w *world) fanOut(journal ledger.JournalID) {
	w.t.Helper()
	inbox := outbox.NewInbox(outbox.InboxOptions{Pool: w.subscribers.Pool, Consumer: w.subscribers.Consumer(), Log: slog.New(slog.DiscardHandler)})
	if err := inbox.Advance(context.Background(), journal); err != nil {
		w.t.Fatal(err)
	}
}

// shows reads a path until a member has a value.
func (w *world) shows(path, member, want string) reply {
	w.t.Helper()
	var r reply
	pgtest.Until(w.t, path+" has "+want, func() bool {
		r = w.get(path).is(200)
		return r.text(member) == want
	})
	return r
}

// partner is a subscriber, whose server verifies what comes.
type partner struct {
	*httptest.Server
	mu     sync.Mutex
	secret string
	status int
	got    []string // webhook-ids
}

func newPartner(t *testing.T) *partner {
	p := &partner{status: http.StatusNoContent}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		secrets, wrong := payments.ParseSecrets(p.secret)
		id := ""
		if err == nil && wrong == nil {
			id, err = secrets.Verify(r.Header, body, time.Now())
		}
		if err != nil || wrong != nil {
			t.Errorf("a webhook isn't genuine: %v %v", err, wrong)
		}
		p.got = append(p.got, id)
		w.WriteHeader(p.status)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *partner) expect(secret string, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secret, p.status = secret, status
}

func (p *partner) received() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.got, " ")
}

const subscriptions = "/v1/subscriptions"

// A subscription's whole life.
func TestSubscription(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	p := newPartner(t)
	body := fmt.Sprintf(`{"url":%q,"kinds":["hold.*"],"event":"e","description":"box office"}`, p.URL)
	made := w.post(subscriptions, "s1", body).is(201).has("url", p.URL, "kinds.0", "hold.*", "event", "e",
		"description", "box office", "status", "active", "created_by", "loopback")
	secret, id := made.text("secret"), made.text("subscription_id")
	if !strings.HasPrefix(secret, "whsec_") || made.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("made %s", made.body)
	}
	again := w.post(subscriptions, "s1", body).is(201).has("subscription_id", id, "secret", "<nil>")
	if again.header.Get("Idempotency-Replayed") != "true" {
		t.Error("a repeat doesn't say so")
	}
	w.post(subscriptions, "s1", `{"url":"https://example.com"}`).refused(422, "idempotency_mismatch")
	one := subscriptions + "/" + id
	w.get(one).is(200).has("subscription_id", id, "secret", "<nil>")
	w.get(subscriptions).is(200).has("data.0.subscription_id", id, "data.0.secret", "<nil>", "next_cursor", "<nil>")

	p.expect(secret, http.StatusBadGateway)
	w.post(one+"/test", "t1", "").is(200).has("delivered", false, "status_code", 502, "error", "the answer was 502")
	p.expect(secret, http.StatusNoContent)
	w.post(one+"/test", "t1", "{}").is(200).has("delivered", true, "status_code", 204)

	stop := w.sending()
	w.hold("e", "h1", "ann", 2).is(201)
	w.fanOut(1)
	log := w.shows(one+"/deliveries", "data.0.status", "delivered")
	log.has("data.0.kind", "hold.placed", "data.0.journal", 1, "data.0.seq", 2, "data.0.webhook_id", id+"-1-2", "data.0.attempts", 1,
		"data.0.log.0.status_code", 204, "data.1", "<nil>")
	w.get(one+"/deliveries/1/2").is(200).has("status", "delivered", "log.0.attempt", 1)
	w.get(one+"/deliveries?status=dead").is(200).has("data.0", "<nil>")

	rotated := w.post(one+"/rotate-secret", "r1", `{"overlap_seconds":0}`).is(200).has("old_secret_until", "<nil>")
	w.post(one+"/rotate-secret", "r1", `{"overlap_seconds":0}`).is(200).has("secret", "<nil>")
	p.expect(rotated.text("secret"), http.StatusNoContent)
	w.do("POST", one+"/deliveries/resend?dry_run=true", `{"status":["delivered"]}`).is(200).has("deliveries", 1, "more", false)
	w.post(one+"/deliveries/resend", "x1", `{"journal":1,"seq":2}`).is(200).has("deliveries", 1)
	w.shows(one+"/deliveries", "data.0.attempts", "2")
	if again := w.post(one+"/deliveries/resend", "x1", `{"journal":1,"seq":2}`).is(200); again.header.Get("Idempotency-Replayed") != "true" {
		t.Error("a repeat doesn't say so")
	}
	if got := p.received(); !strings.HasSuffix(got, fmt.Sprintf("%s-1-2 %s-1-2", id, id)) {
		t.Errorf("received %s", got)
	}

	w.do("PATCH", one, `{"kinds":["order.captured"],"event":""}`, "Idempotency-Key", "c1").is(200).
		has("kinds.0", "order.captured", "event", "<nil>", "url", p.URL)
	w.post(one+"/disable", "d1", `{"reason":"they move house"}`).is(200).has("status", "disabled", "reason", "they move house")
	w.post(one+"/test", "t2", "").refused(409, "subscription_disabled").has("subscription_id", id)
	w.post(one+"/deliveries/resend", "x2", `{}`).refused(409, "subscription_disabled")
	w.post(one+"/enable", "e1", "").is(200).has("status", "active", "reason", "<nil>")
	if log := w.log.String(); strings.Contains(log, secret) || strings.Contains(log, rotated.text("secret")) {
		t.Error("a secret is in the log")
	}
	stop() // the observer is told of a call after it's recorded
	for _, line := range []string{`tierledger_webhook_calls_total{outcome="delivered"} 2`, `tierledger_webhook_duration_seconds_count 2`} {
		if text := string(w.get("/metrics").body); !strings.Contains(text, line) {
			t.Errorf("the metrics don't have %s", line)
		}
	}
}

func TestSubscriptionRefusals(t *testing.T) {
	w := serve(t, func(c *httpapi.Config) { c.Subscribers.AllowPrivate = false })
	w.post(subscriptions, "k", `{}`).refused(400, "invalid_request").has("field", "url")
	w.post(subscriptions, "k", `{"url":"http://example.com"}`).refused(400, "invalid_request").has("field", "url")
	w.post(subscriptions, "k", `{"url":"https://u@example.com"}`).refused(400, "invalid_request").has("field", "url")
	w.post(subscriptions, "k", `{"url":"https://[::ffff:169.254.169.254]/"}`).refused(400, "address_not_allowed").has("address", "::ffff:169.254.169.254")
	w.post(subscriptions, "k", `{"url":"https://example.com","kinds":["*"]}`).refused(400, "invalid_request").has("field", "kinds")
	w.post(subscriptions, "k", `{"url":"https://example.com","secret":"x"}`).refused(400, "invalid_request").has("field", "secret")
	w.post(subscriptions, "k", `{"url":"https://example.com","event":"none"}`).refused(404, "event_not_found")
	w.do("POST", subscriptions, `{"url":"https://example.com"}`).refused(400, "idempotency_key_required")
	id := w.post(subscriptions, "k", `{"url":"https://example.com"}`).is(201).text("subscription_id")
	one := subscriptions + "/" + id
	w.do("PATCH", one, `{"url":"https://10.1.2.3"}`, "Idempotency-Key", "c").refused(400, "address_not_allowed")
	w.do("PATCH", one, `{}`, "Idempotency-Key", "c", "If-Match", `"1"`).refused(400, "invalid_request").has("field", "If-Match")
	w.post(one+"/rotate-secret", "r", `{"overlap_seconds":604801}`).refused(400, "invalid_request").has("field", "overlap_seconds")
	w.post(one+"/rotate-secret", "r", `{"overlap_seconds":-1}`).refused(400, "invalid_request").has("field", "overlap_seconds")
	w.post(one+"/rotate-secret", "r", `{"overlap_seconds":9223372036854775807}`).refused(400, "invalid_request").has("field", "overlap_seconds")
	w.post(one+"/disable", "d", `{}`).refused(400, "invalid_request").has("field", "reason")
	w.get(one+"/deliveries?status=lost").refused(400, "invalid_request").has("field", "status")
	w.get(one+"/deliveries/1/x").refused(404, "delivery_not_found")
	w.get(one+"/deliveries/1/7").refused(404, "delivery_not_found").has("journal", 1, "seq", 7)
	w.post(one+"/deliveries/resend", "x", `{"seq":7}`).refused(400, "invalid_request").has("field", "seq")
	w.post(one+"/deliveries/resend", "x", `{"since":"yesterday"}`).refused(400, "invalid_request").has("field", "since")
	w.post(one+"/deliveries/resend", "x", `{"journal":1,"seq":7}`).refused(404, "delivery_not_found")
	w.post(one+"/deliveries/resend", "x", `{"journal":1,"seq":7,"status":["dead"]}`).refused(400, "invalid_request").has("field", "status")
	for _, path := range []string{"", "/deliveries", "/deliveries/1/2"} {
		w.get(subscriptions+"/nobody"+path).refused(404, "subscription_not_found")
		w.get(subscriptions+"/00000000-0000-8000-8000-000000000000"+path).refused(404, "subscription_not_found")
	}
	w.post(subscriptions+"/nobody/enable", "e", "").refused(404, "subscription_not_found")
}

// Pages of the log hold together.
func TestDeliveriesByPage(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 100)
	p := newPartner(t)
	made := w.post(subscriptions, "s", fmt.Sprintf(`{"url":%q,"kinds":["hold.placed"]}`, p.URL)).is(201)
	for i := range 5 {
		w.hold("e", fmt.Sprint("h", i), "ann", 1).is(201)
	}
	w.fanOut(1)
	one := subscriptions + "/" + made.text("subscription_id") + "/deliveries"
	var seqs []string
	for path := one + "?limit=2&status=pending"; path != ""; {
		page := w.get(path).is(200)
		for i := 0; page.field(fmt.Sprintf("data.%d", i)) != nil; i++ {
			seqs = append(seqs, page.text(fmt.Sprintf("data.%d.seq", i)))
		}
		path = ""
		if next := page.text("next_cursor"); next != "<nil>" {
			path = one + "?cursor=" + next
		}
	}
	if got := strings.Join(seqs, " "); got != "6 5 4 3 2" {
		t.Errorf("listed %s", got)
	}
	w.get(one+"?cursor="+encode(fmt.Sprintf(`{"path":%q,"filters":"","limit":2,"after":"x 1 2"}`, one))).refused(400, "invalid_request").has("field", "cursor")
}
