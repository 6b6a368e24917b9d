package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// The steps with the provider, as its paths end.
const (
	stepAuthorize = "/payments"
	stepCapture   = "/capture"
	stepVoid      = "/void"
	stepRefund    = "/refunds"
	stepCancel    = "/cancel"
)

// moment is how far a call has come.
type moment int

const (
	arrived  moment = iota + 1 // the provider hasn't seen it
	applied                    // it's done, and not answered
	answered                   // and answered
)

// stop is a point at which calls stop.
type stop struct {
	path string
	moment
}

// gate stands before the provider. What stops at it goes no further for as long as the
// caller lives, but for an answer that's let go.
type gate struct {
	next http.Handler

	mu      sync.Mutex
	at      stop
	missing int // calls until reached is closed
	reached chan struct{}
	free    chan struct{} // closed when calls stop elsewhere
	made    int           // payments
}

// arm says where calls stop from now on; stop{} for nowhere. The channel is closed when n
// have come there.
func (g *gate) arm(at stop, n int) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free != nil {
		close(g.free)
	}
	g.at, g.missing, g.reached, g.free = at, n, make(chan struct{}), make(chan struct{})
	return g.reached
}

// come notes that a call has come to a point. If calls stop there, the channel is closed
// when they no longer do; it's nil if they don't.
func (g *gate) come(path string, m moment) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at.moment != m || !strings.HasSuffix(path, g.at.path) {
		return nil
	}
	if g.missing--; g.missing == 0 {
		close(g.reached)
	}
	return g.free
}

// payments counts the payments that the provider has made.
func (g *gate) payments() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.made
}

// count counts an answer to a call, if it's a new payment.
func (g *gate) count(path string, answer *httptest.ResponseRecorder) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if path == stepAuthorize && answer.Code == http.StatusCreated && answer.Header().Get("Idempotency-Replayed") == "" {
		g.made++
	}
}

// ServeHTTP passes a call on, as far as it may go.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		g.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body) // whole, or the caller's end isn't noticed
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if g.come(r.URL.Path, arrived) != nil {
		<-r.Context().Done()
		return
	}
	done := httptest.NewRecorder()
	g.next.ServeHTTP(done, r)
	g.count(r.URL.Path, done)
	if free := g.come(r.URL.Path, applied); free != nil {
		select {
		case <-r.Context().Done():
			return
		case <-free:
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(done.Code)
	_, _ = w.Write(done.Body.Bytes()) // the caller may be gone
	_ = http.NewResponseController(w).Flush()
	g.come(r.URL.Path, answered)
}
