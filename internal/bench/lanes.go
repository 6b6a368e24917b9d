package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"github.com/tierledger/tierledger/buckets"
)

// Bounds of what may be asked of lanes, beside those of HotTier.
const (
	maxProcesses = 16
	maxRounds    = 1000
)

// Routing says to which process a balancer sends a customer of an event that's split.
type Routing string

// The ways of a balancer.
const (
	ByLane   Routing = "lane"   // to the process that prefers the customer's lane
	AtRandom Routing = "random" // to any
)

// Lanes says how to load one tier of an event that is split over lanes, and beside it one
// of an event that isn't, in several service processes on one database.
type Lanes struct {
	DatabaseURL string        // of a database for this alone; "" for a private server
	Processes   int           // service processes
	Split       int           // lanes of the event that is split
	Clients     int           // connections, each with one request under way
	Duration    time.Duration // of the measurement of each way, over all rounds
	Rounds      int           // in which the ways take turns
	Routing     Routing       // of the event that's split
	Seed        uint64        // of parties and of random ways

	Sellout        bool  // sell an event out too
	SelloutTickets int64 // of that
	SelloutLanes   int

	Server   []string       // command line of a child that calls Serve
	Stderr   io.Writer      // of the children
	Progress func(Progress) // called twice a second or so; nil for none
}

// DefaultLanes is a run with every default filled in.
func DefaultLanes() Lanes {
	return Lanes{
		Processes: 3, Split: 4, Clients: 64, Duration: 10 * time.Second, Rounds: 10, Routing: ByLane, Seed: 1,
		SelloutTickets: 100_000, SelloutLanes: 8, Stderr: io.Discard,
	}
}

// Validate refuses what can't be run, naming the flag.
func (l *Lanes) Validate() error {
	switch {
	case l.Processes < 1 || l.Processes > maxProcesses:
		return fmt.Errorf("--processes must be 1 to %d", maxProcesses)
	case l.Split < 2 || l.Split > buckets.MaxLanes:
		return fmt.Errorf("--lanes must be 2 to %d", buckets.MaxLanes)
	case l.Clients < 1 || l.Clients > maxClients:
		return fmt.Errorf("--clients must be 1 to %d", maxClients)
	case l.Duration < minDuration || l.Duration > maxDuration:
		return fmt.Errorf("--duration must be %s to %s", minDuration, maxDuration)
	case l.Rounds < 1 || l.Rounds > maxRounds:
		return fmt.Errorf("--rounds must be 1 to %d", maxRounds)
	case l.Routing != ByLane && l.Routing != AtRandom:
		return fmt.Errorf("--routing must be %s or %s", ByLane, AtRandom)
	case l.SelloutTickets < 1 || l.SelloutTickets > maxQuantity:
		return fmt.Errorf("--sellout-tickets must be 1 to %d", maxQuantity)
	case l.SelloutLanes < 2 || l.SelloutLanes > buckets.MaxLanes:
		return fmt.Errorf("--sellout-lanes must be 2 to %d", buckets.MaxLanes)
	}
	return nil
}

// lanesRun is one run of the benchmark.
type lanesRun struct {
	Lanes
	db     *database
	fleet  *fleet
	name   string // unique in the database: the start of event names and keys
	report LanesReport
}

// Run measures what was asked for, and then verifies the ledger. A report that isn't OK
// comes without an error; an error says that the run came to no end.
func (l Lanes) Run(ctx context.Context) (report LanesReport, err error) {
	if err := l.Validate(); err != nil {
		return LanesReport{}, err
	}
	db, err := openDatabase(ctx, l.DatabaseURL)
	if err != nil {
		return LanesReport{}, err
	}
	defer func() { err = errors.Join(err, db.close(context.WithoutCancel(ctx))) }()
	r := &lanesRun{Lanes: l, db: db, name: eventPrefix + strconv.FormatInt(time.Now().UnixMilli(), 36)}
	r.report = LanesReport{
		Bench: "lanes", Processes: l.Processes, Lanes: l.Split, Clients: l.Clients, Rounds: l.Rounds, Routing: l.Routing,
		CPUs: runtime.NumCPU(), DurationSeconds: seconds(l.Duration),
	}
	if r.report.PostgreSQL, r.report.Fsync, err = db.about(ctx); err != nil {
		return LanesReport{}, err
	}
	for _, step := range []func(context.Context) error{r.product, r.verify} {
		if err := step(ctx); err != nil {
			return LanesReport{}, err
		}
	}
	return r.report, nil
}

// product measures the ledger, in all that was asked for.
func (r *lanesRun) product(ctx context.Context) (err error) {
	if r.fleet, err = r.startFleet(ctx); err != nil {
		return err
	}
	defer r.fleet.close()
	for _, step := range []func(context.Context) error{r.compare, r.sellout} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	r.report.RSSMB = r.fleet.peakMB()
	return r.fleet.close()
}

// event names an event of this run.
func (r *lanesRun) event(what string) string { return r.name + "-" + what }

// verify recomputes every invariant of the ledger.
func (r *lanesRun) verify(ctx context.Context) (err error) {
	started := time.Now()
	r.report.Verified, r.report.Violations, err = verified(ctx, r.db.url)
	r.report.VerifySeconds = seconds(time.Since(started))
	return err
}
