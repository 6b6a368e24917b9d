package sale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// seatStep is one side of a change of one seat.
type seatStep struct {
	version    int64
	seat       int
	may        bool
	held, sold int64
}

// seatSteps are the changes of all seats that the receipts tell of, by version.
func (b *book) seatSteps(h *house) []seatStep {
	var steps []seatStep
	for _, r := range b.receipts {
		for _, c := range r.changes() {
			held, sold := int64(cmp.Compare(c.held, 0)), int64(cmp.Compare(c.sold, 0))
			for _, label := range c.seats {
				if at, ok := h.index[label]; ok {
					steps = append(steps, seatStep{c.after + 1, at, true, held, sold}, seatStep{c.by, at, false, held, sold})
				}
			}
		}
	}
	slices.SortStableFunc(steps, func(x, y seatStep) int { return cmp.Compare(x.version, y.version) })
	return steps
}

// auditMaps holds what each reader of the map was told against the receipts, and against
// the readings of the whole map. Call it when audit may be called.
func (s *sale) auditMaps() {
	g := s.gallery
	if g == nil {
		return
	}
	steps := s.book.seatSteps(g.house)
	slices.SortStableFunc(g.readings, func(x, y mapReading) int { return cmp.Compare(x.version, y.version) })
	for _, f := range g.followers {
		a := &mapAudit{
			book: &s.book, house: g.house, name: f.name, steps: steps, log: f.log,
			letters: append([]byte(nil), f.start.letters...),
			held:    make([]span, len(g.house.seats)), sold: make([]span, len(g.house.seats)),
		}
		a.run(f.start.version, f.knew(steps, g.readings), g.readings)
	}
}

// knew lists the versions to be looked at, in order: at which anything happened and the
// reader knew the map. Who follows a stream knows it at the end of a message, which has of
// each seat the last change only.
func (f *follower) knew(steps []seatStep, readings []mapReading) (versions []int64) {
	if f.stream {
		versions = slices.Clone(f.messages)
	} else {
		for _, s := range steps {
			versions = append(versions, s.version)
		}
		for _, d := range f.log {
			versions = append(versions, d.version)
		}
		for _, m := range readings {
			versions = append(versions, m.version)
		}
	}
	slices.Sort(versions)
	return slices.DeleteFunc(slices.Compact(versions), func(v int64) bool { return v <= f.start.version || v > f.version })
}

// mapAudit walks through the versions of the map that one reader was told of.
type mapAudit struct {
	book  *book
	house *house
	name  string
	steps []seatStep // not walked over yet
	log   []delta    // likewise: what the reader was told

	letters    []byte // by what the reader was told
	held, sold []span // by the receipts
}

// run compares at the first version and at those that the reader knew, and with readings
// of the whole map at one of them. So a change that wasn't told is found, too.
func (a *mapAudit) run(first int64, versions []int64, readings []mapReading) {
	a.walk(first)
	for at := range a.letters {
		a.check(first, at)
	}
	for _, version := range versions {
		for _, at := range a.walk(version) {
			a.check(version, at)
		}
		for len(readings) > 0 && readings[0].version <= version {
			if readings[0].version == version {
				a.compare(readings[0])
			}
			readings = readings[1:]
		}
	}
}

// walk takes all that happened up to a version, and gives the seats that it's about, each
// once.
func (a *mapAudit) walk(version int64) (touched []int) {
	for len(a.steps) > 0 && a.steps[0].version <= version {
		s := a.steps[0]
		a.held[s.seat].add(s.held, s.may)
		a.sold[s.seat].add(s.sold, s.may)
		touched, a.steps = append(touched, s.seat), a.steps[1:]
	}
	for len(a.log) > 0 && a.log[0].version <= version {
		d := a.log[0]
		a.letters[d.seat] = d.letter
		touched, a.log = append(touched, d.seat), a.log[1:]
	}
	slices.Sort(touched)
	return slices.Compact(touched)
}

// check compares a seat with what its buyers know.
func (a *mapAudit) check(version int64, at int) {
	held, sold := int64(0), int64(0)
	switch a.letters[at] {
	case letterHeld:
		held = 1
	case letterSold:
		sold = 1
	}
	h, s := a.held[at], a.sold[at]
	if !h.allows(held) || !s.allows(sold) || a.letters[at] == letterBlocked {
		label := a.house.seats[at].label
		a.book.surprise("version %d: by %s seat %s is %s, the buyers hold it %d to %d times and own it %d to %d times: %s",
			version, a.name, label, stateOf(a.letters[at]), h.least, h.most, s.least, s.most, a.book.whose(label))
	}
}

// compare compares what the reader knows with a reading of the whole map.
func (a *mapAudit) compare(m mapReading) {
	for at, letter := range m.letters {
		if letter != a.letters[at] {
			a.book.surprise("version %d: seat %s is %s on the map, and %s by %s",
				m.version, a.house.seats[at].label, stateOf(letter), stateOf(a.letters[at]), a.name)
		}
	}
}

// whose names the holds that had a seat.
func (b *book) whose(label string) string {
	var list []string
	for _, r := range b.receipts {
		for _, i := range r.hold.Items {
			if slices.Contains(i.Seats, label) {
				list = append(list, fmt.Sprintf("hold %s at version %d is %s at %d", r.hold.ID, r.hold.Version, r.ended.Status, r.ended.Version))
			}
		}
	}
	return cmp.Or(strings.Join(list, "; "), "nobody had it")
}

// auditOwners holds the orders against the last reading of the map: a seat that's sold has
// one owner, and who owns a seat has it there. Orders that changed since may be either.
func (s *sale) auditOwners(orders []Order) {
	if s.gallery == nil {
		return
	}
	last, owners, perhaps := s.gallery.last(), map[string][]string{}, map[string]bool{}
	for i := range orders {
		for _, label := range orders[i].seats() {
			switch {
			case orders[i].Version > last.version:
				perhaps[label] = true
			case orders[i].sold():
				owners[label] = append(owners[label], orders[i].ID)
			}
		}
	}
	for at, letter := range last.letters {
		label := s.gallery.house.seats[at].label
		list := owners[label]
		switch {
		case len(list) > 1:
			s.book.surprise("seat %s is owned by %d orders: %s", label, len(list), strings.Join(list, ", "))
		case perhaps[label]:
		case letter == letterSold && len(list) == 0:
			s.book.surprise("version %d: seat %s is sold on the map, and nobody owns it", last.version, label)
		case letter != letterSold && len(list) == 1:
			s.book.surprise("version %d: seat %s is %s on the map, and order %s owns it", last.version, label, stateOf(letter), list[0])
		}
		delete(owners, label)
	}
	for label := range owners {
		s.book.surprise("seat %s is owned by an order, and isn't of the chart", label)
	}
}
