package buckets

import (
	"encoding/json"
	"time"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// Kinds of this package's entries.
const (
	KindEventCreated = "event.created" // in the system journal
	KindEventOpened  = "event.opened"
	KindTierAdded    = "tier.added"
	KindTierChanged  = "tier.changed"
)

// EventView is an event as callers see it.
type EventView struct {
	Event             string        `json:"event"`
	Name              string        `json:"name"`
	Currency          ledger.Unit   `json:"currency"`
	HoldSeconds       int           `json:"hold_seconds"`
	GraceSeconds      int           `json:"grace_seconds"`
	LimitPerCustomer  *int64        `json:"limit_per_customer,omitempty"`
	SaleOpensAt       *time.Time    `json:"sale_opens_at,omitempty"`
	SaleClosesAt      *time.Time    `json:"sale_closes_at,omitempty"`
	Organiser         string        `json:"organiser"`
	LatePaymentPolicy string        `json:"late_payment_policy"`
	HonourUntil       *time.Time    `json:"honour_until,omitempty"`
	ApproveMovesFrom  ledger.Amount `json:"approve_moves_from"`
	CreatedAt         time.Time     `json:"created_at"`
	Version           ledger.Seq    `json:"version"`
	Tiers             []TierView    `json:"tiers"`
}

// TierView is a tier as callers see it.
type TierView struct {
	Tier             ledger.Unit   `json:"tier"`
	Name             string        `json:"name"`
	Quantity         ledger.Amount `json:"quantity"` // its capacity
	Seated           bool          `json:"seated,omitempty"`
	Price            Money         `json:"price"`
	Fee              Money         `json:"fee"`
	TaxRate          string        `json:"tax_rate"`
	PriceVersion     int64         `json:"price_version"`
	LimitPerCustomer *int64        `json:"limit_per_customer,omitempty"`
	Version          ledger.Seq    `json:"version"`
}

func viewTier(t *Tier, capacity ledger.Amount, currency ledger.Unit) TierView {
	return TierView{
		Tier: t.Tier, Name: t.Name, Quantity: capacity, Seated: t.Seated,
		Price:   Money{t.Price.Amount, currency},
		Fee:     Money{t.Price.Fee, currency},
		TaxRate: t.Price.TaxRate.String(), PriceVersion: t.Price.Version,
		LimitPerCustomer: t.LimitPerCustomer, Version: t.Version,
	}
}

func viewEvent(e *Event, tiers []TierView) EventView {
	return EventView{
		Event: e.Event, Name: e.Name, Currency: e.Currency,
		HoldSeconds: e.HoldSeconds, GraceSeconds: e.GraceSeconds, LimitPerCustomer: e.LimitPerCustomer,
		SaleOpensAt: e.SaleOpensAt, SaleClosesAt: e.SaleClosesAt,
		Organiser: e.Organiser, LatePaymentPolicy: e.LatePaymentPolicy, HonourUntil: e.HonourUntil,
		ApproveMovesFrom: e.ApproveMovesFrom, CreatedAt: e.CreatedAt, Version: e.Version, Tiers: tiers,
	}
}

// create takes an event's name, in the system journal.
type create struct{ spec *Spec }

func (c *create) name() (string, int) { return c.spec.Event, 1 }

func (c *create) Accounts() []string { return nil }

func (c *create) Decide(s *ledger.State) (ledger.Decision, error) {
	if ShelfOf(s).taken[laneName{c.spec.Event, 1}] {
		return ledger.Decision{}, ErrEventExists.Because("%s", c.spec.Event).With("event", c.spec.Event)
	}
	data, err := json.Marshal(c.spec)
	return ledger.Decision{
		Kind: KindEventCreated, Data: data,
		Rows: []ledger.Row{createdRow{laneName{c.spec.Event, 1}, s.NextSeq()}},
	}, err
}

// open gives an event's journal its event, tiers and tickets.
type open struct{ spec *Spec }

func (o *open) Accounts() []string { return []string{ledger.Capacity, ledger.Available} }

func (o *open) Decide(s *ledger.State) (ledger.Decision, error) {
	spec := o.spec
	event := &Event{
		Event: spec.Event, Name: spec.Name, Currency: spec.Currency,
		HoldSeconds: spec.HoldSeconds, GraceSeconds: *spec.GraceSeconds, LimitPerCustomer: spec.LimitPerCustomer,
		SaleOpensAt: spec.SaleOpensAt.utc(), SaleClosesAt: spec.SaleClosesAt.utc(),
		Organiser: spec.Organiser, LatePaymentPolicy: spec.LatePaymentPolicy, HonourUntil: spec.HonourUntil.utc(),
		ApproveMovesFrom: ledger.Amount(*spec.ApproveMovesFrom), CreatedAt: s.Now, Version: s.NextSeq(),
	}
	d := ledger.Decision{Kind: KindEventOpened, Rows: []ledger.Row{openedRow{event}}}
	var views []TierView
	for i := range spec.Tiers {
		t := &spec.Tiers[i]
		tier := t.tier(i, s.NextSeq())
		d.Rows = append(d.Rows, newTierRow{tier})
		d.Legs = append(d.Legs, Supply(t.Tier, t.Quantity)...)
		views = append(views, viewTier(&tier, t.Quantity, spec.Currency))
	}
	var err error
	d.Data, err = json.Marshal(viewEvent(event, views))
	return d, err
}

func (t *TierSpec) tier(position int, version ledger.Seq) Tier {
	return Tier{
		Tier: t.Tier, Position: position, Name: t.Name, LimitPerCustomer: t.LimitPerCustomer, Seated: t.Seated,
		Price:   Price{Version: 1, Amount: t.Price.Amount, Fee: t.Fee.Amount, TaxRate: t.TaxRate.Decimal},
		Version: version,
	}
}

// Supply makes the legs that bring tickets into being, or take free ones out of it.
func Supply(tier ledger.Unit, quantity ledger.Amount) []ledger.Leg {
	return []ledger.Leg{
		{Account: ledger.Capacity, Unit: tier, Amount: -quantity},
		{Account: ledger.Available, Unit: tier, Amount: quantity},
	}
}

// addTier adds a tier to an event.
type addTier struct{ spec *TierSpec }

func (a *addTier) Accounts() []string { return []string{ledger.Capacity, ledger.Available} }

func (a *addTier) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf := ShelfOf(s)
	// The limit on tiers is the event's; the spec alone can't be checked for it.
	if err := a.spec.normalize("", shelf.Event.Currency); err != nil {
		return ledger.Decision{}, err
	}
	if shelf.Tiers[a.spec.Tier] != nil {
		return ledger.Decision{}, ErrTierExists.Because("%s", a.spec.Tier).With("tier", a.spec.Tier)
	}
	if len(shelf.Tiers) >= maxTiers {
		return ledger.Decision{}, tooManyTiers()
	}
	if a.spec.Seated && shelf.Lane != nil {
		return ledger.Decision{}, ErrNotSplittable.Because("the event was split").With("tier", a.spec.Tier)
	}
	tier := a.spec.tier(len(shelf.Tiers), s.NextSeq())
	data, err := json.Marshal(viewTier(&tier, a.spec.Quantity, shelf.Event.Currency))
	return ledger.Decision{
		Kind: KindTierAdded, Data: data,
		Legs: Supply(tier.Tier, a.spec.Quantity),
		Rows: []ledger.Row{newTierRow{tier}},
	}, err
}

