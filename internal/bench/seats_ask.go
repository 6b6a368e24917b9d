package bench

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// What is asked for. Who names seats names neighbours, so that groups overlap; in any
// order, so that a system that locks as it's told runs into itself.
const (
	hotPercent     = 80 // of the requests want the hot sections
	namedPercent   = 50 // name their seats, the others take the best available
	sectionPercent = 50 // of those want a certain section, the others a tier
	splitPercent   = 25 // of those would sit apart
)

// seatAsk is one request for seats.
type seatAsk struct {
	key      string
	customer string
	seats    []int32 // named, in the order in which they're asked for; nil: the best available
	section  string  // of the best available; "" for any
	tier     string  // of the best available; "" for any
	quantity int
	split    bool
	release  bool // give the hold back at once
}

// ask makes the n-th request of a phase; the same for the same seed.
func (o *office) ask(phase string, n int64) seatAsk {
	chance := rand.New(rand.NewPCG(o.Seed, mix(uint64(n))+uint64(len(phase))))
	number := strconv.FormatInt(n, 10)
	a := seatAsk{key: o.event + "-" + phase + "-" + number, quantity: 1 + chance.IntN(maxSeatsPerHold)}
	a.release = chance.Float64() < o.Release
	if o.Customers == 0 {
		a.customer = phase + "-" + number
	} else {
		a.customer = "c-" + strconv.FormatInt(chance.Int64N(o.Customers), 10)
	}
	from, to := 0, o.house.hot
	if chance.IntN(100) >= hotPercent {
		from, to = o.house.hot, len(o.house.sections)
	}
	section := from + chance.IntN(to-from)
	switch {
	case chance.IntN(100) < namedPercent:
		a.seats = o.house.neighbours(chance, section, a.quantity)
		a.quantity = len(a.seats)
		return a
	case chance.IntN(100) < sectionPercent:
		a.section = o.house.sections[section]
	default:
		a.tier = o.house.tiers[section]
	}
	a.split = chance.IntN(100) < splitPercent
	return a
}

// neighbours picks seats side by side in a row of a section, in any order; fewer where
// the row ends.
func (h *house) neighbours(chance *rand.Rand, section, n int) []int32 {
	rows := h.rowsOf(section)
	row := rows[chance.IntN(len(rows))]
	n = min(n, row.n)
	first := row.first + chance.IntN(row.n-n+1)
	seats := make([]int32, n)
	for i, at := range chance.Perm(n) {
		seats[i] = int32(first + at)
	}
	return seats
}

// append appends the request's JSON.
func (a *seatAsk) append(b []byte, h *house) []byte {
	b = append(b, `{"customer":"`...)
	b = append(b, a.customer...)
	if a.seats != nil {
		b = append(b, `","items":[{"seats":[`...)
		for i, seat := range a.seats {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, '"')
			b = append(b, h.labels[seat]...)
			b = append(b, '"')
		}
		return append(b, `]}]}`...)
	}
	b = append(b, `","items":[{"best_available":{"quantity":`...)
	b = strconv.AppendInt(b, int64(a.quantity), 10)
	if a.section != "" {
		b = append(b, `,"section":"`+a.section+`"`...)
	}
	if a.tier != "" {
		b = append(b, `,"tier":"`+a.tier+`"`...)
	}
	if a.split {
		b = append(b, `,"accept_split":true`...)
	}
	return append(b, `}}]}`...)
}

// fits tells whether seats are what was asked for.
func (a *seatAsk) fits(seats []int32, h *house) bool {
	if len(seats) != a.quantity {
		return false
	}
	for i, seat := range seats {
		section := h.rowOf(seat).section
		switch {
		case slices.Contains(seats[:i], seat),
			a.seats != nil && !slices.Contains(a.seats, seat),
			a.section != "" && h.sections[section] != a.section,
			a.tier != "" && h.tiers[section] != a.tier:
			return false
		}
	}
	return true
}
