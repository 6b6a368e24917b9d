package holds

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// Kinds of this package's entries.
const (
	KindPlaced   = "hold.placed"
	KindReleased = "hold.released"
	KindExpired  = "hold.expired"
)

const (
	// MaxItems bounds the lines of a hold; nobody buys from more tiers at once.
	MaxItems = 20
	// MaxQuantity bounds a line: far above any customer's limit, low enough that
	// no total overflows.
	MaxQuantity = 100_000
	// MaxSeats bounds the assigned seats of a hold, over all its lines.
	MaxSeats = 6
)

// Request is what a customer wants to hold, all of it or nothing.
type Request struct {
	Customer string `json:"customer"`
	Items    []Line `json:"items"`
}

// Line is one of three: a quantity of a tier, where several lines of one tier add up;
// seats by name; or the best that are available.
type Line struct {
	Tier          ledger.Unit   `json:"tier,omitempty"`
	Quantity      ledger.Amount `json:"quantity,omitempty"`
	Seats         []string      `json:"seats,omitempty"`
	BestAvailable *seats.Best   `json:"best_available,omitempty"`
}

// validate refuses what no state of the event could make right.
func (r *Request) validate() error {
	switch {
	case !ledger.ValidCustomer(r.Customer):
		return fault.BadField("customer", "must have 1 to 128 letters, digits or . _ ~ @ + = | -")
	case len(r.Items) == 0 || len(r.Items) > MaxItems:
		return fault.BadField("items", "a hold has 1 to %d lines", MaxItems)
	}
	named := make(map[string]bool)
	for i := range r.Items {
		l, field := &r.Items[i], fmt.Sprintf("items[%d]", i)
		if err := l.validate(field); err != nil {
			return err
		}
		for _, label := range l.Seats {
			if named[label] {
				return fault.BadField(field+".seats", "%s is named twice", label)
			}
			named[label] = true
		}
		if len(named) > maxNamed {
			return invalidQuantity(field+".seats", MaxSeats)
		}
	}
	return nil
}

// maxNamed bounds the seats that a request names before anything is known of them: more
// than can be held, so that one that doesn't exist is told before they're too many.
const maxNamed = 20

func (l *Line) validate(field string) error {
	byQuantity := l.Tier != "" || l.Quantity != 0
	switch {
	case l.Seats != nil && l.BestAvailable != nil || byQuantity && (l.Seats != nil || l.BestAvailable != nil):
		return fault.BadField(field, "is a tier with a quantity, or seats, or best_available")
	case l.Seats != nil:
		if n := len(l.Seats); n == 0 || n > maxNamed {
			return invalidQuantity(field+".seats", MaxSeats)
		}
		return seats.ValidLabels(field+".seats", l.Seats, maxNamed)
	case l.BestAvailable == nil && l.Tier == "":
		return fault.BadField(field+".tier", "is missing")
	}
	return nil
}

// place is the command of a hold.
type place struct {
	id      uuid.UUID
	request Request
}

func (p *place) Accounts() []string {
	c := p.request.Customer
	return []string{ledger.Available, ledger.HeldBy(c), ledger.SoldTo(c)}
}

// Wants names the seats, and what the best are chosen from.
func (p *place) Wants() (w seats.Want) {
	for _, l := range p.request.Items {
		w.Seats = append(w.Seats, l.Seats...)
		if l.BestAvailable != nil {
			w.Best = append(w.Best, *l.BestAvailable)
		}
	}
	return w
}

// Decide judges all lines together, in the order of precedence of the refusals.
func (p *place) Decide(s *ledger.State) (ledger.Decision, error) {
	offer := buckets.ShelfOf(s)
	event := offer.Event
	if event == nil {
		return ledger.Decision{}, buckets.ErrEventNotFound.Because("the event isn't open yet")
	}
	if !event.OnSale(s.Now) {
		return ledger.Decision{}, notOnSale(event)
	}
	c := choice{s: s, offer: offer, request: &p.request}
	for _, judge := range []func() error{c.exist, c.quantities, c.limits, c.choose} {
		if err := judge(); err != nil {
			return ledger.Decision{}, err
		}
	}
	hold := p.hold(s, event, c.lines)
	return ledger.Decision{
		Kind: KindPlaced, Legs: move(hold.Items, ledger.Available, ledger.HeldBy(hold.Customer)),
		Data: hold.data(), Rows: []ledger.Row{placedRow{&hold}},
	}, nil
}

func notOnSale(e *buckets.Event) error {
	err := ErrNotOnSale.Because("%s isn't on sale now", e.Event)
	if e.SaleOpensAt != nil {
		err = err.With("sale_opens_at", e.SaleOpensAt.UTC())
	}
	if e.SaleClosesAt != nil {
		err = err.With("sale_closes_at", e.SaleClosesAt.UTC())
	}
	return err
}

