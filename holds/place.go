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
	Customer  string `json:"customer"`
	Items     []Line `json:"items"`
	Allotment string `json:"allotment,omitempty"` // whose tickets; "": everybody's, or those that the code opens
	Code      string `json:"code,omitempty"`      // access code; upper and lower case are the same
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
	case r.Allotment != "" && !buckets.ValidID(r.Allotment): // the database couldn't even compare it
		return buckets.AllotmentNotFound(r.Allotment)
	case r.Code != "" && !buckets.ValidID(r.Code):
		return ErrInvalidCode.Because("it has other letters or more of them than a code may").With("field", "code")
	}
	r.Code = buckets.NormalCode(r.Code)
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
	route   *buckets.Route
}

// Route leads to the customer's lane.
func (p *place) Route() *buckets.Route { return p.route }

// AccessCode is the request's.
func (p *place) AccessCode() string { return p.request.Code }

// Accounts names those of the request; a code's allotment is known when it has been read.
func (p *place) Accounts() []string {
	r := &p.request
	codes := []string{ledger.Available, ledger.HeldBy(r.Customer), ledger.SoldTo(r.Customer)}
	if r.Allotment != "" {
		codes = append(codes, ledger.FreeOf(r.Allotment))
	}
	if r.Code != "" {
		codes = append(codes, ledger.FreeUses(r.Code), ledger.RedeemedUses(r.Code))
	}
	return codes
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
	if err := buckets.Admit(s, p.route); err != nil {
		return ledger.Decision{}, err
	}
	c := choice{s: s, offer: offer, request: &p.request}
	for _, judge := range []func() error{c.channel, c.exist, c.quantities, c.limits, c.choose} {
		if err := judge(); err != nil {
			return ledger.Decision{}, err
		}
	}
	hold := p.hold(s, event, &c)
	return ledger.Decision{
		Kind: KindPlaced,
		Legs: append(take(hold.Items, ledger.HeldBy(hold.Customer)), redeem(hold.Code, 1)...),
		Data: hold.data(), Rows: []ledger.Row{placedRow{&hold}},
	}, nil
}

// quantity is what a request wants of a tier, its lines added up.
type quantity struct {
	tier      *buckets.Tier
	allotment string
	n         ledger.Amount
}

// addUp adds tickets of a tier and an allotment to what's wanted of it.
func addUp(wanted []quantity, tier *buckets.Tier, allotment string, n ledger.Amount) []quantity {
	for i := range wanted {
		if wanted[i].tier == tier && wanted[i].allotment == allotment {
			wanted[i].n += n
			return wanted
		}
	}
	return append(wanted, quantity{tier, allotment, n})
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

// hold is what the customer gets: the prices in force, and the deadline.
func (p *place) hold(s *ledger.State, event *buckets.Event, c *choice) Hold {
	h := Hold{
		ID: p.id, Event: event.Event, Customer: p.request.Customer, Status: Held, Version: s.NextSeq(),
		CreatedAt: s.Now, ExpiresAt: s.Now.Add(time.Duration(event.HoldSeconds) * time.Second),
		Code: p.request.Code, Items: make([]Item, 0, len(c.lines)),
		Total: buckets.Money{Currency: event.Currency},
	}
	for _, l := range c.lines {
		price := l.tier.Price
		item := Item{
			Tier: l.tier.Tier, Allotment: c.allotment, Quantity: l.n, Seats: l.seats, PriceVersion: price.Version,
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
