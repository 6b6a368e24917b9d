package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/payments"
)

func TestOperations(t *testing.T) {
	w := serve(t, nil)
	w.get("/healthz").is(200).has("alive", true)
	w.get("/version").is(200).has("version", "test")
	w.get("/readyz").is(200).has("ready", true, "checks", "[]")
	document := w.get("/openapi.yaml").is(200)
	if !strings.HasPrefix(string(document.body), "openapi: 3.1.") || document.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("the document is %.40s of type %s", document.body, document.header.Get("Content-Type"))
	}
	if events := w.get("/asyncapi.yaml").is(200); !strings.HasPrefix(string(events.body), "asyncapi: 3.0.") {
		t.Errorf("the document of events is %.40s", events.body)
	}
}

func TestReadiness(t *testing.T) {
	w := serve(t, func(c *httpapi.Config) {
		c.Ready = []httpapi.Check{
			{Name: "database", Probe: func(context.Context) error { return nil }},
			{Name: "nats", Probe: func(context.Context) error { return errors.New("password authentication failed") }},
		}
	})
	r := w.get("/readyz").is(503).has("ready", false, "checks.0.name", "database", "checks.0.ready", true,
		"checks.1.name", "nats", "checks.1.ready", false)
	if r.header.Get("Retry-After") == "" || strings.Contains(string(r.body), "password") {
		t.Errorf("got %v %s", r.header, r.body)
	}
	if !strings.Contains(w.log.String(), "password authentication failed") {
		t.Error("the log doesn't say why it isn't ready")
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	w := serve(t, nil)
	for _, path := range []string{"/", "/v1", "/v2/events", "/v1/events/", "/v1/events/e/", "/v1//events", "/v1/events/a%2Fb/x", "/v1/holds", "/v1/events/../events",
		"/v1%2Fevents", "/v1%2fevents", "/v1/events%2Fe%2Favailability", "/healthz%2F"} {
		w.get(path).refused(404, "not_found").isProblem()
	}
	for call, allow := range map[string]string{
		"DELETE /v1/events":                "GET, HEAD, POST",
		"PUT /v1/events/e":                 "GET, HEAD",
		"POST /v1/events/e/availability":   "GET, HEAD",
		"GET /v1/events/e/tiers":           "POST",
		"GET /v1/events/e/tiers/ga":        "PATCH",
		"HEAD /v1/holds/x/release":         "POST",
		"GET /v1/holds/x/checkout":         "POST",
		"GET /v1/webhooks/sim":             "POST",
		"DELETE /v1/orders/x":              "GET, HEAD",
		"POST /v1/recon/cases":             "GET, HEAD",
		"OPTIONS /v1/events/e/holds":       "GET, HEAD, POST",
		"BREW /healthz":                    "GET, HEAD",
		"POST /v1/events/e/accounts/held":  "GET, HEAD",
		"PATCH /v1/events/e/trial-balance": "GET, HEAD",
	} {
		method, path, _ := strings.Cut(call, " ")
		r := w.do(method, path, "").is(405)
		if got := r.header.Get("Allow"); got != allow {
			t.Errorf("%s: Allow is %q, want %q", call, got, allow)
		}
		if method != "HEAD" {
			r.refused(405, "method_not_allowed").isProblem()
		}
	}
}

// isProblem fails the test unless the reply is a whole problem document.
func (r reply) isProblem() {
	r.t.Helper()
	if kind := r.header.Get("Content-Type"); kind != "application/problem+json" {
		r.t.Errorf("the type is %s", kind)
	}
	code := r.text("code")
	r.has("type", "https://github.com/tierledger/tierledger/blob/main/docs/errors.md#"+code,
		"status", r.status, "request_id", r.header.Get("X-Request-Id"))
	if r.text("title") == "" || r.text("detail") == "" {
		r.t.Errorf("%s says too little", r.body)
	}
}

func TestHead(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 1)
	get := w.get("/v1/events/e").is(200)
	head := w.do("HEAD", "/v1/events/e", "").is(200)
	if len(head.body) > 0 || head.header.Get("ETag") != get.header.Get("ETag") ||
		head.header.Get("Content-Length") != fmt.Sprint(len(get.body)) || head.header.Get("Content-Type") != "application/json" {
		t.Errorf("HEAD got %v", head.header)
	}
	w.do("HEAD", "/v1/events/none", "").is(404)
}

