package sale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// The states of a seat, as letters of the map.
const (
	letterAvailable = 'a'
	letterHeld      = 'h'
	letterSold      = 's'
	letterBlocked   = 'b'
)

// letterOf are the states' letters, by their names.
var letterOf = map[string]byte{
	"available": letterAvailable, "held": letterHeld, "sold": letterSold, "blocked": letterBlocked,
}

// stateOf is a letter's state.
func stateOf(letter byte) string {
	for state, l := range letterOf {
		if l == letter {
			return state
		}
	}
	return strconv.Quote(string(letter))
}

var (
	errNotModified = errors.New("the map hasn't changed")
	errGap         = errors.New("the changes can't be had: the map must be read anew")
)

// busyError is an answer that says to come back.
type busyError struct {
	status string
	after  time.Duration
}

func (e *busyError) Error() string { return e.status }

func isBusy(err error) bool {
	var busy *busyError
	return errors.As(err, &busy)
}

// mapAPI reads an event's map.
type mapAPI struct {
	base  string // URL of the event
	house *house
	http  http.Client // connections of its own: some stay open
}

func newMapAPI(url, path string, h *house) *mapAPI { return &mapAPI{base: url + path, house: h} }

// mapReading is the whole map at a version: a letter a seat, in the house's order.
type mapReading struct {
	version int64
	letters []byte
}

// delta is a change of one seat.
type delta struct {
	version int64
	seat    int
	letter  byte
}

// get sends a request; the caller closes the body.
func (m *mapAPI) get(ctx context.Context, path string, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+path, nil)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := m.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotModified:
		return nil, errNotModified
	case http.StatusGone:
		return nil, errGap
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // without one: soon
		return nil, &busyError{resp.Status, time.Duration(max(1, seconds)) * time.Second}
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // what there is, for the report
	return nil, fmt.Errorf("GET %s: %s: %.200s", path, resp.Status, text)
}

// read reads the whole map, unless it still has a tag: then the error is errNotModified.
func (m *mapAPI) read(ctx context.Context, tag string) (r mapReading, next string, err error) {
	var header []string
	if tag != "" {
		header = []string{"If-None-Match", tag}
	}
	resp, err := m.get(ctx, "/seatmap", header...)
	if err != nil {
		return r, "", err
	}
	defer resp.Body.Close()
	var doc SeatMap
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxExchange)).Decode(&doc); err != nil {
		return r, "", fmt.Errorf("read the map: %w", err)
	}
	if next = resp.Header.Get("ETag"); next != fmt.Sprintf("%q", strconv.FormatInt(doc.Version, 10)) {
		return r, "", fmt.Errorf("read the map: version %d has the tag %s", doc.Version, next)
	}
	r.version = doc.Version
	if r.letters, err = doc.Letters(m.house.index); err != nil {
		return r, "", fmt.Errorf("read the map: %w", err)
	}
	total := map[string]int64{}
	for _, letter := range r.letters {
		total[stateOf(letter)]++
	}
	for state, n := range doc.Total {
		if total[state] != n {
			return r, "", fmt.Errorf("read the map: version %d has %d seats %s in all and %d in its rows", doc.Version, n, state, total[state])
		}
	}
	return r, next, nil
}

// news is an answer about changes, or a message of a stream.
type news struct {
	Version int64 `json:"version"`
	Changes []struct {
		Version int64    `json:"version"`
		State   string   `json:"state"`
		Seats   []string `json:"seats"`
	} `json:"changes"`
}

// deltas gives the changes of news that come after a version, seat by seat.
func (m *mapAPI) deltas(n news, after int64) ([]delta, error) {
	var list []delta
	last := after
	for _, c := range n.Changes {
		letter := letterOf[c.State]
		if letter == 0 || c.Version <= after || c.Version < last || c.Version > n.Version {
			return nil, fmt.Errorf("changes from version %d to %d have one to %q at version %d, after one at %d", after, n.Version, c.State, c.Version, last)
		}
		last = c.Version
		for _, label := range c.Seats {
			at, ok := m.house.index[label]
			if !ok {
				return nil, fmt.Errorf("changes have seat %s, which isn't of the chart", label)
			}
			list = append(list, delta{c.Version, at, letter})
		}
	}
	return list, nil
}

// changes asks for what has changed after a version.
func (m *mapAPI) changes(ctx context.Context, after int64) (n news, err error) {
	resp, err := m.get(ctx, fmt.Sprintf("/changes?after=%d", after))
	if err != nil {
		return n, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(io.LimitReader(resp.Body, maxExchange)).Decode(&n)
	return n, err
}
