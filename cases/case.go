package cases

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Reason says what a case is about.
type Reason string

// The reasons.
const (
	LatePayment      Reason = "late_payment"         // paid after the hold had ended
	DuplicatePayment Reason = "duplicate_payment"    // a second payment of one order
	AmountMismatch   Reason = "amount_mismatch"      // another sum or currency than the order's
	NotConfirmable   Reason = "not_confirmable"      // paid in time, but a limit in force now forbids the sale
	OutcomeUnknown   Reason = "outcome_unknown"      // the provider hasn't told for hours: its schedule is at the daily step
	CaptureFailed    Reason = "capture_failed"       // after it had been reported as done, or in part
	TakenBack        Reason = "payment_taken_back"   // by the provider, when its money had gone on
	RefundFailed     Reason = "refund_failed"        // the amount is still owed
	VoidFailed       Reason = "void_failed"          // an authorization stands that nobody wants
	Chargeback       Reason = "chargeback"           // the buyer's bank took the money back
	Unidentified     Reason = "unidentified_payment" // money of no order of ours
)

// Reasons lists the reasons.
func Reasons() []Reason {
	return []Reason{LatePayment, DuplicatePayment, AmountMismatch, NotConfirmable, OutcomeUnknown, CaptureFailed, TakenBack,
		RefundFailed, VoidFailed, Chargeback, Unidentified}
}

// Valid tells whether r is a reason.
func (r Reason) Valid() bool { return slices.Contains(Reasons(), r) }

// Status is the state of a case.
type Status string

// The states of a case.
const (
	Open             Status = "open"
	AwaitingApproval Status = "awaiting_approval"
	Resolving        Status = "resolving"
	Resolved         Status = "resolved"
)

// Statuses lists the states.
func Statuses() []Status { return []Status{Open, AwaitingApproval, Resolving, Resolved} }

// Valid tells whether s is a state.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

// next is the whole state machine.
var next = map[Status][]Status{
	Open:             {AwaitingApproval, Resolving, Resolved},
	AwaitingApproval: {Open, Resolving, Resolved},
	Resolving:        {Open, Resolved},
}

// Resolution is what's done about a case.
type Resolution string

// The resolutions.
const (
	Honour   Resolution = "honour"    // the buyer gets the tickets
	Refund   Resolution = "refund"    // the buyer gets the money, or the authorization, back
	WriteOff Resolution = "write_off" // the platform bears it
	Link     Resolution = "link"      // settled elsewhere; the evidence says where
)

// Valid tells whether r is a resolution.
func (r Resolution) Valid() bool {
	return r == Honour || r == Refund || r == WriteOff || r == Link
}

// Owners of cases.
const (
	OwnerSystem  = "system"  // the program will act, at due_at or on evidence
	OwnerFinance = "finance" // a person must
)

// decideWithin is how old a case may get before it's overdue.
const decideWithin = 72 * time.Hour

// Deadline is when a case that's opened now is overdue, if a date bounds it too.
func Deadline(now, until time.Time) time.Time {
	if d := now.Add(decideWithin); d.Before(until) {
		return d
	}
	return until
}

// Case is a case as its row and as callers see it.
type Case struct {
	ID             uuid.UUID     `json:"case_id"`
	Event          string        `json:"event"` // "" when it's no event's
	Reason         Reason        `json:"reason"`
	Status         Status        `json:"status"`
	Amount         buckets.Money `json:"amount"`
	Suspended      ledger.Amount `json:"suspended"` // of the amount: rests in suspense for this case
	HoldID         *uuid.UUID    `json:"hold_id,omitempty"`
	OrderID        *uuid.UUID    `json:"order_id,omitempty"`
	OperationID    *uuid.UUID    `json:"operation_id,omitempty"`
	Provider       string        `json:"provider,omitempty"` // of an unidentified payment
	ToldAt         *time.Time    `json:"told_at,omitempty"`  // by the provider: when the payment came to this
	OpenedAt       time.Time     `json:"opened_at"`
	AgeSeconds     int64         `json:"age_seconds,omitempty"` // when read; not in entries
	Owner          string        `json:"owner"`
	LastFact       string        `json:"last_fact"`
	NextAttemptAt  *time.Time    `json:"next_attempt_at,omitempty"`
	Deadline       time.Time     `json:"deadline"`
	Resolution     Resolution    `json:"resolution,omitempty"`
	ResolvedReason string        `json:"resolved_reason,omitempty"`
	Evidence       string        `json:"evidence,omitempty"`
	ProposedBy     string        `json:"proposed_by,omitempty"`
	DecidedBy      string        `json:"decided_by,omitempty"`
	ResolvedAt     *time.Time    `json:"resolved_at,omitempty"`
	Version        ledger.Seq    `json:"version"`
}

