package sale

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// The sales here have the machine to themselves, unlike those that run in parallel: who
// comes too late to pay buys nothing, and then there's nothing to be found out.

// A sale with assigned seats, in which everything happens; once, each way of following the
// map is told that it's too far behind.
func TestSaleOfSeats(t *testing.T) {
	var polls, streams atomic.Int64
	behind := func(r *http.Response) {
		if isPoll(r) && polls.Add(1) == 10 || isStream(r) && streams.Add(1) == 4 {
			r.Body.Close()
			setBody(r, `{"code":"gap"}`)
			r.StatusCode = http.StatusGone
		}
	}
	r, err := play(t.Context(), serve(t), plan(400, 300), behind, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() {
		t.Errorf("surprises: %q", r.Surprises)
	}
	s := r.Seating
	if s.All != 300 || s.Sold == 0 || s.Sold+s.Held > s.All || r.Progress.Seats != 300 || r.SeatsTaken < s.Sold {
		t.Errorf("the numbers don't add up: %+v, %+v", s, r.Progress)
	}
	if s.Named == 0 || s.Best == 0 || s.Apart == 0 || s.ChoseAgain == 0 || s.Changes == 0 || s.Resumed == 0 || s.Gaps != 2 ||
		s.Readings == 0 || s.NotModified == 0 {
		t.Errorf("something didn't happen: %+v", s)
	}
	for _, code := range []string{"seat_unavailable", "not_together", "temporarily_held", "invalid_quantity", "idempotency_mismatch"} {
		if r.Refusals[code] == 0 {
			t.Errorf("nobody was refused with %s: %v", code, r.Refusals)
		}
	}
}

// A service that lies about seats is found out, whoever it lies to.
func TestSaleFindsLiesAboutSeats(t *testing.T) {
	findLies(t, 60, []lie{
		{when(isMap, `"sold":`, `"sold":1`), "in all and"},
		{func(r *http.Response) {
			if isMap(r) {
				r.Header.Del("ETag")
			}
		}, "has the tag"},
		{when(isPoll, `"state":"sold"`, `"state":"held"`), "by reader 3 of the map seat"},
		{streamed(`"state":"available"`, `"state":"sold"`), "of the map seat"},
		{streamed(`"state":"held","seats":["S1-`, `"state":"held","seats":["S2-`), "of the map seat"},
		{when(isPlaced, `"seats":["S`, `"seats":["X`), "isn't of"},
		{when(isOrders, `"seats":["S`, `"seats":["X`), "its hold is of"},
		{accepts("seat_unavailable"), "holds tickets and got"},
	})
}

func isMap(r *http.Response) bool { return strings.HasSuffix(r.Request.URL.Path, "/seatmap") }

func isStream(r *http.Response) bool {
	return strings.HasSuffix(r.Request.URL.Path, "/changes") && r.Request.Header.Get("Accept") != ""
}

func isPoll(r *http.Response) bool {
	return strings.HasSuffix(r.Request.URL.Path, "/changes") && r.Request.Header.Get("Accept") == ""
}

func isPlaced(r *http.Response) bool {
	return strings.HasSuffix(r.Request.URL.Path, "/holds") && r.StatusCode == http.StatusCreated
}

// streamed replaces a text in the lines of streams.
func streamed(from, to string) func(*http.Response) {
	return func(r *http.Response) {
		if isStream(r) && r.StatusCode == http.StatusOK {
			r.Body = &lying{r.Body, bufio.NewReader(r.Body), strings.NewReplacer(from, to), ""}
		}
	}
}

// lying is a stream with a lie in it.
type lying struct {
	io.Closer
	lines *bufio.Reader
	lie   *strings.Replacer
	rest  string
}

func (l *lying) Read(p []byte) (int, error) {
	if l.rest == "" {
		text, err := l.lines.ReadString('\n')
		if err != nil {
			return 0, err
		}
		l.rest = l.lie.Replace(text)
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
