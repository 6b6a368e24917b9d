package sale

import (
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
	lines    []line // that were asked for
	answer   answer
	hold     hold
	released bool
	purchase *purchase // nil: the buyer didn't try to pay
	ended    hold      // read when all is over
}

// book is what the buyers know. It's safe for concurrent use.
type book struct {
	mu        sync.Mutex
	arrived   int
	receipts  []*receipt
	purchases []*purchase
	served    int // buyers who held something at some time
	released  int
	seats     Seats // only what the buyers know of them
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

// seat counts a hold of seats.
func (b *book) seat(lines []line, r *receipt, h *house) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lines[0].Best == nil {
		b.seats.Named++
		return
	}
	b.seats.Best++
	var labels []string
	for _, i := range r.hold.Items {
		labels = append(labels, i.Seats...)
	}
	list, ok := h.find(labels)
	if slices.Sort(list); ok && len(list) > 0 && !h.sideBySide(list) {
		b.seats.Apart++
	}
}

// chooseAgain counts a choice of seats that were gone.
func (b *book) chooseAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seats.ChoseAgain++
}

// release notes that a buyer has given a hold back.
func (b *book) release(r *receipt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.released = true
	b.released++
}

// buy notes that a buyer is going to pay.
func (b *book) buy(p *purchase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.receipt.purchase = p
	b.purchases = append(b.purchases, p)
}

// see notes a look at an order. An older one than the last, which a repeated answer
// is, tells nothing new.
func (b *book) see(p *purchase, o Order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.sold() && (p.owned == 0 || o.Version < p.owned) {
		p.owned = o.Version
	}
	if p.order.ID == "" || o.Version > p.order.Version {
		p.order = o
	}
}

// giveBack notes a refund that was taken: the tickets went back after the last look
// and with the answer at the latest.
func (b *book) giveBack(p *purchase, o Order, asked int64, items []OrderItem) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.asked += asked
	for _, i := range items {
		p.backs = append(p.backs, change{p.order.Version, o.Version, i.Tier, 0, -i.Quantity, i.Seats})
	}
	p.order = o
}

// unsettled lists the purchases of which more is to be expected.
func (b *book) unsettled() (list []*purchase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.purchases {
		if p.order.ID != "" && !p.order.Settled() {
			list = append(list, p)
		}
	}
	return list
}

// surprise notes an answer that must not be.
func (b *book) surprise(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.surprised++; b.surprised <= maxSurprises {
		b.surprises = append(b.surprises, fmt.Sprintf(format, args...))
	}
}

// counts are what the buyers' receipts say at a time.
type counts struct{ expired, paid, open, cancelled int64 }

func (b *book) count(now time.Time) (c counts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.receipts {
		p := r.purchase
		switch {
		case p != nil && p.order.Paid():
			c.paid++
		case p != nil && p.order.Status == "cancelled":
			c.cancelled++
		case p != nil && p.order.ID != "" && !p.order.Settled():
			c.open++
		case !r.released && !r.hold.ExpiresAt.After(now):
			c.expired++
		}
	}
	return c
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
