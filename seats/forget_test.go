package seats_test

import (
	"testing"
	"time"

	"github.com/tierledger/tierledger/seats"
)

// A map that nobody has asked for in long is given back when a map is asked for, also the
// same one: who follows it then follows the one that Close knows.
func TestAMapIsForgottenAndAskedForAgain(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 1, 3)))
	h.event("other", chart(section("A", "front", 1, 3)))
	m, _ := h.freshMaps()
	first, err := m.Snapshot(t.Context(), "gig")
	if err != nil {
		t.Fatal(err)
	}
	h.block("A-1-2")
	m.Idle()
	f := h.follow(m, first.Version)
	t.Cleanup(f.Stop) // or Close may wait for ever
	last := h.version()
	h.wantTold(told{first.Version, heard(f, last)}, last, h.history())
	if n := m.Known(); n != 1 {
		t.Errorf("%d maps are known", n)
	}

	m.Idle() // but it's followed
	if _, err := m.Snapshot(t.Context(), "other"); err != nil || m.Known() != 2 {
		t.Errorf("%d maps are known, %v", m.Known(), err)
	}
	h.unblock("A-1-2")
	h.wantTold(told{last, heard(f, h.version())}, h.version(), h.history())

	closed := make(chan struct{})
	go func() { defer close(closed); m.Close() }()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("Close waits for a follower that it doesn't know")
	}
	for range f.Batches { // it ends
	}
	if n := m.Followers(); n != 0 {
		t.Errorf("%d follow", n)
	}
}

// Who stops following a map leaves it to be forgotten.
func TestAMapThatNobodyFollowsAnyMoreIsForgotten(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 1, 3)))
	h.event("other", chart(section("A", "front", 1, 3)))
	m, _ := h.freshMaps()
	h.follow(m, h.version()).Stop()
	for i, known := range []int{2, 1} { // used a moment ago, and not in long
		if i == 1 {
			m.Idle()
		}
		if _, err := m.Snapshot(t.Context(), "other"); err != nil || m.Known() != known {
			t.Errorf("%d maps are known, want %d; %v", m.Known(), known, err)
		}
	}
}

// A chart that nobody has used in long is forgotten when another is used. Whoever needs it
// again reads it anew, with what has been loaded since: decisions, a seat's page and the
// map.
func TestAForgottenChartIsReadAnew(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 1, 4)))
	h.event("other", chart(section("A", "front", 1, 4)))
	charts := h.Seats.Charts()
	for name, use := range map[string]func() error{
		"Hold": func() error { _, err := h.place("ann", named("Hold-1-1", "A-1-1")); return err },
		"Block": func() error {
			_, err := h.Seats.Block(t.Context(), "tester", h.key(), "gig", seats.BlockRequest{Seats: []string{"Block-1-1"}, Reason: "x"}, false)
			return err
		},
		"Seat": func() error { _, err := h.Seats.Get(t.Context(), "gig", "Seat-1-1"); return err },
		"Map":  func() error { _, err := h.Maps.Snapshot(t.Context(), "gig"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			h.load(*chart(section(name, "front", 1, 1)))
			charts.Idle()
			h.Maps.Idle()
			h.event("new"+name, chart(section("A", "front", 1, 1)))
			if _, err := h.Seats.Get(t.Context(), "new"+name, "A-1-1"); err != nil { // the chart is read
				t.Fatal(err)
			}
			if n := charts.Known(); n != 1 {
				t.Errorf("%d charts are known", n)
			}
			if err := use(); err != nil {
				t.Error(err)
			}
			if n := charts.Known(); n != 2 {
				t.Errorf("%d charts are known", n)
			}
		})
	}
}
