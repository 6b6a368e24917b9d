package seats_test

import (
	"fmt"
	"testing"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// joined is a follower of maps whose groups are told when the test says so.
type joined struct {
	*seats.Follower
	told
}

// drain takes what waits for the follower.
func (j *joined) drain() {
	for len(j.Batches) > 0 {
		j.batches = append(j.batches, <-j.Batches)
	}
}

// versions gives those of all batches.
func (j *joined) versions() (list []ledger.Seq) {
	j.drain()
	for _, b := range j.batches {
		list = append(list, b.Version)
	}
	return list
}

// quietMaps gives fresh maps that tell nobody anything unless they must.
func (h *hall) quietMaps() (m *seats.Maps, join func(seen ledger.Seq) *joined) {
	h.Helper()
	m, _ = h.freshMaps()
	if err := m.Still(h.Context(), "gig"); err != nil {
		h.Fatal(err)
	}
	return m, func(seen ledger.Seq) *joined {
		h.Helper()
		return &joined{h.follow(m, seen), told{seen: seen}}
	}
}

// Who joins a group has seen less than the group has been told, the same, or more. What
// each was told, and in the end the map of each, is what happened.
func TestFollowersJoinAGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		group, newest int // how many changes the group has been told of, and the map has
		seen          int // by who joins
		first         int // what its first event comes to
	}{
		"behind a group that's told all": {3, 3, 1, 3},
		"behind a group that's behind":   {2, 4, 1, 2},
		"at the beginning":               {2, 4, 0, 2},
		"as far as a group that's told":  {3, 3, 3, 3},
		"as far as one that's behind":    {2, 4, 2, 2},
		"ahead of the group":             {2, 4, 4, 4},
		"ahead of it, and of the map":    {2, 2, 4, 4},
		"between the group and the map":  {1, 4, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t, chart(section("A", "front", 1, 10)))
			m, join := h.quietMaps()
			var followers []*joined
			version := []ledger.Seq{h.version()} // after so many changes
			change := func() {
				h.block("A-1-1", fmt.Sprint("A-1-", len(version)+1))
				h.unblock("A-1-1")
				version = append(version, h.version())
			}
			turn := func() {
				if err := m.Turn(t.Context(), "gig"); err != nil {
					t.Fatal(err)
				}
			}
			for range seats.Groups {
				followers = append(followers, join(version[0]))
			}
			for len(version) <= c.group {
				change()
			}
			turn()
			for len(version) <= c.newest {
				change()
			}
			if c.newest > c.group { // who is ahead joins the first group, and makes the map as new
				followers = append(followers, join(version[c.newest]))
			}
			for len(version) <= c.seen {
				change()
			}
			last := join(version[c.seen])
			if got := last.versions(); len(got) != 1 || got[0] != version[c.first] {
				t.Errorf("who has seen %d is told first of %v, want %d", version[c.seen], got, version[c.first])
			}
			followers = append(followers, last)
			change()
			turn()
			history := h.history()
			for _, f := range followers {
				f.drain()
				h.wantTold(f.told, version[len(version)-1], history)
			}
			if m.Cut() != 0 {
				t.Errorf("%d were cut", m.Cut())
			}
		})
	}
}
