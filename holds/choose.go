package holds

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// choice is what a request comes to, judged step by step.
type choice struct {
	s       *ledger.State
	offer   *buckets.Shelf
	request *Request

	allotment string           // whose tickets
	seats     *seats.Selection // nil when no line is about seats
	wanted    []quantity       // of tiers that the request names
	ofAny     ledger.Amount    // seats of whatever tier
	took      []quantity       // of those, what the best available came to
	lines     []chosen
}

// chosen is a line of the hold to be.
type chosen struct {
	tier  *buckets.Tier
	n     ledger.Amount
	seats []string
}

// exist refuses a request for what the event doesn't have.
func (c *choice) exist() error {
	for i := range c.request.Items {
		l := &c.request.Items[i]
		if c.seats == nil && (l.Seats != nil || l.BestAvailable != nil) {
			c.seats = seats.Select(c.s)
		}
		tier := l.Tier
		if best := l.BestAvailable; best != nil {
			if !c.seated() {
				return fault.BadField(fmt.Sprintf("items[%d].best_available", i), "no tier of the event is sold by seat")
			}
			tier = best.Tier
			if best.Section != "" {
				of, ok := c.seats.TierOfSection(best.Section)
				if !ok {
					return seats.ErrSectionNotFound.Because("%q", best.Section).With("section", best.Section)
				}
				if tier != "" && tier != of {
					return fault.BadField(fmt.Sprintf("items[%d].best_available.tier", i), "section %s is of tier %s", best.Section, of)
				}
			}
		}
		if tier != "" && c.offer.Tiers[tier] == nil {
			return buckets.TierNotFound(tier)
		}
		if err := seats.Missing(c.s, l.Seats); err != nil {
			return err
		}
	}
	return nil
}

// seated tells whether the event has a tier that's sold by seat.
func (c *choice) seated() bool {
	for _, t := range c.offer.Tiers {
		if t.Seated {
			return true
		}
	}
	return false
}

// quantities refuses what nobody may hold, and adds up what's wanted by tier.
func (c *choice) quantities() error {
	ofSeats := 0
	for i := range c.request.Items {
		l, field := &c.request.Items[i], fmt.Sprintf("items[%d]", i)
		switch best := l.BestAvailable; {
		case l.Seats != nil:
			ofSeats += len(l.Seats)
			for _, label := range l.Seats {
				tier, _ := c.seats.TierOf(label)
				c.wanted = addUp(c.wanted, c.offer.Tiers[tier], c.allotment, 1)
			}
			if ofSeats > MaxSeats {
				return invalidQuantity(field+".seats", MaxSeats)
			}
		case best != nil:
			if best.Quantity < 1 || best.Quantity > ledger.Amount(MaxSeats-ofSeats) {
				return invalidQuantity(field+".best_available.quantity", MaxSeats)
			}
			ofSeats += int(best.Quantity)
			tier := c.tierOf(best)
			if tier == nil {
				c.ofAny += best.Quantity
				continue
			}
			if err := seats.Required(tier, true, field+".best_available.tier"); err != nil {
				return err
			}
			c.wanted = addUp(c.wanted, tier, c.allotment, best.Quantity)
		default:
			tier := c.offer.Tiers[l.Tier]
			if err := seats.Required(tier, false, field); err != nil {
				return err
			}
			if l.Quantity < 1 || l.Quantity > MaxQuantity {
				return invalidQuantity(field+".quantity", MaxQuantity)
			}
			c.wanted = addUp(c.wanted, tier, c.allotment, l.Quantity)
		}
	}
	return nil
}

func invalidQuantity(field string, most int) error {
	return ErrInvalidQuantity.Because("%s: must be 1 to %d", field, most).With("field", field).With("maximum", most)
}

// tierOf is the tier of which the best seats are wanted; nil for any.
func (c *choice) tierOf(b *seats.Best) *buckets.Tier {
	tier := b.Tier
	if b.Section != "" {
		tier, _ = c.seats.TierOfSection(b.Section)
	}
	return c.offer.Tiers[tier]
}

