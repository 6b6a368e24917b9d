package httpapi_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/seats"
)

// stream is what a reader of a map's changes gets, event by event.
type stream struct {
	t      *testing.T
	cancel context.CancelFunc
	proto  int // major version of HTTP
	body   io.ReadCloser
	lines  *bufio.Scanner
}

// happening is an event of a stream.
type happening struct {
	id      string
	changes seats.Changes
}

// streaming reads without a limit to the whole answer, from tests' servers also over
// HTTP/2.
var streaming = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableCompression: true,
}}

// follow opens a stream of changes: the path is below that of the events.
func (w *world) follow(path string, headers ...string) *stream {
	w.t.Helper()
	s, status := w.tryFollow(path, headers...)
	if status != 200 {
		w.t.Fatalf("the stream %s got %d", path, status)
	}
	return s
}

// tryFollow is follow that may be refused.
func (w *world) tryFollow(path string, headers ...string) (*stream, int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	request, err := http.NewRequestWithContext(ctx, "GET", w.url+"/v1/events/"+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := streaming.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &stream{w.t, cancel, response.ProtoMajor, response.Body, bufio.NewScanner(response.Body)}
	s.lines.Buffer(nil, 16<<20)
	w.t.Cleanup(s.close)
	h := response.Header
	if response.StatusCode == 200 && (h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" ||
		h.Get("X-Request-Id") == "") {
		w.t.Errorf("the stream has the headers %v", h)
	}
	return s, response.StatusCode
}

func (s *stream) close() {
	s.cancel()
	s.body.Close()
}

// next reads an event; false at the end of the stream.
func (s *stream) next() (h happening, more bool) {
	s.t.Helper()
	said := false
	for s.lines.Scan() {
		line := s.lines.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && said:
			return h, true
		case line == "" || name == "retry":
		case name == "id":
			h.id = value
		case name == "event" && value == "changes":
		case name == "data":
			said = true
			if err := json.Unmarshal([]byte(value), &h.changes); err != nil {
				s.t.Errorf("%v in %s", err, line)
			}
			if h.id != fmt.Sprint(h.changes.Version) {
				s.t.Errorf("the event %s comes to %d", h.id, h.changes.Version)
			}
		default:
			s.t.Errorf("the stream has the line %q", line)
		}
	}
	return h, false
}

// event reads the next event, which there must be.
func (s *stream) event() happening {
	s.t.Helper()
	h, more := s.next()
	if !more {
		s.t.Fatalf("the stream has ended: %v", s.lines.Err())
	}
	return h
}

// until reads events up to the one that comes to a version.
func (s *stream) until(version string) happening {
	s.t.Helper()
	for {
		if h := s.event(); h.id == version {
			return h
		}
	}
}

// picture is a map as a reader keeps it.
type picture struct {
	version int64
	states  map[string]seats.State
}

var byLetter = map[byte]seats.State{'a': seats.Available, 'h': seats.Held, 's': seats.Sold, 'b': seats.Blocked}

// draw makes a picture of a map.
func draw(t *testing.T, body []byte) picture {
	t.Helper()
	var m struct {
		Version  int64
		Sections []struct {
			Section string
			Rows    []struct {
				Row    string
				Seats  []string
				States string
			}
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	p := picture{m.Version, make(map[string]seats.State)}
	for _, s := range m.Sections {
		for _, r := range s.Rows {
			for i, name := range r.Seats {
				p.states[seats.Label(s.Section, r.Row, name)] = byLetter[r.States[i]]
			}
		}
	}
	return p
}

// apply makes the changes of an event in the picture. What it has already would be told
// twice. Of each seat it's the last state.
func (p *picture) apply(c seats.Changes) error {
	if int64(c.Version) < p.version || int64(c.Version) == p.version && len(c.Changes) > 0 {
		return fmt.Errorf("an event of version %d with %d changes comes after %d", c.Version, len(c.Changes), p.version)
	}
	told := make(map[string]bool)
	for _, d := range c.Changes {
		if d.Version != c.Version {
			return fmt.Errorf("an event of version %d has a change of %d", c.Version, d.Version)
		}
		for _, label := range d.Seats {
			if told[label] || p.states[label] == "" {
				return fmt.Errorf("version %d: %s is told twice, or isn't on the map", d.Version, label)
			}
			told[label], p.states[label] = true, d.State
		}
	}
	p.version = int64(c.Version)
	return nil
}
