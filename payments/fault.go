package payments

import "github.com/tierledger/tierledger/fault"

// Codes of calls to a provider.
var (
	ErrProviderUnavailable = &fault.Def{Kind: fault.Unavailable, Code: "provider_unavailable",
		Title: "The payment provider can't be reached now; nothing was sent to it."}
	ErrUnknownOutcome = &fault.Def{Kind: fault.Unavailable, Code: "payment_outcome_unknown",
		Title: "The payment provider may or may not have done it; the outcome is being found out."}
)

// Codes of a webhook, in the order in which they're judged.
var (
	ErrWebhookSignatureInvalid = &fault.Def{Kind: fault.Unauthenticated, Code: "webhook_signature_invalid",
		Title: "The webhook has no valid signature."}
	ErrWebhookTimestamp = &fault.Def{Kind: fault.Unauthenticated, Code: "webhook_timestamp_out_of_tolerance",
		Title: "The webhook was signed too long ago, or in the future."}
	ErrWebhookUnreadable = &fault.Def{Kind: fault.Unprocessable, Code: "webhook_unreadable",
		Title: "The webhook is genuine, but isn't an event that we know."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrProviderUnavailable, ErrUnknownOutcome,
		ErrWebhookSignatureInvalid, ErrWebhookTimestamp, ErrWebhookUnreadable,
	}
}
