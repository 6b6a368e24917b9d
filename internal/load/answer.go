package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of an answer; only a broken server sends more.
const (
	maxHeader = 64 << 10
	maxBody   = 4 << 20
)

// Answer is what came back. It's valid until the client's next request.
type Answer struct {
	Status int
	Body   []byte
	header []byte // its lines, as they came
}

// Header gives the value of a header field; "" when there's none.
func (a *Answer) Header(name string) string {
	for line := range bytes.Lines(a.header) {
		field, value, _ := bytes.Cut(line, []byte(":"))
		if len(field) == len(name) && strings.EqualFold(string(field), name) {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// Code gives the code of a problem document; "" when the body is none.
func (a *Answer) Code() string {
	var problem struct {
		Code string `json:"code"`
	}
	if a.Status < 400 || json.Unmarshal(a.Body, &problem) != nil {
		return ""
	}
	return problem.Code
}

// Replayed tells whether the key had been used before, for this answer.
func (a *Answer) Replayed() bool { return a.Header("Idempotency-Replayed") == "true" }

// RetryAfter is how long the server asks to wait; 0 when it doesn't.
func (a *Answer) RetryAfter() time.Duration {
	seconds, err := strconv.Atoi(a.Header("Retry-After"))
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// readAnswer reads an answer of HTTP/1.1 into a buffer that is used again. It
// keeps the header as text: making a map of it would cost more than all the rest.
// keep tells whether the server keeps the connection.
func readAnswer(r *bufio.Reader, method string, buf *[]byte) (a Answer, keep bool, err error) {
	b := (*buf)[:0]
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return a, false, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if b = append(b, line...); len(b) > maxHeader {
			return a, false, errors.New("the answer's header is too long")
		}
	}
	a.header = b
	status, ok := bytes.CutPrefix(b, []byte("HTTP/1.1 "))
	if a.Status, err = strconv.Atoi(string(status[:min(3, len(status))])); !ok || err != nil {
		return a, false, fmt.Errorf("not an answer of HTTP/1.1: %.40q", b)
	}
	b, err = readBody(r, &a, method, b)
	*buf = b
	a.header, a.Body = b[:len(a.header)], b[len(a.header):]
	return a, !strings.EqualFold(a.Header("Connection"), "close"), err
}

// readBody appends the body that the header announces.
func readBody(r *bufio.Reader, a *Answer, method string, b []byte) ([]byte, error) {
	if method == http.MethodHead || a.Status == http.StatusNoContent || a.Status == http.StatusNotModified {
		return b, nil
	}
	if strings.EqualFold(a.Header("Transfer-Encoding"), "chunked") {
		body, err := io.ReadAll(io.LimitReader(httputil.NewChunkedReader(r), maxBody))
		if err == nil {
			_, err = r.ReadSlice('\n') // no trailers, an empty line
		}
		return append(b, body...), err
	}
	n, err := strconv.Atoi(a.Header("Content-Length"))
	if err != nil || n < 0 || n > maxBody {
		return b, fmt.Errorf("the answer's length is %q", a.Header("Content-Length"))
	}
	start := len(b)
	b = slices.Grow(b, n)[:start+n]
	_, err = io.ReadFull(r, b[start:])
	return b, err
}
