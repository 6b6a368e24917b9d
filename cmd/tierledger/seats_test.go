package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/pgtest"
)

// The house of the test: rows of seats that its clients never fill.
const (
	crashSections = 6
	crashRows     = 30
	crashRowSeats = 100
)

// crashChart is the house as JSON.
func crashChart() string {
	type seat struct {
		Seat string `json:"seat"`
	}
	type row struct {
		Row   string `json:"row"`
		Seats []seat `json:"seats"`
	}
	type section struct {
		Section string `json:"section"`
		Tier    string `json:"tier"`
		Rows    []row  `json:"rows"`
	}
	var chart struct {
		Sections []section `json:"sections"`
	}
	for s := range crashSections {
		next := section{Section: fmt.Sprint("S", s), Tier: "seats"}
		for r := range crashRows {
			next.Rows = append(next.Rows, row{Row: fmt.Sprint(r)})
			for n := range crashRowSeats {
				next.Rows[r].Seats = append(next.Rows[r].Seats, seat{fmt.Sprint(n)})
			}
		}
		chart.Sections = append(chart.Sections, next)
	}
	text, err := json.Marshal(chart)
	if err != nil {
		panic(err) // strings can be JSON
	}
	return string(text)
}

// asked is a request under its key.
type asked struct {
	path, key, body string
	status          int // of a yes
}

// audience is clients who take seats by name and as the best, give some back, and remember
// what they were answered. Who gets no answer goes away.
type audience struct {
	key     string // of the API
	url     string
	clients sync.WaitGroup
	next    atomic.Int64

	mu      sync.Mutex
	yes     map[asked]string // answers
	unsure  []asked
	wrong   string        // an answer that nobody should get
	enough  int           // yeses
	reached chan struct{} // closed when there are so many
}

// letIn lets clients of a service in; they stay until it's gone. It returns when they were
// told yes so many more times.
func (a *audience) letIn(t *testing.T, url string, more int) {
	t.Helper()
	a.mu.Lock()
	a.url, a.enough, a.reached = url, len(a.yes)+more, make(chan struct{})
	reached := a.reached
	a.mu.Unlock()
	for range crashClients {
		a.clients.Go(func() {
			for a.visit(a.next.Add(1)) {
			}
		})
	}
	select {
	case <-reached:
	case <-time.After(patience):
		t.Fatalf("in vain: %d more yeses", more)
	}
}

// visit takes seats, and every fourth time gives them back; false when no answer came.
func (a *audience) visit(n int64) bool {
	luck := rand.New(rand.NewPCG(uint64(n), 9))
	lines := fmt.Sprintf(`{"best_available":{"quantity":%d}}`, 1+luck.IntN(6))
	if n%3 == 0 {
		row, first := luck.IntN(crashRows), luck.IntN(crashRowSeats-2)
		label := fmt.Sprintf("S%d-%d-", luck.IntN(crashSections), row)
		lines = fmt.Sprintf(`{"seats":["%s%d","%s%d"]},{"best_available":{"quantity":2,"accept_split":true}}`, label, first, label, first+1)
	}
	answer, ok := a.ask(asked{"/v1/events/" + crashEvent + "/holds", fmt.Sprint("hold-", n),
		fmt.Sprintf(`{"customer":"c-%d","items":[%s]}`, n, lines), http.StatusCreated})
	if !ok || answer == "" || n%4 != 0 {
		return ok
	}
	_, ok = a.ask(asked{"/v1/holds/" + seatsIn(answer).ID + "/release", fmt.Sprint("release-", n), "", http.StatusOK})
	return ok
}

// ask gives the answer of a yes; none when seats were taken; false when no answer came. Whom
// the service has kept waiting, and then told to come again, asks again.
func (a *audience) ask(q asked) (string, bool) {
	began := time.Now()
	r, err := call(context.Background(), a.key, "POST", a.url+q.path, q.key, q.body)
	for err == nil && r.saysUnavailable() && time.Since(began) >= givesUp {
		began = time.Now()
		r, err = call(context.Background(), a.key, "POST", a.url+q.path, q.key, q.body)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil:
		a.unsure = append(a.unsure, q)
		return "", false
	case r.status != q.status:
		if !r.saysTaken() {
			a.wrong = fmt.Sprint(q, r)
		}
		return "", true
	}
	a.yes[q] = r.body
	if len(a.yes) == a.enough {
		close(a.reached)
	}
	return r.body, true
}

