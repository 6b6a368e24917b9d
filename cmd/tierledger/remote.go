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
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

const (
	// defaultURL is where dev serves.
	defaultURL = "http://127.0.0.1:8080"
	// remoteTries bounds how often a request is sent that wasn't answered, or was answered
	// with try again. The key makes all of them one.
	remoteTries = 5
	// remoteTimeout bounds one try: the service waits 15 s for a body, a proxy before it may
	// take it in for longer.
	remoteTimeout = 2 * time.Minute
	// firstWait is the wait after a try without an answer; each is twice the one before.
	firstWait = time.Second
	// longestWait bounds a wait that the service asks for.
	longestWait = 30 * time.Second
	// maxReply bounds an answer: a chart of as many sections as there may be takes less.
	maxReply = 4 << 20
)

// remote is a service that a command calls over HTTP.
type remote struct {
	url     string
	key     string
	keyFile string
	client  http.Client
}

// flags adds how the service is found, and the key for it, to a command.
func (r *remote) flags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&r.url, "url", defaultURL, "`URL` of the service (or "+envName("url")+")")
	flags.StringVar(&r.keyFile, "key-file", "", "`FILE` that has the API key, and nothing else (or "+envName("key-file")+")")
	flags.StringVar(&r.key, "key", "", "API `KEY`; better in "+envName("key")+" or a file, where nobody sees it")
	c.MarkFlagsMutuallyExclusive("key", "key-file")
}

// prepare checks the settings and reads the key. Its errors don't show the key.
func (r *remote) prepare() error {
	u, err := url.Parse(r.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return usagef("url: not a URL such as %s or https://tickets.example.com", defaultURL)
	}
	r.url = strings.TrimRight(r.url, "/")
	if r.key != "" && r.keyFile != "" {
		return usagef("key, key-file: give one of them")
	}
	if r.keyFile != "" {
		text, err := os.ReadFile(r.keyFile)
		if err != nil {
			return fmt.Errorf("read the API key: %w", err)
		}
		if r.key = strings.TrimSpace(string(text)); r.key == "" {
			return usagef("key-file: %s is empty", r.keyFile)
		}
	}
	if strings.ContainsFunc(r.key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return usagef("key, key-file: a key is one word; `tierledger keys new` makes one")
	}
	// The key is for this service: it doesn't follow it anywhere else.
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return nil
}

// reached is an answer that the service did what was asked, now or before.
type reached struct {
	replayed bool
	body     []byte
}

// refusal is an answer that it didn't.
type refusal struct {
	status    int
	Code      string `json:"code"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
}

// Error gives what the service said; for what no service of ours says, the status.
func (r *refusal) Error() string {
	if r.Code == "" {
		return fmt.Sprintf("%d %s: is that a tierledger?", r.status, http.StatusText(r.status))
	}
	text := fmt.Sprintf("%d %s", r.status, r.Code)
	if r.Detail != "" {
		text += ": " + r.Detail
	} else if r.Title != "" {
		text += ": " + r.Title
	}
	if r.status >= 500 && r.RequestID != "" {
		text += " (request " + r.RequestID + ")"
	}
	return text
}

// post sends a request under a key, again if need be, until it's answered. show is told
// how far it is. The error is a *refusal when the service says no.
func (r *remote) post(ctx context.Context, path, key string, body []byte, show func(state string)) (reached, error) {
	for wait, try := firstWait, 1; ; try++ {
		sent := newSending(body, show)
		got, after, err := r.try(ctx, path, key, sent)
		if err == nil || ctx.Err() != nil || try == remoteTries || !sent.worthMore(err) {
			return got, err
		}
		if after == 0 {
			after, wait = wait, 2*wait
		}
		show("waiting to try again")
		timer := time.NewTimer(min(after, longestWait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return got, ctx.Err()
		}
	}
}

// try sends a request once; after is how long the service asks to wait.
func (r *remote) try(ctx context.Context, path, key string, body *sending) (got reached, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	defer body.over.Store(true)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, body)
	if err != nil {
		return got, 0, err
	}
	request.ContentLength = body.size
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	if r.key != "" {
		request.Header.Set("Authorization", "Bearer "+r.key)
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return got, 0, err
	}
	defer answer.Body.Close()
	got.body, err = io.ReadAll(io.LimitReader(answer.Body, maxReply))
	if err != nil {
		return got, 0, err
	}
	got.replayed = answer.Header.Get("Idempotency-Replayed") == "true"
	if answer.StatusCode == http.StatusCreated || answer.StatusCode == http.StatusOK {
		return got, 0, nil
	}
	refused := &refusal{status: answer.StatusCode}
	_ = json.Unmarshal(got.body, refused) // what isn't there stays empty
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		after = time.Duration(seconds) * time.Second
	}
	return got, after, refused
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
