package sale

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"
)

// chooseAgain is how many refusals a party bears beyond its patience when the seats that
// it chose were gone.
const chooseAgain = 3

// averageParty is how many are in a party.
const averageParty = 3.5

// party is what a buyer wants who comes for seats.
type party struct {
	named  bool   // chooses on the map
	best   best   // takes what the service chooses; its quantity is the party's size
	beside []line // tickets without seats

	gone map[string]bool // seats that the party was refused, whatever the map says
}

// lines asks for the best seats.
func (p *party) lines() []line {
	wanted := p.best
	return append([]line{{Best: &wanted}}, p.beside...)
}

// seat makes some of the crowd come for seats: as many as seats are of all tickets, but no
// more than about two for each. The others stay as they are.
func (p Plan) seat(crowd []*buyer) {
	if p.Seats == 0 {
		return
	}
	h := p.house()
	share := min(float64(p.Seats)/float64(p.Capacity()), 2*float64(p.Seats)/(averageParty*float64(p.Buyers)))
	for i, b := range crowd {
		r := rand.New(rand.NewPCG(p.Seed, 0x5ea7<<32|uint64(i)))
		if r.Float64() >= share {
			continue
		}
		b.party = newParty(r, h.names)
		b.items = b.party.lines()
	}
}

// newParty is one to six people. Half of them choose on the map; the others take the best
// of the house, of a tier or of a section.
func newParty(r *rand.Rand, sections []string) *party {
	p := &party{named: r.IntN(2) == 0}
	p.best.Quantity = 1 + int64(r.IntN(customerLimit))
	switch r.IntN(4) {
	case 0:
		p.best.Tier = stalls
	case 1:
		p.best.Section = sections[r.IntN(len(sections))]
	}
	p.best.AcceptSplit = r.IntN(3) == 0
	p.best.Accessible = !p.named && p.best.Quantity <= 2 && r.IntN(8) == 0
	if room := customerLimit - p.best.Quantity; room > 0 && r.IntN(5) == 0 {
		p.beside = []line{{Tier: "ga", Quantity: 1 + r.Int64N(room)}}
	}
	return p
}

// claimSeats asks for a party's seats, and for others when they're gone. A request that
// says the same as the one before has its key. It returns nil when the party goes home
// without.
func (s *sale) claimSeats(ctx context.Context, b *buyer) *receipt {
	p := *b.party
	p.gone = map[string]bool{}
	var key string
	var asked []line
	for again := 0; again < b.tries+chooseAgain; again++ {
		lines := s.chooseSeats(b, &p)
		if !reflect.DeepEqual(lines, asked) {
			key, asked = s.newKey(b.customer), lines
		}
		got, ok := s.place(ctx, b, key, lines)
		if !ok {
			return nil
		}
		if got.status == 201 {
			return s.keepSeats(b, key, lines, got)
		}
		at, back := s.refusedSeats(b, &p, lines, got)
		if !back || !s.waitUntil(ctx, b.soon(at)) {
			return nil
		}
	}
	return nil
}

// chooseSeats makes the lines of a request. Who finds no seats on the map asks for the
// best from then on.
func (s *sale) chooseSeats(b *buyer, p *party) []line {
	if p.named {
		if labels := s.gallery.pick(b.rand, p.gone, int(p.best.Quantity)); labels != nil {
			return append([]line{{Seats: labels}}, p.beside...)
		}
		p.named = false
	}
	return p.lines()
}

// keepSeats is keep, and sees whether the seats are those that were asked for.
func (s *sale) keepSeats(b *buyer, key string, lines []line, got answer) *receipt {
	r := s.keep(b, key, lines, got)
	if r == nil {
		return nil
	}
	if wrong := s.gallery.house.wrong(lines, r.hold.Items); wrong != "" {
		s.book.surprise("hold %s of %s: %s", r.hold.ID, b.customer, wrong)
	}
	s.book.seat(lines, r, s.gallery.house)
	return r
}

// refusedSeats tells when a party asks again, and what it makes of the refusal.
func (s *sale) refusedSeats(b *buyer, p *party, lines []line, got answer) (at time.Time, again bool) {
	switch got.code {
	case "seat_unavailable":
		gone, wrong := unavailable(lines, got)
		if wrong != "" {
			s.book.surprise("%s was refused seats: %s: %s", b.customer, wrong, got.body)
		}
		for _, label := range gone {
			p.gone[label] = true
		}
		s.book.chooseAgain()
		return time.Now(), true
	case "not_together":
		s.shortOf(b, got, func(n shortage) bool { return n.Available >= n.Asked && n.LargestBlock < n.Asked })
		if p.best.AcceptSplit {
			s.book.surprise("%s would sit apart, and was refused with not_together", b.customer)
			return at, false
		}
		if p.best.Quantity > 2 && b.rand.IntN(2) == 0 { // some stay at home
			p.best.Quantity--
		} else {
			p.best.AcceptSplit = true
		}
		return time.Now(), true
	case "sold_out":
		return at, false
	case "temporarily_held":
		s.shortOf(b, got, func(n shortage) bool { return n.Available < n.Asked })
	}
	if at, again = got.returns(); !again {
		s.book.surprise("%s asked for seats and got %s", b.customer, got)
	}
	return at, again
}

