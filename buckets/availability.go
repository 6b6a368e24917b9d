package buckets

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Availability is where an event's tickets are; seconds old is all right for it.
type Availability struct {
	Event   string             `json:"event"`
	Version ledger.Seq         `json:"version"`
	AsOf    time.Time          `json:"as_of"`
	Tiers   []TierAvailability `json:"tiers"`
}

// TierAvailability is where a tier's tickets are.
type TierAvailability struct {
	Tier       ledger.Unit              `json:"tier"`
	Capacity   ledger.Amount            `json:"capacity"`
	Available  ledger.Amount            `json:"available"`
	Held       ledger.Amount            `json:"held"`
	Sold       ledger.Amount            `json:"sold"`
	Blocked    ledger.Amount            `json:"blocked"`
	InTransit  ledger.Amount            `json:"in_transit"`
	Void       ledger.Amount            `json:"void,omitempty"`
	Allotments map[string]ledger.Amount `json:"allotments,omitempty"` // free ones, of those that have any
	Version    ledger.Seq               `json:"version"`
}

// Availability reads where an event's tickets are, all tiers at one instant, of the lanes that
// there were just before. The
// version of an event or a tier with several lanes is the sum of theirs: it grows with
// every change.
func (s *Store) Availability(ctx context.Context, event string) (Availability, error) {
	journals, err := s.Lanes(ctx, event)
	if err != nil {
		return Availability{}, err
	}
	stocks, err := s.reader.Stocks(ctx, journals)
	if err != nil {
		return Availability{}, err
	}
	a := Availability{Event: event, Tiers: Total(stocks)}
	for _, stock := range stocks {
		a.Version += stock.Version
		a.AsOf = stock.AsOf.UTC()
	}
	return a, nil
}

// Total adds up what lanes have, in the order of the tiers' names.
func Total(stocks map[ledger.JournalID]ledger.Stock) []TierAvailability {
	tiers := make(map[ledger.Unit]*TierAvailability)
	for _, stock := range stocks {
		for tier, accounts := range stock.Tiers {
			if tiers[tier] == nil {
				tiers[tier] = &TierAvailability{Tier: tier}
			}
			tiers[tier].add(accounts)
		}
	}
	list := make([]TierAvailability, 0, len(tiers))
	for _, t := range tiers {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(x, y TierAvailability) int { return cmp.Compare(x.Tier, y.Tier) })
	return list
}

// add adds what one lane has.
func (t *TierAvailability) add(accounts map[string]ledger.Account) {
	t.Capacity -= accounts[ledger.Capacity].Balance
	t.Available += accounts[ledger.Available].Balance
	t.Held += accounts[ledger.Held].Balance
	t.Sold += accounts[ledger.Sold].Balance
	t.Blocked += accounts[ledger.Blocked].Balance
	t.Void += accounts[ledger.Void].Balance
	var version ledger.Seq
	for code, account := range accounts {
		version = max(version, account.Version)
		if ledger.UnderWay(code) {
			t.InTransit += account.Balance
		}
		if allotment, ok := ledger.Free(code); ok && allotment != "" && account.Balance > 0 {
			if t.Allotments == nil {
				t.Allotments = make(map[string]ledger.Amount)
			}
			t.Allotments[allotment] += account.Balance
		}
	}
	t.Version += version
}

// Free is what lanes have of one bucket, all of one instant.
type Free struct {
	Total    ledger.Amount // in all lanes
	UnderWay ledger.Amount // to that account: between lanes, or to be returned there
	Held     ledger.Amount // by holds, of the tier; may come back
	Lanes    []LaneFree    // the first lane's first
}

// LaneFree is what a lane has of it.
type LaneFree struct {
	Journal ledger.JournalID
	Lane    int
	Free    ledger.Amount
	// Unreturned is what allotments that have ended have left; a batch of the lane returns it.
	Unreturned ledger.Amount
}

// Of is what a lane has.
func (f Free) Of(journal ledger.JournalID) ledger.Amount {
	for _, l := range f.Lanes {
		if l.Journal == journal {
			return l.Free
		}
	}
	return 0
}

// Free reads what every lane of an event has on an account: one statement, so that a lane
// that tickets could be in isn't missed. Errors are those of reads.
func (s *Store) Free(ctx context.Context, event, account string, unit ledger.Unit) (Free, error) {
	rows, err := s.reads.Query(ctx, sqlFree, int64(ledger.System), event, account, ledger.TransitTo(account), unit)
	if err != nil {
		return Free{}, pg.Fault(fmt.Errorf("read %s of %s: %w", account, event, err))
	}
	var f Free
	var l LaneFree
	var transit, held, coming ledger.Amount
	_, err = pgx.ForEachRow(rows, []any{&l.Journal, &l.Lane, &l.Free, &transit, &held, &l.Unreturned, &coming}, func() error {
		f.Total += l.Free
		f.UnderWay += transit + l.Unreturned + coming
		f.Held += held
		f.Lanes = append(f.Lanes, l)
		return nil
	})
	return f, pg.Fault(err)
}
