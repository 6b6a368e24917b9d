package buckets

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

func TestInstantsWithZones(t *testing.T) {
	for text, want := range map[string]string{
		`"2027-03-28T01:30:00+01:00"`:                "2027-03-28T00:30:00Z",
		`"2027-03-28T03:30:00+02:00[Europe/Berlin]"`: "2027-03-28T01:30:00Z",
		// The hour that comes twice: the offset says which.
		`"2026-10-25T02:30:00+02:00[Europe/Berlin]"`: "2026-10-25T00:30:00Z",
		`"2026-10-25T02:30:00+01:00[Europe/Berlin]"`: "2026-10-25T01:30:00Z",
		`"2026-10-25T01:30:00Z[Europe/Berlin]"`:      "2026-10-25T01:30:00Z",
		// The hour that never comes, in either offset.
		`"2027-03-28T02:30:00+01:00[Europe/Berlin]"`: "",
		`"2027-03-28T02:30:00+02:00[Europe/Berlin]"`: "",
		`"2027-07-01T12:00:00+01:00[Europe/Berlin]"`: "", // winter's offset in summer
		`"2027-07-01T12:00:00"`:                      "",
		`"2027-07-01T12:00:00+02:00[Mars/Olympus]"`:  "",
		`"2027-07-01T12:00:00+02:00[Europe/Berlin"`:  "",
		`"2027-07-01T12:00:00+02:00[]"`:              "",
		`"2027-07-01T12:00:00+02:00[Local]"`:         "",
		`1782900000`:                                 "",
		// The years are those of UTC.
		`"0001-01-01T00:00:00Z"`:             "0001-01-01T00:00:00Z",
		`"9999-12-31T23:59:59.9999999Z"`:     "9999-12-31T23:59:59Z",
		`"0001-01-01T00:00:00+01:00"`:        "",
		`"0000-12-31T23:59:59-01:00"`:        "0001-01-01T00:59:59Z",
		`"0000-01-01T00:00:00Z"`:             "",
		`"9999-12-31T23:59:59-01:00"`:        "",
		`"9999-12-31T23:00:00-07:00[Etc/X]"`: "",
	} {
		var i Instant
		if err := json.Unmarshal([]byte(text), &i); err != nil {
			t.Fatal(err)
		}
		got := ""
		if i.err == nil {
			got = i.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%s is %q (%v), want %q", text, got, i.err, want)
		}
	}
}

func TestTheWindowIsHalfOpen(t *testing.T) {
	at := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)
	e := Event{SaleOpensAt: &at, SaleClosesAt: new(at.Add(time.Hour))}
	for offset, want := range map[time.Duration]bool{
		-time.Microsecond: false, 0: true, time.Hour - time.Microsecond: true, time.Hour: false,
	} {
		if e.OnSale(at.Add(offset)) != want {
			t.Errorf("%v after the opening: on sale is %v", offset, !want)
		}
	}
}

// T70: an end of late payments that the sale's window doesn't fit is refused when it's written.
func TestHonourUntilFitsTheWindow(t *testing.T) {
	opens := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	closes := opens.Add(time.Hour)
	at := func(i time.Time) *Instant { return &Instant{Time: i} }
	for _, c := range []struct {
		opens, closes, honour *Instant
		want                  string
	}{
		{at(opens), at(closes), nil, ""},
		{at(opens), at(closes), at(closes), ""},
		{at(opens), at(closes), at(closes.Add(time.Hour)), ""},
		{at(opens), at(closes), at(closes.Add(-time.Microsecond)), "honour_until: must not be before sale_closes_at"},
		{at(opens), nil, at(opens.Add(time.Microsecond)), ""},
		{at(opens), nil, at(opens.Add(999 * time.Nanosecond)), "honour_until: must be after sale_opens_at"}, // as it's kept
		{at(opens), nil, at(opens), "honour_until: must be after sale_opens_at"},
		{nil, at(closes), at(opens), "honour_until: must not be before sale_closes_at"},
		{nil, nil, at(opens), ""},
		{nil, nil, &Instant{err: errors.New("must be a string")}, "honour_until: must be a string"},
	} {
		s := Spec{Event: "gig", Name: "Gig", Currency: "USD", SaleOpensAt: c.opens, SaleClosesAt: c.closes, HonourUntil: c.honour,
			Tiers: []TierSpec{{Tier: "ga", Quantity: 1, Price: Money{1, "USD"}}}}
		got := ""
		if err := s.normalize(); err != nil {
			got = fault.As(err).Detail
		}
		if got != c.want {
			t.Errorf("opens %v, closes %v, honoured until %v: %q, want %q", c.opens, c.closes, c.honour, got, c.want)
		}
	}
}

func TestRates(t *testing.T) {
	for text, ok := range map[string]bool{
		`"0.07"`: true, `0.07`: true, `0`: true, `1`: true, `"1.000000"`: true, `0.123456`: true,
		`0.1234567`: false, `1.1`: false, `-0.1`: false, `1e-2`: false, `"1e999999999"`: false, `"seven"`: false, `null`: false,
	} {
		var r Rate
		if err := r.UnmarshalJSON([]byte(text)); err != nil || (r.err == nil) != ok {
			t.Errorf("%s: accepted is %v", text, r.err == nil)
		}
	}
}

// T62: tax of a ticket is rounded once, so that every sum of tickets is exact.
func TestTaxRoundsOnTheTicket(t *testing.T) {
	for _, c := range []struct {
		amount, fee ledger.Amount
		rate        string
		want        ledger.Amount
	}{{3400, 0, "0.07", 238}, {5000, 250, "0.19", 998}, {1, 0, "0.5", 1}, {333, 0, "0.07", 23}, {100, 0, "0", 0}} {
		p := Price{Amount: c.amount, Fee: c.fee, TaxRate: decimal.RequireFromString(c.rate)}
		if got := p.Tax(); got != c.want {
			t.Errorf("%d+%d at %s: %d, want %d", c.amount, c.fee, c.rate, got, c.want)
		}
	}
}
