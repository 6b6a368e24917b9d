package tickets

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/ledger"
)

// Status tells whether a ticket lets anybody in.
type Status string

// The states of a ticket. Revoked is final.
const (
	Valid   Status = "valid"
	Revoked Status = "revoked" // its unit was returned, or the sale was undone
)

// Ticket is one sold unit of an order, as callers see it.
type Ticket struct {
	ID       uuid.UUID   `json:"ticket_id"`
	Order    uuid.UUID   `json:"order_id"`
	Number   int         `json:"number"` // among the order's tickets, from 1
	Event    string      `json:"event"`
	Tier     ledger.Unit `json:"tier"`
	Seat     string      `json:"seat,omitempty"` // its label; "" for general admission
	Status   Status      `json:"status"`
	IssuedAt time.Time   `json:"issued_at"`
	Version  ledger.Seq  `json:"version"` // seq of the entry that issued it, or revoked it
	Token    string      `json:"token"`   // the signed form

	line    int        // of the order, from 1
	issued  ledger.Seq // of the entry that it was issued from
	revoked ledger.Seq // of the entry that took its unit back; 0 for none
}

// ID gives the id of a ticket.
func ID(journal ledger.JournalID, order uuid.UUID, number int) uuid.UUID {
	return ledger.NewID(journal, ledger.SystemPrincipal, "ticket", order.String(), strconv.Itoa(number))
}

// settle fills in what follows from the entries.
func (t *Ticket) settle() {
	t.Status, t.Version = Valid, t.issued
	if t.revoked > 0 {
		t.Status, t.Version = Revoked, t.revoked
	}
}
