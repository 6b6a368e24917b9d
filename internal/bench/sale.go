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

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/ledger"
)

// Bounds of what may be asked of a sale, beside those of HotTier.
const (
	maxReaders   = 1024
	maxAuthorize = 10 * time.Second
	maxSettle    = time.Hour
	maxPurchases = 10_000_000 // all orders are in memory at the end
)

// Sale says how to load one event with complete purchases: a hold, its payment, and
// looks at the order until the money is captured.
type Sale struct {
	DatabaseURL string        // of a database for this alone; "" for a private server
	Clients     int           // connections, each with one purchase under way
	Readers     int           // connections that only read the status of recent orders
	Duration    time.Duration // of the measurement
	Purchases   int64         // measure so many purchases; 0: by Duration
	Rate        float64       // purchases a second whatever comes back; 0: clients never rest
	Quantity    int64         // tickets of the event
	PerHold     int64         // tickets of a purchase
	Authorize   time.Duration // that the provider takes for an authorization
	Faults      float64       // share of what goes wrong at the provider, 0 to 1
	Settle      time.Duration // the longest wait at the end for outcomes that aren't known

	Server   []string           // command line of a child that calls Serve
	Profile  string             // file for the CPU profile of the service; "" for none
	Stderr   io.Writer          // of the child
	Progress func(SaleProgress) // called twice a second or so; nil for none
}

// SaleProgress is how far a sale is.
type SaleProgress struct {
	Phase    string
	Captured int64
	Declined int64
	Open     int64 // left to be settled
	Failed   int64
	Elapsed  time.Duration
	Limit    time.Duration // of a wait; 0 for what isn't one
}

// DefaultSale is a run with every default filled in.
func DefaultSale() Sale {
	return Sale{
		Clients: 128, Readers: 8, Duration: 10 * time.Second, Quantity: maxQuantity, PerHold: 1,
		Authorize: 20 * time.Millisecond, Settle: 4 * time.Minute, Stderr: io.Discard,
	}
}

// Validate refuses what can't be run, naming the flag.
func (s *Sale) Validate() error {
	switch {
	case s.Clients < 1 || s.Clients > maxClients:
		return fmt.Errorf("--clients must be 1 to %d", maxClients)
	case s.Readers < 0 || s.Readers > maxReaders:
		return fmt.Errorf("--readers must be 0 to %d", maxReaders)
	case s.Duration < minDuration || s.Duration > maxDuration:
		return fmt.Errorf("--duration must be %s to %s", minDuration, maxDuration)
	case s.Purchases < 0 || s.Purchases > maxPurchases:
		return fmt.Errorf("--purchases must be 0 to %d", maxPurchases)
	case s.Rate < 0 || s.Rate > maxRate:
		return fmt.Errorf("--rate must be 0 to %d", maxRate)
	case s.Quantity < 1 || s.Quantity > maxQuantity:
		return fmt.Errorf("--quantity must be 1 to %d", maxQuantity)
	case s.PerHold < 1 || s.PerHold > 1000:
		return fmt.Errorf("--per-hold must be 1 to 1000")
	case s.Authorize < 0 || s.Authorize > maxAuthorize:
		return fmt.Errorf("--authorize-ms must be 0 to %d", maxAuthorize.Milliseconds())
	case !(s.Faults >= 0 && s.Faults <= 1):
		return fmt.Errorf("--faults must be 0 to 1")
	case s.Settle < 0 || s.Settle > maxSettle:
		return fmt.Errorf("--settle must be 0 to %s", maxSettle)
	}
	return nil
}

// saleRun is one run of the benchmark.
type saleRun struct {
	Sale
	db     *database
	server *server
	name   string // unique in the database: the event's, and the start of keys
	open   openOrders
	recent recent
	report SaleReport
}

// Run measures purchases, waits until their outcomes are known, counts them, and then
// verifies the ledger. A report that isn't OK comes without an error; an error says
// that the run came to no end.
func (s Sale) Run(ctx context.Context) (report SaleReport, err error) {
	if err := s.Validate(); err != nil {
		return SaleReport{}, err
	}
	db, err := openDatabase(ctx, s.DatabaseURL)
	if err != nil {
		return SaleReport{}, err
	}
	defer func() { err = errors.Join(err, db.close(context.WithoutCancel(ctx))) }()
	r := &saleRun{Sale: s, db: db, name: eventPrefix + strconv.FormatInt(time.Now().UnixMilli(), 36) + "-sale"}
	r.report = SaleReport{
		Bench: "sale", Clients: s.Clients, Readers: s.Readers, Rate: s.Rate, Faults: s.Faults, CPUs: runtime.NumCPU(),
		AuthorizeMS: float64(s.Authorize.Milliseconds()),
	}
	if r.report.PostgreSQL, r.report.Fsync, err = db.about(ctx); err != nil {
		return SaleReport{}, err
	}
	command := slices.Concat(s.Server, []string{"--system", string(Selling), "--profile", s.Profile})
	if r.server, err = startServer(ctx, command, Selling, db.url, s.Stderr, s.Clients+s.Readers); err != nil {
		return SaleReport{}, err
	}
	defer r.server.close()
	for _, step := range []func(context.Context) error{r.prepare, r.sell, r.settle, r.count, r.stop, r.verify} {
		if err := step(ctx); err != nil {
			return SaleReport{}, err
		}
	}
	return r.report, nil
}

// warmEvent names the event whose tickets the warm-up buys.
func (r *saleRun) warmEvent() string { return r.name + "-warm" }

// prepare creates the events, tells the provider how to behave, and warms up.
func (r *saleRun) prepare(ctx context.Context) error {
	if err := r.create(ctx, r.name, r.Quantity); err != nil {
		return err
	}
	if err := r.create(ctx, r.warmEvent(), maxQuantity); err != nil {
		return err
	}
	if err := r.control(ctx, 0); err != nil { // the warm-up has no faults
		return err
	}
	warm := newSaleRecorders()
	load.Closed(ctx, r.Clients, load.Bound{For: min(warmUpTime, r.Duration/2)}, func(client int, n int64) {
		r.purchase(ctx, warm, client, r.warmEvent(), n, time.Now())
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if texts := warm.failures(); len(texts) > 0 {
		return fmt.Errorf("warm-up: %v", texts)
	}
	if err := r.control(ctx, r.Faults); err != nil {
		return err
	}
	return r.db.checkpoint(ctx)
}

func (r *saleRun) create(ctx context.Context, event string, quantity int64) error {
	usd := func(cents ledger.Amount) buckets.Money { return buckets.Money{Amount: cents, Currency: "USD"} }
	err := r.server.create(ctx, buckets.Spec{
		Event: event, Name: "Sale", Currency: "USD", HoldSeconds: 24 * 3600, // outlasts the run
		Tiers: []buckets.TierSpec{{
			Tier: tier, Quantity: ledger.Amount(quantity), Price: usd(5000), Fee: new(usd(250)),
		}},
	})
	if err != nil {
		return fmt.Errorf("create event: %w", err)
	}
	return nil
}

// stop ends the service, so that nothing changes any more.
func (r *saleRun) stop(context.Context) error {
	r.report.RSSMB = r.server.peakMB()
	return r.server.close()
}

// verify recomputes every invariant of the ledger.
func (r *saleRun) verify(ctx context.Context) (err error) {
	started := time.Now()
	r.report.Verified, r.report.Violations, err = verified(ctx, r.db.url)
	r.report.VerifySeconds = seconds(time.Since(started))
	return err
}
