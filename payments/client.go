package payments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/sony/gobreaker/v2"

	"github.com/tierledger/tierledger/ledger"
)

// Limits of the calls to a provider.
const (
	dialTimeout     = 3 * time.Second  // a provider that's up answers a SYN at once
	idleTimeout     = 30 * time.Second // shorter than servers keep a connection open
	maxConns        = 512              // at one provider; a stalled one can't take every socket
	maxAnswer       = 64 << 10         // bytes; an operation takes about 1 KiB
	maxAnswerHeader = 16 << 10
)

// The circuit breaker: it opens when most of many calls fail, so a provider that's down
// costs a moment and not a deadline each. A fault rate that a provider can be used with
// doesn't open it.
const (
	breakerWindow = 10 * time.Second // calls that began a deadline and this long ago don't count
	breakerBucket = time.Second
	breakerCalls  = 20  // too few calls tell nothing
	breakerShare  = 0.6 // of them failed
	breakerProbes = 5   // calls let through to see if it's well again
)

// Options configure a Client.
type Options struct {
	// Name is the provider's name in accounts and paths; "" is sim.
	Name string
	// URL is where the provider's paths begin, such as http://127.0.0.1:8080/sim.
	URL string
	// Secrets verify its webhooks. The zero value verifies none.
	Secrets Secrets
	// Timeout bounds a call, MaxTimeout at most; 0 is 10 s. Too short: outcomes are
	// unknown for no reason.
	Timeout time.Duration
	// Cooldown is how long the breaker stays open; 0 is 5 s.
	Cooldown time.Duration
	// Transport carries the calls; nil is a pool of connections of its own.
	Transport http.RoundTripper
}

// Client is a Provider that speaks the simulated provider's protocol over HTTP. It's
// for any number of goroutines.
type Client struct {
	name     string
	url      string
	secrets  Secrets
	timeout  time.Duration
	cooldown time.Duration
	http     http.Client
	breaker  *gobreaker.CircuitBreaker[answer]
}

var _ Provider = (*Client)(nil)

// MaxTimeout bounds a call: whoever made it has the operation to itself for a little
// longer than that.
const MaxTimeout = 20 * time.Second

