package sim

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var (
	testStart = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	usd106    = buckets.Money{Amount: 10600, Currency: "USD"}
)

// world is a provider on loopback, mounted as in dev, with a client of ours, and an
// inbox for its webhooks. At its end the books are audited.
type world struct {
	*testing.T
	*payments.Client
	options Options
	sim     *Server
	http    *httptest.Server
	url     string // of the provider

	mu    sync.Mutex
	clock time.Time
	inbox []payments.Event
	last  int // operations named so far
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	w := &world{T: t, clock: testStart}
	o.Clock, o.Secrets = w.now, mustSecrets(t)
	w.options = o
	mux := http.NewServeMux()
	mux.Handle("/sim/", http.StripPrefix("/sim", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.sim.ServeHTTP(rw, r)
	})))
	mux.HandleFunc("POST /hook", w.receive)
	w.http = httptest.NewServer(mux)
	w.url = w.http.URL + "/sim"
	w.Client = w.client()
	w.start()
	t.Cleanup(w.stop)
	return w
}

// start makes the provider, from its file if it has one.
func (w *world) start() {
	w.Helper()
	w.options.WebhookURL = w.http.URL + "/hook"
	server, err := New(w.options)
	if err != nil {
		w.Fatal(err)
	}
	w.sim = server
}

func mustSecrets(t testing.TB) payments.Secrets {
	t.Helper()
	s, err := payments.ParseSecrets(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// client makes a client that's as patient as may be.
func (w *world) client() *payments.Client {
	w.Helper()
	c, err := payments.NewClient(payments.Options{URL: w.url, Timeout: payments.MaxTimeout, Secrets: mustSecrets(w)})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(c.Close)
	return c
}

func (w *world) stop() {
	audit(w, w.sim)
	if err := w.sim.Close(); err != nil {
		w.Error(err)
	}
	w.http.Close()
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

// receive takes a webhook as the ledger would.
func (w *world) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		var e payments.Event
		if e, err = w.ParseWebhook(body, r.Header, w.now()); err == nil {
			w.mu.Lock()
			w.inbox = append(w.inbox, e)
			w.mu.Unlock()
		}
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusUnauthorized)
	}
}

// received flushes the webhooks and gives the types of those that came, sorted.
func (w *world) received() []string {
	w.Helper()
	if err := w.sim.Flush(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var types []string
	for _, e := range w.inbox {
		types = append(types, e.Type)
	}
	slices.Sort(types)
	return types
}

// operation gives the id of a new operation.
func (w *world) operation() uuid.UUID {
	w.last++
	return ledger.NewID(1, w.Name(), strconv.Itoa(w.last))
}

// authorize makes a payment, whatever comes of it.
func (w *world) authorize(method string) payments.Result {
	w.Helper()
	r, err := w.Authorize(w.Context(), payments.Authorization{Operation: w.operation(), Amount: usd106, Method: method})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) step(payment string, amount ledger.Amount) payments.Step {
	return payments.Step{Operation: w.operation(), Payment: payment, Amount: buckets.Money{Amount: amount, Currency: "USD"}}
}

// is checks an outcome and the reason for it.
func (w *world) is(r payments.Result, err error, want payments.Outcome, reason string) payments.Result {
	w.Helper()
	if r.Outcome != want || r.Reason != reason || err != nil {
		w.Fatalf("%s is %s (%s), %v; want %s (%s)", r.Kind, r.Outcome, r.Reason, err, want, reason)
	}
	return r
}

// lookup finds an operation, which must be there.
func (w *world) lookup(operation uuid.UUID) payments.Result {
	w.Helper()
	f, err := w.Lookup(w.Context(), operation)
	if err != nil || !f.Found {
		w.Fatalf("lookup: %+v, %v", f, err)
	}
	return f.Result
}

// send makes a call without our client, and gives status, header and body.
func (w *world) send(method, path, key, body string, header ...string) (*http.Response, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer c.CloseIdleConnections()
	resp, err := c.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp, string(text)
}

// bank plays the buyer's bank.
func (w *world) bank(payment, verb, body string) string {
	w.Helper()
	resp, text := w.send(http.MethodPost, "/payments/"+payment+"/"+verb, "", body)
	if resp.StatusCode == http.StatusOK {
		return "ok"
	}
	var no struct{ Code string }
	if err := json.Unmarshal([]byte(text), &no); err != nil {
		w.Fatalf("%d %s", resp.StatusCode, text)
	}
	return no.Code
}

// control changes settings.
func (w *world) control(body string) {
	w.Helper()
	if resp, text := w.send(http.MethodPost, "/control", "", body); resp.StatusCode != http.StatusOK {
		w.Fatal(text)
	}
}

// report gives the rows of a period, without the header.
func (w *world) report(period string) [][]string {
	w.Helper()
	resp, text := w.send(http.MethodGet, "/report?"+period, "", "")
	if resp.StatusCode != http.StatusOK {
		w.Fatal(text)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || !slices.Equal(rows[0], reportColumns) {
		w.Fatalf("%v, %v", rows, err)
	}
	return rows[1:]
}
