package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// BalanceEvery is how often stocks are compared with demand.
	BalanceEvery = 200 * time.Millisecond
	// lowCover is for how long a lane's stock must last at the rate at which it sells; with
	// less it gets its share of what others have more than theirs.
	lowCover = 2 * time.Second
	// rateMemory is how much a new reading of a lane's rate counts.
	rateMemory = 0.3
	// othersEvery is how many rounds a process leaves to those that prefer a lane, before it
	// looks after it too.
	othersEvery = 5
	// eventTimeout bounds the work on one event, so that it keeps no other waiting.
	eventTimeout = 2 * time.Second
)

// watch is what the rebalancer remembers of demand. Nothing is decided by it but where
// tickets wait for their buyers.
type watch struct {
	round  sync.Mutex // one round of Balance at a time
	mu     sync.Mutex // of what follows; nobody reads or commits under it
	rounds int
	tiers  map[string]*demand              // by event and tier
	rested map[string]ledger.Seq           // events in which nothing was to be moved, and how far they had come
	marks  map[ledger.JournalID]ledger.Seq // every move up to it has arrived
	heads  map[ledger.JournalID]ledger.Seq // where the journal ended at the last look
}

// demand is how fast lanes of a tier sell.
type demand struct {
	at    time.Time
	taken map[ledger.JournalID]ledger.Amount // held and sold
	rates map[ledger.JournalID]float64       // tickets a second
}

// learn takes a new reading; one that comes close on the last, as after a split, tells
// nothing of rates.
func (d *demand) learn(at time.Time, taken map[ledger.JournalID]ledger.Amount) {
	seconds := at.Sub(d.at).Seconds()
	if seconds < BalanceEvery.Seconds()/2 {
		return
	}
	if !d.at.IsZero() {
		for j, n := range taken {
			rate := max(0, float64(n-d.taken[j])/seconds)
			d.rates[j] += rateMemory * (rate - d.rates[j])
		}
	}
	d.at, d.taken = at, taken
}

// Balance moves tickets ahead of demand, in every event that's split: to lanes that would
// run dry, and out of lanes that aren't in use. It's idempotent within its interval, for
// any number of processes. An event that fails doesn't stop the others; the error joins
// theirs.
func (s *Store) Balance(ctx context.Context) error {
	events, err := s.Events.SplitEvents(ctx)
	if err != nil {
		return err
	}
	s.watch.round.Lock()
	defer s.watch.round.Unlock()
	s.watch.mu.Lock()
	s.watch.rounds++
	others, before := s.watch.rounds%othersEvery == 0, s.watch.rested
	s.watch.mu.Unlock()
	var failed []error
	rested := make(map[string]ledger.Seq, len(events))
	for event, seq := range events {
		if at, ok := before[event]; ok && at == seq {
			rested[event] = seq
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, eventTimeout)
		chosen, err := s.balance(ctx, event, others)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("balance %s: %w", event, err))
		case chosen == 0:
			rested[event] = seq
		}
		cancel()
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	s.watch.rested = rested
	return errors.Join(failed...)
}

// balance looks after one event, in a round of others after the lanes that other processes
// prefer too, and tells how many transfers were called for, by this process or another.
func (s *Store) balance(ctx context.Context, event string, others bool) (chosen int, err error) {
	layout, err := s.Events.Look(ctx, event)
	if err != nil {
		return 0, err
	}
	err = s.spread(ctx, event, layout, Rebalance, func(lanes []stock) []transfer {
		list := level(lanes, lowCover.Seconds(), Batch)
		chosen += len(list)
		return slices.DeleteFunc(list, func(t transfer) bool { return !others && !s.Prefers(t.toLane) })
	})
	return chosen, err
}

// spread carries out what choose makes of the stocks of every bucket of an event.
func (s *Store) spread(ctx context.Context, event string, layout buckets.Layout, cause Cause, choose func([]stock) []transfer) error {
	stocks, err := s.Reader.Stocks(ctx, layout.Journals)
	if err != nil {
		return err
	}
	at := stocks[layout.Home()].AsOf
	tick := strconv.FormatInt(at.UnixMilli()/BalanceEvery.Milliseconds(), 10)
	var failed []error
	for tier := range stocks[layout.Home()].Tiers {
		rates := s.rates(event, tier, at, stocks)
		for _, account := range accounts(stocks, tier) {
			lanes := make([]stock, len(layout.Journals))
			for i, j := range layout.Journals {
				lanes[i] = stock{journal: j, lane: i + 1, inUse: i < layout.Lanes(), free: stocks[j].Tiers[tier][account].Balance}
				if account == ledger.Available {
					lanes[i].rate = rates[j]
				}
			}
			var own, closed []transfer
			for _, t := range choose(lanes) {
				t.key = fmt.Sprintf("%s %s %d %d %s", tier, account, t.to, layout.Generation, tick)
				if layout.Of(t.from) > layout.Lanes() {
					closed = append(closed, t)
				} else {
					own = append(own, t)
				}
			}
			_, err := s.carry(ctx, account, tier, cause, own)
			_, mergeErr := s.carry(ctx, account, tier, Merge, closed)
			failed = append(failed, err, mergeErr)
		}
	}
	return errors.Join(failed...)
}

// reasons are those of moves that nobody asked for.
var reasons = map[Cause]string{
	Rebalance: "the lane would have run dry",
	Split:     "lanes get even shares",
	Merge:     "the lane isn't in use any more",
	Collect:   "an operator takes tickets of all lanes",
	Pull:      "buyers asked for more than the lane had",
}

// accounts lists the accounts of the free tickets of a tier.
func accounts(stocks map[ledger.JournalID]ledger.Stock, tier ledger.Unit) (list []string) {
	for _, stock := range stocks {
		for code := range stock.Tiers[tier] {
			if _, ok := ledger.Free(code); ok && !slices.Contains(list, code) {
				list = append(list, code)
			}
		}
	}
	slices.Sort(list)
	return list
}

// rates learns how fast the lanes of a tier sell.
func (s *Store) rates(event string, tier ledger.Unit, at time.Time, stocks map[ledger.JournalID]ledger.Stock) map[ledger.JournalID]float64 {
	name := event + " " + string(tier)
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	if s.watch.tiers == nil {
		s.watch.tiers = make(map[string]*demand)
	}
	d := s.watch.tiers[name]
	if d == nil {
		d = &demand{rates: make(map[ledger.JournalID]float64)}
		s.watch.tiers[name] = d
	}
	taken := make(map[ledger.JournalID]ledger.Amount, len(stocks))
	for j, stock := range stocks {
		accounts := stock.Tiers[tier]
		taken[j] = accounts[ledger.Held].Balance + accounts[ledger.Sold].Balance
	}
	d.learn(at, taken)
	return maps.Clone(d.rates)
}
