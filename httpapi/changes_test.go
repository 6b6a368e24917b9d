package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/seats"
)

func TestListChanges(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	const path = "/v1/events/e/changes?after="
	w.get("/v1/events/e/changes").refused(400, "invalid_request").has("field", "after")
	for _, bad := range []string{"", "x", "-1", "1.5", "99999999999999999999"} {
		w.get(path+bad).refused(400, "invalid_request").has("field", "after")
	}
	w.get("/v1/events/e/changes?since=1").refused(400, "invalid_request").has("field", "since")
	w.get("/v1/events/none/changes?after=0").refused(404, "event_not_found")

	w.get(path+"2").is(200).has("event", "e", "version", 2, "changes", "[]")
	w.get(path+"0").refused(410, "gap").has("version", 2).isProblem() // the chart came after it
	w.get(path+"3").refused(410, "gap").has("version", 2)             // it's still to come
	w.get("/v1/events/e/changes?after=0", "Last-Event-ID", "2").is(200)
	w.get(path+"2", "Last-Event-ID", "x").refused(400, "invalid_request").has("field", "Last-Event-ID")

	h := w.ask("e", "h", "alice", named("A-1-1", "B-1-1", "A-1-2"), `{"tier":"ga","quantity":1}`).is(201)
	// From the answer's own version on, also at once.
	w.get(path+h.text("version")).is(200).has("version", 3, "changes", "[]")
	w.hold("e", "g", "bob", 1).is(201) // no seat
	w.post("/v1/holds/"+h.text("hold_id")+"/release", "r", "").is(200)
	w.post("/v1/events/e/seats/block", "b", setAside("x", "A-2-5")).is(200).has("version", 6)
	w.mapped("e", "6")
	r := w.get(path+"2").is(200).has("version", 6, "changes.3", "<nil>",
		"changes.0.version", 3, "changes.0.state", "held", "changes.0.seats", "[A-1-1 A-1-2 B-1-1]",
		"changes.1.version", 5, "changes.1.state", "available", "changes.1.seats", "[A-1-1 A-1-2 B-1-1]",
		"changes.2.version", 6, "changes.2.state", "blocked", "changes.2.seats", "[A-2-5]")
	if got := r.header.Get("ETag"); got != `"6"` {
		t.Errorf("the tag is %s", got)
	}
	if strings.Contains(string(r.body), "alice") {
		t.Errorf("%s tells who has a seat", r.body)
	}
	w.get(path+"4").is(200).has("changes.0.version", 5, "changes.2", "<nil>")
	w.get(path+"5").is(200).has("changes.0.version", 6, "changes.1", "<nil>")
	w.get(path+"6").is(200).has("changes", "[]")

	w.post("/v1/events/e/chart", "more", chart(part("C", "back", 1, 1))).is(201)
	w.mapped("e", "7")
	w.get(path+"6").refused(410, "gap").has("version", 7)
	if _, status := w.tryFollow("e/changes?after=6"); status != 410 {
		t.Errorf("the stream from before the chart got %d", status)
	}
	if _, status := w.tryFollow("e/changes"); status != 400 {
		t.Errorf("the stream without a version got %d", status)
	}
	w.get(path+"7", "Accept", "text/event-stream;q=0, application/json").is(200).has("changes", "[]")
}

