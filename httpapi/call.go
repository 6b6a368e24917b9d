package httpapi

import (
	"bytes"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// maxBody bounds a request's body: more than the largest entry needs.
const maxBody = 64 << 10

// call is one request on its way to an answer.
type call struct {
	request *http.Request
	started time.Time
	id      string // X-Request-Id
	traceID string // of traceparent, "" for none
	route   *route // nil when there's none
	vars    map[string]string
	query   url.Values
	caller  caller

	replayed bool // its refusal is the answer to an earlier call under its key
}

// attributes describe the call in the log.
func (c *call) attributes() []slog.Attr {
	attrs := []slog.Attr{slog.String("request_id", c.id), slog.String("method", c.method()), slog.String("route", c.path())}
	if c.traceID != "" {
		attrs = append(attrs, slog.String("trace_id", c.traceID))
	}
	if c.caller.principal != "" {
		attrs = append(attrs, slog.String("principal", c.caller.principal))
	}
	return attrs
}

// path is the route's template: there are few, whatever callers send.
func (c *call) path() string {
	if c.route == nil {
		return "none"
	}
	return c.route.path
}

// method is the request's, "other" when no route was found for it.
func (c *call) method() string {
	if c.route == nil {
		return "other"
	}
	return c.request.Method
}

// readQuery takes the parameters.
func (c *call) readQuery() (err error) {
	if c.request.URL.RawQuery != "" {
		c.query, err = c.route.parseQuery(c.request.URL.RawQuery)
	}
	return err
}

// parseQuery reads parameters. One that the route doesn't know is refused: a
// misspelt dry_run must not write.
func (r *route) parseQuery(text string) (url.Values, error) {
	query, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.BadField("query", "isn't a valid query string")
	}
	for name, values := range query {
		switch {
		case !slices.Contains(r.query, name):
			return nil, fault.BadField(clip(name), "isn't a query parameter of this call")
		case len(values) > 1:
			return nil, fault.BadField(name, "is given more than once")
		case !plain(values[0]):
			return nil, fault.BadField(name, "must be text without control characters")
		}
	}
	return query, nil
}

// dryRun tells whether the call asks only what would happen.
func (c *call) dryRun() (bool, error) {
	switch c.query.Get("dry_run") {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, fault.BadField("dry_run", "must be true or false")
}

// ifMatch gives the version that the caller has seen; nil when any will do.
func (c *call) ifMatch() (*ledger.Seq, error) {
	values := c.request.Header.Values("If-Match")
	if len(values) == 0 || len(values) == 1 && values[0] == "*" {
		return nil, nil
	}
	text, ok := unquote(strings.Join(values, ","))
	version, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || version < 0 || text != strconv.FormatInt(version, 10) {
		return nil, fault.BadField("If-Match", `must be one version in quotes, such as "7", or *`)
	}
	return (*ledger.Seq)(&version), nil
}

// unconditional refuses a condition that the operation couldn't honour: ignoring
// it would do what the caller asked not to do.
func (c *call) unconditional() error {
	if c.request.Header["If-Match"] != nil {
		return fault.BadField("If-Match", "isn't supported by this call")
	}
	return nil
}

// unquote takes the quotes off an entity tag.
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	return s[1 : len(s)-1], true
}

// body reads a JSON body into the struct that dst points to.
func (c *call) body(dst any) error {
	text, err := c.text(maxBody)
	if err != nil {
		return err
	}
	return decode(text, dst)
}

// noBody accepts no body, or an empty object for clients that can't send none.
func (c *call) noBody() error {
	text, err := c.text(maxBody)
	if err != nil || len(text) == 0 {
		return err
	}
	return decode(text, &struct{}{})
}

// text reads a JSON body of at most some bytes.
func (c *call) text(most int64) ([]byte, error) {
	text, err := c.raw(most)
	if err != nil {
		return nil, err
	}
	if kind := c.request.Header.Get("Content-Type"); len(text) > 0 && !isKind(kind, "application/json") {
		return nil, fault.BadField("Content-Type", "must be application/json")
	}
	return text, nil
}

// raw reads a body of any type, of at most some bytes. Room for a large one is made as it
// comes, not as it's announced.
func (c *call) raw(most int64) ([]byte, error) {
	size := c.request.ContentLength
	if size > most {
		return nil, tooLarge(most)
	}
	var text bytes.Buffer
	if size > 0 {
		text.Grow(int(min(size, maxBody)) + bytes.MinRead)
	}
	n, err := text.ReadFrom(io.LimitReader(c.request.Body, most+1))
	switch {
	case n > most:
		return nil, tooLarge(most)
	case err != nil:
		return nil, fault.BadField("body", "couldn't be read to its end").From(err)
	}
	return text.Bytes(), nil
}

func tooLarge(most int64) error { return fault.BadField("body", "must have at most %d bytes", most) }

// isKind accepts a media type in UTF-8; a missing one is taken for it.
func isKind(given, want string) bool {
	if given == "" || given == want {
		return true
	}
	kind, parameters, err := mime.ParseMediaType(given)
	charset, named := parameters["charset"]
	return err == nil && kind == want &&
		(len(parameters) == 0 || named && len(parameters) == 1 && strings.EqualFold(charset, "utf-8"))
}