// TierChange is what to change of a tier; nil leaves it as it is.
type TierChange struct {
	Name             *string        `json:"name,omitempty"`
	Quantity         *ledger.Amount `json:"quantity,omitempty"` // the new capacity
	Price            *Money         `json:"price,omitempty"`
	Fee              *Money         `json:"fee,omitempty"`
	TaxRate          *Rate          `json:"tax_rate,omitempty"`
	LimitPerCustomer *int64         `json:"limit_per_customer,omitempty"`
}

// changeTier changes a tier's price, limit, name or capacity.
type changeTier struct {
	tier    ledger.Unit
	change  TierChange
	ifMatch *ledger.Seq
	// elsewhere are free tickets in other lanes, which a dry run may count on.
	elsewhere ledger.Amount
}

func (c *changeTier) Accounts() []string { return []string{ledger.Capacity, ledger.Available} }

func (c *changeTier) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf := ShelfOf(s)
	old := shelf.Tiers[c.tier]
	if old == nil {
		return ledger.Decision{}, TierNotFound(c.tier)
	}
	if c.ifMatch != nil && *c.ifMatch != old.Version {
		return ledger.Decision{}, ErrVersionConflict.Because("tier %s has version %d", c.tier, old.Version).
			With("version", old.Version)
	}
	currency := shelf.Event.Currency
	if err := c.change.check(currency); err != nil {
		return ledger.Decision{}, err
	}
	tier := *old
	repriced := c.change.apply(&tier)
	tier.Version = s.NextSeq()
	capacity := -s.Balance(ledger.Capacity, c.tier)
	var legs []ledger.Leg
	if q := c.change.Quantity; q != nil && old.Seated {
		return ledger.Decision{}, fault.BadField("quantity", "%s is sold by seat: its chart gives the quantity", c.tier)
	} else if q != nil && *q != capacity {
		committed := capacity - s.Balance(ledger.Available, c.tier) - c.elsewhere
		if *q < committed {
			return ledger.Decision{}, BelowCommitted(c.tier, committed, *q)
		}
		legs = Supply(c.tier, *q-capacity)
		capacity = *q
	}
	data, err := json.Marshal(viewTier(&tier, capacity, currency))
	return ledger.Decision{
		Kind: KindTierChanged, Data: data, Legs: legs, Rows: []ledger.Row{tierRow{tier, repriced}},
	}, err
}

// BelowCommitted is ErrBelowCommitted about a tier that can't have less than a minimum.
func BelowCommitted(tier ledger.Unit, minimum, asked ledger.Amount) error {
	return ErrBelowCommitted.Because("%d tickets of %s are committed", minimum, tier).
		With("tier", tier).With("minimum", minimum).With("asked", asked)
}
