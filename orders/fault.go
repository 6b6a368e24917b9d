package orders

import (
	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
)

// Codes of Checkout, in the order in which they're judged. Before them comes
// hold_not_found; hold_confirmed and payment_in_progress stand after ErrHoldExpired, and
// limit_exceeded after ErrPriceChanged; provider_unavailable stands last.
var (
	ErrHoldExpired = &fault.Def{Kind: fault.Conflict, Code: "hold_expired",
		Title: "The hold has ended; its tickets are on sale again."}
	ErrTooLate = &fault.Def{Kind: fault.Conflict, Code: "too_late",
		Title: "Too little of the hold's time is left to begin a payment."}
	ErrPriceChanged = &fault.Def{Kind: fault.Conflict, Code: "price_changed",
		Title: "The order costs something else than the request says."}
	ErrTooManyOperations = &fault.Def{Kind: fault.Conflict, Code: "too_many_operations",
		Title: "The order has had as many payments or refunds as one may have."}
	ErrTooManyCheckouts = &fault.Def{Kind: fault.TooMany, Code: "too_many_checkouts",
		Title: "Too many payments are under way."}
	ErrPaymentDeclined = &fault.Def{Kind: fault.Declined, Code: "payment_declined",
		Title: "The payment was declined; nothing was charged."}
)

// Codes of Get, Cancel and Refund, in the order in which they're judged; ErrTooManyOperations
// stands after ErrCurrencyMismatch.
var (
	ErrOrderNotFound = &fault.Def{Kind: fault.NotFound, Code: "order_not_found",
		Title: "There's no such order."}
	ErrOrderCaptured = &fault.Def{Kind: fault.Conflict, Code: "order_captured",
		Title: "The order is paid; it can only be refunded."}
	ErrOrderNotCaptured = &fault.Def{Kind: fault.Conflict, Code: "order_not_captured",
		Title: "Nothing was captured for the order, so there's nothing to refund."}
	ErrCurrencyMismatch = &fault.Def{Kind: fault.Conflict, Code: "currency_mismatch",
		Title: "The amount isn't in the order's currency."}
	ErrTicketsNotOwned = &fault.Def{Kind: fault.Conflict, Code: "tickets_not_owned",
		Title: "The order doesn't own so many tickets."}
	ErrRefundExceedsCaptured = &fault.Def{Kind: fault.Conflict, Code: "refund_exceeds_captured",
		Title: "No more can be refunded than was captured."}
)

// ErrProviderNotFound is the code of Receive; the others are payments'.
var ErrProviderNotFound = &fault.Def{Kind: fault.NotFound, Code: "provider_not_found",
	Title: "There's no such payment provider."}

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrHoldExpired, ErrTooLate, ErrPriceChanged, ErrTooManyOperations, ErrTooManyCheckouts, ErrPaymentDeclined,
		ErrOrderNotFound, ErrOrderCaptured, ErrOrderNotCaptured, ErrCurrencyMismatch, ErrTicketsNotOwned,
		ErrRefundExceedsCaptured, ErrProviderNotFound,
	}
}

func notFound(id uuid.UUID) error {
	return ErrOrderNotFound.Because("%s", id).With("order_id", id)
}
