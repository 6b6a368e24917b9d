package sim

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierledger/tierledger/payments"
)

// attempt is a webhook as it reached the other side.
type attempt struct {
	after time.Duration // since the start
	event payments.Event
}

// postbox is a provider whose webhooks end in memory, in a bubble of synctest: time
// passes only when everybody waits.
type postbox struct {
	*testing.T
	sim      *Server
	start    time.Time
	mu       sync.Mutex // the sends are concurrent
	status   int        // that the other side answers with
	attempts []attempt
}

func newPostbox(t *testing.T) *postbox {
	t.Helper()
	b := &postbox{T: t, start: time.Now(), status: http.StatusNoContent}
	client, err := payments.NewClient(payments.Options{URL: "http://provider.test", Secrets: mustSecrets(t)})
	if err != nil {
		t.Fatal(err)
	}
	b.sim, err = New(Options{Seed: 1, Secrets: mustSecrets(t), WebhookURL: "http://ledger.test/hook", Transport: transport(
		func(r *http.Request) (*http.Response, error) {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			e, err := client.ParseWebhook(text, r.Header, time.Now())
			if err != nil {
				t.Error(err)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.attempts = append(b.attempts, attempt{time.Since(b.start), e})
			return &http.Response{StatusCode: b.status, Body: http.NoBody}, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// authorize makes a payment.
func (b *postbox) authorize(reference, method string) {
	b.Helper()
	r := httptest.NewRequest("POST", "/payments", strings.NewReader(
		`{"reference":"`+reference+`","amount":100,"currency":"USD","payment_method":"`+method+`","capture":"automatic"}`))
	r.Header.Set("Idempotency-Key", reference)
	w := httptest.NewRecorder()
	b.sim.ServeHTTP(w, r)
	if w.Code != http.StatusCreated {
		b.Fatal(w.Body)
	}
}

// configure changes the settings in force.
func (b *postbox) configure(change func(*Settings)) {
	b.Helper()
	set := b.sim.Settings()
	change(&set)
	if err := b.sim.Configure(set); err != nil {
		b.Fatal(err)
	}
}

// pass lets time go by, and what happens in it.
func (b *postbox) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (b *postbox) flush() {
	b.Helper()
	if err := b.sim.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// came checks when the webhooks came, one after the other, and starts anew.
func (b *postbox) came(want ...time.Duration) {
	b.Helper()
	synctest.Wait()
	var got []time.Duration
	for _, a := range b.attempts {
		got = append(got, a.after)
	}
	if len(got) != len(want) {
		b.Fatalf("webhooks came after %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			b.Fatalf("webhooks came after %v, want %v", got, want)
		}
	}
	b.attempts, b.start = nil, time.Now()
}

func TestWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPostbox(t)
		defer b.sim.Close()
		b.authorize("plain", methodOK)
		b.came(0)

		b.authorize("twice", methodWebhookTwice)
		synctest.Wait()
		if b.attempts[0].event.ID != b.attempts[1].event.ID {
			t.Errorf("%+v", b.attempts)
		}
		b.came(0, 0)

		b.authorize("late", methodWebhookLate)
		b.pass(time.Hour)
		b.came(30 * time.Second)

		b.authorize("late, flushed", methodWebhookLate)
		b.flush()
		b.came(0)

		b.configure(func(s *Settings) { s.Rates.WebhookReordered = 1 })
		b.authorize("overtaken", methodOK)
		b.configure(func(s *Settings) { s.Rates.WebhookReordered = 0 })
		b.authorize("overtaking", methodOK)
		b.pass(time.Hour)
		if first := b.attempts[0].event.Result.Payment.Reference; first != "pay_00000006" {
			t.Errorf("%s came first", first)
		}
		b.came(0, time.Second)

		b.configure(func(s *Settings) { s.Rates.WebhookLost = 1 })
		b.authorize("lost", methodWebhookTwice)
		b.flush()
		b.came()
	})
}

// TestWebhookRetries: what isn't taken comes again, under the same id and with a new
// signature, and not for ever.
func TestWebhookRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPostbox(t)
		defer b.sim.Close()
		b.status = http.StatusInternalServerError
		b.authorize("refused", methodOK)
		b.pass(24 * time.Hour)
		for _, a := range b.attempts {
			if a.event.ID != b.attempts[0].event.ID || !a.event.OccurredAt.Equal(b.attempts[0].event.OccurredAt) {
				t.Errorf("%+v", a)
			}
		}
		b.came(0, 1*time.Second, 6*time.Second, 36*time.Second, 156*time.Second, 756*time.Second)

		b.authorize("taken at last", methodOK)
		b.pass(2 * time.Second)
		b.status = http.StatusOK
		b.flush()
		b.came(0, time.Second, 2*time.Second)

		b.status = http.StatusInternalServerError
		b.authorize("given up", methodOK)
		b.flush()
		b.came(0, 0, 0, 0, 0, 0)
	})
}

func TestCloseDropsWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPostbox(t)
		b.authorize("late", methodWebhookLate)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.sim.Close(); err != nil {
			t.Error(err)
		}
		if err := b.sim.Flush(ended); err != nil {
			t.Errorf("flushed after the end: %v", err)
		}
		b.pass(time.Hour)
		b.came()
	})
}

// TestCloseLetsGo: an answer that is held doesn't keep a server from stopping.
func TestCloseLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPostbox(t)
		r := httptest.NewRequest("POST", "/payments", strings.NewReader(
			`{"reference":"r","amount":1,"currency":"USD","payment_method":"sim_timeout_lost","capture":"manual"}`))
		r.Header.Set("Idempotency-Key", "r")
		w := httptest.NewRecorder()
		start := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.sim.ServeHTTP(w, r)
		}()
		synctest.Wait()
		if err := b.sim.Close(); err != nil {
			t.Error(err)
		}
		<-done
		if took := time.Since(start); took != 0 || w.Code != http.StatusBadGateway {
			t.Errorf("%d after %v", w.Code, took)
		}
	})
}
