package payments_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/payments"
)

var (
	operation = uuid.MustParse("00000007-aaaa-8bbb-8ccc-dddddddddddd")
	usd106    = buckets.Money{Amount: 10600, Currency: "USD"}
)

func newClient(t testing.TB, url string) *payments.Client {
	t.Helper()
	c, err := payments.NewClient(payments.Options{URL: url, Timeout: payments.MaxTimeout, Secrets: secrets(t, vectorSecret)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// body is an answer of the provider, about an operation.
func body(reference, kind, status string) string {
	return fmt.Sprintf(`{"id":"op_1","reference":%q,"kind":%q,"status":%q,"reason":"r","amount":10600,"currency":"USD",
		"updated_at":"2026-11-30T12:00:00Z","new_field":1,
		"payment":{"id":"pay_1","reference":%q,"status":"captured","currency":"USD","amount":10600,"authorized":10600,"captured":10600}}`,
		reference, kind, status, operation)
}

// TestAnswers has every sort of answer to a capture, and what it means.
func TestAnswers(t *testing.T) {
	captured := body(operation.String(), "capture", "succeeded")
	for _, test := range []struct {
		name    string
		status  int
		body    string
		outcome payments.Outcome
		reason  string
		err     *fault.Def
	}{
		{"done", 201, captured, payments.Succeeded, "r", nil},
		{"done, 200", 200, captured, payments.Succeeded, "r", nil},
		{"pending", 201, body(operation.String(), "capture", "pending"), payments.Pending, "r", nil},
		{"declined", 402, body(operation.String(), "capture", "declined"), payments.Declined, "r", nil},

		{"refused", 409, `{"code":"amount_too_large"}`, payments.Declined, "amount_too_large", nil},
		{"no such payment", 404, `{"code":"payment_not_found"}`, payments.Declined, "payment_not_found", nil},
		{"turned away", 429, `{"code":"rate_limited"}`, payments.NotAttempted, "provider_unavailable", payments.ErrProviderUnavailable},
		{"not let in", 401, ``, payments.NotAttempted, "provider_unavailable", payments.ErrProviderUnavailable},

		{"P29: already captured", 409, `{"code":"already_captured","payment":{"id":"pay_1","captured":10600}}`,
			payments.Unknown, "already_captured", payments.ErrUnknownOutcome},
		{"key reused", 422, `{"code":"idempotency_mismatch"}`, payments.Unknown, "idempotency_mismatch", payments.ErrUnknownOutcome},
		{"P25: bad gateway", 502, captured, payments.Unknown, "", payments.ErrUnknownOutcome},
		{"unavailable", 503, `{"code":"later"}`, payments.Unknown, "", payments.ErrUnknownOutcome},
		{"garbage", 200, `<html>welcome</html>`, payments.Unknown, "", payments.ErrUnknownOutcome},
		{"empty", 201, ``, payments.Unknown, "", payments.ErrUnknownOutcome},
		{"empty object", 201, `{}`, payments.Unknown, "", payments.ErrUnknownOutcome},
		{"another operation", 201, body(uuid.NewString(), "capture", "succeeded"), payments.Unknown, "", payments.ErrUnknownOutcome},
		{"another kind", 201, body(operation.String(), "void", "succeeded"), payments.Unknown, "", payments.ErrUnknownOutcome},
		{"a status that we don't know", 201, body(operation.String(), "capture", "fine"), payments.Unknown, "", payments.ErrUnknownOutcome},
		{"declined with 201", 201, body(operation.String(), "capture", "declined"), payments.Unknown, "", payments.ErrUnknownOutcome},
		{"done with 402", 402, captured, payments.Unknown, "", payments.ErrUnknownOutcome},
		{"a redirect", 302, ``, payments.Unknown, "", payments.ErrUnknownOutcome},
		{"somebody else's 404", 404, `not found`, payments.Unknown, "", payments.ErrUnknownOutcome},
		{"request timeout", 408, `{"code":"timeout"}`, payments.Unknown, "", payments.ErrUnknownOutcome},
		{"endless", 200, strings.Repeat(" ", 65<<10) + captured, payments.Unknown, "", payments.ErrUnknownOutcome},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/payments/pay_1/capture" || r.Header.Get("Idempotency-Key") != operation.String() {
					t.Errorf("%s under %q", r.URL.Path, r.Header.Get("Idempotency-Key"))
				}
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			r, err := newClient(t, server.URL).Capture(t.Context(), payments.Step{Operation: operation, Payment: "pay_1", Amount: usd106})
			check(t, r, err, test.outcome, test.err)
			if r.Reason != test.reason || r.Operation != operation || r.Kind != payments.Capture {
				t.Errorf("%+v", r)
			}
			if r.Outcome == payments.Succeeded && (r.Amount != usd106 || r.Payment.Captured != 10600 || r.Payment.Operation != operation || r.At.IsZero()) {
				t.Errorf("%+v", r)
			}
			if test.status == 429 && fault.As(err).RetryAfter != 7*time.Second {
				t.Errorf("retry after %v", fault.As(err).RetryAfter)
			}
		})
	}
}

