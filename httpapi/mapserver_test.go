package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/httpapi"
)

// mapServer serves the page of a seat map. What the page asks for comes to the test,
// which answers it: one call after the other, as the page makes them.
type mapServer struct {
	t     *testing.T
	url   string // of the page
	calls chan *mapCall
}

// mapCall is a call of the page that waits for the test's answer. What the answer
// does is done by the server's goroutine, which is gone when the page is.
type mapCall struct {
	t       *testing.T
	request *http.Request
	arrived time.Time
	steps   chan func(http.ResponseWriter) error // closed: the answer is complete
	done    chan error                           // of each step
}

func serveMap(t *testing.T) *mapServer {
	t.Helper()
	s := &mapServer{t: t, calls: make(chan *mapCall)}
	page := httpapi.New(httpapi.Config{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			page.ServeHTTP(w, r)
			return
		}
		c := &mapCall{t, r, time.Now(), make(chan func(http.ResponseWriter) error), make(chan error)}
		select {
		case s.calls <- c:
			c.serve(w)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	s.url = server.URL + "/events/gala/map"
	return s
}

// serve takes the test's steps until it's done or the page is gone.
func (c *mapCall) serve(w http.ResponseWriter) {
	for {
		select {
		case step, more := <-c.steps:
			if !more {
				return
			}
			c.done <- step(w)
		case <-c.request.Context().Done():
			return
		}
	}
}

// step does a part of the answer.
func (c *mapCall) step(do func(http.ResponseWriter) error) {
	c.t.Helper()
	select {
	case c.steps <- do:
		if err := <-c.done; err != nil {
			c.t.Fatalf("%s: %v", c.request.URL, err)
		}
	case <-c.request.Context().Done():
		c.t.Fatalf("%s: the page has given it up", c.request.URL)
	}
}

// next waits for the page's next call, which must be to a path with a query.
func (s *mapServer) next(path string) *mapCall {
	s.t.Helper()
	select {
	case c := <-s.calls:
		if got := c.request.URL.RequestURI(); got != "/v1/events/gala/"+path {
			s.t.Fatalf("the page asks for %s, not for %s", got, path)
		}
		return c
	case <-time.After(sightTimeout):
		s.t.Fatalf("the page doesn't ask for %s", path)
		return nil
	}
}

// has fails the test unless a header has a value, "" for none.
func (c *mapCall) has(name, value string) *mapCall {
	c.t.Helper()
	if got := c.request.Header.Get(name); got != value {
		c.t.Errorf("%s has %s: %q, want %q", c.request.URL, name, got, value)
	}
	return c
}

// answer answers the call: headers are names and values in turn.
func (c *mapCall) answer(status int, body string, headers ...string) {
	c.t.Helper()
	c.step(func(w http.ResponseWriter) error {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		if status == http.StatusNotModified {
			return nil
		}
		_, err := io.WriteString(w, body)
		return err
	})
	close(c.steps)
}

// snapshot answers with the map of some seats in one row, as their letters tell.
func (c *mapCall) snapshot(version int, states string) {
	c.answer(200, mapOf(version, 1, 1, states), "Content-Type", "application/json", "ETag", strconv.Quote(strconv.Itoa(version)))
}

// stream begins to answer with a stream. The page will soon come back if it breaks.
func (c *mapCall) stream() *mapCall {
	c.t.Helper()
	c.step(func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	})
	c.say("retry: 50\n\n: here\n\n")
	return c
}

func (c *mapCall) say(text string) {
	c.t.Helper()
	c.step(func(w http.ResponseWriter) error {
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	})
}

// change says that a seat has a state since a version.
func (c *mapCall) change(version int, seat, state string) {
	c.t.Helper()
	c.say(fmt.Sprintf("id: %d\nevent: changes\ndata: {\"version\":%[1]d,\"as_of\":\"2026-05-01T20:00:00Z\",\ndata: \"changes\":[{\"version\":%[1]d,\"state\":%[3]q,\"seats\":[%[2]q]}]}\n\n", version, seat, state))
}

// cut ends the stream.
func (c *mapCall) cut() { close(c.steps) }

// mapOf is a snapshot with sections of rows that have seats with the given states.
func mapOf(version, sections, rows int, states string) string {
	type row struct {
		Row        string   `json:"row"`
		Seats      []string `json:"seats"`
		X          []int    `json:"x"`
		Y          []int    `json:"y"`
		Accessible []int    `json:"accessible,omitempty"`
		States     string   `json:"states"`
	}
	type section struct {
		Section string `json:"section"`
		Name    string `json:"name"`
		Tier    string `json:"tier"`
		Rows    []row  `json:"rows"`
	}
	snapshot := struct {
		Event    string    `json:"event"`
		Version  int       `json:"version"`
		AsOf     time.Time `json:"as_of"`
		Sections []section `json:"sections"`
	}{"gala", version, time.Date(2026, 5, 1, 19, 0, 0, 0, time.UTC), nil}
	const across = 10 // sections beside each other
	for s := range sections {
		made := section{Section: letters(s), Name: "<b>Block</b> " + letters(s), Tier: "stalls"}
		for r := range rows {
			line := row{Row: strconv.Itoa(r + 1), Accessible: []int{0}, States: states}
			for i := range states {
				line.Seats = append(line.Seats, strconv.Itoa(i+1))
				line.X = append(line.X, (s%across*(len(states)+3)+i)*50)
				line.Y = append(line.Y, (s/across*(rows+4)+r)*60)
			}
			made.Rows = append(made.Rows, line)
		}
		snapshot.Sections = append(snapshot.Sections, made)
	}
	text, err := json.Marshal(snapshot)
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text)
}

// letters names a section: A to Z, then AA.
func letters(n int) string {
	if n < 26 {
		return string(rune('A' + n))
	}
	return letters(n/26-1) + letters(n%26)
}
