package holds

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// Status is the state of a hold.
type Status string

// The states of a hold.
const (
	Held           Status = "held"
	PaymentPending Status = "payment_pending" // its payment has begun; until pay_until it can end well
	Reconciling    Status = "reconciling"     // pay_until has passed and the outcome is unknown
	Confirmed      Status = "confirmed"       // bought
	Released       Status = "released"
	Expired        Status = "expired"
)

// Statuses lists the states.
func Statuses() []Status {
	return []Status{Held, PaymentPending, Reconciling, Confirmed, Released, Expired}
}

// Valid tells whether s is a state.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

// Claims tells whether a hold of this state has its tickets on the customer's account.
func (s Status) Claims() bool { return s == Held || s == PaymentPending || s == Reconciling }

// next is the whole state machine: where a hold may go from a state.
var next = map[Status][]Status{
	Held:           {PaymentPending, Confirmed, Released, Expired},
	PaymentPending: {Held, Reconciling, Confirmed, Released, Expired},
	Reconciling:    {Confirmed, Released, Expired},
}

// Item is one line of a hold: tickets of a tier at the price that's locked.
type Item struct {
	Tier         ledger.Unit    `json:"tier"`
	Allotment    string         `json:"allotment,omitempty"` // whose tickets they are; "": everybody's
	Quantity     ledger.Amount  `json:"quantity"`
	Seats        []string       `json:"seats,omitempty"` // labels, as many as the quantity, of a tier that's sold by seat
	UnitPrice    buckets.Money  `json:"unit_price"`      // face value of one ticket
	UnitFee      *buckets.Money `json:"unit_fee,omitempty"`
	UnitTax      *buckets.Money `json:"unit_tax,omitempty"`
	PriceVersion int64          `json:"price_version"`
}

// Parts are what an amount consists of, in minor units.
type Parts struct {
	Face ledger.Amount `json:"face"` // the organiser's
	Fee  ledger.Amount `json:"fee"`  // the platform's
	Tax  ledger.Amount `json:"tax"`  // the state's
}

// Plus adds part by part.
func (p Parts) Plus(q Parts) Parts { return Parts{p.Face + q.Face, p.Fee + q.Fee, p.Tax + q.Tax} }

// Minus subtracts part by part.
func (p Parts) Minus(q Parts) Parts { return Parts{p.Face - q.Face, p.Fee - q.Fee, p.Tax - q.Tax} }

// Sum is the whole.
func (p Parts) Sum() ledger.Amount { return p.Face + p.Fee + p.Tax }

// Of is what n tickets of the line cost.
func (i Item) Of(n ledger.Amount) Parts {
	p := Parts{Face: n * i.UnitPrice.Amount}
	if i.UnitFee != nil {
		p.Fee = n * i.UnitFee.Amount
	}
	if i.UnitTax != nil {
		p.Tax = n * i.UnitTax.Amount
	}
	return p
}

// Hold is a customer's claim, as its row and as callers see it.
type Hold struct {
	ID        uuid.UUID     `json:"hold_id"`
	Event     string        `json:"event"`
	Customer  string        `json:"customer"`
	Status    Status        `json:"status"`
	Version   ledger.Seq    `json:"version"`
	CreatedAt time.Time     `json:"created_at"`
	ExpiresAt time.Time     `json:"expires_at"`
	PayUntil  *time.Time    `json:"pay_until,omitempty"` // end of its grace, from its first checkout on
	Code      string        `json:"code,omitempty"`      // that opened the allotment
	Items     []Item        `json:"items"`
	Total     buckets.Money `json:"total"`
}

// Due tells whether the hold has run out by a time of the database's clock.
func (h *Hold) Due(now time.Time) bool { return h.Status == Held && !h.ExpiresAt.After(now) }

// to gives the hold as it is in another state, from the entry of a version on.
func (h *Hold) to(status Status, version ledger.Seq) Hold {
	if !slices.Contains(next[h.Status], status) {
		panic(fmt.Sprintf("holds: %s can't become %s", h.Status, status))
	}
	changed := *h
	changed.Status, changed.Version = status, version
	return changed
}

// end gives the hold as it is after it was released or ran out, and the legs that put
// its tickets back where they came from.
func (h *Hold) end(to Status, version ledger.Seq) (Hold, []ledger.Leg) {
	return h.to(to, version), append(free(h.Items, ledger.HeldBy(h.Customer)), redeem(h.Code, -1)...)
}

// move makes the legs that carry the tickets of lines from an account to another.
func move(items []Item, from, to string) []ledger.Leg {
	legs := make([]ledger.Leg, 0, 2*len(items))
	for _, i := range items {
		legs = append(legs, carry(i, from, to)...)
	}
	return legs
}

// take makes the legs that carry free tickets to a customer's account, each line from its
// own bucket; free carries them back.
func take(items []Item, to string) []ledger.Leg {
	legs := make([]ledger.Leg, 0, 2*len(items)+2)
	for _, i := range items {
		legs = append(legs, carry(i, ledger.FreeOf(i.Allotment), to)...)
	}
	return legs
}

func free(items []Item, from string) []ledger.Leg {
	legs := make([]ledger.Leg, 0, 2*len(items)+2)
	for _, i := range items {
		legs = append(legs, carry(i, from, ledger.FreeOf(i.Allotment))...)
	}
	return legs
}

func carry(i Item, from, to string) []ledger.Leg {
	return []ledger.Leg{{Account: from, Unit: i.Tier, Amount: -i.Quantity}, {Account: to, Unit: i.Tier, Amount: i.Quantity}}
}

// redeem makes the legs that take uses of an access code, or give them back; none for no
// code.
func redeem(code string, uses ledger.Amount) []ledger.Leg {
	if code == "" {
		return nil
	}
	return []ledger.Leg{
		{Account: ledger.FreeUses(code), Unit: ledger.Uses, Amount: -uses},
		{Account: ledger.RedeemedUses(code), Unit: ledger.Uses, Amount: uses},
	}
}

// Accounts names the accounts between which a customer's tickets of lines move.
func Accounts(customer string, items []Item) []string {
	codes := []string{ledger.HeldBy(customer), ledger.SoldTo(customer), ledger.Available}
	for _, i := range items {
		if i.Allotment != "" {
			codes = append(codes, ledger.FreeOf(i.Allotment))
		}
	}
	return codes
}

// accounts are those, and the ones of the code.
func (h *Hold) accounts() []string {
	codes := Accounts(h.Customer, h.Items)
	if h.Code != "" {
		codes = append(codes, ledger.FreeUses(h.Code), ledger.RedeemedUses(h.Code))
	}
	return codes
}

// Seats gives the labels of all seats of lines.
func Seats(items []Item) (labels []string) {
	for _, i := range items {
		labels = append(labels, i.Seats...)
	}
	return labels
}

// of fills in what the event says about its holds.
func (h *Hold) of(event string, currency ledger.Unit) { h.Event, h.Total.Currency = event, currency }

// data is the hold as an entry records it and callers get it.
func (h *Hold) data() json.RawMessage {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // a Hold has nothing that can't be JSON
	}
	return text
}