// limits refuses more than the customer may have.
func (c *choice) limits() error {
	if err := withinLimits(c.s, c.request.Customer, c.wanted, c.ofAny); err != nil {
		return err
	}
	for i := range c.request.Items {
		if b := c.request.Items[i].BestAvailable; b != nil && c.tierOf(b) == nil {
			if err := c.room(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// choose makes the hold's lines: first the seats that have names, then the best of what's
// left, and tickets without seats. It refuses for good rather than for now.
func (c *choice) choose() error {
	if err := c.named(); err != nil {
		return err
	}
	var short error
	var byQuantity []quantity
	for i := range c.request.Items {
		l := &c.request.Items[i]
		switch {
		case l.BestAvailable != nil:
			if err := c.best(l.BestAvailable); short == nil || errors.Is(err, ErrSoldOut) || errors.Is(err, ErrLimitExceeded) {
				short = err
			}
		case l.Seats != nil:
			c.bySeat(l.Seats)
		default:
			tier := c.offer.Tiers[l.Tier]
			byQuantity = addUp(byQuantity, tier, c.allotment, l.Quantity)
			c.lines = append(c.lines, chosen{tier: tier, n: l.Quantity})
		}
	}
	if err := enough(c.s, byQuantity); short == nil || errors.Is(err, ErrSoldOut) {
		short = err
	}
	return c.useLeft(short)
}

// named takes all seats that have names, or tells which can't be had.
func (c *choice) named() error {
	var labels []string
	for i := range c.request.Items {
		labels = append(labels, c.request.Items[i].Seats...)
	}
	if len(labels) == 0 {
		return nil
	}
	return c.seats.Named(labels, c.s.Now)
}

// bySeat makes lines of seats, one for each tier.
func (c *choice) bySeat(labels []string) {
	first := len(c.lines)
next:
	for _, label := range labels {
		tier, _ := c.seats.TierOf(label)
		for i := first; i < len(c.lines); i++ {
			if l := &c.lines[i]; l.tier.Tier == tier {
				l.n++
				l.seats = append(l.seats, label)
				continue next
			}
		}
		c.lines = append(c.lines, chosen{c.offer.Tiers[tier], 1, []string{label}})
	}
}

// best takes the best seats available, or tells what there is instead.
func (c *choice) best(b *seats.Best) error {
	if c.tierOf(b) == nil {
		if err := c.room(b); err != nil { // an earlier line may have used it up
			return err
		}
	}
	labels, short := c.seats.Best(*b, func(tier ledger.Unit) bool { return c.mayHave(tier, b) })
	if labels != nil {
		if c.tierOf(b) == nil {
			for _, label := range labels {
				tier, _ := c.seats.TierOf(label)
				c.took = addUp(c.took, c.offer.Tiers[tier], c.allotment, 1)
			}
		}
		c.bySeat(labels)
		return nil
	}
	say := func(err *fault.Error) *fault.Error {
		return err.With("available", short.Free).With("asked", b.Quantity).With("largest_block", short.Largest)
	}
	switch n := int(b.Quantity); {
	case short.Free >= n:
		return say(seats.ErrNotTogether.Because("%d seats are free, at most %d side by side, %d asked", short.Free, short.Largest, n))
	case short.Free+short.Held >= n:
		var tier ledger.Unit
		if t := c.tierOf(b); t != nil {
			tier = t.Tier
		}
		at := shelfOf(c.s).retryAt(c.s.Now, tier)
		return say(ErrTemporarilyHeld.Because("%d seats are free now, %d asked", short.Free, n)).
			With("retry_at", at.Format(time.RFC3339Nano)).After(at.Sub(c.s.Now))
	}
	return say(ErrSoldOut.Because("%d seats are left, %d asked", short.Free, b.Quantity))
}

// room refuses a request for seats of whatever tier when the customer's limits leave none.
func (c *choice) room(b *seats.Best) error {
	var full *buckets.Tier
	for _, t := range c.offer.Tiers {
		switch {
		case !t.Seated:
		case c.mayHave(t.Tier, b):
			return nil
		case full == nil || t.Position < full.Position:
			full = t
		}
	}
	return limitExceeded(*full.LimitPerCustomer, used(c.s, c.request.Customer, full.Tier), c.askedOf(full.Tier)+b.Quantity).
		With("tier", full.Tier)
}

// askedOf is what the request wants of a tier so far.
func (c *choice) askedOf(tier ledger.Unit) (n ledger.Amount) {
	for _, w := range slices.Concat(c.wanted, c.took) {
		if w.tier.Tier == tier {
			n += w.n
		}
	}
	return n
}

// mayHave tells whether the customer's limit leaves room for seats of a tier.
func (c *choice) mayHave(tier ledger.Unit, b *seats.Best) bool {
	limit := c.offer.Tiers[tier].LimitPerCustomer
	if limit == nil || c.tierOf(b) != nil {
		return true
	}
	return used(c.s, c.request.Customer, tier)+c.askedOf(tier)+b.Quantity <= ledger.Amount(*limit)
}
