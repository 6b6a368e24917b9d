package buckets

import (
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// check refuses values that no tier of an event in a currency may have.
func (c *TierChange) check(currency ledger.Unit) error {
	if c.Price != nil {
		if err := checkMoney("price", *c.Price, currency); err != nil {
			return err
		}
	}
	if c.Fee != nil {
		if err := checkMoney("fee", *c.Fee, currency); err != nil {
			return err
		}
	}
	if err := checkRate("tax_rate", c.TaxRate); err != nil {
		return err
	}
	switch {
	case *c == TierChange{}:
		return fault.BadField("body", "names nothing to change")
	case c.Name != nil && (*c.Name == "" || len(*c.Name) > maxName):
		return fault.BadField("name", "must have 1 to %d bytes", maxName)
	case badLimit(c.LimitPerCustomer):
		return fault.BadField("limit_per_customer", "must be 1 to %d", maxCapacity)
	case c.Quantity != nil && (*c.Quantity < 0 || *c.Quantity > maxCapacity):
		return fault.BadField("quantity", "must be 0 to %d", maxCapacity)
	}
	return nil
}

// apply changes a tier's row, and tells whether it has a new price.
func (c *TierChange) apply(t *Tier) (repriced bool) {
	if c.Name != nil {
		t.Name = *c.Name
	}
	if c.LimitPerCustomer != nil {
		t.LimitPerCustomer = c.LimitPerCustomer
	}
	price := t.Price
	if c.Price != nil {
		price.Amount = c.Price.Amount
	}
	if c.Fee != nil {
		price.Fee = c.Fee.Amount
	}
	if c.TaxRate != nil {
		price.TaxRate = c.TaxRate.Decimal
	}
	if price.Amount == t.Price.Amount && price.Fee == t.Price.Fee && price.TaxRate.Equal(t.Price.TaxRate) {
		return false
	}
	price.Version++
	t.Price = price
	return true
}

// TierNotFound is ErrTierNotFound about a tier.
func TierNotFound(tier ledger.Unit) error {
	return ErrTierNotFound.Because("%q", tier).With("tier", tier)
}

func tooManyTiers() error { return fault.BadField("tier", "an event has at most %d tiers", maxTiers) }