// Exactly as many changes are given as may be, and not one more.
func TestTooManyChanges(t *testing.T) {
	w := serve(t, nil)
	const lanes, turns = 100, 51
	w.post("/v1/events", "k", seated("e", `"seating":`+chart(part("A", "front", 1, lanes)))).is(201)
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			label, key := fmt.Sprint("A-1-", lane+1), fmt.Sprintf("lane-%d-", lane)
			for turn := range turns {
				var h holds.Hold
				r, err := w.stores.Holds.Place(t.Context(), "tester", fmt.Sprint(key, turn), "e",
					holds.Request{Customer: key, Items: []holds.Line{{Seats: []string{label}}}})
				if err == nil {
					err = json.Unmarshal(r.Data, &h)
				}
				if err == nil {
					_, err = w.stores.Holds.Release(t.Context(), "tester", fmt.Sprint(key, turn, "r"), h.ID, nil)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	conn, err := pgx.Connect(t.Context(), w.db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var edge int64
	if err := conn.QueryRow(t.Context(), `SELECT seq FROM seat_changes ORDER BY seq DESC OFFSET $1 LIMIT 1`, seats.MaxChanges).Scan(&edge); err != nil {
		t.Fatal(err)
	}
	last := fmt.Sprint(2 + 2*lanes*turns)
	for range 2 { // as just loaded, and as remembered
		var list seats.Changes
		body := w.get(fmt.Sprint("/v1/events/e/changes?after=", edge)).is(200).has("version", last).body
		if err := json.Unmarshal(body, &list); err != nil || len(list.Changes) != seats.MaxChanges {
			t.Errorf("got %d changes, %v", len(list.Changes), err)
		}
		w.get(fmt.Sprint("/v1/events/e/changes?after=", edge-1)).refused(410, "gap").has("version", last)
		if _, status := w.tryFollow(fmt.Sprint("e/changes?after=", edge-1)); status != 410 {
			t.Errorf("the stream got %d", status)
		}
		s := w.follow(fmt.Sprint("e/changes?after=", edge))
		if got := s.event(); got.id != last || len(got.changes.Changes) != 1 || len(got.changes.Changes[0].Seats) != lanes {
			t.Errorf("the stream begins with %+v", got)
		}
		s.close()
		w.post("/v1/events/e/seats/block", last, setAside("x", "A-1-1")).is(200)
		w.post("/v1/events/e/seats/unblock", "u"+last, setAside("x", "A-1-1")).is(200)
		edge, last = edge+2, fmt.Sprint(2+2*lanes*turns+2)
		w.mapped("e", last)
	}
}

// storm holds, releases and blocks seats of the event until it's stopped; the last change
// of all is a block, whose version is given.
func (w *world) storm(event string, labels []string) (stop func() string) {
	var all sync.WaitGroup
	var stopped atomic.Bool
	const lanes = 6
	for lane := range lanes {
		all.Go(func() {
			for n := 0; !stopped.Load(); n++ {
				key := fmt.Sprintf("storm-%d-%d", lane, n)
				label, other := labels[(7*n+lane)%len(labels)], labels[(11*n+5*lane+1)%len(labels)]
				if lane == 0 && n%5 == 0 {
					_, err := w.send("POST", "/v1/events/"+event+"/seats/block", setAside("x", label), "Idempotency-Key", key)
					if err == nil {
						_, err = w.send("POST", "/v1/events/"+event+"/seats/unblock", setAside("x", label), "Idempotency-Key", key+"u")
					}
					if err != nil {
						w.t.Error(err)
					}
					continue
				}
				line := best(2, `"accept_split":true`)
				if label != other && n%2 == 0 {
					line = named(label, other)
				}
				r, err := w.send("POST", "/v1/events/"+event+"/holds", asking(key, line), "Idempotency-Key", key)
				if err == nil && r.status == 201 {
					r, err = w.send("POST", "/v1/holds/"+r.text("hold_id")+"/release", "", "Idempotency-Key", key+"r")
				}
				if err != nil || r.status != 200 && r.status != 409 {
					w.t.Errorf("%d %s %v", r.status, r.body, err)
				}
			}
		})
	}
	return func() string {
		stopped.Store(true)
		all.Wait()
		return w.post("/v1/events/"+event+"/seats/block", "last", setAside("the end", "LAST-1-1")).is(200).text("version")
	}
}

// T74: a reader that's cut off again and again misses nothing and gets nothing twice, and
// others that read the map at the same time take nothing from it.
func TestT74FollowerComesToTheMap(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "k", seated("e", `"seating":`+chart(part("A", "front", 4, 10), part("B", "back", 3, 8), part("LAST", "back", 1, 1, `"accessible":true`)))).is(201)
	seen := draw(t, w.get("/v1/events/e/seatmap").is(200).body)
	var labels []string
	for label := range seen.states {
		if label != "LAST-1-1" {
			labels = append(labels, label)
		}
	}
	stop := w.storm("e", labels)
	readers, done := context.WithCancel(t.Context())
	defer done()
	var others sync.WaitGroup
	for _, path := range []string{"seatmap", "changes?after=" + strconv.FormatInt(seen.version, 10)} {
		others.Go(func() {
			for readers.Err() == nil {
				if _, err := w.send("GET", "/v1/events/e/"+path, ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	steady := picture{seen.version, maps.Clone(seen.states)}
	steadily := w.follow(fmt.Sprint("e/changes?after=", seen.version))
	s := w.follow(fmt.Sprint("e/changes?after=", seen.version))
	const cuts, events = 4, 3
	last, begun := "", time.Now()
	for n := 1; fmt.Sprint(seen.version) != last; n++ {
		if err := seen.apply(s.event().changes); err != nil {
			t.Fatal(err)
		}
		if n%events == 0 && n <= cuts*events {
			s.close()
			s = w.follow("e/changes?after=0", "Last-Event-ID", strconv.FormatInt(seen.version, 10))
		}
		if n == cuts*events {
			done()
			others.Wait()
			last = stop()
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("the reader has come to %d, not %s", seen.version, last)
		}
	}
	for fmt.Sprint(steady.version) != last {
		if err := steady.apply(steadily.event().changes); err != nil {
			t.Fatal(err)
		}
	}
	now := draw(t, w.mapped("e", last).body)
	for name, p := range map[string]picture{"resumed": seen, "steady": steady} {
		if !maps.Equal(p.states, now.states) {
			t.Errorf("%s: the reader has %v, the map %v", name, p.states, now.states)
		}
	}
}

// A reader at one process goes on at another, which may be a little behind the first.
func TestFollowerGoesOnElsewhere(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	other := w.second(nil)
	other.get("/v1/events/e/seatmap").is(200).has("version", 2)
	for n := range 10 {
		h := w.ask("e", fmt.Sprint("h", n), "alice", named("A-1-1")).is(201)
		s := other.follow("e/changes?after=0", "Last-Event-ID", h.text("version"))
		if got := s.event(); got.id != h.text("version") || len(got.changes.Changes) != 0 {
			t.Errorf("the second process begins with %+v", got)
		}
		s.close()
		released := w.post("/v1/holds/"+h.text("hold_id")+"/release", fmt.Sprint("r", n), "")
		other.get("/v1/events/e/changes?after=" + h.text("version")).is(200)
		other.get("/v1/events/e/changes?after="+released.is(200).text("version")).is(200).has("changes", "[]")
	}
}
