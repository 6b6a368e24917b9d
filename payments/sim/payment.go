package sim

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// status is the state of a payment.
type status string

const (
	requiresAction    status = "requires_action"
	processing        status = "processing"
	authorized        status = "authorized"
	captured          status = "captured"
	partiallyRefunded status = "partially_refunded"
	refunded          status = "refunded"
	voided            status = "voided"
	canceled          status = "canceled"
	failed            status = "failed"
)

// payment is a payment as it's kept and shown. Always
// Refunded + RefundsPending + Disputed <= Captured <= Authorized.
type payment struct {
	ID             string            `json:"id"`
	Reference      string            `json:"reference"` // of the authorization
	Status         status            `json:"status"`
	Amount         ledger.Amount     `json:"amount"` // asked for
	Currency       ledger.Unit       `json:"currency"`
	Authorized     ledger.Amount     `json:"authorized"`
	Captured       ledger.Amount     `json:"captured"`
	Refunded       ledger.Amount     `json:"refunded"`
	RefundsPending ledger.Amount     `json:"refunds_pending"`
	Disputed       ledger.Amount     `json:"disputed"`
	Method         string            `json:"payment_method"`
	Capture        string            `json:"capture"` // manual or automatic
	ReturnURL      string            `json:"return_url,omitempty"`
	Metadata       map[string]string `json:"metadata,omitempty"`
	CreatedAt      time.Time         `json:"created_at"`
	UpdatedAt      time.Time         `json:"updated_at"`
}

// refundable is what may still go back to the buyer.
func (p *payment) refundable() ledger.Amount {
	return p.Captured - p.Refunded - p.RefundsPending - p.Disputed
}

// pay gives the payment its money: reserved, or taken where capture is automatic.
func (p *payment) pay(amount ledger.Amount) {
	p.Authorized, p.Status = amount, authorized
	if p.Capture == automatic {
		p.Captured, p.Status = amount, captured
	}
}

// refund counts money that went back.
func (p *payment) refund(amount ledger.Amount) {
	p.Refunded += amount
	p.Status = partiallyRefunded
	if p.Refunded == p.Captured {
		p.Status = refunded
	}
}

// operation is something that was done with a payment, or wasn't.
type operation struct {
	ID         string               `json:"id"`
	Reference  string               `json:"reference"` // the caller's id; "" for the provider's own
	PaymentID  string               `json:"payment_id"`
	Kind       payments.Kind        `json:"kind"`
	Status     payments.Outcome     `json:"status"`
	Reason     string               `json:"reason,omitempty"`
	Amount     ledger.Amount        `json:"amount"`
	Currency   ledger.Unit          `json:"currency"`
	NextAction *payments.NextAction `json:"next_action,omitempty"`
	CreatedAt  time.Time            `json:"created_at"`
	UpdatedAt  time.Time            `json:"updated_at"`
}

// settle ends an operation, or changes its end: banks do.
func (o *operation) settle(to payments.Outcome, reason string, now time.Time) {
	o.Status, o.Reason, o.NextAction, o.UpdatedAt = to, reason, nil, now
}

// shown is an operation with its payment, as callers and webhooks get it.
type shown struct {
	*operation
	Payment *payment `json:"payment"`
}

// row is a line of the settlement report: one change of the provider's balance.
type row struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	Payment   string        `json:"payment"`
	Reference string        `json:"reference"` // of the operation that moved the money
	Created   time.Time     `json:"created"`
	Gross     ledger.Amount `json:"gross"`
	Fee       ledger.Amount `json:"fee"`
	Net       ledger.Amount `json:"net"`
	Currency  ledger.Unit   `json:"currency"`
}

// The types of row.
const (
	rowCharge        = "charge"  // authorized and captured at once
	rowCapture       = "capture" // of an authorization
	rowCaptureFailed = "capture_failed"
	rowRefund        = "refund"
	rowChargeback    = "chargeback"
	rowFee           = "fee" // by itself; other fees stand beside what they're for
)

var (
	feeShare   = decimal.New(29, -3) // of what's captured
	feeFixed   = decimal.New(30, -2) // major units
	disputeFee = ledger.Amount(1500)
)

const disputeFeeCurrency ledger.Unit = "USD"

// feeOf is what it costs to capture an amount.
func feeOf(amount ledger.Amount, currency ledger.Unit) ledger.Amount {
	exponent, _ := currency.Exponent()
	fee := decimal.NewFromInt(int64(amount)).Mul(feeShare).Add(feeFixed.Shift(int32(exponent)))
	return ledger.Amount(fee.Round(0).IntPart())
}
