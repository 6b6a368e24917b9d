package payments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// answer is what a provider sent back, whole.
type answer struct {
	status     int
	body       []byte
	retryAfter time.Duration
}

// failure is a call without an answer.
type failure struct {
	sent  bool // something may have reached the provider
	cause error
}

func (f *failure) Error() string { return f.cause.Error() }
func (f *failure) Unwrap() error { return f.cause }

// maybeSent tells whether a call that failed may have reached the provider.
func maybeSent(err error) bool {
	var f *failure
	return !errors.As(err, &f) || f.sent
}

// exchange sends one request through the breaker, within the deadline. The error is a
// *failure; a 5xx is one too, for it says nothing about what was done.
func (c *Client) exchange(ctx context.Context, method, path, key string, body []byte) (answer, error) {
	a, err := c.breaker.Execute(func() (answer, error) {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		return c.send(ctx, method, path, key, body)
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		err = &failure{sent: false, cause: err}
	}
	return a, err
}

func (c *Client) send(ctx context.Context, method, path, key string, body []byte) (answer, error) {
	// A call counts as sent from the moment it has a connection: from there on no error
	// tells how much the provider has read.
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, &failure{sent: false, cause: err}
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
		req.Header.Set("Content-Type", "application/json")
	}
	// The transport repeats requests with such a key by itself when a connection breaks.
	// Without a way to read the body again it can't, once something was written.
	req.GetBody = nil
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, &failure{sent: connected.Load(), cause: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{}, &failure{sent: true, cause: fmt.Errorf("reading the answer: %w", err)}
	case len(text) > maxAnswer:
		return answer{}, &failure{sent: true, cause: fmt.Errorf("the answer has more than %d bytes", maxAnswer)}
	case resp.StatusCode >= http.StatusInternalServerError:
		return answer{}, &failure{sent: true, cause: fmt.Errorf("status %d", resp.StatusCode)}
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // a date, or none: 0
	return answer{resp.StatusCode, text, time.Duration(max(seconds, 0)) * time.Second}, nil
}
