package payments_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/payments"
)

// roundTrip is a transport in memory.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	return f(r)
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		status := 500
		c, err := payments.NewClient(payments.Options{
			URL: "http://provider.test", Cooldown: time.Minute,
			Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				calls++
				return &http.Response{StatusCode: status, Header: http.Header{},
					Body: io.NopCloser(strings.NewReader(body(operation.String(), "void", "succeeded")))}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		void := func() (payments.Result, error) {
			return c.Void(t.Context(), payments.Step{Operation: operation, Payment: "pay_1"})
		}
		for range 20 {
			r, err := void()
			check(t, r, err, payments.Unknown, payments.ErrUnknownOutcome)
		}
		r, err := void()
		check(t, r, err, payments.NotAttempted, payments.ErrProviderUnavailable)
		if calls != 20 || fault.As(err).RetryAfter != time.Minute {
			t.Errorf("%d calls, retry after %v", calls, fault.As(err).RetryAfter)
		}
		if _, err := c.Lookup(t.Context(), operation); !errors.Is(err, payments.ErrProviderUnavailable) {
			t.Errorf("lookup: %v", err)
		}
		time.Sleep(time.Minute + time.Millisecond) // of the bubble's clock
		status = 201
		for range 6 {
			r, err := void()
			check(t, r, err, payments.Succeeded, nil)
		}
	})
}

// TestBreakerKeepsQuiet: neither refusals, nor callers who give up, nor a fault in five
// open it.
func TestBreakerKeepsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c, err := payments.NewClient(payments.Options{
			URL: "http://provider.test",
			Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				n++
				switch {
				case r.Context().Err() != nil:
					return nil, r.Context().Err()
				case n%5 == 0:
					return nil, io.ErrUnexpectedEOF
				}
				return &http.Response{StatusCode: 409, Header: http.Header{},
					Body: io.NopCloser(strings.NewReader(`{"code":"not_authorized"}`))}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range 400 {
			ctx := t.Context()
			if i%2 == 0 {
				ctx = gone
			}
			if r, err := c.Void(ctx, payments.Step{Operation: operation, Payment: "pay_1"}); errors.Is(err, payments.ErrProviderUnavailable) {
				t.Fatalf("call %d: %+v, %v", i, r, err)
			}
		}
	})
}
