package holds

import "github.com/tierledger/tierledger/fault"

// Codes of Place, in the order in which they're judged; event_not_found comes
// before them and tier_not_found between ErrNotOnSale and ErrInvalidQuantity.
var (
	ErrNotOnSale = &fault.Def{Kind: fault.Conflict, Code: "not_on_sale",
		Title: "The event isn't on sale now."}
	ErrInvalidCode = &fault.Def{Kind: fault.Forbidden, Code: "invalid_code",
		Title: "The access code isn't one of the event's, or not of this allotment."}
	ErrCodeRequired = &fault.Def{Kind: fault.Forbidden, Code: "code_required",
		Title: "Who buys from this allotment needs an access code."}
	ErrInvalidQuantity = &fault.Def{Kind: fault.Invalid, Code: "invalid_quantity",
		Title: "The quantity can't be held."}
	ErrLimitExceeded = &fault.Def{Kind: fault.Conflict, Code: "limit_exceeded",
		Title: "The customer would have more tickets than one may have."}
	ErrCodeUsedUp = &fault.Def{Kind: fault.Conflict, Code: "code_used_up",
		Title: "The access code has been used as often as it may be."}
	ErrTemporarilyHeld = &fault.Def{Kind: fault.Conflict, Code: "temporarily_held",
		Title: "Too few tickets are free now; enough would be if holds end."}
	ErrSoldOut = &fault.Def{Kind: fault.Conflict, Code: "sold_out",
		Title: "There aren't enough tickets left."}
)

// ErrHoldNotFound is the code of Get and Release.
var ErrHoldNotFound = &fault.Def{Kind: fault.NotFound, Code: "hold_not_found",
	Title: "There's no such hold."}

// Codes of Release, in the order in which they're judged.
var (
	ErrHoldConfirmed = &fault.Def{Kind: fault.Conflict, Code: "hold_confirmed",
		Title: "The hold has been bought."}
	ErrPaymentInProgress = &fault.Def{Kind: fault.Conflict, Code: "payment_in_progress",
		Title: "A payment for it has begun, and what came of it isn't known yet."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrInvalidCode, ErrCodeRequired, ErrNotOnSale, ErrInvalidQuantity, ErrLimitExceeded, ErrCodeUsedUp, ErrTemporarilyHeld, ErrSoldOut, ErrHoldNotFound,
		ErrHoldConfirmed, ErrPaymentInProgress,
	}
}
