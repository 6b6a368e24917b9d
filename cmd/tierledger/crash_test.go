package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/pgtest"
)

const (
	crashEvent   = "e"
	crashClients = 16
	// crashCapacity is more than any test holds.
	crashCapacity = 1_000_000
)

// crowd is clients that hold one ticket after the other, each under a key of its
// own, and remember what they were answered. A client that is refused tries again
// under the same key; one that gets no answer goes away.
type crowd struct {
	key     string // of the API
	stop    context.CancelFunc
	clients sync.WaitGroup
	next    atomic.Int64

	mu       sync.Mutex
	answers  map[string]string // of accepted requests, by key
	unsure   []string          // keys whose outcome isn't known
	refusals int
	wrong    string // a refusal that isn't a clear one
	awaiting []awaited
}

// awaited is a channel to close once something is so.
type awaited struct {
	so   func() bool
	done chan struct{}
}

// letIn lets clients of a service in; end ends them.
func (c *crowd) letIn(t *testing.T, url string) {
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	t.Cleanup(c.end)
	for range crashClients {
		c.clients.Go(func() {
			for ctx.Err() == nil && c.buy(ctx, url, fmt.Sprintf("key-%d", c.next.Add(1))) {
			}
		})
	}
}

// end lets the clients finish what they do and go.
func (c *crowd) end() {
	c.stop()
	c.clients.Wait()
}

// request is the one request of a key.
func request(key string) string {
	return fmt.Sprintf(`{"customer":"customer-%s","items":[{"tier":"ga","quantity":1}]}`, key)
}

// buy holds a ticket; false when no answer came, and then none will.
func (c *crowd) buy(ctx context.Context, url, key string) bool {
	for {
		// The answer to what was sent is waited for, even when the clients are to go.
		r, err := call(context.WithoutCancel(ctx), c.key, "POST", url+"/v1/events/"+crashEvent+"/holds", key, request(key))
		accepted := err == nil && r.status == http.StatusCreated
		gone := !accepted && (err != nil || ctx.Err() != nil)
		c.note(key, r, err, accepted, gone)
		if accepted || gone {
			return err == nil
		}
	}
}

// note remembers an answer, and tells those who await what it brings about.
func (c *crowd) note(key string, r reply, err error, accepted, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case accepted:
		c.answers[key] = r.body
	case err == nil:
		c.refusals++
		if !r.saysUnavailable() {
			c.wrong = fmt.Sprint(r)
		}
	}
	if gone {
		c.unsure = append(c.unsure, key)
	}
	c.awaiting = slices.DeleteFunc(c.awaiting, func(a awaited) bool {
		so := a.so()
		if so {
			close(a.done)
		}
		return so
	})
}

// saysUnavailable tells whether a refusal says clearly that it's not the caller's
// fault, and when to come back.
func (r reply) saysUnavailable() bool {
	seconds, err := strconv.Atoi(r.header.Get("Retry-After"))
	return r.status == http.StatusServiceUnavailable && err == nil && seconds >= 1 &&
		r.header.Get("Content-Type") == "application/problem+json" &&
		(strings.Contains(r.body, `"code":"database_unavailable"`) || strings.Contains(r.body, `"code":"outcome_unknown"`) ||
			strings.Contains(r.body, `"code":"overloaded"`)) // by those whom a slow database kept waiting
}

// await waits until something is so, which is looked at after every answer.
func (c *crowd) await(t *testing.T, what string, so func() bool) {
	t.Helper()
	done := make(chan struct{})
	c.mu.Lock()
	c.awaiting = append(c.awaiting, awaited{so, done})
	c.mu.Unlock()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("in vain: %s", what)
	}
}

// awaitAccepted waits until so many more requests were accepted.
func (c *crowd) awaitAccepted(t *testing.T, more int) {
	t.Helper()
	c.mu.Lock()
	enough := len(c.answers) + more
	c.mu.Unlock()
	c.await(t, fmt.Sprintf("%d accepted requests", enough), func() bool { return len(c.answers) >= enough })
}

// repeatAll sends every request again, after the clients have gone: what was
// answered must be answered alike, what is unsure is settled now. Then every key
// has its ticket, once.
func (c *crowd) repeatAll(t *testing.T, url string) {
	t.Helper()
	holds := url + "/v1/events/" + crashEvent + "/holds"
	t.Logf("%d accepted, %d unsure, %d refusals", len(c.answers), len(c.unsure), c.refusals)
	if c.wrong != "" {
		t.Errorf("a refusal that isn't clear: %s", c.wrong)
	}
	for _, key := range c.unsure {
		c.answers[key] = wantSoon(t, http.StatusCreated, c.key, "POST", holds, key, request(key)).body
	}
	c.unsure = nil
	for key, answer := range c.answers {
		r := wantSoon(t, http.StatusCreated, c.key, "POST", holds, key, request(key))
		if r.body != answer || r.header.Get("Idempotency-Replayed") != "true" {
			t.Fatalf("key %s: first %s, then %s (replayed: %q)", key, answer, r.body, r.header.Get("Idempotency-Replayed"))
		}
	}
	var a struct {
		Tiers []struct{ Available, Held int }
	}
	r := wantSoon(t, http.StatusOK, c.key, "GET", url+"/v1/events/"+crashEvent+"/availability", "", "")
	if err := json.Unmarshal([]byte(r.body), &a); err != nil {
		t.Fatal(err)
	}
	if n := len(c.answers); a.Tiers[0].Held != n || a.Tiers[0].Available != crashCapacity-n {
		t.Errorf("%d keys hold a ticket each, the API says %s", n, r.body)
	}
}

// startServe serves a database.
func startServe(t *testing.T, db *pgtest.DB, keys string) *child {
	t.Helper()
	return start(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db.URL(), "--keys-file", keys)
}

// Killed in the middle of a load and started again, the service answers every key
// as it did before, and every key has its ticket once.
func TestServeKilledUnderLoad(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, key := adminKey(t)
	s := startServe(t, db, keys)
	createEvent(t, key, s.url, crashEvent, 3600, crashCapacity)
	c := &crowd{key: key, answers: make(map[string]string)}
	for range 3 {
		c.letIn(t, s.url)
		c.awaitAccepted(t, 200)
		s.end(syscall.SIGKILL)
		c.end()
		if len(c.unsure) == 0 {
			t.Error("the kill cut no request short")
		}
		s = startServe(t, db, keys)
		c.repeatAll(t, s.url)
	}
	if code := s.end(syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
}

// PostgreSQL stops and starts under load: requests are refused clearly meanwhile,
// and served again afterwards, without anybody's hand on the service.
func TestServeOutlivesPostgres(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, key := adminKey(t)
	s := startServe(t, db, keys)
	createEvent(t, key, s.url, crashEvent, 3600, crashCapacity)
	c := &crowd{key: key, answers: make(map[string]string)}
	c.letIn(t, s.url)
	c.awaitAccepted(t, 100)
	if err := db.Server().Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.await(t, "a refusal", func() bool { return c.refusals > 0 })
	want(t, http.StatusServiceUnavailable, "", "GET", s.url+"/readyz", "", "")
	want(t, http.StatusOK, "", "GET", s.url+"/healthz", "", "")
	if err := db.Server().Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.awaitAccepted(t, 100)
	c.end()
	c.repeatAll(t, s.url)
	want(t, http.StatusOK, "", "GET", s.url+"/readyz", "", "")
	if code := s.end(syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
}