func TestBodies(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	const path = "/v1/events/e/holds"
	w.post(path, "k", strings.Repeat(" ", 64<<10-len(lines("a", 1)))+lines("a", 1)).is(201)
	w.post(path, "k", strings.Repeat(" ", 64<<10)+lines("a", 1)).refused(400, "invalid_request").has("field", "body")
	w.post(path, "k", strings.Repeat("x", 10<<20)).refused(400, "invalid_request").has("field", "body")
	w.post(path, "k", strings.Repeat("[", 60000)).refused(400, "invalid_request").has("field", "body")
	w.post(path, "k", `{"customer":`+strings.Repeat("[", 60000)).refused(400, "invalid_request").has("field", "body")
	w.post(path, "k", "").refused(400, "invalid_request").has("field", "body")
	w.post(path, "k", "null").refused(400, "invalid_request").has("field", "body")
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", `Application/JSON;charset="UTF-8"`} {
		w.post(path, "kind"+kind[:5], lines("a", 1), "Content-Type", kind).is(201)
	}
	for _, kind := range []string{"application/x-www-form-urlencoded", "text/plain", "application/json; charset=latin1",
		"application/json; version=2", "application/problem+json", "x;;"} {
		w.post(path, "k2", lines("a", 1), "Content-Type", kind).refused(400, "invalid_request").has("field", "Content-Type")
	}
}

// A body of unknown length, and one without a type.
func TestChunkedBody(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	for size, status := range map[int]int{0: 201, 64 << 10: 400} {
		body := io.MultiReader(strings.NewReader(lines("a", 1)), strings.NewReader(strings.Repeat(" ", size)))
		request, err := http.NewRequest("POST", w.url+"/v1/events/e/holds", body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", fmt.Sprint(size))
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("a hold and %d bytes got %d, want %d", size, response.StatusCode, status)
		}
	}
}

func TestRequestID(t *testing.T) {
	w := serve(t, nil)
	for _, path := range []string{"/v1/events", "/v1/events/none", "/nowhere", "/metrics", "/readyz"} {
		if got := w.get(path, "X-Request-Id", "a-1_B.2").header.Get("X-Request-Id"); got != "a-1_B.2" {
			t.Errorf("%s: the request id is %q", path, got)
		}
		for _, bad := range []string{"", "a b", "ä", `"`, strings.Repeat("x", 129)} {
			if got := w.get(path, "X-Request-Id", bad).header.Get("X-Request-Id"); got == bad || len(got) != 36 {
				t.Errorf("%s: the request id %q became %q", path, bad, got)
			}
		}
	}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	w.get("/v1/events", "traceparent", "00-"+trace+"-00f067aa0ba902b7-01", "X-Request-Id", "traced")
	if line := w.logged("traced"); !strings.Contains(line, `"trace_id":"`+trace+`"`) || !strings.Contains(line, `"route":"/v1/events"`) {
		t.Errorf("the log has %s", line)
	}
}

// logged gives the log's lines about a request.
func (w *world) logged(requestID string) string {
	found := ""
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, `"request_id":"`+requestID+`"`) {
			found += line
		}
	}
	return found
}

// A bug of ours: the caller gets the id, the log the cause.
func TestInternalErrorIsOpaque(t *testing.T) {
	w := serve(t, func(c *httpapi.Config) { c.Holds = nil })
	r := w.get("/v1/holds/00000001-a0a9-8715-b4a1-478ce139f1e9", "X-Request-Id", "broken").refused(500, "internal")
	r.isProblem()
	if strings.Contains(string(r.body), "nil pointer") {
		t.Errorf("%s tells about our insides", r.body)
	}
	if line := w.logged("broken"); !strings.Contains(line, `"level":"ERROR"`) || !strings.Contains(line, "nil pointer") {
		t.Errorf("the log has %s", line)
	}
	w.get("/healthz").is(200)
}

