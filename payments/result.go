package payments

import (
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// Kind is what an operation does with a payment.
type Kind string

// The kinds of operation. A chargeback is the provider's own; it has no id of ours.
const (
	Authorize  Kind = "authorize"
	Capture    Kind = "capture"
	Void       Kind = "void"
	Refund     Kind = "refund"
	Cancel     Kind = "cancel"
	Chargeback Kind = "chargeback"
)

// Valid tells whether k is a kind.
func (k Kind) Valid() bool {
	switch k {
	case Authorize, Capture, Void, Refund, Cancel, Chargeback:
		return true
	}
	return false
}

// Outcome is what came of an operation.
type Outcome string

// The outcomes. The first four are the provider's word; evidence of a later time
// replaces an earlier one, also a decline by a success: buyers pay late.
const (
	Succeeded      Outcome = "succeeded"
	Declined       Outcome = "declined"        // it wasn't done; the Reason says why
	RequiresAction Outcome = "requires_action" // the buyer has to act: NextAction
	Pending        Outcome = "pending"         // the provider works on it, and will say
	// NotAttempted is about one call only: it did nothing. An operation that was sent
	// before may have been done by an earlier call, and stays as unknown as it was.
	NotAttempted Outcome = "not_attempted"
	Unknown      Outcome = "unknown"
)

// said tells whether o is an outcome that a provider may name.
func (o Outcome) said() bool {
	switch o {
	case Succeeded, Declined, RequiresAction, Pending:
		return true
	}
	return false
}

// Reasons of CancelIntent that callers act on. Other reasons are the provider's, for
// people and statistics.
const (
	ReasonAlreadyPaid    = "already_paid"
	ReasonNotCancellable = "not_cancellable"
)

// Result is what is known of an operation: from the answer to a call, a lookup or a
// webhook. Fields that the provider didn't give are zero.
type Result struct {
	Operation  uuid.UUID // ours; uuid.Nil when the provider names none of ours
	Kind       Kind
	Outcome    Outcome
	Reason     string        // of Declined and NotAttempted: a stable snake_case code
	NextAction *NextAction   // of RequiresAction
	Reference  string        // the provider's name of the operation
	Amount     buckets.Money // what the operation moves, as the provider says
	At         time.Time     // when it came to this, by the provider's clock
	Payment    Payment       // after it
}

// NextAction is what the buyer has to do.
type NextAction struct {
	Type string `json:"type"` // redirect or transfer
	URL  string `json:"url"`
}

// Payment is a payment as the provider sees it. Decisions go by its amounts: all are in
// minor units of Currency, and Disputed + Refunded <= Captured <= Authorized.
type Payment struct {
	Reference  string    // the provider's; "" when it wasn't told
	Operation  uuid.UUID // our authorize operation; uuid.Nil for a payment that isn't ours
	Status     string    // the provider's own word, for people
	Currency   ledger.Unit
	Amount     ledger.Amount // what was asked for
	Authorized ledger.Amount // what was authorized and not given back
	Captured   ledger.Amount
	Refunded   ledger.Amount
	Disputed   ledger.Amount // charged back
}

// Finding is the answer to a lookup.
type Finding struct {
	Found bool
	// AsOf is the provider's time of the answer. "Not found" is no evidence right after
	// a call: it may still be under way, and lookups may lag.
	AsOf   time.Time
	Result Result // when found
}

// Event is a verified webhook.
type Event struct {
	ID         string // the provider's; every delivery of one event has the same
	Type       string // the provider's word, such as capture.succeeded
	OccurredAt time.Time
	Result     Result
}
