package bench

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// aHold is the answer to a request for seats 1 and 2 of the first row.
const aHold = `{"hold_id":"h","version":7,"created_at":"2026-03-02T10:00:00Z","expires_at":"2026-03-02T10:00:20Z",
"items":[{"seats":["S01-1-1"]},{"seats":["S01-1-2"]}]}`

func TestTurnsAreRecorded(t *testing.T) {
	const released = `{"status":"released","version":8}`
	for name, x := range map[string]struct {
		status        int
		hold, release string
		outcome       string // "": it failed
		released      int64  // version in the book; -1: no hold is in it
	}{
		"held and released": {201, aHold, released, outcomeHeld, 8},
		"ran out before":    {201, aHold, `{"status":"expired","version":9}`, outcomeHeld, 0},
		"refused":           {409, `{"code":"seat_unavailable","available":0}`, "", "seat_unavailable", -1},
		"other seats":       {201, strings.Replace(aHold, "1-2", "1-3", 1), released, "", -1},
		"no such seat":      {201, strings.Replace(aHold, "1-2", "1-99", 1), released, "", -1},
		"another refusal":   {404, `{"code":"seat_not_found"}`, "", "", -1},
		"not JSON":          {201, "x", released, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			s.HandleFunc("POST /v1/events/e/holds", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(x.status)
				_, _ = io.WriteString(w, x.hold)
			})
			s.HandleFunc("POST /v1/holds/h/release", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, x.release)
			})
			c, err := load.NewClient(s.office.server.url)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s.office.server.clients, s.office.server.bodies = []*load.Client{c}, make([][]byte, 1)
			m := &seatsMeasured{measurement: measurement{recorder: load.NewRecorder()}, releases: load.NewRecorder()}
			failed := s.office.turn(t.Context(), m, 0, seatAsk{key: "k", customer: "c", seats: []int32{1, 0}, quantity: 2, release: true}, time.Now())
			if x.outcome == "" && failed != 1 || x.outcome != "" && (failed != 0 || m.recorder.Count(x.outcome) != 1) {
				t.Errorf("%d failed, outcomes %v, %q", failed, m.recorder.Outcomes(), m.failures())
			}
			book := s.office.book.claims
			if x.released < 0 && len(book) != 0 || x.released >= 0 && (len(book) != 1 || book[0].released != x.released) {
				t.Errorf("the book has %+v", book)
			}
			if late, ok := s.office.answered.since(0, 7); ok != (x.released >= 0) || late > time.Minute {
				t.Errorf("version 7 was answered: %t, %s ago", ok, late)
			}
		})
	}
}
