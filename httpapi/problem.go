package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tierledger/tierledger/fault"
)

// statuses is the one table from kinds to statuses.
var statuses = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Declined:        http.StatusPaymentRequired,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Gone:            http.StatusGone,
	fault.Conflict:        http.StatusConflict,
	fault.Precondition:    http.StatusPreconditionFailed,
	fault.Unprocessable:   http.StatusUnprocessableEntity,
	fault.TooMany:         http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
}

// statusOf gives a code's status. HTTP has a status for wrong methods that no
// other way of calling has a kind for.
func statusOf(d *fault.Def) int {
	if d == ErrMethodNotAllowed {
		return http.StatusMethodNotAllowed
	}
	return statuses[d.Kind]
}

// problemType begins the types of problems: where docs/errors.md explains a code.
const problemType = "https://github.com/tierledger/tierledger/blob/main/docs/errors.md#"

// refuse makes the problem document of an error. The cause of an internal error
// goes to the log; the caller gets the request id to ask about.
func (a *api) refuse(ctx context.Context, c *call, err error) answer {
	e := fault.As(err)
	if e == nil || e.Kind == fault.Internal {
		a.Log.LogAttrs(ctx, slog.LevelError, "failed", append(c.attributes(), slog.Any("error", err))...)
		e = fault.ErrInternal.Because("the log has the cause under this request id")
	}
	if e.Kind == fault.Unavailable && e.Cause != nil && a.causes.pass(c.started) {
		a.Log.LogAttrs(ctx, slog.LevelWarn, "was unavailable", append(c.attributes(), slog.Any("error", err))...)
	}
	a.Metrics.refusals.WithLabelValues(e.Code).Inc()
	status := statusOf(e.Def)
	ans := answer{status: status, code: e.Code, kind: typeProblem, replayed: c.replayed, headers: http.Header{}}
	if ans.body, err = problem(e, status, c.id); err != nil {
		return a.refuse(ctx, c, fault.ErrInternal.Because("").From(err))
	}
	if e.RetryAfter > 0 || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		ans.headers.Set("Retry-After", retryAfter(e.RetryAfter))
	}
	switch {
	case e.Def == ErrUnauthenticated:
		ans.headers.Set("WWW-Authenticate", `Bearer realm="tierledger"`)
	case e.Kind == fault.Unauthenticated: // by the signature on the body
		ans.headers.Set("WWW-Authenticate", `StandardWebhooks realm="tierledger"`)
	case e.Def == ErrMethodNotAllowed:
		ans.headers.Set("Allow", strings.Join(a.allowed(c.request), ", "))
	}
	return ans
}

// problem writes a problem document (RFC 9457): the standard members, then the
// facts of the error in their order.
func problem(e *fault.Error, status int, requestID string) ([]byte, error) {
	members := append([]fault.Field{
		{Name: "type", Value: problemType + e.Code},
		{Name: "title", Value: e.Title},
		{Name: "status", Value: status},
		{Name: "detail", Value: e.Detail},
		{Name: "code", Value: e.Code},
		{Name: "request_id", Value: requestID},
	}, e.Fields...)
	body := make([]byte, 0, 512)
	for i, m := range members {
		value, err := json.Marshal(m.Value)
		if err != nil {
			return nil, fmt.Errorf("field %s of %s: %w", m.Name, e.Code, err)
		}
		separator := ","
		if i == 0 {
			separator = "{"
		}
		body = append(body, separator...)
		body = strconv.AppendQuote(body, m.Name)
		body = append(append(body, ':'), value...)
	}
	return append(body, '}'), nil
}

// retryAfter gives whole seconds, rounded up, at least one.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(int64(max(1, (d+time.Second-1)/time.Second)), 10)
}

// throttle lets one of many alike log lines pass per second: an outage under load
// must not fill the disk too.
type throttle struct{ last atomic.Int64 }

func (t *throttle) pass(now time.Time) bool {
	last := t.last.Load()
	return now.Unix() != last && t.last.CompareAndSwap(last, now.Unix())
}
