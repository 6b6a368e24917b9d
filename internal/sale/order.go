package sale

import (
	"slices"
	"time"
)

// Money is an amount in minor units of its currency.
type Money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

// Operation is a step of an order with the payment provider, as the API tells it.
type Operation struct {
	ID            string     `json:"operation_id"`
	Kind          string     `json:"kind"`
	Status        string     `json:"status"`
	Payment       string     `json:"provider_payment"`
	Amount        Money      `json:"amount"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
}

// open tells whether the operation's outcome isn't known yet.
func (o *Operation) open() bool {
	switch o.Status {
	case "succeeded", "declined", "not_attempted":
		return false
	}
	return true
}

// Order is an order as the API tells it.
type Order struct {
	ID            string      `json:"order_id"`
	HoldID        string      `json:"hold_id"`
	Status        string      `json:"status"`
	Reconciling   bool        `json:"reconciling"`
	PaymentStatus string      `json:"payment_status"`
	Total         Money       `json:"total"`
	Captured      Money       `json:"captured"`
	Refunded      Money       `json:"refunded"`
	Items         []OrderItem `json:"items"`
	Operations    []Operation `json:"operations"`
	NextAction    *struct {
		Type string `json:"type"`
	} `json:"next_action"`
	PayUntil time.Time `json:"pay_until"`
	Version  int64     `json:"version"`
}

// OrderItem is a line of an order.
type OrderItem struct {
	Tier     string `json:"tier"`
	Quantity int64  `json:"quantity"`
	Returned int64  `json:"returned"`

	Seats         []string `json:"seats"`
	ReturnedSeats []string `json:"returned_seats"`
}

// Paid tells whether the buyer's money was taken for tickets, whatever part of it went
// back since.
func (o *Order) Paid() bool {
	switch o.Status {
	case "captured", "partially_refunded", "refunded":
		return true
	}
	return false
}

// Declined tells whether the last attempt to pay has failed, and nothing else is known
// to be under way.
func (o *Order) Declined() bool {
	return o.Status == "pending" && o.PaymentStatus == "declined" && len(o.Open()) == 0
}

// Open lists the operations whose outcome isn't known yet.
func (o *Order) Open() []Operation {
	return slices.DeleteFunc(slices.Clone(o.Operations), func(p Operation) bool { return !p.open() })
}

// Settled tells whether nothing more is to be expected of the order by itself.
func (o *Order) Settled() bool {
	return (o.Paid() || o.Status == "cancelled" || o.Declined()) && !o.Reconciling && len(o.Open()) == 0
}

// watched tells whether the order was given up, and the buyer may still send the money.
func (o *Order) watched() bool {
	return o.Status == "cancelled" && !o.Reconciling && !slices.ContainsFunc(o.Open(), func(p Operation) bool {
		return p.Kind != "authorize" || p.Status != "requires_action"
	})
}

// Tickets is the number of tickets that the order's buyer has.
func (o *Order) Tickets() (n int64) {
	if !o.sold() {
		return 0
	}
	for _, i := range o.Items {
		n += i.Quantity - i.Returned
	}
	return n
}

// seats lists the seats that the order is for, but those that were returned.
func (o *Order) seats() (list []string) {
	for _, i := range o.Items {
		for _, label := range i.Seats {
			if !slices.Contains(i.ReturnedSeats, label) {
				list = append(list, label)
			}
		}
	}
	return list
}

// sold tells whether the buyer has the tickets, paid for or about to be.
func (o *Order) sold() bool { return o.Paid() || o.Status == "confirmed" }

// wasSold tells whether the buyer had the tickets at some time: a capture begins in
// the entry that sells them.
func (o *Order) wasSold() bool {
	return o.sold() || slices.ContainsFunc(o.Operations, func(p Operation) bool { return p.Kind == "capture" })
}

// next is when the service does something about the order by itself; false when it
// waits for others.
func (o *Order) next() (at time.Time, ok bool) {
	for _, p := range o.Open() {
		if p.NextAttemptAt != nil && (!ok || p.NextAttemptAt.Before(at)) {
			at, ok = *p.NextAttemptAt, true
		}
	}
	return at, ok
}

// ActsOn is the payment, by the provider's reference, that the buyer has to act on; ""
// for none.
func (o *Order) ActsOn() string {
	if o.NextAction == nil {
		return ""
	}
	return o.payment()
}

// payment is the provider's reference of the payment that the last authorization made;
// "" when it isn't known.
func (o *Order) payment() string {
	for _, p := range slices.Backward(o.Operations) {
		if p.Kind == "authorize" {
			return p.Payment
		}
	}
	return ""
}
