package holds

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// Naming is a command's body that needs holds: those are read with the batch, together
// with the accounts that they lead to.
type Naming interface{ HoldIDs() []uuid.UUID }

// Find gives a hold that a command named, as the batch left it so far. The caller may
// change what it gets: that's a copy.
func Find(s *ledger.State, id uuid.UUID) (Hold, bool) {
	h, ok := shelfOf(s).holds[id]
	if !ok {
		return Hold{}, false
	}
	found := *h
	event := buckets.ShelfOf(s).Event
	found.of(event.Event, event.Currency)
	return found, true
}

// Row is the row of a changed hold, for the decision that changed it.
func Row(h Hold) ledger.Row { return changedRow{&h} }

// Pay gives the hold as it is while it's paid for. Its grace is fixed by the first
// payment: so long after expires_at, whatever else is tried.
func (h *Hold) Pay(grace time.Duration, version ledger.Seq) Hold {
	paying := h.to(PaymentPending, version)
	if paying.PayUntil == nil {
		paying.PayUntil = new(h.ExpiresAt.Add(grace))
	}
	return paying
}

// Again gives the hold as it is after a payment that certainly wasn't made: held until
// its own deadline as before, or ended when that has passed.
func (h *Hold) Again(now time.Time, version ledger.Seq) (Hold, []ledger.Leg) {
	if h.Status == PaymentPending && h.ExpiresAt.After(now) {
		return h.to(Held, version), nil
	}
	return h.End(now, version)
}

// End gives the hold as it is after it ended for another reason than a purchase, and
// the legs that put its tickets back: released before its deadline, expired after it.
func (h *Hold) End(now time.Time, version ledger.Seq) (Hold, []ledger.Leg) {
	if h.ExpiresAt.After(now) {
		return h.end(Released, version)
	}
	return h.end(Expired, version)
}

// Reconcile gives the hold as it is when its grace has ended and nobody knows whether
// it was paid: the tickets stay.
func (h *Hold) Reconcile(version ledger.Seq) Hold { return h.to(Reconciling, version) }

// Confirm gives the hold as it is after it was bought, and the legs that make its
// tickets the customer's.
func (h *Hold) Confirm(version ledger.Seq) (Hold, []ledger.Leg) {
	return h.to(Confirmed, version), move(h.Items, ledger.HeldBy(h.Customer), ledger.SoldTo(h.Customer))
}

// Take makes the legs and rows that sell tickets which nobody holds, to the hold that had
// them; see Fits.
func Take(s *ledger.State, hold Hold, items []Item) ([]ledger.Leg, []ledger.Row) {
	legs := append(take(onSale(s, items), ledger.SoldTo(hold.Customer)), redeem(hold.Code, 1)...)
	return legs, seatRows(hold.ID, items, seats.Sold)
}

// Return makes the legs and rows that put sold tickets of a hold back on sale.
func Return(hold uuid.UUID, customer string, items []Item) ([]ledger.Leg, []ledger.Row) {
	return free(items, ledger.SoldTo(customer)), seatRows(hold, items, seats.Available)
}

// seatRows makes the row of the change of lines' seats.
func seatRows(hold uuid.UUID, items []Item, to seats.State) []ledger.Row {
	return []ledger.Row{seats.Changed(seats.Change{Seats: Seats(items), To: to, Hold: hold})}
}

// WithinLimits tells whether a customer, with what it holds and owns, keeps the limits
// in force now; the error is ErrLimitExceeded.
func WithinLimits(s *ledger.State, customer string, items []Item) error {
	return withinLimits(s, customer, tiersOf(s, items, false), 0)
}

// Fits tells whether tickets that nobody holds could be sold to a customer now: those of a
// hold that a command named, whose route it is. Errors: buckets.ErrLaneChanging to ask
// again, ErrLimitExceeded, ErrCodeUsedUp, seats.ErrSeatUnavailable, ErrSoldOut or ErrTemporarilyHeld.
func Fits(s *ledger.State, route *buckets.Route, hold Hold, items []Item) error {
	customer := route.Customer
	if err := buckets.Admit(s, route); err != nil {
		if to, ok := buckets.MovedTo(err); ok && to != 0 {
			err = ErrLimitExceeded.Because("what the customer has is counted in another lane since the event was split")
		}
		return err
	}
	wanted := tiersOf(s, onSale(s, items), true)
	if err := withinLimits(s, customer, wanted, 0); err != nil {
		return err
	}
	if labels := Seats(items); len(labels) > 0 {
		if err := seats.Select(s).Named(labels, s.Now); err != nil {
			return err
		}
	}
	if code := hold.Code; code != "" && s.Balance(ledger.FreeUses(code), ledger.Uses) == 0 {
		return codeUsedUp(code)
	}
	return enough(s, wanted)
}

// onSale gives lines with the buckets in which their tickets are now: those of an allotment
// that has ended are everybody's.
func onSale(s *ledger.State, items []Item) []Item {
	offer := buckets.ShelfOf(s)
	list := slices.Clone(items)
	for i := range list {
		if a := offer.Allotments[list[i].Allotment]; a != nil && a.Ended(s.Now) {
			list[i].Allotment = ""
		}
	}
	return list
}

// tiersOf adds lines up by tier; without asking, for what the customer has already.
func tiersOf(s *ledger.State, items []Item, ask bool) []quantity {
	tiers := buckets.ShelfOf(s).Tiers
	var wanted []quantity
	for _, i := range items {
		n := i.Quantity
		if !ask {
			n = 0
		}
		wanted = addUp(wanted, tiers[i.Tier], i.Allotment, n)
	}
	return wanted
}