// saysTaken tells whether a refusal says that other holds have the seats.
func (r reply) saysTaken() bool {
	return r.status == http.StatusConflict && (strings.Contains(r.body, `"code":"seat_unavailable"`) ||
		strings.Contains(r.body, `"code":"temporarily_held"`) || strings.Contains(r.body, `"code":"not_together"`))
}

// heldSeats is what a hold says of itself.
type heldSeats struct {
	ID    string `json:"hold_id"`
	Items []struct {
		Seats []string `json:"seats"`
	} `json:"items"`
}

func seatsIn(answer string) (h heldSeats) {
	if err := json.Unmarshal([]byte(answer), &h); err != nil {
		panic(err) // what was answered with a yes is a hold
	}
	return h
}

// repeatAll sends every request again, after the service has come back: who was told yes is
// told the same, and what is unsure is settled.
func (a *audience) repeatAll(t *testing.T, url string) {
	t.Helper()
	t.Logf("%d yeses, %d unsure", len(a.yes), len(a.unsure))
	if a.wrong != "" {
		t.Errorf("an answer that nobody should get: %s", a.wrong)
	}
	if len(a.unsure) == 0 {
		t.Error("the kill cut no request short")
	}
	a.url = url
	unsure := a.unsure
	a.unsure = nil
	for _, q := range unsure {
		if _, ok := a.ask(q); !ok {
			t.Fatalf("no answer to %v", q)
		}
	}
	for q, answer := range a.yes {
		r := want(t, q.status, a.key, "POST", url+q.path, q.key, q.body)
		if r.body != answer || r.header.Get("Idempotency-Replayed") != "true" {
			t.Fatalf("%v: first %s, then %s (replayed: %q)", q, answer, r.body, r.header.Get("Idempotency-Replayed"))
		}
	}
	a.compareMap(t, url)
}

// compareMap compares the seats of all holds that weren't given back with those that are
// held on the map: each has one hold.
func (a *audience) compareMap(t *testing.T, url string) {
	t.Helper()
	released := make(map[string]bool)
	for q := range a.yes {
		if id, ok := strings.CutSuffix(strings.TrimPrefix(q.path, "/v1/holds/"), "/release"); ok {
			released[id] = true
		}
	}
	holdOf := make(map[string]string)
	for _, answer := range a.yes {
		h := seatsIn(answer)
		if released[h.ID] {
			continue
		}
		for _, item := range h.Items {
			for _, label := range item.Seats {
				if other, ok := holdOf[label]; ok && other != h.ID {
					t.Errorf("%s is of hold %s and of %s", label, other, h.ID)
				}
				holdOf[label] = h.ID
			}
		}
	}
	var m struct {
		Total    map[string]int
		Sections []struct {
			Section string
			Rows    []struct {
				Row    string
				Seats  []string
				States string
			}
		}
	}
	r := want(t, http.StatusOK, a.key, "GET", url+"/v1/events/"+crashEvent+"/seatmap", "", "")
	if err := json.Unmarshal([]byte(r.body), &m); err != nil {
		t.Fatal(err)
	}
	for _, s := range m.Sections {
		for _, row := range s.Rows {
			for i, seat := range row.Seats {
				label := s.Section + "-" + row.Row + "-" + seat
				if held := row.States[i] == 'h'; held != (holdOf[label] != "") {
					t.Errorf("%s is %c on the map, its hold is %q", label, row.States[i], holdOf[label])
				}
			}
		}
	}
	if n := len(holdOf); m.Total["held"] != n || m.Total["available"] != crashSections*crashRows*crashRowSeats-n {
		t.Errorf("%d seats are of holds, the map says %v", n, m.Total)
	}
}

// Killed in the middle of a load on seats and started again, the service answers every key
// as it did before, and every seat has one hold or none.
func TestServeKilledUnderASeatLoad(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, key := adminKey(t)
	s := startServe(t, db, keys)
	want(t, http.StatusCreated, key, "POST", s.url+"/v1/events", "create", fmt.Sprintf(
		`{"event":%q,"name":"Test","currency":"USD","hold_seconds":3600,"seating":%s,
		  "tiers":[{"tier":"seats","seated":true,"price":{"amount":5000,"currency":"USD"}}]}`, crashEvent, crashChart()))
	a := &audience{key: key, yes: make(map[asked]string)}
	for range 3 {
		a.letIn(t, s.url, 300)
		s.end(syscall.SIGKILL)
		a.clients.Wait()
		s = startServe(t, db, keys)
		a.repeatAll(t, s.url)
	}
	if code := s.end(syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
}
