package sale

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxSurprises bounds what is kept of the surprises; the rest is counted.
const maxSurprises = 20

// receipt is a hold as its buyer was told, and what the buyer did with it.
type receipt struct {
	key      string
	answer   answer
	hold     hold
	released bool
	ended    hold // read when all is over
}

// book is what the buyers know. It's safe for concurrent use.
type book struct {
	mu        sync.Mutex
	arrived   int
	receipts  []*receipt
	served    int // buyers who held something at some time
	released  int
	surprises []string
	surprised int
}

// arrive counts a buyer who has come.
func (b *book) arrive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.arrived++
}

// keep keeps a receipt; first is that of its buyer's first hold.
func (b *book) keep(r *receipt, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if first {
		b.served++
	}
	b.receipts = append(b.receipts, r)
}

// release notes that a buyer has given a hold back.
func (b *book) release(r *receipt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.released = true
	b.released++
}

// surprise notes an answer that must not be.
func (b *book) surprise(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.surprised++; b.surprised <= maxSurprises {
		b.surprises = append(b.surprises, fmt.Sprintf(format, args...))
	}
}

// expired counts the holds that had run out by a time.
func (b *book) expired(now time.Time) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.receipts {
		if !r.released && !r.hold.ExpiresAt.After(now) {
			n++
		}
	}
	return n
}

// lastDeadline is when the last hold runs out.
func (b *book) lastDeadline() (last time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.receipts {
		if r.hold.ExpiresAt.After(last) {
			last = r.hold.ExpiresAt
		}
	}
	return last
}

// change is what one entry did to the held tickets of a tier.
type change struct {
	version int64
	tier    string
	held    int64
}

// changes turns the receipts into what the journal must have recorded: tickets
// held at the version of each hold, and given back at the version of its end.
func (b *book) changes() []change {
	var all []change
	for _, r := range b.receipts {
		for _, i := range r.hold.Items {
			all = append(all, change{r.hold.Version, i.Tier, i.Quantity}, change{r.ended.Version, i.Tier, -i.Quantity})
		}
	}
	slices.SortFunc(all, func(x, y change) int { return cmp.Compare(x.version, y.version) })
	return all
}

// audit compares every reading of the availability with what the receipts add up
// to at its version, and every end of a hold with what its buyer thinks. Call it
// when all holds have ended and nobody buys any more.
func (b *book) audit(readings []availability) {
	for _, r := range b.receipts {
		want := "expired"
		if r.released {
			want = "released"
		}
		if r.ended.Status != want {
			b.surprise("hold %s is %s, its buyer says %s", r.hold.ID, r.ended.Status, want)
		}
	}
	slices.SortFunc(readings, func(x, y availability) int { return cmp.Compare(x.Version, y.Version) })
	// Both are in the order of versions: one pass over the readings.
	changes, held := b.changes(), map[string]int64{}
	for _, reading := range readings {
		for len(changes) > 0 && changes[0].version <= reading.Version {
			held[changes[0].tier] += changes[0].held
			changes = changes[1:]
		}
		for _, t := range reading.Tiers {
			if t.Held != held[t.Tier] || t.Available != t.Capacity-held[t.Tier] {
				b.surprise("version %d: the API says %d of %s are held and %d left, the buyers hold %d of %d",
					reading.Version, t.Held, t.Tier, t.Available, held[t.Tier], t.Capacity)
			}
		}
	}
}
