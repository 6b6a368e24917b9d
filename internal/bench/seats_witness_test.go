package bench

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
)

// serveMap serves the map of the stage's house, with all seats available, at a version.
func (s *stage) serveMap(version func() int) {
	s.HandleFunc("GET /v1/events/e/seatmap", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close()
		var rows []string
		for _, r := range s.office.house.rows {
			section, row, seats := "", "", []string(nil)
			for _, label := range s.office.house.labels[r.first : r.first+r.n] {
				parts := strings.Split(label, "-")
				section, row, seats = parts[0], parts[1], append(seats, `"`+parts[2]+`"`)
			}
			rows = append(rows, fmt.Sprintf(`{"section":%q,"rows":[{"row":%q,"seats":[%s],"states":%q}]}`,
				section, row, strings.Join(seats, ","), strings.Repeat("a", r.n)))
		}
		fmt.Fprintf(packed, `{"version":%d,"sections":[%s]}`, version(), strings.Join(rows, ","))
	})
}

func TestWitnessReadsWhatItIsTold(t *testing.T) {
	const held = `{"version":%d,"state":"held","seats":["S01-1-%d"]}`
	change := func(version, seat int) string { return fmt.Sprintf(held, version, seat) }
	for name, x := range map[string]struct {
		events []string // data; "" for a cut
		states string   // of the first seats, at the end
		fails  string
	}{
		"in order":         {[]string{`{"version":12,"changes":[` + change(11, 1) + `,` + change(12, 2) + `]}`, `{"version":14,"changes":[` + change(14, 3) + `]}`}, "hhha", ""},
		"a cut":            {[]string{`{"version":12,"changes":[` + change(11, 1) + `]}`, "", `{"version":14,"changes":[` + change(14, 3) + `]}`}, "aaha", ""},
		"told before":      {[]string{`{"version":12,"changes":[` + change(10, 1) + `]}`}, "aaaa", "a change of version 10"},
		"another order":    {[]string{`{"version":13,"changes":[` + change(13, 1) + `,` + change(12, 2) + `]}`}, "haaa", "a change of version 12"},
		"beyond the event": {[]string{`{"version":13,"changes":[` + change(14, 1) + `]}`}, "aaaa", "a change of version 14"},
		"no such seat":     {[]string{`{"version":13,"changes":[` + change(11, 99) + `]}`}, "aaaa", "S01-1-99"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			next, version := 0, 10
			s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
				for ; next < len(x.events); next++ {
					if x.events[next] == "" {
						next, version = next+1, 13
						return
					}
					_, _ = io.WriteString(w, "id: 1\ndata: "+x.events[next]+"\n\n")
				}
				if x.fails == "" {
					_, _ = io.WriteString(w, "data: {}\n") // an event that doesn't end
				}
			})
			s.serveMap(func() int { return version })
			w, err := newWitness(ctx, s.office)
			if err != nil {
				t.Fatal(err)
			}
			err = w.follow(ctx)
			for range strings.Count(strings.Join(x.events, "|"), "||") {
				if err = w.load(ctx); err == nil {
					err = w.follow(ctx)
				}
			}
			if x.fails == "" && err.Error() != errCut.Error() || !strings.Contains(err.Error(), x.fails) {
				t.Errorf("got %v", err)
			}
			if got := string(w.states[:4]); got != x.states {
				t.Errorf("states %s, want %s", got, x.states)
			}
		})
	}
}

func TestWitnessTellsWhatIsWrong(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	s.serveMap(func() int { return 10 })
	w, err := newWitness(t.Context(), s.office)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	w.start(t.Context(), &all)
	all.Wait()
	if w.err == nil || !strings.Contains(w.err.Error(), "at version 10: 410") {
		t.Errorf("got %v", w.err)
	}
	db, err := openDatabase(t.Context(), pgtest.New(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.pool.Close()
	w.states[7] = 'h' // nothing has happened in this database
	if n, err := w.wrong(t.Context(), db); n != 1 || err != nil {
		t.Errorf("%d seats, %v", n, err)
	}
}
