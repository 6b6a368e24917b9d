package orders

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// OperationStatus is the state of an operation.
type OperationStatus string

// The states of an operation. The last three are settled.
const (
	OpPrepared       OperationStatus = "prepared" // to be sent
	OpSent           OperationStatus = "sent"     // a call is under way, or was when its process died
	OpRequiresAction OperationStatus = "requires_action"
	OpPending        OperationStatus = "pending" // the provider works on it
	OpUnknown        OperationStatus = "unknown"
	OpSucceeded      OperationStatus = "succeeded"
	OpDeclined       OperationStatus = "declined"
	OpNotAttempted   OperationStatus = "not_attempted"
)

// open tells whether the outcome is still to come.
func (s OperationStatus) open() bool {
	return s != OpSucceeded && s != OpDeclined && s != OpNotAttempted
}

// operationNext is the whole state machine. An open state is left by evidence alone; and
// later evidence may overturn what was settled: a buyer pays after a decline, a capture
// fails after it was accepted.
var operationNext = map[OperationStatus][]OperationStatus{
	OpPrepared:       {OpSent, OpSucceeded, OpDeclined},
	OpSent:           {OpPrepared, OpRequiresAction, OpPending, OpUnknown, OpSucceeded, OpDeclined, OpNotAttempted},
	OpRequiresAction: {OpPending, OpSucceeded, OpDeclined, OpNotAttempted},
	OpPending:        {OpRequiresAction, OpSucceeded, OpDeclined, OpNotAttempted},
	OpUnknown:        {OpRequiresAction, OpPending, OpSucceeded, OpDeclined, OpNotAttempted},
	OpDeclined:       {OpSucceeded},
	OpNotAttempted:   {OpSent, OpRequiresAction, OpPending, OpSucceeded, OpDeclined},
	OpSucceeded:      {OpDeclined},
}

// Operation is one step of an order with the provider, as its row and as callers see it.
type Operation struct {
	ID            uuid.UUID       `json:"operation_id"`
	Kind          payments.Kind   `json:"kind"`
	Attempt       int             `json:"attempt"` // among the order's of this kind, from 1
	Status        OperationStatus `json:"status"`
	Provider      string          `json:"provider"`
	Reference     string          `json:"provider_reference"` // the provider's name of the step; "" until it's known
	Payment       string          `json:"provider_payment"`   // and of the payment
	Amount        buckets.Money   `json:"amount"`
	Reason        string          `json:"reason,omitempty"`
	NextAttemptAt *time.Time      `json:"next_attempt_at,omitempty"` // end of a lease, or when it's looked at next
	UpdatedAt     time.Time       `json:"updated_at"`
	Version       ledger.Seq      `json:"version"`            // seq of the last entry that changed it
	Answered      ledger.Seq      `json:"answered,omitempty"` // and of the one with its first outcome

	Order  uuid.UUID  `json:"-"`
	ToldAt *time.Time `json:"-"` // by the provider's clock: what the status rests on

	method     string // of an authorization
	returnURL  string
	authorized ledger.Amount // of an authorization: still reserved
	taken      ledger.Amount // of an authorization: money that came with it
	parts      holds.Parts   // of a refund or chargeback: what it takes of each part of the order
	disputed   ledger.Amount // of a chargeback: what rests with the provider for it
	nextAction *payments.NextAction
	sends      int        // how often it was leased
	sentAt     *time.Time // for the first time
	changed    bool       // in the decision under way
	fresh      bool       // the provider's own, of which nothing is known here yet
}

// Times of an operation.
const (
	// lease is how long a worker has an operation to itself: longer than a call and the
	// commit after it may take.
	lease = 30 * time.Second
	// settles is how long after its sending an operation that the provider doesn't know
	// counts as not attempted. Before that the call may still be under way.
	settles = 2 * time.Minute
	// keyMargin is how long before the provider forgets a call we stop to repeat it.
	keyMargin = time.Hour
	// maxAttempts bounds an order's operations of one kind that callers may ask for: every
	// entry of the order has all of them. Nobody tries that many cards.
	maxAttempts = 30
	// daily is the last step of the schedule; from there on a person is asked too.
	daily = 24 * time.Hour
)

// schedule is when an operation without outcome is looked at again, after each time.
var schedule = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, daily,
}

// backoff is the wait before the next look at an operation: the schedule, give or take a
// fifth, so that what failed together doesn't come back together. The same operation
// always waits the same.
func (op *Operation) backoff() time.Duration {
	step := schedule[min(max(op.sends-1, 0), len(schedule)-1)]
	h := fnv.New32a()
	h.Write(op.ID[:])
	h.Write([]byte(strconv.Itoa(op.sends)))
	return step - step/5 + time.Duration(h.Sum32()%1000)*(step/5*2)/1000
}

// exhausted tells whether the short steps of the schedule are over.
func (op *Operation) exhausted() bool { return op.sends >= len(schedule) }

// to changes the state, now.
func (op *Operation) to(status OperationStatus, now time.Time) {
	op.Status, op.UpdatedAt, op.changed = status, now, true
	if !status.open() {
		op.NextAttemptAt = nil
	}
}

// wait sets the next look at an operation.
func (op *Operation) wait(now time.Time, d time.Duration) {
	op.NextAttemptAt, op.changed = new(now.Add(d)), true
}

// send leases an operation to the worker that the entry is for.
func (op *Operation) send(now time.Time) {
	op.sends++
	if op.sentAt == nil {
		op.sentAt = &now
	}
	if op.Status == OpPrepared || op.Status == OpNotAttempted {
		op.to(OpSent, now)
	}
	op.wait(now, max(lease, op.backoff()))
}

// can tells whether evidence may take the operation to a state. A void, the end of an
// intent, or an authorization without money that has succeeded is never taken back.
func (op *Operation) can(to OperationStatus) bool {
	if op.Status == OpSucceeded &&
		(op.Kind == payments.Authorize && op.taken == 0 || op.Kind == payments.Void || op.Kind == payments.Cancel) {
		return false
	}
	return slices.Contains(operationNext[op.Status], to)
}
