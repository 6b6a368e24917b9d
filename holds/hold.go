package holds

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// Status is the state of a hold.
type Status string

// The states of a hold.
const (
	Held     Status = "held"
	Released Status = "released"
	Expired  Status = "expired"
)

// Valid tells whether s is a state.
func (s Status) Valid() bool { return s == Held || s == Released || s == Expired }

// next is the whole state machine: where a hold may go from a state.
var next = map[Status][]Status{
	Held: {Released, Expired},
}

// Item is one line of a hold: tickets of a tier at the price that's locked.
type Item struct {
	Tier         ledger.Unit    `json:"tier"`
	Quantity     ledger.Amount  `json:"quantity"`
	UnitPrice    buckets.Money  `json:"unit_price"` // face value of one ticket
	UnitFee      *buckets.Money `json:"unit_fee,omitempty"`
	UnitTax      *buckets.Money `json:"unit_tax,omitempty"`
	PriceVersion int64          `json:"price_version"`
}

// total is what the line costs: every ticket's face value, fee and tax.
func (i Item) total() ledger.Amount {
	unit := i.UnitPrice.Amount
	if i.UnitFee != nil {
		unit += i.UnitFee.Amount
	}
	if i.UnitTax != nil {
		unit += i.UnitTax.Amount
	}
	return i.Quantity * unit
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
	Items     []Item        `json:"items"`
	Total     buckets.Money `json:"total"`
}

// Due tells whether the hold has run out by a time of the database's clock.
func (h *Hold) Due(now time.Time) bool { return h.Status == Held && !h.ExpiresAt.After(now) }

// end gives the hold as it is after it went to a final state, and the legs that
// put its tickets back where they came from.
func (h *Hold) end(to Status, version ledger.Seq) (Hold, []ledger.Leg) {
	if !canGo(h.Status, to) {
		panic(fmt.Sprintf("holds: %s can't become %s", h.Status, to))
	}
	ended := *h
	ended.Status, ended.Version = to, version
	legs := make([]ledger.Leg, 0, 2*len(h.Items))
	for _, i := range h.Items {
		legs = append(legs,
			ledger.Leg{Account: ledger.HeldBy(h.Customer), Unit: i.Tier, Amount: -i.Quantity},
			ledger.Leg{Account: ledger.Available, Unit: i.Tier, Amount: i.Quantity})
	}
	return ended, legs
}

func canGo(from, to Status) bool {
	for _, s := range next[from] {
		if s == to {
			return true
		}
	}
	return false
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
