package tickets

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

// at is when an entry was made.
func at(seq int) time.Time { return time.Date(2027, 3, 1, 9, 0, seq, 0, time.UTC) }

// may is where an order can go from a state, as package orders has it, and stay.
var may = map[orders.Status][]orders.Status{
	orders.Pending:           {orders.Confirmed, orders.Captured, orders.Cancelled},
	orders.Confirmed:         {orders.Captured, orders.Cancelled},
	orders.Captured:          {orders.PartiallyRefunded, orders.Refunded, orders.Confirmed},
	orders.PartiallyRefunded: {orders.Captured, orders.Refunded},
	orders.Refunded:          {orders.Captured, orders.PartiallyRefunded},
	orders.Cancelled:         {orders.Confirmed, orders.Captured},
}

// life is a random course of an order: what its entries record.
type life struct {
	*rapid.T
	orders.Order
	records []record
	sold    []bool // at each entry: whether its units have been paid for since they were sold
}

// live draws a life.
func live(t *rapid.T, id *book) *life {
	l := &life{T: t, Order: orders.Order{ID: id.order, Event: "gig", Status: orders.Pending}}
	for i := range rapid.IntRange(1, 3).Draw(t, "lines") {
		quantity := rapid.Int64Range(1, 4).Draw(t, "quantity")
		item := orders.Item{Item: holds.Item{Tier: "ga", Quantity: ledger.Amount(quantity)}}
		if rapid.Bool().Draw(t, "seated") {
			item.Tier = "stalls"
			for n := range quantity {
				item.Seats = append(item.Seats, fmt.Sprintf("R%d-%d", i, n))
			}
		}
		l.Items = append(l.Items, item)
	}
	for seq := range rapid.IntRange(1, 15).Draw(t, "entries") {
		if rapid.Bool().Draw(t, "moves") {
			l.Status = rapid.SampledFrom(may[l.Status]).Draw(t, "status")
		}
		if paid(l.Status) && rapid.IntRange(0, 2).Draw(t, "returns") == 0 {
			l.giveBack(&l.Items[rapid.IntRange(0, len(l.Items)-1).Draw(t, "line")])
		}
		l.record(seq + 1)
	}
	return l
}

// giveBack returns some of a line's units.
func (l *life) giveBack(item *orders.Item) {
	n := rapid.Int64Range(0, int64(item.Quantity-item.Returned)).Draw(l.T, "back")
	item.Returned += ledger.Amount(n)
	if item.Seats == nil {
		return
	}
	owned := slices.DeleteFunc(slices.Clone(item.Seats), func(s string) bool { return slices.Contains(item.ReturnedSeats, s) })
	item.ReturnedSeats = append(slices.Clip(item.ReturnedSeats), rapid.Permutation(owned).Draw(l.T, "seats")[:n]...)
}

// record notes the order as it is.
func (l *life) record(seq int) {
	sold := len(l.sold) > 0 && l.sold[len(l.sold)-1]
	l.sold = append(l.sold, paid(l.Status) || sold && l.Status == orders.Confirmed)
	o := l.Order
	o.Items = slices.Clone(l.Items)
	l.records = append(l.records, record{ledger.Seq(seq), at(seq), &o})
}

// agrees fails unless the valid tickets are what the order owns at an entry: line by line,
// and seat by seat.
func (l *life) agrees(b *book, entry int) {
	l.Helper()
	for i, item := range l.records[entry].order.Items {
		var seats []string
		n := 0
		for _, t := range b.tickets {
			if t.line != i+1 || t.revoked > 0 {
				continue
			}
			if n++; t.Seat != "" {
				seats = append(seats, t.Seat)
			}
		}
		want := int(item.Quantity - item.Returned)
		var owned []string
		if !l.sold[entry] {
			want = 0
		} else {
			owned = slices.DeleteFunc(slices.Clone(item.Seats), func(s string) bool { return slices.Contains(item.ReturnedSeats, s) })
		}
		slices.Sort(seats)
		if n != want || !slices.Equal(seats, owned) {
			l.Fatalf("entry %d, %s, line %d: %d valid %v, owns %d %v", entry+1, l.records[entry].order.Status, i+1, n, seats, want, owned)
		}
	}
}

// At each entry of any order's life the valid tickets are what it owns, if it's paid; a
// ticket that's revoked stays so; and it doesn't matter how the entries come together, or
// which come again.
func TestTicketsAreWhatTheOrderOwns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBook()
		l := live(t, b)
		for i, r := range l.records {
			if rapid.Bool().Draw(t, "written") {
				b = b.reread()
			}
			before := b.reread()
			b.follow(r)
			if i > 0 && rapid.Bool().Draw(t, "again") {
				b.follow(l.records[rapid.IntRange(0, i).Draw(t, "which")])
			}
			l.agrees(b, i)
			for j, was := range before.tickets {
				now := b.tickets[j]
				if now.ID != was.ID || now.Seat != was.Seat || now.line != was.line || was.revoked > 0 && now.revoked != was.revoked {
					t.Fatalf("ticket %d was %+v, is %+v", j+1, was, now)
				}
			}
		}
		whole := newBook()
		for _, r := range l.records {
			whole.follow(r)
		}
		if whole.show() != b.show() {
			t.Fatalf("%s in one transaction, %s in several", whole.show(), b.show())
		}
	})
}

// An order has as many tickets as it had units, for each time that it was sold and paid.
func TestNoUnitGetsTwoTickets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBook()
		l := live(t, b)
		issued, owned, sold := 0, 0, false
		for i, r := range l.records {
			b.follow(r)
			if l.sold[i] && !sold {
				for _, item := range r.order.Items {
					owned += int(item.Quantity - item.Returned)
				}
			}
			sold = l.sold[i]
			issued = len(b.tickets)
		}
		// What goes back in the entry that sells was never a ticket: a life may draw that.
		if issued != owned {
			t.Fatalf("%d tickets for %d units: %s", issued, owned, b.show())
		}
	})
}

// Entries that were given up, and are replayed at the end or never, leave the valid tickets
// that the last entry calls for, when that was followed.
func TestGivenUpEntriesAreMadeGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBook()
		l := live(t, b)
		last := len(l.records) - 1
		var lost []record
		for i, r := range l.records {
			if i < last && rapid.Bool().Draw(t, "lost") {
				lost = append(lost, r)
			} else {
				b.follow(r)
			}
		}
		if !decides(l.records[last].order.Status) {
			return
		}
		l.agrees(b, last)
		if len(lost) > 0 {
			for _, r := range rapid.Permutation(lost).Draw(t, "replayed") {
				b.follow(r)
			}
		}
		l.agrees(b, last)
	})
}
