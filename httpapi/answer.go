package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/tierledger/tierledger/ledger"
)

// Values of headers, shared by all answers; nobody may change them.
var (
	typeJSON    = []string{"application/json"}
	typeProblem = []string{"application/problem+json"}
	typeYAML    = []string{"application/yaml"}
	yes         = []string{"true"}
)

// answer is what a call gets.
type answer struct {
	status   int
	code     string   // of the problem, "" for none
	kind     []string // Content-Type; nil: JSON
	body     []byte
	version  ledger.Seq // the entity tag; 0 for none
	replayed bool
	headers  http.Header  // further ones
	raw      http.Handler // writes the answer instead
}

// write sends the answer in one go.
func (a *answer) write(w http.ResponseWriter, c *call) {
	h := w.Header()
	h["X-Request-Id"] = []string{c.id}
	if a.raw != nil {
		a.raw.ServeHTTP(w, c.request)
		return
	}
	for name, values := range a.headers {
		h[name] = values
	}
	if a.version != 0 {
		h["Etag"] = []string{`"` + strconv.FormatInt(int64(a.version), 10) + `"`}
	}
	if a.replayed {
		h["Idempotency-Replayed"] = yes
	}
	if len(a.body) > 0 {
		h["Content-Type"] = typeJSON
		if a.kind != nil {
			h["Content-Type"] = a.kind
		}
	}
	w.WriteHeader(a.status)
	if len(a.body) > 0 {
		_, _ = w.Write(a.body) // the caller may be gone; there's nobody else to tell
	}
}

// accepted answers a command with what its entry records, byte for byte.
func accepted(status int, version ledger.Seq, r ledger.Receipt) answer {
	return answer{status: status, body: r.Data, version: version, replayed: r.Replayed}
}

// found answers a read with a value that has no version.
func found(value any) (answer, error) {
	body, err := json.Marshal(value)
	return answer{status: http.StatusOK, body: body}, err
}

// foundVersion answers a read with a value of a version, or says that the caller
// has it already.
func (c *call) foundVersion(version ledger.Seq, value any) (answer, error) {
	if c.has(version) {
		return answer{status: http.StatusNotModified, version: version}, nil
	}
	a, err := found(value)
	a.version = version
	return a, err
}

// has tells whether If-None-Match lists a version. The comparison is the weak
// one (RFC 9110, section 13.1.2); what can't be parsed matches nothing.
func (c *call) has(version ledger.Seq) bool {
	for _, line := range c.request.Header["If-None-Match"] {
		for tag := range strings.SplitSeq(line, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" {
				return true
			}
			text, ok := unquote(strings.TrimPrefix(tag, "W/"))
			if ok && text == strconv.FormatInt(int64(version), 10) {
				return true
			}
		}
	}
	return false
}
