package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/payments"
)

// press is writers who hold, give back and buy tickets of several events at any process,
// until they're told to stop. Everything they begin they finish, under its key.
type press struct {
	t    *testing.T
	key  string // of the API
	url  func(process int) string
	next atomic.Int64

	yes     atomic.Int64 // answers that were a yes
	repeats atomic.Int64 // requests that had no answer, and were made again
	outage  atomic.Bool  // NATS is away

	mu     sync.Mutex
	wrong  []string       // answers that nobody should get
	orders map[string]int // how many tickets each order must have, by its id
	left   int            // holds that were left to run out
}

// ask makes a request at one process after the other until one answers. Nobody may be
// refused. A machine that's too busy may have a commit take too long, which the answer says;
// but NATS isn't on the buyers' way, and while it's away nobody is refused at once.
func (p *press) ask(process int, path, key, body string, statuses ...int) string {
	for {
		began := time.Now()
		r, err := call(context.Background(), p.key, "POST", p.url(process)+path, key, body)
		if err != nil || r.saysUnavailable() && (!p.outage.Load() || time.Since(began) >= givesUp) { // the process was killed
			p.repeats.Add(1)
			process = (process + 1) % chaosProcesses
			continue
		}
		for _, status := range statuses {
			if r.status == status {
				p.yes.Add(1)
				return r.body
			}
		}
		p.mu.Lock()
		p.wrong = append(p.wrong, fmt.Sprint(path, " ", key, ": ", r.status, " ", r.body))
		p.mu.Unlock()
		return ""
	}
}

// write writes until ctx ends.
func (p *press) write(ctx context.Context) {
	for ctx.Err() == nil {
		n := p.next.Add(1)
		luck := rand.New(rand.NewPCG(uint64(n), 6))
		process, quantity := luck.IntN(chaosProcesses), 1+luck.IntN(4)
		event := fmt.Sprint("chaos-", luck.IntN(chaosEvents))
		runsOut := luck.IntN(8) == 0
		if runsOut {
			event = chaosBrief
		}
		answer := p.ask(process, "/v1/events/"+event+"/holds", fmt.Sprint("hold-", n), fmt.Sprintf(
			`{"customer":"c-%d","items":[{"tier":"ga","quantity":%d}]}`, n, quantity), http.StatusCreated)
		switch {
		case answer == "":
		case runsOut:
			p.mu.Lock()
			p.left++
			p.mu.Unlock()
		case luck.IntN(3) == 0:
			p.ask(process, "/v1/holds/"+seatsIn(answer).ID+"/release", fmt.Sprint("release-", n), "", http.StatusOK)
		default:
			p.buy(process, n, quantity, seatsIn(answer).ID)
		}
	}
}

// buy checks a hold out.
func (p *press) buy(process int, n int64, quantity int, hold string) {
	answer := p.ask(process, "/v1/holds/"+hold+"/checkout", fmt.Sprint("pay-", n), `{"payment_method":"sim_ok"}`,
		http.StatusCreated, http.StatusAccepted)
	if answer == "" {
		return
	}
	var o order
	err := json.Unmarshal([]byte(answer), &o)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || o.ID == "" {
		p.wrong = append(p.wrong, fmt.Sprint("an order: ", answer))
		return
	}
	p.orders[o.ID] = quantity
}

// awaitMore waits until so many more requests were granted.
func (p *press) awaitMore(more int64) {
	p.t.Helper()
	from := p.yes.Load()
	pgtest.Until(p.t, fmt.Sprintf("%d more requests are granted", more), func() bool { return p.yes.Load() >= from+more })
}

// receiver is a subscriber that takes webhooks, and remembers under which ids each event
// came.
type receiver struct {
	url    string
	secret atomic.Pointer[payments.Secrets]

	mu    sync.Mutex
	calls int
	byID  map[string]string // the event's id by the webhook's
	wrong []string          // webhooks that nobody should get
}

func openReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{byID: make(map[string]string)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// ServeHTTP takes a webhook.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the process was killed
	}
	var e outbox.Event
	if err = json.Unmarshal(body, &e); err == nil {
		_, err = r.secret.Load().Verify(request.Header, body, time.Now())
	}
	id := request.Header.Get("Webhook-Id")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	first, again := r.byID[id]
	switch {
	case err != nil:
		r.wrong = append(r.wrong, fmt.Sprintf("%v: %s", err, body))
	case !again:
		r.byID[id] = e.ID.String()
	case first != e.ID.String():
		r.wrong = append(r.wrong, fmt.Sprintf("webhook %s is of %s and of %s", id, first, e.ID))
	}
}