func check(t testing.TB, r payments.Result, err error, outcome payments.Outcome, def *fault.Def) {
	t.Helper()
	if r.Outcome != outcome {
		t.Errorf("outcome %q, want %q (%v)", r.Outcome, outcome, err)
	}
	if def == nil && err != nil || def != nil && !errors.Is(err, def) {
		t.Errorf("error %v, want %v", err, def)
	}
}

// rawServer gives every connection's first request to serve, as bytes.
func rawServer(t *testing.T, serve func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := conn.Read(make([]byte, 4096)); err == nil {
				serve(conn.(*net.TCPConn))
			}
			conn.Close()
		}
	}()
	return "http://" + listener.Addr().String()
}

// TestBrokenCalls has the ways in which a call gets no answer.
func TestBrokenCalls(t *testing.T) {
	authorize := func(ctx context.Context, url string) (payments.Result, error) {
		return newClient(t, url).Authorize(ctx, payments.Authorization{Operation: operation, Amount: usd106, Method: "sim_ok"})
	}
	t.Run("connection refused", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		r, err := authorize(t.Context(), server.URL)
		check(t, r, err, payments.NotAttempted, payments.ErrProviderUnavailable)
	})
	t.Run("no TLS", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") }))
		defer server.Close()
		r, err := authorize(t.Context(), "https://"+server.Listener.Addr().String())
		check(t, r, err, payments.NotAttempted, payments.ErrProviderUnavailable)
	})
	t.Run("given up before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r, err := authorize(ctx, rawServer(t, func(*net.TCPConn) { t.Error("called") }))
		check(t, r, err, payments.NotAttempted, payments.ErrProviderUnavailable)
	})
	t.Run("reset after send", func(t *testing.T) {
		r, err := authorize(t.Context(), rawServer(t, func(c *net.TCPConn) { _ = c.SetLinger(0) }))
		check(t, r, err, payments.Unknown, payments.ErrUnknownOutcome)
	})
	t.Run("closed after send", func(t *testing.T) {
		r, err := authorize(t.Context(), rawServer(t, func(*net.TCPConn) {}))
		check(t, r, err, payments.Unknown, payments.ErrUnknownOutcome)
	})
	t.Run("answer cut short", func(t *testing.T) {
		r, err := authorize(t.Context(), rawServer(t, func(c *net.TCPConn) {
			_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{")
		}))
		check(t, r, err, payments.Unknown, payments.ErrUnknownOutcome)
	})
	t.Run("not HTTP", func(t *testing.T) {
		r, err := authorize(t.Context(), rawServer(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "220 mail ready\r\n") }))
		check(t, r, err, payments.Unknown, payments.ErrUnknownOutcome)
	})
	t.Run("timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // the deadline comes when the call has been sent, and not before
			here, there := net.Pipe()
			defer there.Close()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			c, err := payments.NewClient(payments.Options{URL: "http://provider.test", Timeout: 50 * time.Millisecond,
				Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil }}})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			r, err := c.Authorize(t.Context(), payments.Authorization{Operation: operation, Amount: usd106, Method: "sim_ok"})
			check(t, r, err, payments.Unknown, payments.ErrUnknownOutcome)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 50*time.Millisecond {
				t.Errorf("after %v: cause %v", time.Since(start), err)
			}
		})
	})
}

// TestNoRepeatInside: net/http repeats requests with an Idempotency-Key by itself when
// a connection that was used before breaks. Ours must not be.
func TestNoRepeatInside(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if requests.Add(1) == 1 {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, body(operation.String(), "void", "succeeded"))
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}))
	defer server.Close()
	c := newClient(t, server.URL)
	r, err := c.Void(t.Context(), payments.Step{Operation: operation, Payment: "pay_1"})
	check(t, r, err, payments.Succeeded, nil)
	r, err = c.Void(t.Context(), payments.Step{Operation: operation, Payment: "pay_1"})
	check(t, r, err, payments.Unknown, payments.ErrUnknownOutcome)
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests for 2 calls", n)
	}
}

