package payments

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// errForeign is a body that this provider can't have made.
var errForeign = errors.New("not the provider's JSON")

// operation is an operation in the provider's JSON.
type operation struct {
	ID         string        `json:"id"`
	Reference  string        `json:"reference"` // our id, or what somebody else gave
	Kind       Kind          `json:"kind"`
	Status     Outcome       `json:"status"`
	Reason     string        `json:"reason"`
	Amount     ledger.Amount `json:"amount"`
	Currency   ledger.Unit   `json:"currency"`
	UpdatedAt  time.Time     `json:"updated_at"`
	NextAction *NextAction   `json:"next_action"`
	Payment    payment       `json:"payment"`
}

// payment is a payment in the provider's JSON.
type payment struct {
	ID         string        `json:"id"`
	Reference  string        `json:"reference"` // our authorize operation
	Status     string        `json:"status"`
	Currency   ledger.Unit   `json:"currency"`
	Amount     ledger.Amount `json:"amount"`
	Authorized ledger.Amount `json:"authorized"`
	Captured   ledger.Amount `json:"captured"`
	Refunded   ledger.Amount `json:"refunded"`
	Disputed   ledger.Amount `json:"disputed"`
}

// refusal is a provider's problem document.
type refusal struct {
	Code    string   `json:"code"`
	Payment *payment `json:"payment"`
}

// operationList is the answer to a lookup.
type operationList struct {
	Data []operation `json:"data"`
	AsOf time.Time   `json:"as_of"`
}

// webhook is the body of a webhook.
type webhook struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      operation `json:"data"`
}

func (o *operation) parse(text []byte) error {
	if err := json.Unmarshal(text, o); err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	return o.check()
}

// check refuses what can't be an operation. Fields that we don't know are let be: a
// provider may add some.
func (o *operation) check() error {
	if o.ID == "" || o.Payment.ID == "" || !o.Kind.Valid() || !o.Status.said() {
		return fmt.Errorf("%w: no operation", errForeign)
	}
	for _, text := range []string{o.ID, o.Reference, o.Payment.ID, o.Payment.Reference, o.Payment.Status} {
		if !plain(text, maxID) {
			return fmt.Errorf("%w: a name of %d bytes, or with control characters", errForeign, len(text))
		}
	}
	if !plain(o.Reason, maxReason) || o.NextAction != nil && !o.NextAction.valid() {
		return fmt.Errorf("%w: a text that can't be shown", errForeign)
	}
	for _, unit := range []ledger.Unit{o.Currency, o.Payment.Currency} {
		if _, ok := unit.Exponent(); !ok {
			return fmt.Errorf("%w: no currency", errForeign)
		}
	}
	p := &o.Payment
	for _, amount := range []ledger.Amount{o.Amount, p.Amount, p.Authorized, p.Captured, p.Refunded, p.Disputed} {
		if amount < 0 || amount > maxAmount {
			return fmt.Errorf("%w: an amount of %d", errForeign, amount)
		}
	}
	if p.Refunded+p.Disputed > p.Captured {
		return fmt.Errorf("%w: more went back than came", errForeign)
	}
	return nil
}

// Limits of texts, in bytes: what's told is kept in rows with keys, and shown to people.
const (
	maxID     = 255
	maxReason = 500
	maxURL    = 2048
)

// plain tells whether a text can be stored and shown: UTF-8 without control characters.
func plain(s string, limit int) bool {
	return len(s) <= limit && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// valid allows what a buyer can be sent to.
func (a *NextAction) valid() bool {
	u, err := url.Parse(a.URL)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && plain(a.URL, maxURL) && plain(a.Type, maxID)
}

// maxAmount is more than any payment, and so little that no sum of them overflows.
const maxAmount = ledger.Amount(1) << 50

func (l *operationList) parse(text []byte, asked uuid.UUID) error {
	if err := json.Unmarshal(text, l); err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	if l.Data == nil || l.AsOf.IsZero() {
		return fmt.Errorf("%w: no list", errForeign)
	}
	for i := range l.Data {
		if err := l.Data[i].check(); err != nil {
			return err
		}
		if ours(l.Data[i].Reference) != asked {
			return fmt.Errorf("%w: asked for another operation than %q", errForeign, l.Data[i].Reference)
		}
	}
	return nil
}

func (w *webhook) parse(text []byte) error {
	if err := json.Unmarshal(text, w); err != nil {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	if w.Type == "" || !plain(w.Type, maxID) || w.Timestamp.IsZero() {
		return fmt.Errorf("%w: no event", errForeign)
	}
	return w.Data.check()
}

func (o *operation) result() Result {
	return Result{
		Operation: ours(o.Reference), Kind: o.Kind, Outcome: o.Status, Reason: o.Reason,
		NextAction: o.NextAction, Reference: o.ID,
		Amount:  buckets.Money{Amount: o.Amount, Currency: o.Currency},
		At:      o.UpdatedAt.UTC().Truncate(time.Microsecond), // as fine as rows keep it
		Payment: o.Payment.view(),
	}
}

func (p *payment) view() Payment {
	return Payment{
		Reference: p.ID, Operation: ours(p.Reference), Status: p.Status, Currency: p.Currency,
		Amount: p.Amount, Authorized: p.Authorized, Captured: p.Captured,
		Refunded: p.Refunded, Disputed: p.Disputed,
	}
}

// ours reads a reference as an id of ours; uuid.Nil when it's somebody else's.
func ours(reference string) uuid.UUID {
	id, err := uuid.Parse(reference)
	if err != nil || id.String() != reference {
		return uuid.Nil
	}
	return id
}
