package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// keyLifetime is how long a call is remembered.
const keyLifetime = 24 * time.Hour

// change is one step of history, and one line of the file: everything that it touched,
// as it is afterwards.
type change struct {
	At         time.Time   `json:"at"`
	Payment    payment     `json:"payment"`
	Operations []operation `json:"operations"` // the first is what was asked for
	Rows       []row       `json:"rows,omitempty"`
	Answer     *answer     `json:"answer,omitempty"`
}

// shown gives the operation at i with the payment.
func (c *change) shown(i int) shown { return shown{&c.Operations[i], &c.Payment} }

// answer is what a call was answered with, to be given again: the operation that it
// asked for and the payment, as they were then.
type answer struct {
	Key    string    `json:"key"`
	Digest string    `json:"digest"` // of the request
	Status int       `json:"status"`
	At     time.Time `json:"at"`

	shown shown // the change has it
}

// book is all that the provider knows. Only apply changes it, and what it has pointers
// to stays as it is.
type book struct {
	changes    int
	payments   map[string]*payment
	operations map[string]*operation
	byPayment  map[string][]*operation // as they were at first, oldest first
	references map[string][]string     // operations by the caller's id, oldest first
	answers    map[string]*answer      // by key
	age        []*answer               // the same, oldest first; to forget them
	rows       []row
}

func newBook() *book {
	return &book{
		payments: map[string]*payment{}, operations: map[string]*operation{},
		byPayment: map[string][]*operation{}, references: map[string][]string{},
		answers: map[string]*answer{},
	}
}

// apply makes a change part of the book, live or when the file is read again.
func (b *book) apply(c *change) {
	b.changes++
	b.payments[c.Payment.ID] = &c.Payment
	for i := range c.Operations {
		o := &c.Operations[i]
		if b.operations[o.ID] == nil {
			b.byPayment[o.PaymentID] = append(b.byPayment[o.PaymentID], o)
			if o.Reference != "" {
				b.references[o.Reference] = append(b.references[o.Reference], o.ID)
			}
		}
		b.operations[o.ID] = o
	}
	b.rows = append(b.rows, c.Rows...)
	if a := c.Answer; a != nil {
		a.shown = c.shown(0)
		b.answers[a.Key] = a
		b.age = append(b.age, a)
	}
}

// remembered finds the answer that a key got, after forgetting what is too old.
func (b *book) remembered(key string, now time.Time) *answer {
	tooOld := func(a *answer) bool { return now.Sub(a.At) >= keyLifetime }
	for len(b.age) > 0 && tooOld(b.age[0]) {
		if old := b.age[0]; b.answers[old.Key] == old {
			delete(b.answers, old.Key)
		}
		b.age[0] = nil
		b.age = b.age[1:]
	}
	if a := b.answers[key]; a != nil && !tooOld(a) {
		return a
	}
	return nil
}

// byReference gives the operations that a caller knows under an id, as far as lookups
// can see them yet.
func (b *book) byReference(reference string, before time.Time) []shown {
	list := []shown{}
	for _, id := range b.references[reference] {
		if o := b.operations[id]; !o.CreatedAt.After(before) {
			list = append(list, shown{o, b.payments[o.PaymentID]})
		}
	}
	return list
}

// last gives a payment's newest operation that is wanted; there must be one.
func (b *book) last(paymentID string, wanted func(*operation) bool) operation {
	for _, first := range slices.Backward(b.byPayment[paymentID]) {
		if o := b.operations[first.ID]; wanted(o) {
			return *o
		}
	}
	panic("sim: payment " + paymentID + " has no such operation")
}

// newOperation makes an operation on a payment, which has succeeded until it's settled
// otherwise.
func (b *book) newOperation(p *payment, kind payments.Kind, reference string, amount ledger.Amount, now time.Time) operation {
	return operation{
		ID:        fmt.Sprintf("op_%08d", len(b.operations)+1),
		Reference: reference, PaymentID: p.ID, Kind: kind, Status: payments.Succeeded,
		Amount: amount, Currency: p.Currency, CreatedAt: now, UpdatedAt: now,
	}
}

// newRow makes a row for an operation that moved money. A change has at most one
// besides a fee.
func (b *book) newRow(kind string, o *operation, gross, fee ledger.Amount) row {
	return row{
		ID:   fmt.Sprintf("txn_%08d", len(b.rows)+1),
		Type: kind, Payment: o.PaymentID, Reference: o.Reference, Created: o.UpdatedAt,
		Gross: gross, Fee: fee, Net: gross - fee, Currency: o.Currency,
	}
}
