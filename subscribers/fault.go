package subscribers

import (
	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Codes of subscriptions, in the order in which they're judged.
var (
	ErrAddressNotAllowed = &fault.Def{Kind: fault.Invalid, Code: "address_not_allowed",
		Title: "Webhooks go to public addresses only."}
	ErrSecretKeysRequired = &fault.Def{Kind: fault.Conflict, Code: "secret_keys_required",
		Title: "The service doesn't have the secret keys that a subscription's secret is kept with."}
	ErrTooManySubscriptions = &fault.Def{Kind: fault.Conflict, Code: "too_many_subscriptions",
		Title: "There are as many active subscriptions as there may be."}
	ErrSubscriptionNotFound = &fault.Def{Kind: fault.NotFound, Code: "subscription_not_found",
		Title: "There's no such subscription."}
	ErrSubscriptionDisabled = &fault.Def{Kind: fault.Conflict, Code: "subscription_disabled",
		Title: "The subscription is disabled: nothing is sent to it."}
	ErrDeliveryNotFound = &fault.Def{Kind: fault.NotFound, Code: "delivery_not_found",
		Title: "The subscription has no such delivery."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrAddressNotAllowed, ErrSecretKeysRequired, ErrTooManySubscriptions,
		ErrSubscriptionNotFound, ErrSubscriptionDisabled, ErrDeliveryNotFound,
	}
}

func notFound(id uuid.UUID) error {
	return ErrSubscriptionNotFound.Because("%s", id).With("subscription_id", id)
}

func disabled(id uuid.UUID) error {
	return ErrSubscriptionDisabled.Because("%s", id).With("subscription_id", id)
}

func deliveryNotFound(journal ledger.JournalID, seq ledger.Seq) error {
	return ErrDeliveryNotFound.Because("of entry %d of journal %d", seq, journal).With("journal", journal).With("seq", seq)
}
