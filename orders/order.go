package orders

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Status is the state of an order.
type Status string

// The states of an order.
const (
	Pending           Status = "pending"
	Confirmed         Status = "confirmed" // the tickets are sold, the money is to be captured
	Captured          Status = "captured"
	PartiallyRefunded Status = "partially_refunded"
	Refunded          Status = "refunded"
	Cancelled         Status = "cancelled"
)

// Statuses lists the states.
func Statuses() []Status {
	return []Status{Pending, Confirmed, Captured, PartiallyRefunded, Refunded, Cancelled}
}

// Valid tells whether s is a state.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

// next is the whole state machine. A cancelled order lives again when a payment that
// came late is honoured; a captured one is confirmed again when the provider takes its
// word back.
var next = map[Status][]Status{
	Pending:           {Confirmed, Captured, Cancelled},
	Confirmed:         {Captured, Cancelled},
	Captured:          {PartiallyRefunded, Refunded, Confirmed},
	PartiallyRefunded: {Captured, Refunded},
	Refunded:          {Captured, PartiallyRefunded},
	Cancelled:         {Confirmed, Captured},
}

// Owns tells whether an order of this state owns its tickets, less those returned.
func (s Status) Owns() bool { return s != Pending && s != Cancelled }

// PaymentStatus is where the payment of an order is.
type PaymentStatus string

// The states of a payment.
const (
	PaymentAuthorizing       PaymentStatus = "authorizing"
	PaymentRequiresAction    PaymentStatus = "requires_action"
	PaymentAuthorized        PaymentStatus = "authorized"
	PaymentDeclined          PaymentStatus = "declined"
	PaymentCapturing         PaymentStatus = "capturing"
	PaymentCaptured          PaymentStatus = "captured"
	PaymentVoiding           PaymentStatus = "voiding"
	PaymentVoided            PaymentStatus = "voided"
	PaymentRefunding         PaymentStatus = "refunding"
	PaymentRefunded          PaymentStatus = "refunded"
	PaymentPartiallyRefunded PaymentStatus = "partially_refunded"
	PaymentUnknown           PaymentStatus = "unknown"
)

// Item is one line of an order: that of the hold, and what came back of it.
type Item struct {
	holds.Item
	Returned      ledger.Amount `json:"returned,omitempty"`
	ReturnedSeats []string      `json:"returned_seats,omitempty"` // of a line with seats: those
}

// owned gives the line with what the order still owns of it.
func (i *Item) owned() holds.Item {
	item := i.Item
	item.Quantity -= i.Returned
	item.Seats = slices.DeleteFunc(slices.Clone(i.Seats), func(label string) bool {
		return slices.Contains(i.ReturnedSeats, label)
	})
	return item
}

// giveBack takes tickets that the order owns off the line.
func (i *Item) giveBack(part *holds.Item) {
	i.Returned += part.Quantity
	i.ReturnedSeats = append(slices.Clip(i.ReturnedSeats), part.Seats...)
}

// Order is a purchase, as its row and as callers see it.
type Order struct {
	ID            uuid.UUID            `json:"order_id"`
	HoldID        uuid.UUID            `json:"hold_id"`
	Event         string               `json:"event"`
	Customer      string               `json:"customer"`
	Status        Status               `json:"status"`
	Reconciling   bool                 `json:"reconciling"` // a case or an unknown outcome is open beside the status
	PaymentStatus PaymentStatus        `json:"payment_status"`
	Total         buckets.Money        `json:"total"`
	Parts         holds.Parts          `json:"parts"` // of the total
	Captured      buckets.Money        `json:"captured"`
	Refunded      buckets.Money        `json:"refunded"`       // paid back or on its way, or charged back
	RefundedParts holds.Parts          `json:"refunded_parts"` // of that
	Items         []Item               `json:"items"`
	Operations    []*Operation         `json:"operations"` // in the order of their beginning
	NextAction    *payments.NextAction `json:"next_action"`
	CreatedAt     time.Time            `json:"created_at"`
	PayUntil      time.Time            `json:"pay_until"`
	Version       ledger.Seq           `json:"version"`

	// In entries only: the hold and the cases that the entry changed.
	Hold  *holds.Hold  `json:"hold,omitempty"`
	Cases []cases.Case `json:"cases,omitempty"`

	dueAt *time.Time
}

// OrderID gives the id of the order that a hold may become.
func OrderID(journal ledger.JournalID, hold uuid.UUID) uuid.UUID {
	return ledger.NewID(journal, ledger.SystemPrincipal, "order", hold.String())
}

// newOrder makes the order of a hold.
func newOrder(s *ledger.State, h *holds.Hold) *Order {
	o := &Order{
		ID: OrderID(s.Journal, h.ID), HoldID: h.ID, Event: h.Event, Customer: h.Customer,
		Status: Pending, PaymentStatus: PaymentAuthorizing,
		Captured: buckets.Money{Currency: h.Total.Currency}, Refunded: buckets.Money{Currency: h.Total.Currency},
		Items: make([]Item, len(h.Items)), Operations: []*Operation{}, CreatedAt: s.Now, PayUntil: *h.PayUntil,
	}
	for i, item := range h.Items {
		o.Items[i].Item = item
		o.Parts = o.Parts.Plus(item.Of(item.Quantity))
	}
	o.Total = buckets.Money{Amount: o.Parts.Sum(), Currency: h.Total.Currency}
	return o
}

// last gives the order's last operation of a kind; nil when it has none.
func (o *Order) last(kind payments.Kind) *Operation {
	var last *Operation
	for _, op := range o.Operations {
		if op.Kind == kind && (last == nil || op.Attempt > last.Attempt) {
			last = op
		}
	}
	return last
}

// find gives an operation of the order by its id; nil when it has none.
func (o *Order) find(id uuid.UUID) *Operation {
	for _, op := range o.Operations {
		if op.ID == id {
			return op
		}
	}
	return nil
}

// left is what could still be paid back.
func (o *Order) left() holds.Parts {
	if o.Captured.Amount == 0 {
		return holds.Parts{}
	}
	return o.Parts.Minus(o.RefundedParts)
}

// tickets gives the lines with what the order still owns of each.
func (o *Order) tickets() []holds.Item {
	var items []holds.Item
	for _, i := range o.Items {
		if item := i.owned(); item.Quantity > 0 {
			items = append(items, item)
		}
	}
	return items
}

// of fills in what the event and the operations say about the order.
func (o *Order) of(event string, currency ledger.Unit) {
	o.Event = event
	o.Total = buckets.Money{Amount: o.Parts.Sum(), Currency: currency}
	o.Captured.Currency = currency
	o.Refunded = buckets.Money{Amount: o.RefundedParts.Sum(), Currency: currency}
	o.NextAction = nil
	for _, op := range o.Operations {
		if op.Kind == payments.Authorize && op.Status == OpRequiresAction && o.Status == Pending {
			o.NextAction = op.nextAction
		}
	}
}

// data is the order as an entry records it and callers get it.
func (o *Order) data() json.RawMessage {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // an Order has nothing that can't be JSON
	}
	return text
}

// arrange orders the operations by kind and attempt.
func (o *Order) arrange() { slices.SortStableFunc(o.Operations, byKind) }
