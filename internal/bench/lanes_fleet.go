package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// fleet is the product in several processes on one database, each of which prefers some
// lanes. Every client has a connection to each.
type fleet struct {
	processes []*server
	prefers   []func(lane int) bool // of each
}

func (r *lanesRun) startFleet(ctx context.Context) (*fleet, error) {
	f := &fleet{}
	for i := range r.Processes {
		lanes := strconv.Itoa(i+1) + "/" + strconv.Itoa(r.Processes)
		prefers, err := quota.ParseLanes(lanes)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		command := slices.Concat(r.Server, []string{"--system", string(Product), "--lanes", lanes})
		s, err := startServer(ctx, command, Product, r.db.url, r.Stderr, r.Clients)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.processes, f.prefers = append(f.processes, s), append(f.prefers, prefers)
	}
	return f, nil
}

// close stops the processes; a second one does nothing.
func (f *fleet) close() error {
	var failed []error
	for _, s := range f.processes {
		failed = append(failed, s.close())
	}
	return errors.Join(failed...)
}

// peakMB is the most memory that all of them have had, each at its time.
func (f *fleet) peakMB() (sum float64) {
	for _, s := range f.processes {
		sum += s.peakMB()
	}
	return round(sum, 1)
}

// open makes an event with one tier on sale, and splits it over so many lanes. Its holds
// outlast the run.
func (f *fleet) open(ctx context.Context, event string, quantity int64, price ledger.Amount, lanes int) (buckets.Layout, error) {
	spec := buckets.Spec{
		Event: event, Name: "Hot tier", Currency: "USD", HoldSeconds: 24 * 3600,
		Tiers: []buckets.TierSpec{{
			Tier: tier, Quantity: ledger.Amount(quantity), Price: buckets.Money{Amount: price, Currency: "USD"},
		}},
	}
	if err := f.processes[0].create(ctx, spec); err != nil {
		return buckets.Layout{}, fmt.Errorf("create event: %w", err)
	}
	if lanes == 1 {
		return buckets.Layout{Counts: []int{1}}, nil
	}
	body, err := json.Marshal(map[string]any{"lanes": lanes, "reason": "benchmark"})
	if err != nil {
		return buckets.Layout{}, err
	}
	a, err := f.processes[0].clients[0].Do(ctx, http.MethodPost, "/v1/events/"+event+"/lanes", "split-"+event, body)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%d: %s", a.Status, a.Body)
	}
	var view buckets.LanesView
	if err == nil {
		err = json.Unmarshal(a.Body, &view)
	}
	if err == nil && view.Lanes != lanes {
		err = fmt.Errorf("%d lanes are in use", view.Lanes)
	}
	if err != nil {
		return buckets.Layout{}, fmt.Errorf("split into %d lanes: %w", lanes, err)
	}
	return buckets.Layout{Generation: view.Generation, Counts: view.Counts, Journals: view.Journals}, nil
}

// way chooses the process for the n-th request, of a customer.
type way func(customer string, n int64) int

// anywhere is the way of a balancer that knows nothing of lanes.
func (r *lanesRun) anywhere(_ string, n int64) int {
	return int(mix(r.Seed+uint64(n)) % uint64(r.Processes))
}

// toFirst leads all to one process.
func toFirst(string, int64) int { return 0 }

// byLane leads to the process that prefers the customer's lane; to any when the balancer
// doesn't know lanes.
func (r *lanesRun) byLane(layout buckets.Layout) way {
	if r.Routing == AtRandom {
		return r.anywhere
	}
	return func(customer string, _ int64) int {
		lane := layout.LaneOf(customer)
		return slices.IndexFunc(r.fleet.prefers, func(prefers func(int) bool) bool { return prefers(lane) })
	}
}
