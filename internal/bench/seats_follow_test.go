package bench

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

const someChanges = ": hello\n\nid: 17\nevent: changes\ndata: {\"changes\":[{\"id: 3\":4}]}\n\n: beat\n\n" +
	"id:1800\r\ndata: x\r\n\r\nevent: changes\ndata: none\n\nid: 9007199254740993\ndata: y\n\nid: 5\ndata: cut off"

func TestIDsOfAStream(t *testing.T) {
	for name, reader := range map[string]io.Reader{
		"at once":       strings.NewReader(someChanges),
		"byte by byte":  iotest.OneByteReader(strings.NewReader(someChanges)),
		"half by half":  iotest.HalfReader(strings.NewReader(someChanges)),
		"with a buffer": iotest.DataErrReader(strings.NewReader(someChanges)),
	} {
		var s ids
		var got []int64
		buffer := make([]byte, 32)
		for {
			n, err := reader.Read(buffer)
			s.scan(buffer[:n], func(id int64) { got = append(got, id) })
			if err != nil {
				break
			}
		}
		if !slices.Equal(got, []int64{17, 1800, 9007199254740993}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// stage serves the map and the changes of an event as they're told.
type stage struct {
	http.ServeMux
	office *office
	asked  chan string // Last-Event-ID of each follower that connects
}

func newStage(t *testing.T, changes func(w http.ResponseWriter, r *http.Request)) *stage {
	t.Helper()
	s := &stage{asked: make(chan string, 100)}
	s.HandleFunc("GET /v1/events/e/changes", func(w http.ResponseWriter, r *http.Request) {
		s.asked <- r.Header.Get("Last-Event-ID")
		changes(w, r)
	})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	options := DefaultSeats()
	s.office = &office{
		Seats: &options, event: "e", house: newHouse(minSeats, false), server: stagedServer(server.URL),
		answered: moments{started: time.Now()},
	}
	return s
}

func stagedServer(url string) *server { return &server{child: &child{url: url}} }

func TestFollowersGoOnAfterACutAndAGap(t *testing.T) {
	n := 0 // connections
	measured := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		switch n++; n {
		case 1: // cut
			<-measured
			_, _ = io.WriteString(w, "id: 12\ndata: {}\n\n")
		case 2:
			w.WriteHeader(http.StatusGone)
			_, _ = io.WriteString(w, `{"code":"gap","version":40}`)
		case 3: // cut
			_, _ = io.WriteString(w, "id: 42\ndata: {}\n\n")
		case 4:
			<-r.Context().Done()
		}
	})
	s.office.answered.came(11)
	s.office.answered.came(41)
	var all sync.WaitGroup
	f := follow(ctx, &all, s.office, 1, 10)
	f.measured.Store(true)
	close(measured)
	for _, want := range []string{"10", "12", "40", "42"} {
		if got := <-s.asked; got != want {
			t.Errorf("after %s, want %s", got, want)
		}
	}
	cancel()
	all.Wait()
	if r := f.report(); r.Deltas != 2 || r.FollowersCut != 2 || r.FollowerGaps != 1 || f.recorder.Failures() != 0 {
		t.Errorf("%+v, %v", r, f.recorder.FailureTexts())
	}
}

func TestFollowersThatAreRefusedFail(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	var all sync.WaitGroup
	f := follow(t.Context(), &all, s.office, 3, 10)
	all.Wait()
	if !f.connected(t.Context()) || f.recorder.Failures() != 3 {
		t.Errorf("%v", f.recorder.FailureTexts())
	}
}

func TestMapReads(t *testing.T) {
	s := newStage(t, nil)
	states := strings.Repeat("a", rowSeats)
	last := states
	s.HandleFunc("GET /v1/events/e/seatmap", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"7"`)
		if r.Header.Get("If-None-Match") == `"7"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		seats := strings.TrimSuffix(strings.Repeat("%q,", rowSeats), ",")
		names := make([]any, rowSeats)
		for i := range names {
			names[i] = strconv.Itoa(i + 1)
		}
		seats = fmt.Sprintf(seats, names...)
		fmt.Fprintf(packed, `{"version":7,"sections":[{"section":"S01","rows":[{"row":"1","seats":[%s],"states":%q},`+
			`{"row":"2","seats":[%[1]s],"states":%[2]q}]},{"section":"S02","rows":[{"row":"1","seats":[%[1]s],"states":%[2]q},`+
			`{"row":"2","seats":[%[1]s],"states":%[3]q}]}]}`, seats, states, last)
		packed.Close()
	})
	m, err := openMapReads(t.Context(), s.office)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	m.pace.Took = load.Closed(t.Context(), mapConns, load.Bound{Turns: 100}, func(client int, n int64) {
		m.turn(t.Context(), client, n, time.Now()) // none is dropped, however late
	})
	r := m.report()
	if r.MapNotModified != 0.95 || r.MapBytesGzip == 0 || r.MapBytes < minSeats || m.recorder.Failures() != 0 {
		t.Errorf("%+v, %v", r, m.recorder.FailureTexts())
	}
	last = states[1:]
	if _, err := openMapReads(t.Context(), s.office); err == nil || !strings.Contains(err.Error(), "25 seats and 24 states") {
		t.Errorf("a map without a seat: %v", err)
	}
}
