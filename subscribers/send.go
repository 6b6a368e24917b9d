package subscribers

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/payments"
)

// Limits of a call.
const (
	callTimeout     = 15 * time.Second // of all of it; a receiver should answer first and work then
	bodyTimeout     = time.Second      // of the answer's body: the status has said what matters
	dialTimeout     = 5 * time.Second
	idleTimeout     = 60 * time.Second
	maxAnswer       = 64 << 10 // bytes that are read so that the connection can be used again
	maxAnswerHeader = 16 << 10
	maxResponse     = 1 << 10 // bytes that are kept
	maxIdle         = 256
)

// Statuses with a meaning of their own.
const (
	statusGone        = http.StatusGone
	statusTooMany     = http.StatusTooManyRequests
	statusUnavailable = http.StatusServiceUnavailable
)

// userAgent tells a receiver's log who calls.
const userAgent = "tierledger-webhooks/1"

// answer is what came of a call.
type answer struct {
	status     int    // 0: none came
	problem    string // why it isn't delivered, for people; "" when it is
	cause      string // more of why there was no answer, for our log only
	response   string // the beginning of the body
	retryAfter time.Duration
	took       time.Duration
	cancelled  bool // given up by us: nobody knows what came of it
}

func (a *answer) delivered() bool { return a.status/100 == 2 }

// caller makes the calls.
type caller struct {
	http  http.Client
	plain bool // http will do
}

// newCaller makes a caller that reaches public addresses only, unless all are allowed.
// Nothing of the environment, such as a proxy, is used.
func newCaller(allowPrivate bool, resolver *net.Resolver, roots *tls.Config) *caller {
	if roots = roots.Clone(); roots == nil {
		roots = &tls.Config{}
	}
	roots.MinVersion = tls.VersionTLS12
	return &caller{plain: allowPrivate, http: http.Client{
		Transport: &http.Transport{
			DialContext:            dialer(allowPrivate, resolver).DialContext,
			TLSClientConfig:        roots,
			ForceAttemptHTTP2:      true,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: callTimeout, PingTimeout: dialTimeout}, // one that's dead is noticed
			TLSHandshakeTimeout:    dialTimeout,
			IdleConnTimeout:        idleTimeout,
			MaxIdleConns:           maxIdle,
			MaxIdleConnsPerHost:    maxCallsEach,
			MaxResponseHeaderBytes: maxAnswerHeader,
			DisableCompression:     true, // an answer isn't worth it, and could be a bomb
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// close ends the connections that no call uses.
func (c *caller) close() { c.http.CloseIdleConnections() }

// post makes one call, signed at a time. What isn't 2xx is a failure, a redirect too: it's
// never followed.
func (c *caller) post(ctx context.Context, to string, secrets payments.Secrets, id string, at time.Time, body []byte) answer {
	begun := time.Now()
	a := c.exchange(ctx, to, secrets, id, at, body)
	a.took = time.Since(begun)
	a.cancelled = a.status == 0 && errors.Is(ctx.Err(), context.Canceled)
	return a
}

func (c *caller) exchange(ctx context.Context, to string, secrets payments.Secrets, id string, at time.Time, body []byte) (a answer) {
	if !c.plain && !strings.HasPrefix(to, "https://") { // it may be from before that was the rule
		return answer{problem: "the URL must begin with https://"}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline() // the caller's may be earlier
	within := time.Until(deadline)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return answer{problem: "the URL can't be used"}
	}
	req.Header.Set("Content-Type", outbox.ContentType)
	req.Header.Set("User-Agent", userAgent)
	secrets.Sign(req.Header, id, at, body)
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{problem: explain(err, within), cause: inner(err)}
	}
	defer resp.Body.Close()
	defer time.AfterFunc(bodyTimeout, cancel).Stop()
	a.status = resp.StatusCode
	a.response = beginning(resp.Body)
	if !a.delivered() {
		a.problem = "the answer was " + strconv.Itoa(a.status)
		if a.status/100 == 3 {
			a.problem += ": redirects aren't followed"
		}
	}
	if a.status == statusTooMany || a.status == statusUnavailable {
		a.retryAfter = retryAfter(resp.Header.Get("Retry-After"), at)
	}
	return a
}

// beginning reads a little of a body, and on to its end if that isn't far: then the
// connection can be used again. What has come when the body's time is over is kept. What
// can't be kept as text is left out.
func beginning(body io.Reader) string {
	text, err := io.ReadAll(io.LimitReader(body, maxResponse))
	if err == nil {
		_, _ = io.CopyN(io.Discard, body, maxAnswer-maxResponse) // the status has said what matters
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(text), ""))
}

// retryAfter reads how long a receiver asks to wait: seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
