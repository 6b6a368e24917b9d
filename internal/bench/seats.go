package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// Bounds of what may be asked of seats, beside those of HotTier.
const (
	minSeats        = 100
	maxSeats        = 100_000 // of an event
	maxSeatsTime    = time.Hour
	maxFollowers    = 10_000
	maxMapReads     = 50_000
	maxSeatsHold    = 24 * 3600
	maxSeatsPerHold = 6
)

// Seats says how to load one event of assigned seats: groups that name seats which
// overlap, parties that take the best there is, and beside them shoppers who look at the
// map and follow its changes.
type Seats struct {
	DatabaseURL string        // of a database for this alone; "" for a private server
	Clients     int           // connections, each with one request under way
	Duration    time.Duration // of each measurement
	Rate        float64       // attempts a second whatever comes back; 0: clients never rest
	Size        int           // seats of the event
	HoldSeconds int           // how long a hold lasts that isn't released
	Release     float64       // share of the holds that are released at once, 0 to 1
	Customers   int64         // 0: every attempt is another customer's
	Limit       int64         // tickets that a customer may have; 0: any number
	Seed        uint64        // of what is asked for
	MapReads    float64       // reads of the map a second, beside the load; 0: none
	Followers   int           // connections that follow the changes, beside the load; 0: none

	Baseline    bool // measure a transaction a request too
	Sellout     bool // sell an event of best available seats out too
	AcceptSplit bool // a party of the sellout sits apart from the start, not only when it must

	Server   []string       // command line of a child that calls Serve
	Profile  string         // file for the CPU profile of the service; "" for none
	Stderr   io.Writer      // of the children
	Progress func(Progress) // called twice a second or so; nil for none
}

// DefaultSeats is a run with every default filled in.
func DefaultSeats() Seats {
	return Seats{
		Clients: 64, Duration: 10 * time.Second, Size: 50_000, HoldSeconds: 20, Release: 0.6, Seed: 1,
		MapReads: 2000, Followers: 1000, AcceptSplit: true, Stderr: io.Discard,
	}
}

// Validate refuses what can't be run, naming the flag.
func (s *Seats) Validate() error {
	switch {
	case s.Clients < 1 || s.Clients > maxClients:
		return fmt.Errorf("--clients must be 1 to %d", maxClients)
	case s.Duration < minDuration || s.Duration > maxSeatsTime:
		return fmt.Errorf("--duration must be %s to %s", minDuration, maxSeatsTime)
	case !(s.Rate >= 0 && s.Rate <= maxRate):
		return fmt.Errorf("--rate must be 0 to %d", maxRate)
	case s.Size < minSeats || s.Size > maxSeats:
		return fmt.Errorf("--seats must be %d to %d", minSeats, maxSeats)
	case s.HoldSeconds < 1 || s.HoldSeconds > maxSeatsHold:
		return fmt.Errorf("--hold-seconds must be 1 to %d", maxSeatsHold)
	case !(s.Release >= 0 && s.Release <= 1):
		return fmt.Errorf("--release must be 0 to 1")
	case s.Customers < 0:
		return fmt.Errorf("--customers can't be negative")
	case s.Limit < 0:
		return fmt.Errorf("--limit can't be negative")
	case !(s.MapReads >= 0 && s.MapReads <= maxMapReads):
		return fmt.Errorf("--map-readers must be 0 to %d", maxMapReads)
	case s.Followers < 0 || s.Followers > maxFollowers:
		return fmt.Errorf("--followers must be 0 to %d", maxFollowers)
	}
	return nil
}

// The events of a run, beside the blank one.
const (
	aloneEvent   = "alone" // the product's, as the baseline is loaded
	selloutEvent = "sellout"
)

// seatsRun is one run of the benchmark.
type seatsRun struct {
	Seats
	db     *database
	server *server // the product
	name   string  // unique in the database: the start of event names and keys
	house  *house
	report SeatsReport

	alonePerS float64 // attempts of the product, as the baseline is loaded
}

// Run measures what was asked for, looks for seats that were given away twice, and then
// verifies the ledger. A report that isn't OK comes without an error; an error says that
// the run came to no end.
func (s Seats) Run(ctx context.Context) (report SeatsReport, err error) {
	if err := s.Validate(); err != nil {
		return SeatsReport{}, err
	}
	db, err := openDatabase(ctx, s.DatabaseURL)
	if err != nil {
		return SeatsReport{}, err
	}
	defer func() { err = errors.Join(err, db.close(context.WithoutCancel(ctx))) }()
	r := &seatsRun{
		Seats: s, db: db, name: eventPrefix + strconv.FormatInt(time.Now().UnixMilli(), 36),
		house: newHouse(s.Size, true),
	}
	r.report = SeatsReport{
		Bench: "seats", Clients: s.Clients, Rate: s.Rate, CPUs: runtime.NumCPU(), Seats: s.Size,
		Sections: len(r.house.sections), HoldSeconds: s.HoldSeconds, Followers: s.Followers,
	}
	if r.report.PostgreSQL, r.report.Fsync, err = db.about(ctx); err != nil {
		return SeatsReport{}, err
	}
	for _, step := range []func(context.Context) error{r.product, r.baseline, r.verify} {
		if err := step(ctx); err != nil {
			return SeatsReport{}, err
		}
	}
	return r.report, nil
}

// product measures the ledger, in all that was asked for.
func (r *seatsRun) product(ctx context.Context) (err error) {
	clients := r.Clients
	if r.Sellout {
		clients = max(clients, selloutBuyers)
	}
	if r.server, err = r.openServer(ctx, Product, r.Profile, clients); err != nil {
		return err
	}
	defer r.server.close()
	for _, step := range []func(context.Context) error{r.hot, r.alone, r.sellout} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	doubled, err := r.db.doubleHolds(ctx)
	if err != nil {
		return err
	}
	r.report.DoubleHolds += doubled
	r.report.RSSMB = r.server.peakMB()
	return r.server.close()
}

func (r *seatsRun) openServer(ctx context.Context, system System, profile string, clients int) (*server, error) {
	command := slices.Concat(r.Server, []string{"--system", string(system), "--profile", profile})
	return startServer(ctx, command, system, r.db.url, r.Stderr, clients)
}

// event names an event of this run.
func (r *seatsRun) event(what string) string { return r.name + "-" + what }

// verify recomputes every invariant of the ledger.
func (r *seatsRun) verify(ctx context.Context) (err error) {
	started := time.Now()
	r.report.Verified, r.report.Violations, err = verified(ctx, r.db.url)
	r.report.VerifySeconds = seconds(time.Since(started))
	return err
}

// bound is how long a measurement lasts, and warmUpBound a warm-up.
func (s *Seats) bound() load.Bound       { return load.Bound{For: s.Duration} }
func (s *Seats) warmUpBound() load.Bound { return load.Bound{For: min(warmUpTime, s.Duration/2)} }