// ValidName tells whether s can name a provider in accounts, paths and rows: 1 to 32
// lower-case letters, digits and -.
func ValidName(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// NewClient makes a client. It doesn't connect.
func NewClient(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" {
		return nil, errors.New("payment provider's URL: must be http(s)://host[:port][/path]")
	}
	if o.Timeout < 0 || o.Timeout > MaxTimeout || o.Cooldown < 0 {
		return nil, fmt.Errorf("payment provider: timeout must be at most %s, and neither it nor cooldown negative", MaxTimeout)
	}
	if o.Name != "" && !ValidName(o.Name) {
		return nil, errors.New("payment provider's name: must have 1 to 32 lower-case letters, digits and -")
	}
	c := &Client{
		name: o.Name, url: strings.TrimSuffix(o.URL, "/"), secrets: o.Secrets,
		timeout: o.Timeout, cooldown: o.Cooldown,
		http: http.Client{
			Transport:     o.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if c.name == "" {
		c.name = "sim"
	}
	if c.timeout == 0 {
		c.timeout = 10 * time.Second
	}
	if c.cooldown == 0 {
		c.cooldown = 5 * time.Second
	}
	if c.http.Transport == nil {
		c.http.Transport = newTransport()
	}
	c.breaker = gobreaker.NewCircuitBreaker[answer](gobreaker.Settings{
		Name: c.name, Interval: c.timeout + breakerWindow, BucketPeriod: breakerBucket,
		Timeout: c.cooldown, MaxRequests: breakerProbes,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			ended := n.TotalSuccesses + n.TotalFailures
			return ended >= breakerCalls && float64(n.TotalFailures) >= breakerShare*float64(ended)
		},
		// A caller that gave up says nothing about the provider.
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
	})
	return c, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxConnsPerHost:        maxConns,
		MaxIdleConnsPerHost:    maxConns,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}

// Close ends the connections that no call uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Name implements Provider.
func (c *Client) Name() string { return c.name }

// methodTransfer is the method by which buyers send the money themselves.
const methodTransfer = "sim_transfer"

// keyLifetime is when the provider forgets a call.
const keyLifetime = 24 * time.Hour

// Capabilities implements Provider.
func (c *Client) Capabilities(method string) Capabilities {
	own := method != methodTransfer
	return Capabilities{SeparateCapture: own, Cancellable: own, KeyLifetime: keyLifetime}
}

// paymentRequest and stepRequest are the bodies of calls.
type paymentRequest struct {
	Reference uuid.UUID         `json:"reference"`
	Amount    ledger.Amount     `json:"amount"`
	Currency  ledger.Unit       `json:"currency"`
	Method    string            `json:"payment_method"`
	Capture   string            `json:"capture"` // manual or automatic
	ReturnURL string            `json:"return_url,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

type stepRequest struct {
	Reference uuid.UUID     `json:"reference"`
	Amount    ledger.Amount `json:"amount,omitempty"`
	Currency  ledger.Unit   `json:"currency,omitempty"`
}

// Authorize implements Provider.
func (c *Client) Authorize(ctx context.Context, a Authorization) (Result, error) {
	capture := "automatic"
	if c.Capabilities(a.Method).SeparateCapture {
		capture = "manual"
	}
	return c.call(ctx, Authorize, a.Operation, "/payments", paymentRequest{
		Reference: a.Operation, Amount: a.Amount.Amount, Currency: a.Amount.Currency,
		Method: a.Method, Capture: capture, ReturnURL: a.ReturnURL, Metadata: a.Metadata,
	})
}

// Capture implements Provider.
func (c *Client) Capture(ctx context.Context, s Step) (Result, error) {
	return c.step(ctx, Capture, "capture", s, true)
}

// Void implements Provider.
func (c *Client) Void(ctx context.Context, s Step) (Result, error) {
	return c.step(ctx, Void, "void", s, false)
}

// Refund implements Provider.
func (c *Client) Refund(ctx context.Context, s Step) (Result, error) {
	return c.step(ctx, Refund, "refunds", s, true)
}

// CancelIntent implements Provider.
func (c *Client) CancelIntent(ctx context.Context, s Step) (Result, error) {
	return c.step(ctx, Cancel, "cancel", s, false)
}

func (c *Client) step(ctx context.Context, kind Kind, verb string, s Step, amount bool) (Result, error) {
	body := stepRequest{Reference: s.Operation}
	if amount {
		body.Amount, body.Currency = s.Amount.Amount, s.Amount.Currency
	}
	return c.call(ctx, kind, s.Operation, "/payments/"+url.PathEscape(s.Payment)+"/"+verb, body)
}

// call makes one call and says what came of it.
func (c *Client) call(ctx context.Context, kind Kind, operation uuid.UUID, path string, body any) (Result, error) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // the bodies have nothing that can't be JSON
	}
	r := Result{Operation: operation, Kind: kind}
	a, err := c.exchange(ctx, http.MethodPost, path, operation.String(), text)
	if err == nil {
		return r.judge(a)
	}
	if !maybeSent(err) {
		return r.notAttempted(err, c.cooldown)
	}
	return r.unknown(err)
}

// Lookup implements Provider.
func (c *Client) Lookup(ctx context.Context, operation uuid.UUID) (Finding, error) {
	a, err := c.exchange(ctx, http.MethodGet, "/operations/"+operation.String(), "", nil)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("status %d", a.status)
	}
	var found operationList
	if err == nil {
		err = found.parse(a.body, operation)
	}
	if err != nil {
		return Finding{}, ErrProviderUnavailable.Because("looking up operation %s failed", operation).
			After(c.cooldown).From(err)
	}
	switch len(found.Data) {
	case 0:
		return Finding{AsOf: found.AsOf}, nil
	case 1:
		return Finding{Found: true, AsOf: found.AsOf, Result: found.Data[0].result()}, nil
	}
	return Finding{}, ErrUnknownOutcome.Because("the provider has %d operations under the id %s", len(found.Data), operation)
}

// ParseWebhook implements Provider.
func (c *Client) ParseWebhook(body []byte, header http.Header, now time.Time) (Event, error) {
	id, err := c.secrets.Verify(header, body, now)
	if err != nil {
		return Event{}, err
	}
	var w webhook
	if err := w.parse(body); err != nil {
		return Event{}, ErrWebhookUnreadable.Because("webhook %s", id).From(err)
	}
	return Event{ID: id, Type: w.Type, OccurredAt: w.Timestamp, Result: w.Data.result()}, nil
}

// ReadWebhook implements Provider.
func (c *Client) ReadWebhook(body []byte) (Result, error) {
	var w webhook
	if err := w.parse(body); err != nil {
		return Result{}, ErrWebhookUnreadable.Because("").From(err)
	}
	return w.Data.result(), nil
}
