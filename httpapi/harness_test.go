package httpapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/subscribers"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a served ledger with a database and a payment provider of its own.
type world struct {
	*bank
	t      *testing.T
	db     *pgtest.DB
	stores service.Stores
	url    string
	log    *safeBuffer

	subscribers *subscribers.Store
}

// serve starts a world. The configuration may be changed first. Tests with worlds
// run side by side.
func serve(t *testing.T, change func(*httpapi.Config)) *world {
	t.Helper()
	return serveWith(t, payments.MaxTimeout, change)
}

// serveWith is serve with another patience than the longest for the provider's answers.
func serveWith(t *testing.T, patience time.Duration, change func(*httpapi.Config)) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, db: pgtest.New(t), log: &safeBuffer{}}
	w.db.Check(described)
	metrics := httpapi.NewMetrics()
	var provider *payments.Client
	w.bank, provider = newBank(t, patience)
	s := pgtest.Stores(t, w.db, metrics.ObserveBatch, provider)
	metrics.SetQueueDepth(s.Ledger.Waiting)
	s.Quotas.Observe = metrics.ObserveMove
	w.stores = s
	w.subscribers = w.newSubscribers(s, metrics)
	c := httpapi.Config{
		Ledger: s.Ledger, Reader: s.Reader, Events: s.Events, Seats: s.Seats, Maps: s.Maps,
		Quotas: s.Quotas, Holds: s.Holds, Orders: s.Orders, Recon: s.Recon, Letters: s.Letters, Tickets: s.Tickets, Subscribers: w.subscribers,
		LoopbackAdmin: true, Metrics: metrics, Version: "test",
		Log: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&c)
	}
	server := httptest.NewServer(httpapi.New(c))
	t.Cleanup(server.Close)
	t.Cleanup(s.Maps.Close) // who follows would keep the server waiting
	w.url = server.URL
	w.tell(t, w.url+"/v1/webhooks/sim")
	return w
}

// safeBuffer is a log that handlers write while the test reads.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// reply is what a call got.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// client never hangs on a server that does.
var client = &http.Client{Timeout: 2 * time.Minute}

// do makes a call: headers are names and values in turn. What is sent and what
// comes back must be as the document says.
func (w *world) do(method, path, body string, headers ...string) reply {
	w.t.Helper()
	r, err := w.send(method, path, body, headers...)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// send is do for goroutines.
func (w *world) send(method, path, body string, headers ...string) (reply, error) {
	request, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	if body != "" && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return reply{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	r := reply{w.t, response.StatusCode, response.Header, content}
	return r, conforms(request, body, response, r)
}

// post makes a command under a key.
func (w *world) post(path, key, body string, headers ...string) reply {
	w.t.Helper()
	return w.do("POST", path, body, append(headers, "Idempotency-Key", key)...)
}

func (w *world) get(path string, headers ...string) reply {
	w.t.Helper()
	return w.do("GET", path, "", headers...)
}

// is fails the test unless the reply has a status.
func (r reply) is(status int) reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("got %d %s, want %d", r.status, r.body, status)
	}
	return r
}

// refused fails the test unless the reply is a problem of a code and status.
func (r reply) refused(status int, code string) reply {
	r.t.Helper()
	r.is(status)
	if got := r.text("code"); got != code {
		r.t.Fatalf("got %s, want %s: %s", got, code, r.body)
	}
	return r
}

// field gives a member by its path, such as items.0.tier; nil when there's none.
func (r reply) field(path string) any {
	r.t.Helper()
	var value any
	if err := json.Unmarshal(r.body, &value); err != nil {
		r.t.Fatalf("%v in %s", err, r.body)
	}
	return member(value, path)
}

func member(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// text is field as text; numbers without decimals, "<nil>" for none.
func (r reply) text(path string) string {
	r.t.Helper()
	return text(r.field(path))
}

func text(value any) string {
	if n, ok := value.(float64); ok {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprint(value)
}

// has fails the test unless the members have the values: path, value, in turn.
func (r reply) has(members ...any) reply {
	r.t.Helper()
	for i := 0; i < len(members); i += 2 {
		if got, want := r.text(members[i].(string)), fmt.Sprint(members[i+1]); got != want {
			r.t.Errorf("%s is %s, want %s in %s", members[i], got, want, r.body)
		}
	}
	return r
}

// conformance checks calls against the document.
var conformance = sync.OnceValues(func() (validator.Validator, error) {
	text, err := os.ReadFile("openapi.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := libopenapi.NewDocument(text)
	if err != nil {
		return nil, err
	}
	v, errs := validator.NewValidator(doc, config.WithoutSecurityValidation(), config.WithFormatAssertions())
	return v, errors.Join(errs...)
})

// conforms compares a call with the document: every reply, and every request that
// was accepted.
func conforms(request *http.Request, body string, response *http.Response, r reply) error {
	v, err := conformance()
	if err != nil {
		return err
	}
	if request.Method == http.MethodHead {
		return nil // described by GET
	}
	code := ""
	if response.Header.Get("Content-Type") == "application/problem+json" {
		code = r.text("code")
	}
	if code == httpapi.ErrNotFound.Code || code == httpapi.ErrMethodNotAllowed.Code {
		return nil // not described there
	}
	request = request.Clone(context.Background())
	request.Body = io.NopCloser(strings.NewReader(body))
	response.Body = io.NopCloser(bytes.NewReader(r.body))
	ok, problems := v.ValidateHttpResponse(request, response)
	if ok && r.status < 400 {
		if key := request.Header.Get("X-Idempotency-Key"); key != "" {
			request.Header.Set("Idempotency-Key", key)
		}
		ok, problems = v.ValidateHttpRequest(request)
	}
	if !ok {
		text := ""
		for _, p := range problems {
			text += "\n" + p.Error()
			for _, s := range p.SchemaValidationErrors {
				text += "\n  " + s.Error()
			}
		}
		return fmt.Errorf("%s %s → %d %s isn't as the document says: %s", request.Method, request.URL, r.status, r.body, text)
	}
	return nil
}

// event puts an event on sale with a tier ga of a quantity; members are added to
// the event.
func (w *world) event(name string, quantity int, members ...string) {
	w.t.Helper()
	more := ""
	for _, m := range members {
		more += "," + m
	}
	w.post("/v1/events", "event-"+name, fmt.Sprintf(`{"event":%q,"name":"An event","currency":"USD",
		"tiers":[{"tier":"ga","quantity":%d,"price":{"amount":5000,"currency":"USD"}}]%s}`, name, quantity, more)).is(201)
}

// hold asks for tickets of the tier ga.
func (w *world) hold(event, key, customer string, quantity int) reply {
	w.t.Helper()
	return w.post("/v1/events/"+event+"/holds", key, lines(customer, quantity))
}

// lines is the body of a hold with a line of ga for each quantity.
func lines(customer string, quantities ...int) string {
	var items []string
	for _, n := range quantities {
		items = append(items, fmt.Sprintf(`{"tier":"ga","quantity":%d}`, n))
	}
	return fmt.Sprintf(`{"customer":%q,"items":[%s]}`, customer, strings.Join(items, ","))
}

// available tells how many tickets of ga are free.
func (w *world) available(event string) string {
	w.t.Helper()
	return w.get("/v1/events/" + event + "/availability").is(200).text("tiers.0.available")
}

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func escape(s string) string { return url.QueryEscape(s) }
