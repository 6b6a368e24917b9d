package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tierledger/tierledger/internal/wait"
)

const (
	// remoteTries bounds how often a request is sent that wasn't answered, or was answered
	// with try again. The key makes all of them one.
	remoteTries = 5
	// remoteTimeout bounds one try: the service waits 15 s for a body, a proxy before it may
	// take it in for longer.
	remoteTimeout = 2 * time.Minute
	// firstWait is the wait after a try when nobody says how long to wait; each such wait is
	// twice the one before.
	firstWait = time.Second
	// longestWait bounds a wait that the service asks for.
	longestWait = 30 * time.Second
	// maxReply bounds an answer: a chart of as many sections as there may be takes less.
	maxReply = 4 << 20
)

// ask is one request to the service.
type ask struct {
	method  string
	path    string
	query   url.Values
	key     string // the change's; "" when nothing is changed
	ifMatch *int64 // nil: any version
	body    []byte // JSON; nil: none
	event   string // that it's about, for what errors say; "" when that isn't known
}

// reached is an answer. Of one that says no, which comes with a *refusal, the body is the
// problem.
type reached struct {
	replayed bool
	body     []byte
}

// deliver sends a request, again if need be, until there's an answer or another try makes
// no sense; show is told how far it is. unknown tells that the change may have been made,
// though no answer says so. The error is a *refusal when the service says no.
func (r *remote) deliver(ctx context.Context, q ask, show func(state string)) (got reached, unknown bool, err error) {
	for pause, try := firstWait, 1; ; try++ {
		sent := newSending(q.body, show)
		got, after, err := r.try(ctx, q, sent)
		unknown = q.key != "" && err != nil && (leftOpen(err, sent) || unknown && !decided(err))
		if err == nil || ctx.Err() != nil || try == remoteTries || !sent.worthMore(err) {
			return got, unknown, err
		}
		if after < 0 {
			after, pause = pause, 2*pause
		}
		show(fmt.Sprintf("waiting to try again: %v", err))
		if !wait.For(ctx, min(after, longestWait)) {
			return got, unknown, ctx.Err()
		}
	}
}

// leftOpen tells whether a try may have done what its error doesn't tell of.
func leftOpen(err error, sent *sending) bool {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.status >= 500 && (refused.Code == "" || refused.Code == "outcome_unknown" || refused.Code == "internal")
	}
	return sent.sent.Load() > 0
}

// decided tells whether an answer is the service's last word on a request under its key,
// whatever became of the tries before.
func decided(err error) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.status < 500 && refused.status != http.StatusTooManyRequests
}

// try sends a request once; after is how long the service asks to wait, negative when it
// doesn't say.
func (r *remote) try(ctx context.Context, q ask, sent *sending) (got reached, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	defer sent.over.Store(true)
	call, err := r.request(ctx, q, sent)
	if err != nil {
		return got, -1, err
	}
	answer, err := r.client.Do(call)
	if err != nil {
		return got, -1, err
	}
	defer answer.Body.Close()
	if got.body, err = io.ReadAll(io.LimitReader(answer.Body, maxReply)); err != nil {
		return reached{}, -1, err
	}
	got.replayed = answer.Header.Get("Idempotency-Replayed") == "true"
	switch answer.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted:
		return got, 0, nil
	}
	refused := &refusal{status: answer.StatusCode}
	_ = json.Unmarshal(got.body, refused) // what isn't there stays empty
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return got, -1, refused
	}
	return got, time.Duration(seconds) * time.Second, refused
}

// request makes the HTTP request of one try.
func (r *remote) request(ctx context.Context, q ask, sent *sending) (*http.Request, error) {
	to := r.url + q.path
	if len(q.query) > 0 {
		to += "?" + q.query.Encode()
	}
	call, err := http.NewRequestWithContext(ctx, q.method, to, nil)
	if err != nil {
		return nil, err
	}
	if q.body != nil {
		call.Body, call.ContentLength = io.NopCloser(sent), sent.size
		call.Header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		call.Header.Set("Idempotency-Key", q.key)
	}
	if q.ifMatch != nil {
		call.Header.Set("If-Match", strconv.Quote(strconv.FormatInt(*q.ifMatch, 10)))
	}
	if r.key != "" {
		call.Header.Set("Authorization", "Bearer "+r.key)
	}
	return call, nil
}

// sending is a body that tells how far it's sent. The connection may go on reading it for
// a while after there's an answer.
type sending struct {
	body *bytes.Reader // the connection's
	size int64
	sent atomic.Int64
	over atomic.Bool // nobody is to be told any more
	show func(state string)
}

func newSending(body []byte, show func(state string)) *sending {
	return &sending{body: bytes.NewReader(body), size: int64(len(body)), show: show}
}

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	sent := s.sent.Add(int64(n))
	switch {
	case s.over.Load():
	case sent < s.size:
		s.show(fmt.Sprintf("%d %% sent", 100*sent/s.size))
	default:
		s.show("sent, waiting for the answer")
	}
	return n, err
}

// worthMore tells whether another try may end better: the service was busy, or it was
// reached and didn't answer. Where nobody is, nobody will be.
func (s *sending) worthMore(err error) bool {
	var refused *refusal
	if errors.As(err, &refused) {
		return refused.status == http.StatusServiceUnavailable || refused.status == http.StatusTooManyRequests
	}
	return s.sent.Load() > 0
}