// quantity is what a request wants of a tier, its lines added up.
type quantity struct {
	tier *buckets.Tier
	n    ledger.Amount
}

// addUp adds tickets of a tier to what's wanted of it.
func addUp(wanted []quantity, tier *buckets.Tier, n ledger.Amount) []quantity {
	for i := range wanted {
		if wanted[i].tier == tier {
			wanted[i].n += n
			return wanted
		}
	}
	return append(wanted, quantity{tier, n})
}

// used is what a customer holds and owns of a tier.
func used(s *ledger.State, customer string, tier ledger.Unit) ledger.Amount {
	return s.Balance(ledger.HeldBy(customer), tier) + s.Balance(ledger.SoldTo(customer), tier)
}

// withinLimits compares what the customer's own accounts hold and own, and what is asked
// of tiers and of any of them, with the limits of the tiers and of the event.
func withinLimits(s *ledger.State, customer string, wanted []quantity, ofAny ledger.Amount) error {
	offer := buckets.ShelfOf(s)
	asked := ofAny
	for _, w := range wanted {
		asked += w.n
		if limit := w.tier.LimitPerCustomer; limit != nil {
			if used := used(s, customer, w.tier.Tier); used+w.n > ledger.Amount(*limit) {
				return limitExceeded(*limit, used, w.n).With("tier", w.tier.Tier)
			}
		}
	}
	if limit := offer.Event.LimitPerCustomer; limit != nil {
		var all ledger.Amount
		for tier := range offer.Tiers {
			all += used(s, customer, tier)
		}
		if all+asked > ledger.Amount(*limit) {
			return limitExceeded(*limit, all, asked)
		}
	}
	return nil
}

func limitExceeded(limit int64, used, asked ledger.Amount) *fault.Error {
	return ErrLimitExceeded.Because("%d held or bought, %d asked, %d allowed", used, asked, limit).
		With("limit", limit).With("used", used).With("asked", asked)
}

// enough refuses when a tier has too few free tickets: for now, when all of the
// request could be served if every hold ended; for good otherwise.
func enough(s *ledger.State, wanted []quantity) error {
	var short, lost *quantity
	for i := range wanted {
		w := &wanted[i]
		free := s.Balance(ledger.Available, w.tier.Tier)
		switch {
		case free >= w.n:
		case free+s.Balance(ledger.Held, w.tier.Tier) >= w.n:
			short = w
		case lost == nil:
			lost = w
		}
	}
	if lost != nil {
		free := s.Balance(ledger.Available, lost.tier.Tier)
		return ErrSoldOut.Because("%d of %s are left, %d asked", free, lost.tier.Tier, lost.n).
			With("tier", lost.tier.Tier).With("available", free).With("asked", lost.n)
	}
	if short != nil {
		free := s.Balance(ledger.Available, short.tier.Tier)
		at := shelfOf(s).retryAt(s.Now, short.tier.Tier)
		return ErrTemporarilyHeld.Because("%d of %s are free now, %d asked", free, short.tier.Tier, short.n).
			With("tier", short.tier.Tier).With("available", free).With("asked", short.n).
			With("retry_at", at.Format(time.RFC3339Nano)).
			After(at.Sub(s.Now))
	}
	return nil
}

// hold is what the customer gets: the prices in force, and the deadline.
func (p *place) hold(s *ledger.State, event *buckets.Event, lines []chosen) Hold {
	h := Hold{
		ID: p.id, Event: event.Event, Customer: p.request.Customer, Status: Held, Version: s.NextSeq(),
		CreatedAt: s.Now, ExpiresAt: s.Now.Add(time.Duration(event.HoldSeconds) * time.Second),
		Items: make([]Item, 0, len(lines)),
		Total: buckets.Money{Currency: event.Currency},
	}
	for _, l := range lines {
		price := l.tier.Price
		item := Item{
			Tier: l.tier.Tier, Quantity: l.n, Seats: l.seats, PriceVersion: price.Version,
			UnitPrice: buckets.Money{Amount: price.Amount, Currency: event.Currency},
		}
		if price.Fee != 0 {
			item.UnitFee = &buckets.Money{Amount: price.Fee, Currency: event.Currency}
		}
		if tax := price.Tax(); tax != 0 {
			item.UnitTax = &buckets.Money{Amount: tax, Currency: event.Currency}
		}
		h.Items = append(h.Items, item)
		h.Total.Amount += item.Of(item.Quantity).Sum()
	}
	return h
}
