package tickets

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

// record is an order as an entry records it.
type record struct {
	seq   ledger.Seq
	at    time.Time
	order *orders.Order
}

// decides tells whether an order of this state says which tickets are valid. A pending one
// has none, and a confirmed one those that it has.
func decides(s orders.Status) bool { return s == orders.Cancelled || paid(s) }

// paid tells whether the units of an order of this state have tickets.
func paid(s orders.Status) bool {
	return s == orders.Captured || s == orders.PartiallyRefunded || s == orders.Refunded
}

// book is the tickets of one order. It's changed by following the order's entries.
type book struct {
	journal ledger.JournalID
	order   uuid.UUID
	seq     ledger.Seq // of the last entry that it follows
	tickets []*Ticket  // all that were ever issued, by number from 1

	issued  []*Ticket // of those, by what it followed since it was read
	revoked []*Ticket // likewise, of those that there were
}

// follow makes the tickets what an entry's order calls for. An entry that's older than what
// the book follows changes nothing.
func (b *book) follow(r record) {
	if r.seq <= b.seq || !decides(r.order.Status) {
		return
	}
	b.seq = r.seq
	for i := range r.order.Items {
		line := &line{book: b, record: r, number: i + 1, item: &r.order.Items[i]}
		if paid(r.order.Status) {
			line.fit()
		} else {
			line.revoke(line.valid())
		}
	}
}

// line is one line of an order at an entry.
type line struct {
	*book
	record
	number int // from 1
	item   *orders.Item
}

// valid gives the line's valid tickets, by number.
func (l *line) valid() (list []*Ticket) {
	for _, t := range l.tickets {
		if t.line == l.number && t.revoked == 0 {
			list = append(list, t)
		}
	}
	return list
}

// fit revokes the tickets of units that the order no longer owns, and issues those that are
// missing.
func (l *line) fit() {
	valid := l.valid()
	if l.item.Seats == nil {
		owned := max(int(l.item.Quantity-l.item.Returned), 0)
		l.revoke(valid[min(owned, len(valid)):])
		for range owned - len(valid) {
			l.issue("")
		}
		return
	}
	var seated []string
	for _, t := range valid {
		seated = append(seated, t.Seat)
		if slices.Contains(l.item.ReturnedSeats, t.Seat) {
			l.revoke([]*Ticket{t})
		}
	}
	for _, seat := range l.item.Seats {
		if !slices.Contains(seated, seat) && !slices.Contains(l.item.ReturnedSeats, seat) {
			l.issue(seat)
		}
	}
}

// issue adds a ticket with the next number. It isn't signed yet.
func (l *line) issue(seat string) {
	n := len(l.tickets) + 1
	t := &Ticket{
		ID: ID(l.journal, l.book.order, n), Order: l.book.order, Number: n, Event: l.record.order.Event,
		Tier: l.item.Tier, Seat: seat, IssuedAt: l.at, line: l.number, issued: l.record.seq,
	}
	l.tickets, l.issued = append(l.tickets, t), append(l.issued, t)
}

// revoke takes tickets back.
func (l *line) revoke(list []*Ticket) {
	for _, t := range list {
		t.revoked = l.record.seq
		if !slices.Contains(l.issued, t) {
			l.revoked = append(l.revoked, t)
		}
	}
}