// The database is away: nothing hangs, and callers are told when to come back.
func TestDatabaseAway(t *testing.T) {
	pool, err := pg.Open(t.Context(), pg.Options{URL: "postgres://u:secret@/db?host=" + t.TempDir(), Name: t.Name(), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	bank, provider := newBank(t, payments.MaxTimeout)
	stores := service.Fit(service.Parts{Commits: pool, Reads: pool, Providers: []payments.Provider{provider}})
	t.Cleanup(stores.Ledger.Close)
	w := &world{bank: bank, t: t, log: &safeBuffer{}}
	server := httptest.NewServer(httpapi.New(httpapi.Config{
		Ledger: stores.Ledger, Reader: stores.Reader, Events: stores.Events, Holds: stores.Holds,
		Orders: stores.Orders, Recon: stores.Recon, LoopbackAdmin: true,
		Log: slog.New(slog.NewJSONHandler(w.log, nil)),
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	started := time.Now()
	const id = "00000001-a1f2-832d-bd9e-de6417365a98"
	for _, r := range []reply{
		w.get("/v1/events"),
		w.get("/v1/events/e"),
		w.post("/v1/events", "k", spec("e")),
		w.post("/v1/events/e/holds", "k", lines("a", 1)),
		w.post("/v1/holds/"+id+"/checkout", "k", paying("sim_ok")),
		w.get("/v1/orders/" + id),
		w.get("/v1/orders?event=e"),
		w.post("/v1/orders/"+id+"/cancel", "k", ""),
		w.do("POST", hooks, foreign("pay_9"), w.signed("evt_9", foreign("pay_9"), 0)...),
		w.get("/v1/recon/cases"),
		w.get("/v1/recon/cases/" + id),
		w.post("/v1/recon/cases/"+id+"/approve", "k", ""),
		w.do("POST", "/v1/recon/reports/sim", "id,type,payment,reference,created,gross,fee,net,currency\n"+
			"a,fee,,,2026-11-30T12:00:00Z,0.00,1.00,-1.00,USD\n", "Content-Type", "text/csv"),
	} {
		r.refused(503, "database_unavailable").isProblem()
		if r.header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
		}
	}
	stores.Ledger.Close()
	if r := w.post("/v1/events", "k", spec("e")).refused(503, "shutting_down"); r.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
	}
	lines := strings.Count(w.log.String(), "was unavailable")
	if most := int(time.Since(started)/time.Second) + 2; lines == 0 || lines > most {
		t.Errorf("the log has %d lines, want 1 to %d: %s", lines, most, w.log.String())
	}
	if strings.Contains(w.log.String(), "secret") {
		t.Error("the log has the password")
	}
}

func TestMetrics(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 1)
	w.hold("e", "k", "alice", 1).is(201)
	w.hold("e", "k", "alice", 1).is(201)
	w.hold("e", "k", "bob", 1).is(422)
	w.hold("e", "k2", "bob", 1).is(409)
	w.get("/v1/events/nowhere-to-be-seen/holds").is(404)
	w.get("/nowhere-to-be-seen").is(404)
	w.do("BREW", "/v1/events", "").is(405)
	w.stores.Ledger.Close() // the observer is told of a batch after the callers
	text := string(w.get("/metrics").is(200).body)
	for _, line := range []string{
		`tierledger_request_duration_seconds_count{method="POST",route="/v1/events/{event}/holds",status="2xx"} 2`,
		`tierledger_request_duration_seconds_count{method="POST",route="/v1/events/{event}/holds",status="4xx"} 2`,
		`tierledger_request_duration_seconds_count{method="other",route="none",status="4xx"} 2`,
		`tierledger_refusals_total{code="idempotency_mismatch"} 1`,
		`tierledger_refusals_total{code="temporarily_held"} 1`,
		`tierledger_refusals_total{code="not_found"} 1`,
		`tierledger_replays_total 1`,
		`tierledger_entries_total 3`,
		`tierledger_batch_commands_count 6`,
		`tierledger_batch_duration_seconds_count{phase="write"} 3`,
		`tierledger_lock_wait_seconds_count`,
		`tierledger_snapshot_batches_total`,
		`tierledger_queue_depth 0`,
		`tierledger_overdue_hold_seconds 0`,
		`tierledger_due_failures_total 0`,
		`go_goroutines`,
		`process_cpu_seconds_total`,
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("the metrics don't have %s", line)
		}
	}
	for _, private := range []string{"nowhere-to-be-seen", "BREW", "alice"} {
		if strings.Contains(text, private) {
			t.Errorf("the metrics have %s, which a caller made up", private)
		}
	}
}

// A caller that goes away mid-call leaves the service as it was.
func TestCallerGoesAway(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/events/e/holds HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: 1000\r\n\r\n{")
	conn.Close()
	w.hold("e", "k", "alice", 1).is(201)
}
