package ledger

import (
	"time"

	"github.com/tierledger/tierledger/fault"
)

// Codes of every command, in the order in which they're judged.
var (
	ErrOverloaded = &fault.Def{Kind: fault.Unavailable, Code: "overloaded",
		Title: "Too many requests wait for this journal; nothing was changed."}
	ErrOutcomeUnknown = &fault.Def{Kind: fault.Unavailable, Code: "outcome_unknown",
		Title: "The database went away while it committed; repeat the request under the same key to learn the outcome."}
	ErrClosing = &fault.Def{Kind: fault.Unavailable, Code: "shutting_down",
		Title: "This process is shutting down; nothing was changed."}
	ErrIdempotencyMismatch = &fault.Def{Kind: fault.Unprocessable, Code: "idempotency_mismatch",
		Title: "The idempotency key was used for another request."}
)

// Codes of a manual entry, in the order in which they're judged.
var (
	ErrAccountReserved = &fault.Def{Kind: fault.Unprocessable, Code: "account_reserved",
		Title: "This account changes only with what it counts: holds, sales and quotas."}
	ErrUnbalanced = &fault.Def{Kind: fault.Unprocessable, Code: "unbalanced_entry",
		Title: "The postings of every unit must sum to zero."}
	ErrConditionFailed = &fault.Def{Kind: fault.Conflict, Code: "condition_failed",
		Title: "An account isn't as the entry requires."}
	ErrInsufficientFree = &fault.Def{Kind: fault.Conflict, Code: "insufficient_free",
		Title: "The account has fewer tickets than the entry takes."}
)

// Codes of reads.
var (
	ErrEntryNotFound = &fault.Def{Kind: fault.NotFound, Code: "entry_not_found",
		Title: "The journal has no such entry."}
	ErrAccountNotFound = &fault.Def{Kind: fault.NotFound, Code: "account_not_found",
		Title: "The journal has no such account."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrOverloaded, ErrOutcomeUnknown, ErrClosing, ErrIdempotencyMismatch,
		ErrAccountReserved, ErrUnbalanced, ErrConditionFailed, ErrInsufficientFree,
		ErrEntryNotFound, ErrAccountNotFound,
	}
}

// retryOverloaded is about as long as a full queue takes to drain.
const retryOverloaded = time.Second
