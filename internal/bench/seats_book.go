package bench

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// claimed is a hold as its answers tell of it.
type claimed struct {
	seats    []int32
	version  int64
	released int64 // version of its release; 0 for none
	from, to time.Time
}

// standing tells whether the hold still stood when a later one was made.
func (c *claimed) standing(later *claimed) bool {
	if c.released != 0 {
		return c.released > later.version
	}
	return later.from.Before(c.to)
}

// seatBook is what the clients know of the holds that they got. It's safe for concurrent
// use.
type seatBook struct {
	mu     sync.Mutex
	claims []claimed
}

// add enters a hold, and returns its number.
func (b *seatBook) add(c claimed) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims = append(b.claims, c)
	return len(b.claims) - 1
}

// release enters that a hold was released, by the entry of a version.
func (b *seatBook) release(n int, version int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims[n].released = version
}

// doubled counts the seats that a hold got while an earlier hold stood, in the order that
// the server's versions give.
func (b *seatBook) doubled() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	claims := slices.SortedFunc(slices.Values(b.claims), func(c, d claimed) int { return cmp.Compare(c.version, d.version) })
	last := make(map[int32]*claimed)
	for i := range claims {
		c := &claims[i]
		for _, seat := range c.seats {
			if before := last[seat]; before != nil && before.standing(c) {
				n++
			}
			last[seat] = c
		}
	}
	return n
}

// seats counts the seats of all holds.
func (b *seatBook) seats() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.claims {
		n += len(b.claims[i].seats)
	}
	return n
}

const (
	momentsPage  = 4096
	momentsPages = 16384 // more versions than the longest run makes
)

// moments remembers when the hold of each version was answered. Readers are many and
// don't wait.
type moments struct {
	started time.Time
	pages   [momentsPages]atomic.Pointer[[momentsPage]atomic.Int64]
	highest atomic.Int64
}

// came notes that the answer with a version came just now.
func (m *moments) came(version int64) {
	page := version / momentsPage
	if page >= momentsPages {
		return
	}
	p := m.pages[page].Load()
	if p == nil {
		m.pages[page].CompareAndSwap(nil, new([momentsPage]atomic.Int64))
		p = m.pages[page].Load()
	}
	p[version%momentsPage].Store(int64(time.Since(m.started)))
	m.reach(version)
}

// reach notes that the event has come to a version.
func (m *moments) reach(version int64) {
	for {
		highest := m.highest.Load()
		if version <= highest || m.highest.CompareAndSwap(highest, version) {
			return
		}
	}
}

// since is how long ago the first hold after one version and up to another was answered;
// false when no answer to any of them has come.
func (m *moments) since(after, upTo int64) (time.Duration, bool) {
	for v := after + 1; v <= upTo && v < momentsPage*momentsPages; v++ {
		p := m.pages[v/momentsPage].Load()
		if p == nil {
			v += momentsPage - v%momentsPage - 1
			continue
		}
		if at := p[v%momentsPage].Load(); at != 0 {
			return time.Since(m.started) - time.Duration(at), true
		}
	}
	return 0, false
}