func TestLookup(t *testing.T) {
	const asOf = `"as_of":"2026-11-30T12:00:00Z"`
	one := body(operation.String(), "refund", "pending")
	for _, test := range []struct {
		name   string
		status int
		body   string
		found  bool
		err    *fault.Def
	}{
		{"found", 200, `{"data":[` + one + `],` + asOf + `}`, true, nil},
		{"not found", 200, `{"data":[],` + asOf + `}`, false, nil},
		{"no time", 200, `{"data":[]}`, false, payments.ErrProviderUnavailable},
		{"no list", 200, `{` + asOf + `}`, false, payments.ErrProviderUnavailable},
		{"garbage", 200, `]`, false, payments.ErrProviderUnavailable},
		{"a 404 proves nothing", 404, `{"code":"not_found"}`, false, payments.ErrProviderUnavailable},
		{"error", 500, ``, false, payments.ErrProviderUnavailable},
		{"somebody else's", 200, `{"data":[` + body(uuid.NewString(), "refund", "pending") + `],` + asOf + `}`, false, payments.ErrProviderUnavailable},
		{"two", 200, `{"data":[` + one + `,` + one + `],` + asOf + `}`, false, payments.ErrUnknownOutcome},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer server.Close()
			f, err := newClient(t, server.URL).Lookup(t.Context(), operation)
			if f.Found != test.found || test.err == nil && (err != nil || f.AsOf.IsZero()) || test.err != nil && !errors.Is(err, test.err) {
				t.Errorf("%+v, %v", f, err)
			}
			if f.Found && (f.Result.Outcome != payments.Pending || f.Result.Kind != payments.Refund || f.Result.Operation != operation) {
				t.Errorf("%+v", f.Result)
			}
		})
	}
}

func TestParseWebhook(t *testing.T) {
	c := newClient(t, "http://provider.test")
	at := time.Unix(vectorSeconds, 0)
	event := func(data string) string {
		return `{"type":"capture.succeeded","timestamp":"2021-02-25T15:00:00Z","data":` + data + `}`
	}
	for _, test := range []struct {
		name, body string
		operation  uuid.UUID
		err        *fault.Def
	}{
		{"ours", event(body(operation.String(), "capture", "succeeded")), operation, nil},
		{"P20: a payment that isn't ours", event(body("invoice 12", "capture", "succeeded")), uuid.Nil, nil},
		{"an id in another form isn't ours", event(body("{"+operation.String()+"}", "capture", "succeeded")), uuid.Nil, nil},
		{"not JSON", `paid`, uuid.Nil, payments.ErrWebhookUnreadable},
		{"no event", `{}`, uuid.Nil, payments.ErrWebhookUnreadable},
		{"no operation", event(`{}`), uuid.Nil, payments.ErrWebhookUnreadable},
		{"a kind that we don't know", event(body("x", "gift", "succeeded")), uuid.Nil, payments.ErrWebhookUnreadable},
	} {
		header := http.Header{}
		secrets(t, vectorSecret).Sign(header, vectorID, at, []byte(test.body))
		e, err := c.ParseWebhook([]byte(test.body), header, at)
		if test.err != nil {
			if !errors.Is(err, test.err) {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err != nil || e.ID != vectorID || e.Type != "capture.succeeded" || e.OccurredAt.IsZero() ||
			e.Result.Operation != test.operation || e.Result.Payment.Operation != operation {
			t.Errorf("%s: %+v, %v", test.name, e, err)
		}
	}
	if _, err := c.ParseWebhook([]byte("{}"), http.Header{}, at); !errors.Is(err, payments.ErrWebhookSignatureInvalid) {
		t.Errorf("unsigned: %v", err)
	}
}

func TestNewClientRefuses(t *testing.T) {
	for _, o := range []payments.Options{
		{}, {URL: "provider.test"}, {URL: "ftp://provider.test"}, {URL: "http://"}, {URL: "http://a?b=c"},
		{URL: "http://provider.test", Timeout: -1}, {URL: "http://provider.test", Cooldown: -1},
	} {
		if _, err := payments.NewClient(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
