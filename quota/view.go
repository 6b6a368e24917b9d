package quota

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// BucketView is one bucket as callers see it.
type BucketView struct {
	Tier      ledger.Unit   `json:"tier"`
	Lane      int           `json:"lane"`
	Allotment string        `json:"allotment,omitempty"`
	Free      ledger.Amount `json:"free"`
	Version   ledger.Seq    `json:"version"` // of its account
}

// LaneView is what a lane has of a tier beside its buckets.
type LaneView struct {
	Tier      ledger.Unit   `json:"tier"`
	Lane      int           `json:"lane"`
	InUse     bool          `json:"in_use"` // takes customers who have nothing yet
	Held      ledger.Amount `json:"held"`
	Sold      ledger.Amount `json:"sold"`
	InTransit ledger.Amount `json:"in_transit"` // sent to other lanes, less what came from them
}

// View is where an event's quotas are: tickets of one instant, of the lanes that there were
// just before.
type View struct {
	Event      string                     `json:"event"`
	AsOf       time.Time                  `json:"as_of"`
	Lanes      buckets.LanesView          `json:"lanes"`
	Tiers      []buckets.TierAvailability `json:"tiers"`
	Buckets    []BucketView               `json:"buckets"`
	ByLane     []LaneView                 `json:"by_lane"`
	Allotments []*buckets.Allotment       `json:"allotments"`
}

// View reads where an event's quotas are. Errors: buckets.ErrEventNotFound and those of
// reads.
func (s *Store) View(ctx context.Context, event string) (View, error) {
	home, err := s.Events.Journal(ctx, event)
	if err != nil {
		return View{}, err
	}
	v := View{Event: event, Buckets: []BucketView{}, ByLane: []LaneView{}}
	if v.Lanes, err = s.Events.LanesView(ctx, event, home); err != nil {
		return View{}, err
	}
	if v.Allotments, err = s.Events.Allotments(ctx, event); err != nil {
		return View{}, err
	}
	stocks, err := s.Reader.Stocks(ctx, v.Lanes.Journals)
	if err != nil {
		return View{}, err
	}
	for i, journal := range v.Lanes.Journals {
		stock := stocks[journal]
		v.AsOf = stock.AsOf.UTC()
		for tier, accounts := range stock.Tiers {
			v.ByLane = append(v.ByLane, LaneView{tier, i + 1, i < v.Lanes.Lanes, accounts[ledger.Held].Balance,
				accounts[ledger.Sold].Balance, transit(accounts)})
			for code, account := range accounts {
				if allotment, ok := ledger.Free(code); ok && (allotment == "" || account.Balance > 0) {
					v.Buckets = append(v.Buckets, BucketView{tier, i + 1, allotment, account.Balance, account.Version})
				}
			}
		}
	}
	v.Tiers = buckets.Total(stocks)
	slices.SortFunc(v.ByLane, func(a, b LaneView) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Lane, b.Lane))
	})
	slices.SortFunc(v.Buckets, func(a, b BucketView) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Allotment, b.Allotment), cmp.Compare(a.Lane, b.Lane))
	})
	return v, nil
}

// transit is what a lane sent less what came, to whatever bucket.
func transit(accounts map[string]ledger.Account) (sum ledger.Amount) {
	for code, account := range accounts {
		if ledger.UnderWay(code) {
			sum += account.Balance
		}
	}
	return sum
}
