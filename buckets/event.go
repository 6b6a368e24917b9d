package buckets

import (
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Limits of an event and its tiers.
const (
	maxTiers       = 100           // every batch of the event's journal reads them all
	maxCapacity    = 10_000_000    // tickets of a tier; far above any venue
	maxPrice       = 1_000_000_000 // minor units of price or fee; keeps every total within 63 bits
	maxName        = 200           // bytes of a display name
	maxID          = 64            // bytes of an event's or tier's name in paths and accounts
	maxHoldSeconds = 24 * 3600     // a claim that lasts longer is a sale

	// MaxReason bounds why somebody did something, in bytes.
	MaxReason = 500
)

// Defaults of a new event.
const (
	defaultHoldSeconds  = 300
	defaultGraceSeconds = 120
	defaultApproveFrom  = 1000
)

// Policies for a payment that comes after its hold has ended.
const (
	HonourIfAvailable = "honour_if_available"
	Refund            = "refund"
	Review            = "review"
)

// Money is an amount in minor units of a currency.
type Money struct {
	Amount   ledger.Amount `json:"amount"`
	Currency ledger.Unit   `json:"currency"`
}

// Spec is an event as its creator describes it.
type Spec struct {
	Event             string      `json:"event"`
	Name              string      `json:"name"`
	Currency          ledger.Unit `json:"currency"`
	HoldSeconds       int         `json:"hold_seconds,omitempty"`  // 0: 300
	GraceSeconds      *int        `json:"grace_seconds,omitempty"` // nil: 120
	LimitPerCustomer  *int64      `json:"limit_per_customer,omitempty"`
	SaleOpensAt       *Instant    `json:"sale_opens_at,omitempty"`
	SaleClosesAt      *Instant    `json:"sale_closes_at,omitempty"`
	Organiser         string      `json:"organiser,omitempty"`           // "": the event's name
	LatePaymentPolicy string      `json:"late_payment_policy,omitempty"` // "": review
	HonourUntil       *Instant    `json:"honour_until,omitempty"`        // nil: no end
	ApproveMovesFrom  *int64      `json:"approve_moves_from,omitempty"`  // tickets of one quota move; nil: 1,000
	Tiers             []TierSpec  `json:"tiers"`
}

// TierSpec is a tier as its creator describes it.
type TierSpec struct {
	Tier             ledger.Unit   `json:"tier"`
	Name             string        `json:"name,omitempty"` // "": the tier
	Quantity         ledger.Amount `json:"quantity"`       // 0 when seated: the chart gives it
	Seated           bool          `json:"seated,omitempty"`
	Price            Money         `json:"price"`
	Fee              *Money        `json:"fee,omitempty"`
	TaxRate          *Rate         `json:"tax_rate,omitempty"` // share of price and fee
	LimitPerCustomer *int64        `json:"limit_per_customer,omitempty"`
}

// Event is an event's row in its journal.
type Event struct {
	Event             string
	Name              string
	Currency          ledger.Unit
	HoldSeconds       int
	GraceSeconds      int
	LimitPerCustomer  *int64
	SaleOpensAt       *time.Time
	SaleClosesAt      *time.Time
	Organiser         string
	LatePaymentPolicy string
	HonourUntil       *time.Time    // the last time at which a late payment may be honoured
	ApproveMovesFrom  ledger.Amount // quota moves of so many tickets need a second person
	CreatedAt         time.Time
	Version           ledger.Seq
}

// OnSale tells whether the sale is open at a time: from its opening up to, and
// not including, its closing.
func (e *Event) OnSale(at time.Time) bool {
	return (e.SaleOpensAt == nil || !at.Before(*e.SaleOpensAt)) &&
		(e.SaleClosesAt == nil || at.Before(*e.SaleClosesAt))
}

// Tier is a tier's row, with the price in force.
type Tier struct {
	Tier             ledger.Unit
	Position         int
	Name             string
	LimitPerCustomer *int64
	Seated           bool // sold by seat
	Price            Price
	Version          ledger.Seq
}

// Price is what one ticket costs, from a version on.
type Price struct {
	Version int64
	Amount  ledger.Amount   // face value
	Fee     ledger.Amount   // platform fee
	TaxRate decimal.Decimal // share of Amount + Fee
}

// Tax is the tax on one ticket, rounded half up to the minor unit. Rounding the
// single ticket makes every sum and every part of an order exact.
func (p Price) Tax() ledger.Amount {
	if p.TaxRate.IsZero() {
		return 0
	}
	return ledger.Amount(decimal.NewFromInt(int64(p.Amount + p.Fee)).Mul(p.TaxRate).Round(0).IntPart())
}

// normalize fills in the defaults and refuses what can't be an event.
func (s *Spec) normalize() error {
	if s.HoldSeconds == 0 {
		s.HoldSeconds = defaultHoldSeconds
	}
	if s.GraceSeconds == nil {
		s.GraceSeconds = new(defaultGraceSeconds)
	}
	if s.Organiser == "" {
		s.Organiser = s.Event
	}
	if s.LatePaymentPolicy == "" {
		s.LatePaymentPolicy = Review
	}
	if s.ApproveMovesFrom == nil {
		s.ApproveMovesFrom = new(int64(defaultApproveFrom))
	}
	if err := checkInstant("sale_opens_at", s.SaleOpensAt); err != nil {
		return err
	}
	if err := checkInstant("sale_closes_at", s.SaleClosesAt); err != nil {
		return err
	}
	if err := checkInstant("honour_until", s.HonourUntil); err != nil {
		return err
	}
	for _, i := range []*Instant{s.SaleOpensAt, s.SaleClosesAt, s.HonourUntil} {
		if i != nil {
			i.Time = i.Truncate(time.Microsecond) // what the store can keep
		}
	}
	if _, ok := s.Currency.Exponent(); !ok {
		return fault.BadField("currency", "%q isn't an ISO 4217 currency code", s.Currency)
	}
	switch {
	case !ValidID(s.Event):
		return badID("event")
	case s.Name == "" || len(s.Name) > maxName:
		return fault.BadField("name", "must have 1 to %d bytes", maxName)
	case s.HoldSeconds < 1 || s.HoldSeconds > maxHoldSeconds:
		return fault.BadField("hold_seconds", "must be 1 to %d", maxHoldSeconds)
	case *s.GraceSeconds < 0 || *s.GraceSeconds > maxHoldSeconds:
		return fault.BadField("grace_seconds", "must be 0 to %d", maxHoldSeconds)
	case badLimit(s.LimitPerCustomer):
		return fault.BadField("limit_per_customer", "must be 1 to %d", maxCapacity)
	case s.SaleOpensAt != nil && s.SaleClosesAt != nil && !s.SaleOpensAt.Before(s.SaleClosesAt.Time):
		return fault.BadField("sale_closes_at", "must be after sale_opens_at")
	case !ValidID(s.Organiser):
		return badID("organiser")
	case s.LatePaymentPolicy != HonourIfAvailable && s.LatePaymentPolicy != Refund && s.LatePaymentPolicy != Review:
		return fault.BadField("late_payment_policy", "must be %s, %s or %s", HonourIfAvailable, Refund, Review)
	case s.HonourUntil != nil && s.SaleOpensAt != nil && !s.SaleOpensAt.Before(s.HonourUntil.Time):
		return fault.BadField("honour_until", "must be after sale_opens_at")
	case s.HonourUntil != nil && s.SaleClosesAt != nil && s.HonourUntil.Before(s.SaleClosesAt.Time):
		return fault.BadField("honour_until", "must not be before sale_closes_at")
	case *s.ApproveMovesFrom < 1 || *s.ApproveMovesFrom > maxCapacity:
		return fault.BadField("approve_moves_from", "must be 1 to %d", maxCapacity)
	case len(s.Tiers) == 0 || len(s.Tiers) > maxTiers:
		return fault.BadField("tiers", "an event has 1 to %d tiers", maxTiers)
	}
	seen := make(map[ledger.Unit]bool)
	for i := range s.Tiers {
		t, field := &s.Tiers[i], fmt.Sprintf("tiers[%d].", i)
		if err := t.normalize(field, s.Currency); err != nil {
			return err
		}
		if seen[t.Tier] {
			return fault.BadField(field+"tier", "%q is given twice", t.Tier)
		}
		seen[t.Tier] = true
	}
	return nil
}

// normalize fills in the defaults and refuses what can't be a tier of an event in
// a currency. Field begins the names of the fields in errors.
func (t *TierSpec) normalize(field string, currency ledger.Unit) error {
	if t.Name == "" {
		t.Name = string(t.Tier)
	}
	if t.Fee == nil {
		t.Fee = &Money{0, currency}
	}
	if t.TaxRate == nil {
		t.TaxRate = &Rate{}
	}
	switch _, _, money := t.Tier.Currency(); {
	case !ValidID(string(t.Tier)):
		return badID(field + "tier")
	case money:
		return fault.BadField(field+"tier", "%q is a currency; a tier needs another name", t.Tier)
	case len(t.Name) > maxName:
		return fault.BadField(field+"name", "must have at most %d bytes", maxName)
	case badLimit(t.LimitPerCustomer):
		return fault.BadField(field+"limit_per_customer", "must be 1 to %d", maxCapacity)
	case t.Seated && t.Quantity != 0:
		return fault.BadField(field+"quantity", "must be left out of a tier that's sold by seat: the chart gives it")
	case !t.Seated && (t.Quantity < 1 || t.Quantity > maxCapacity):
		return fault.BadField(field+"quantity", "must be 1 to %d", maxCapacity)
	}
	if err := checkMoney(field+"price", t.Price, currency); err != nil {
		return err
	}
	if err := checkMoney(field+"fee", *t.Fee, currency); err != nil {
		return err
	}
	return checkRate(field+"tax_rate", t.TaxRate)
}

func checkMoney(field string, m Money, currency ledger.Unit) error {
	switch {
	case m.Currency != currency:
		return fault.BadField(field+".currency", "must be the event's, %s", currency)
	case m.Amount < 0 || m.Amount > maxPrice:
		return fault.BadField(field+".amount", "must be 0 to %d minor units", maxPrice)
	}
	return nil
}

func checkRate(field string, r *Rate) error {
	if r != nil && r.err != nil {
		return fault.BadField(field, "%v", r.err)
	}
	return nil
}

func checkInstant(field string, i *Instant) error {
	if i != nil && i.err != nil {
		return fault.BadField(field, "%v", i.err)
	}
	return nil
}

func badLimit(limit *int64) bool { return limit != nil && (*limit < 1 || *limit > maxCapacity) }

// ValidID tells whether s can name an event, a tier, an allotment or an access code: names
// that stand unquoted in paths, accounts and files.
func ValidID(s string) bool {
	if s == "" || len(s) > maxID || strings.IndexByte("._-", s[0]) >= 0 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("._-", c) < 0 {
			return false
		}
	}
	return true
}

func badID(field string) error {
	return fault.BadField(field, "must have 1 to %d letters, digits, '.', '_' or '-', beginning with a letter or digit", maxID)
}