// shortage is what a refusal tells of the seats that there are.
type shortage struct {
	Available    int64 `json:"available"`
	Asked        int64 `json:"asked"`
	LargestBlock int64 `json:"largest_block"`
}

// shortOf sees whether a refusal's numbers agree with its code.
func (s *sale) shortOf(b *buyer, got answer, agrees func(shortage) bool) {
	var n shortage
	if err := json.Unmarshal(got.body, &n); err != nil || !agrees(n) {
		s.book.surprise("%s was refused with %s, and its numbers say otherwise: %s", b.customer, got.code, got.body)
	}
}

// unavailable reads the seats that a refusal names, and tells what is wrong with it; "" if
// nothing is.
func unavailable(lines []line, got answer) (gone []string, wrong string) {
	var no struct {
		Seats []struct {
			Seat        string     `json:"seat"`
			Reason      string     `json:"reason"`
			MayReturnAt *time.Time `json:"may_return_at"`
		} `json:"seats"`
	}
	if err := json.Unmarshal(got.body, &no); err != nil || len(no.Seats) == 0 {
		return nil, "it names none"
	}
	for _, seat := range no.Seats {
		asked := slices.ContainsFunc(lines, func(l line) bool { return slices.Contains(l.Seats, seat.Seat) })
		switch {
		case !asked:
			return nil, seat.Seat + " wasn't asked for"
		case seat.Reason != "sold" && seat.Reason != "held":
			return nil, seat.Seat + " can't be " + seat.Reason
		case seat.Reason == "sold" && seat.MayReturnAt != nil:
			return nil, seat.Seat + " is sold and can't return"
		}
		gone = append(gone, seat.Seat)
	}
	return gone, ""
}

// wrong tells what is wrong with seats that were given for lines; "" if nothing is.
func (h *house) wrong(lines []line, items []item) string {
	var given []string
	for _, i := range items {
		if i.Tier != stalls && i.Tier != balcony {
			continue
		}
		if int64(len(i.Seats)) != i.Quantity {
			return fmt.Sprintf("%d tickets of %s have %d seats", i.Quantity, i.Tier, len(i.Seats))
		}
		for _, label := range i.Seats {
			if at, ok := h.index[label]; !ok || h.rows[h.seats[at].row].tier != i.Tier {
				return fmt.Sprintf("seat %s isn't of %s", label, i.Tier)
			}
		}
		given = append(given, i.Seats...)
	}
	list, ok := h.find(given)
	if !ok {
		return fmt.Sprintf("a seat is given twice: %v", given)
	}
	slices.Sort(list)
	for _, l := range lines {
		switch {
		case l.Best != nil:
			return h.wrongBest(l.Best, list)
		case l.Seats != nil:
			wanted := slices.Sorted(slices.Values(l.Seats))
			if slices.Sort(given); !slices.Equal(wanted, given) {
				return fmt.Sprintf("asked for %v and got %v", wanted, given)
			}
		}
	}
	return ""
}

// wrongBest is wrong for the best available; the seats are sorted.
func (h *house) wrongBest(b *best, list []int) string {
	if int64(len(list)) != b.Quantity {
		return fmt.Sprintf("asked for %d seats and got %d", b.Quantity, len(list))
	}
	for _, at := range list {
		s := h.seats[at]
		row := h.rows[s.row]
		switch {
		case b.Section != "" && row.section != b.Section, b.Tier != "" && row.tier != b.Tier:
			return fmt.Sprintf("seat %s isn't of %s%s", s.label, b.Section, b.Tier)
		case s.accessible != b.Accessible:
			return fmt.Sprintf("seat %s is of the wrong pool", s.label)
		}
	}
	if !b.AcceptSplit && !h.sideBySide(list) {
		return fmt.Sprintf("seat %s and the other %d aren't side by side", h.seats[list[0]].label, len(list)-1)
	}
	return ""
}

// sideBySide tells whether sorted seats are.
func (h *house) sideBySide(list []int) bool {
	return list[len(list)-1]-list[0] == len(list)-1 && h.together(list[0], len(list))
}