// ID makes the id of the n-th case about an operation for a reason, from 0.
func ID(journal ledger.JournalID, reason Reason, operation uuid.UUID, n int) uuid.UUID {
	return ledger.NewID(journal, ledger.SystemPrincipal, "case", string(reason), operation.String(), strconv.Itoa(n))
}

// OpenedNow completes the n-th case for its reason about its operation: its id, its times
// and its version. A person must act unless it has a NextAttemptAt.
func OpenedNow(s *ledger.State, c Case, n int) Case {
	c.ID = ID(s.Journal, c.Reason, *c.OperationID, n)
	c.Status, c.OpenedAt, c.Version = Open, s.Now, s.NextSeq()
	if c.Deadline.IsZero() {
		c.Deadline = s.Now.Add(decideWithin)
	}
	c.Owner = OwnerFinance
	if c.NextAttemptAt != nil {
		c.Owner = OwnerSystem
	}
	return c
}

// to gives the case as it is in another state.
func (c *Case) to(status Status, version ledger.Seq) Case {
	if !slices.Contains(next[c.Status], status) {
		panic(fmt.Sprintf("cases: %s can't become %s", c.Status, status))
	}
	changed := *c
	changed.Status, changed.Version = status, version
	return changed
}

// Approvable tells why somebody can't decide on what was proposed; nil when they can.
// Errors: buckets.ErrVersionConflict, ErrCaseState, fault.ErrSamePerson.
func (c *Case) Approvable(by string, ifMatch *ledger.Seq) error {
	if err := c.Match(ifMatch); err != nil {
		return err
	}
	switch {
	case c.Status != AwaitingApproval:
		return ErrCaseState.Because("case %s is %s", c.ID, c.Status).With("case_id", c.ID).With("case_status", c.Status)
	case by == c.ProposedBy:
		return fault.ErrSamePerson.Because("%s proposed it", by).With("case_id", c.ID)
	}
	return nil
}

// Match compares the version that a caller has seen; the error is
// buckets.ErrVersionConflict.
func (c *Case) Match(ifMatch *ledger.Seq) error {
	if ifMatch != nil && *ifMatch != c.Version {
		return buckets.ErrVersionConflict.Because("case %s has version %d", c.ID, c.Version).With("version", c.Version)
	}
	return nil
}

// Propose gives the case with a person's resolution, which another must approve.
func (c *Case) Propose(by string, r Resolution, reason, evidence string, version ledger.Seq) Case {
	p := c.to(AwaitingApproval, version)
	p.Resolution, p.ResolvedReason, p.Evidence, p.ProposedBy, p.DecidedBy = r, reason, evidence, by, ""
	return p
}

// Reject gives the case without the resolution that was proposed.
func (c *Case) Reject(by, reason string, version ledger.Seq) Case {
	r := c.to(Open, version)
	r.LastFact = fmt.Sprintf("%s proposed by %s was rejected by %s: %s", c.Resolution, c.ProposedBy, by, reason)
	r.Resolution, r.ResolvedReason, r.Evidence, r.ProposedBy = "", "", "", ""
	return r
}

// Decide gives the case as decided: by policy, or by whoever approves what was proposed.
// It's resolved at once, or resolving until the provider did it.
func (c *Case) Decide(by string, r Resolution, done bool, now time.Time, version ledger.Seq) Case {
	status := Resolving
	if done {
		status = Resolved
	}
	d := c.to(status, version)
	if c.Status == Open {
		d.ProposedBy, d.ResolvedReason = ledger.SystemPrincipal, "by policy"
	} else {
		d.DecidedBy = by
	}
	d.Resolution, d.Owner, d.NextAttemptAt = r, OwnerSystem, nil
	if done {
		d.ResolvedAt = &now
	}
	return d
}

// Resolve gives the case as resolved, by a fact.
func (c *Case) Resolve(fact string, now time.Time, version ledger.Seq) Case {
	r := c.to(Resolved, version)
	r.LastFact, r.ResolvedAt, r.NextAttemptAt = fact, &now, nil
	if c.Status != Resolving { // what a person may have proposed is overtaken
		r.Resolution, r.ResolvedReason, r.Evidence = Link, "the provider told", ""
		r.ProposedBy, r.DecidedBy = ledger.SystemPrincipal, ""
	}
	return r
}

// Reopen gives the case as it is when what was decided couldn't be done: a person must
// look at it.
func (c *Case) Reopen(fact string, version ledger.Seq) Case {
	r := c.to(Open, version)
	r.LastFact, r.Owner, r.NextAttemptAt = fact, OwnerFinance, nil
	r.Resolution, r.ResolvedReason, r.Evidence, r.ProposedBy, r.DecidedBy = "", "", "", "", ""
	return r
}
