package seats

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tierledger/tierledger/ledger"
)

// group is a part of those who follow a map. All of a group have been told the same.
type group struct {
	house   *house
	members map[*Follower]struct{}
	version ledger.Seq // that they were told of
	spoke   time.Time  // by the process's clock: when they last heard something
}

// followed counts those who follow. The caller holds mu, as for everything below.
func (h *house) followed() (n int) {
	for i := range h.groups {
		n += len(h.groups[i].members)
	}
	return n
}

// join adds a follower that has seen a version, and tells it what it missed: up to what its
// group, the smallest, has been told.
func (h *house) join(seen ledger.Seq, missed []Delta) *Follower {
	g := &h.groups[0]
	for i := range h.groups {
		if len(h.groups[i].members) < len(g.members) {
			g = &h.groups[i]
		}
	}
	if seen > g.version {
		g.tell() // it's ahead of the group
	}
	if len(g.members) == 0 {
		*g = group{house: h, members: make(map[*Follower]struct{}), version: h.version, spoke: time.Now()}
	}
	for len(missed) > 0 && missed[len(missed)-1].Version > g.version {
		missed = missed[:len(missed)-1]
	}
	c := make(chan Batch, maxPending)
	c <- h.batch(missed, max(g.version, seen))
	f := &Follower{Batches: c, group: g, batches: c}
	g.members[f] = struct{}{}
	h.maps.followers.Add(1)
	return f
}

// follow keeps the map up to date and tells the followers, until there are none.
func (h *house) follow() {
	ticker := time.NewTicker(turnEvery)
	defer ticker.Stop()
	for range ticker.C {
		if !h.goOn() {
			return
		}
	}
}

// goOn tells the group whose turn it is; false when nobody follows any more. While the
// database can't be read nobody is told anything.
func (h *house) goOn() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followed() == 0 {
		h.following = false
		return false
	}
	h.turn = (h.turn + 1) % groups
	g := &h.groups[h.turn]
	if len(g.members) > 0 && h.refresh(h.maps.life, turnEvery/2) == nil {
		g.tell()
	}
	return true
}

// tell gives a group what has happened since the last time; now and then also that nothing
// has. Who has too much waiting is cut off.
func (g *group) tell() {
	h := g.house
	switch {
	case len(g.members) == 0:
		return
	case h.version == g.version && time.Since(g.spoke) < heartbeatEvery:
		return
	case g.version < h.first: // more has happened than is remembered
		g.dropAll()
		return
	}
	b := h.batch(h.recentAfter(g.version), h.version)
	g.version, g.spoke = h.version, time.Now()
	for f := range g.members {
		select {
		case f.batches <- b:
		default:
			h.maps.cut.Add(1)
			g.drop(f)
		}
	}
}

// drop cuts a follower off.
func (g *group) drop(f *Follower) {
	if _, ok := g.members[f]; ok {
		delete(g.members, f)
		close(f.batches)
		g.house.maps.followers.Add(-1)
	}
}

func (g *group) dropAll() {
	for f := range g.members {
		g.drop(f)
	}
}

// dropAll cuts all followers of the map off.
func (h *house) dropAll() {
	for i := range h.groups {
		h.groups[i].dropAll()
	}
}

// batch renders changes up to a version: of each seat the last state that it came to.
func (h *house) batch(list []Delta, version ledger.Seq) Batch {
	changes := h.changes(merge(list, version))
	changes.Version = version
	data, err := json.Marshal(changes)
	if err != nil {
		panic(err) // a Delta has nothing that can't be JSON
	}
	return Batch{version, data}
}

// merge makes one change of all that led to the same state, up to a version.
func merge(list []Delta, version ledger.Seq) []Delta {
	last := make(map[string]State)
	for _, d := range list {
		for _, label := range d.Seats {
			last[label] = d.State
		}
	}
	labels := slices.Sorted(maps.Keys(last))
	var merged []Delta
	for _, state := range States() {
		d := Delta{Version: version, State: state}
		for _, label := range labels {
			if last[label] == state {
				d.Seats = append(d.Seats, label)
			}
		}
		if d.Seats != nil {
			merged = append(merged, d)
		}
	}
	return merged
}
