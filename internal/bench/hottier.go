package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/verify"
	"github.com/tierledger/tierledger/ledger"
)

// Bounds of what may be asked for.
const (
	maxClients  = 4096 // half of what a journal lets wait
	minDuration = 100 * time.Millisecond
	maxDuration = 24 * time.Hour
	maxHolds    = 100_000_000
	maxRate     = 1_000_000
	maxQuantity = 10_000_000 // the most that a tier may have
)

// HotTier says how to load one tier of one event.
type HotTier struct {
	DatabaseURL string        // of a database for this alone; "" for a private server
	Clients     int           // connections, each with one request under way
	Duration    time.Duration // of each measurement
	Holds       int64         // measure until so many requests are answered; 0: by Duration
	Rate        float64       // requests a second whatever comes back; 0: clients never rest
	Quantity    int64         // tickets of the tier
	Customers   int64         // 0: every request is another customer's
	Limit       int64         // tickets a customer may have; 0: any number
	PerHold     int64         // tickets of a hold
	Seed        uint64        // of the choice of customers

	Engine   bool // the product in this process, without HTTP
	Baseline bool // measure row-lock and single-statement too
	Floor    bool // measure the floor too
	SoldOut  bool // measure refusals of an event without free tickets too

	Server   []string       // command line of a child that calls Serve
	Profile  string         // file for the CPU profile of the service; "" for none
	Stderr   io.Writer      // of the children
	Progress func(Progress) // called twice a second or so; nil for none
}

// Progress is how far a measurement is.
type Progress struct {
	System  string
	Held    int64
	Refused int64
	Failed  int64
	Elapsed time.Duration
}

// DefaultHotTier is a run with every default filled in.
func DefaultHotTier() HotTier {
	return HotTier{
		Clients: 64, Duration: 10 * time.Second, Quantity: maxQuantity, PerHold: 1, Seed: 1,
		Stderr: io.Discard,
	}
}

// Validate refuses what can't be run, naming the flag.
func (h *HotTier) Validate() error {
	switch {
	case h.Clients < 1 || h.Clients > maxClients:
		return fmt.Errorf("--clients must be 1 to %d", maxClients)
	case h.Duration < minDuration || h.Duration > maxDuration:
		return fmt.Errorf("--duration must be %s to %s", minDuration, maxDuration)
	case h.Holds < 0 || h.Holds > maxHolds:
		return fmt.Errorf("--holds must be 0 to %d", maxHolds)
	case h.Rate < 0 || h.Rate > maxRate:
		return fmt.Errorf("--rate must be 0 to %d", maxRate)
	case h.Quantity < 0 || h.Quantity > maxQuantity:
		return fmt.Errorf("--quantity must be 0 to %d", maxQuantity)
	case h.Customers < 0:
		return fmt.Errorf("--customers can't be negative")
	case h.Limit < 0:
		return fmt.Errorf("--limit can't be negative")
	case h.PerHold < 1 || h.PerHold > 1000:
		return fmt.Errorf("--per-hold must be 1 to 1000")
	case h.Engine && h.Baseline:
		return fmt.Errorf("--engine has no HTTP and --baseline has: compare it with --floor")
	}
	return nil
}

// run is one run of the benchmark.
type run struct {
	HotTier
	db     *database
	name   string // unique in the database: the start of event names and keys
	report Report
	held   int64 // by the product, in all its measurements
}

// Run measures what was asked for, and then verifies the ledger. A report that
// isn't OK comes without an error; an error says that the run came to no end.
func (h HotTier) Run(ctx context.Context) (report Report, err error) {
	if err := h.Validate(); err != nil {
		return Report{}, err
	}
	db, err := openDatabase(ctx, h.DatabaseURL)
	if err != nil {
		return Report{}, err
	}
	defer func() {
		if cerr := db.close(context.WithoutCancel(ctx)); err == nil {
			err = cerr
		}
	}()
	r := &run{HotTier: h, db: db, name: eventPrefix + strconv.FormatInt(time.Now().UnixMilli(), 36)}
	r.report = Report{
		Bench: "hot-tier", Mode: "http", Clients: h.Clients, Rate: h.Rate, CPUs: runtime.NumCPU(),
		DurationSeconds: seconds(h.Duration),
	}
	if h.Engine {
		r.report.Mode = "engine"
	}
	if r.report.PostgreSQL, r.report.Fsync, err = db.about(ctx); err != nil {
		return Report{}, err
	}
	for _, step := range []func(context.Context) error{r.product, r.baselines, r.floor, r.restart, r.verify} {
		if err := step(ctx); err != nil {
			return Report{}, err
		}
	}
	return r.report, nil
}

// event names an event of this run.
func (r *run) event(what string) string { return r.name + "-" + what }

// spec is an event with one tier; its holds outlast the run.
func (r *run) spec(what string, quantity int64) buckets.Spec {
	tier := buckets.TierSpec{
		Tier: tier, Quantity: ledger.Amount(quantity), Price: buckets.Money{Amount: 5000, Currency: "USD"},
	}
	if r.Limit > 0 {
		tier.LimitPerCustomer = &r.Limit
	}
	return buckets.Spec{
		Event: r.event(what), Name: "Hot tier", Currency: "USD", HoldSeconds: 24 * 3600,
		Tiers: []buckets.TierSpec{tier},
	}
}

// The events of a run, and the tier that each has.
const (
	eventPrefix  = "bench-"
	hotEvent     = "hot"
	soldOutEvent = "sold-out"
	blankEvent   = "blank" // what the baselines' tables begin with
	tier         = "ga"
)

// verify recomputes every invariant of the ledger.
func (r *run) verify(ctx context.Context) (err error) {
	started := time.Now()
	r.report.Verified, r.report.Violations, err = verified(ctx, r.db.url)
	r.report.VerifySeconds = seconds(time.Since(started))
	return err
}

func verified(ctx context.Context, databaseURL string) (ok bool, violations []string, err error) {
	summary, err := verify.Run(ctx, databaseURL, verify.Options{})
	if err != nil {
		return false, nil, err
	}
	for _, c := range summary.Checks {
		for _, v := range c.Violations {
			violations = append(violations, c.Check+": "+v)
		}
	}
	return summary.OK, violations, nil
}

// bound is how long a measurement lasts.
func (r *run) bound() load.Bound {
	if r.Holds > 0 {
		return load.Bound{Turns: r.Holds, For: maxDuration}
	}
	return load.Bound{For: r.Duration}
}
