package holds

import (
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// channel finds the allotment that the request buys from, if any, and refuses what may not
// buy there, or not now.
func (c *choice) channel() error {
	c.allotment = c.request.Allotment
	if code := c.request.Code; code != "" {
		known := c.offer.Codes[code]
		if known == nil || c.allotment != "" && c.allotment != known.Allotment {
			return ErrInvalidCode.Because("%q", code).With("field", "code")
		}
		c.allotment = known.Allotment
	}
	if c.allotment == "" {
		if !c.offer.Event.OnSale(c.s.Now) {
			return notOnSale(c.offer.Event, c.offer.Event.SaleOpensAt, c.offer.Event.SaleClosesAt)
		}
		return nil
	}
	a, err := c.offer.Live(c.s, c.allotment)
	switch {
	case err != nil:
		return err
	case a.CodeRequired && c.request.Code == "":
		return ErrCodeRequired.Because("%s", a.Allotment).With("field", "code").With("allotment", a.Allotment)
	case !a.OnSale(c.offer.Event, c.s.Now):
		opens, closes := a.OpensAt, a.ReleasesAt
		if opens == nil {
			opens = c.offer.Event.SaleOpensAt
		}
		if closes == nil {
			closes = c.offer.Event.SaleClosesAt
		}
		return notOnSale(c.offer.Event, opens, closes).With("allotment", a.Allotment)
	}
	for _, l := range c.request.Items {
		if l.Seats != nil || l.BestAvailable != nil {
			return fault.BadField("allotment", "has tickets by quantity only")
		}
	}
	return nil
}

func notOnSale(e *buckets.Event, opens, closes *time.Time) *fault.Error {
	err := ErrNotOnSale.Because("%s isn't on sale now", e.Event)
	if opens != nil {
		err = err.With("sale_opens_at", opens.UTC())
	}
	if closes != nil {
		err = err.With("sale_closes_at", closes.UTC())
	}
	return err
}

// useLeft refuses when the access code has no use left in this lane, rather than for want
// of tickets.
func (c *choice) useLeft(short error) error {
	code := c.request.Code
	if code == "" || c.s.Balance(ledger.FreeUses(code), ledger.Uses) > 0 {
		return short
	}
	return lacking(c.s, codeUsedUp(code),
		quota.Need{Account: ledger.FreeUses(code), Unit: ledger.Uses, Quantity: 1})
}

func codeUsedUp(code string) *fault.Error {
	return ErrCodeUsedUp.Because("%s has no use left", code).With("access_code", code)
}

// enough refuses when a bucket has too few free tickets: for now, when all of the
// request could be served if every hold ended; for good otherwise. In a lane of a split
// event it's the lane's own answer, which names what other lanes may have.
func enough(s *ledger.State, wanted []quantity) error {
	var short, lost *quantity
	needs := make([]quota.Need, 0, len(wanted))
	for i := range wanted {
		w := &wanted[i]
		free := freeOf(s, w)
		needs = append(needs, quota.Need{Account: ledger.FreeOf(w.allotment), Unit: w.tier.Tier, Quantity: w.n})
		switch {
		case free >= w.n:
		case free+s.Balance(ledger.Held, w.tier.Tier) >= w.n:
			short = w
		case lost == nil:
			lost = w
		}
	}
	switch {
	case lost != nil:
		return lacking(s, soldOut(lost.tier.Tier, lost.allotment, freeOf(s, lost), lost.n), needs...)
	case short != nil:
		at := shelfOf(s).retryAt(s.Now, short.tier.Tier)
		return lacking(s, temporarilyHeld(short.tier.Tier, short.allotment, freeOf(s, short), short.n, at, s.Now), needs...)
	}
	return nil
}

func freeOf(s *ledger.State, w *quantity) ledger.Amount {
	return s.Balance(ledger.FreeOf(w.allotment), w.tier.Tier)
}

func soldOut(tier ledger.Unit, allotment string, free, asked ledger.Amount) *fault.Error {
	return from(allotment, ErrSoldOut.Because("%d of %s are left, %d asked", free, tier, asked).
		With("tier", tier).With("available", free).With("asked", asked))
}

func temporarilyHeld(tier ledger.Unit, allotment string, free, asked ledger.Amount, at, now time.Time) *fault.Error {
	return from(allotment, ErrTemporarilyHeld.Because("%d of %s are free now, %d asked", free, tier, asked).
		With("tier", tier).With("available", free).With("asked", asked).
		With("retry_at", at.Format(time.RFC3339Nano)).
		After(at.Sub(now)))
}

// from names the allotment in a refusal.
func from(allotment string, err *fault.Error) *fault.Error {
	if allotment != "" {
		err = err.With("allotment", allotment)
	}
	return err
}

// lack is what a lane would need to serve a request that it refused.
type lack struct{ needs []quota.Need }

func (*lack) Error() string { return "the lane has too few; others may have more" }

// lacking adds to a lane's refusal what it needs; nothing when there's no other lane.
func lacking(s *ledger.State, err *fault.Error, needs ...quota.Need) error {
	if buckets.ShelfOf(s).Lane == nil {
		return err
	}
	return err.From(&lack{needs})
}
