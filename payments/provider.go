package payments

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
)

// Provider is a payment provider. Its calls are made outside of any transaction, after
// the operation was committed as sent.
//
// The calls that change something give a Result whose Outcome is always set, and an
// error that explains it: nil for what the provider decided, ErrUnknownOutcome with
// Unknown, ErrProviderUnavailable with NotAttempted.
type Provider interface {
	// Name is the provider's name in accounts, paths and rows.
	Name() string
	// Capabilities tells what can be done with payments made by a method.
	Capabilities(method string) Capabilities

	// Authorize reserves the amount, or takes it where the method has no separate
	// capture: the Result's Payment tells which.
	Authorize(ctx context.Context, a Authorization) (Result, error)
	// Capture takes the amount, or a part of it, from an authorized payment; the rest
	// is released.
	Capture(ctx context.Context, s Step) (Result, error)
	// Void gives an authorized payment back. The step's amount isn't used.
	Void(ctx context.Context, s Step) (Result, error)
	// Refund pays back a part of what was captured.
	Refund(ctx context.Context, s Step) (Result, error)
	// CancelIntent ends a payment that the buyer hasn't made yet. Declined with
	// ReasonAlreadyPaid: it was made; with ReasonNotCancellable: it may still be made.
	// The step's amount isn't used.
	CancelIntent(ctx context.Context, s Step) (Result, error)

	// Lookup asks what the provider knows of an operation of ours. An error means that
	// nothing was learned: ErrProviderUnavailable, or ErrUnknownOutcome when the
	// provider knows several operations under the id.
	Lookup(ctx context.Context, operation uuid.UUID) (Finding, error)

	// ParseWebhook verifies a webhook over its raw body and reads it. Now is the time
	// that its timestamp is held against. Errors: ErrWebhookSignatureInvalid,
	// ErrWebhookTimestamp, ErrWebhookUnreadable.
	ParseWebhook(body []byte, header http.Header, now time.Time) (Event, error)
	// ReadWebhook reads the body of a webhook that was verified when it came. The error is
	// ErrWebhookUnreadable.
	ReadWebhook(body []byte) (Result, error)
}

// Capabilities are what can be done with a payment, depending on how it's made.
type Capabilities struct {
	// SeparateCapture: an authorization takes no money. Without it the money is taken
	// at once, and a sale that fails afterwards owes a refund.
	SeparateCapture bool
	// Cancellable: an intent can be ended before the buyer pays. Without it money may
	// come at any later time.
	Cancellable bool
	// KeyLifetime is how long the provider remembers a call. A call that's repeated
	// later than that is a new one to the provider.
	KeyLifetime time.Duration
}

// Authorization asks for a payment.
type Authorization struct {
	Operation uuid.UUID // ours; the idempotency key
	Amount    buckets.Money
	Method    string
	ReturnURL string            // where the buyer goes after the bank's page; may be ""
	Metadata  map[string]string // kept by the provider with the payment; may be nil
}

// Step asks for something to be done with a payment that the provider has.
type Step struct {
	Operation uuid.UUID // ours; the idempotency key
	Payment   string    // the provider's reference of the payment
	Amount    buckets.Money
}
