package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// The parts of a measurement of the publisher, in their order.
const (
	SteadyPart  = "steady"  // an even load with publisher and consumers
	CostPart    = "cost"    // what they take from a load that never rests
	BacklogPart = "backlog" // entries that wait, and nothing else to do
	LossPart    = "loss"    // the stream is gone
)

// RelayParts are all of them.
func RelayParts() []string { return []string{SteadyPart, CostPart, BacklogPart, LossPart} }

// Relay says how to measure the publisher: what it does, and what it costs.
type Relay struct {
	DatabaseURL string        // of a database for this alone; "" for a private server
	Parts       []string      // of RelayParts
	Entries     int64         // of the backlog
	Rate        float64       // holds a second of the even load
	Clients     int           // connections, each with one request under way
	Duration    time.Duration // of the even load, and of each side of the cost over all rounds
	Rounds      int           // in which the sides take turns
	SyncAlways  bool          // the stream flushes before it acknowledges

	Server   []string            // command line of a child that calls Serve
	Profile  string              // file for the CPU profile of what publishes; "" for none
	Stderr   io.Writer           // of the children
	Progress func(RelayProgress) // called twice a second or so; nil for none
}

// RelayProgress is how far a part is.
type RelayProgress struct {
	Doing   string
	Done    int64 // entries or holds
	Of      int64 // 0 when it ends by time
	Elapsed time.Duration
	Long    time.Duration // when it ends by time
}

// DefaultRelay is a run with every default filled in.
func DefaultRelay() Relay {
	return Relay{
		Parts: RelayParts(), Entries: 1_000_000, Rate: 2000, Clients: 64, Duration: 30 * time.Second, Rounds: 6,
		Stderr: io.Discard,
	}
}

// Validate refuses what can't be run, naming the flag.
func (o *Relay) Validate() error {
	switch {
	case o.Entries < 1 || o.Entries > maxQuantity:
		return fmt.Errorf("--entries must be 1 to %d", maxQuantity)
	case o.Rate <= 0 || o.Rate > maxRate:
		return fmt.Errorf("--rate must be more than 0 and at most %d", maxRate)
	case o.Clients < 1 || o.Clients > maxClients:
		return fmt.Errorf("--clients must be 1 to %d", maxClients)
	case o.Duration < minDuration || o.Duration > maxDuration:
		return fmt.Errorf("--duration must be %s to %s", minDuration, maxDuration)
	case o.Rounds < 1 || o.Rounds > maxRounds:
		return fmt.Errorf("--rounds must be 1 to %d", maxRounds)
	case len(o.Parts) == 0:
		return errors.New("--parts must name one at least")
	}
	for _, part := range o.Parts {
		if !slices.Contains(RelayParts(), part) {
			return fmt.Errorf("--parts: %q is none of %s", part, strings.Join(RelayParts(), ", "))
		}
	}
	return nil
}

// relayRun is one run of the benchmark.
type relayRun struct {
	Relay
	db      *database
	bus     *relayBus
	name    string // unique in the database: the start of event names and keys
	backlog string // the event with the backlog; "" until there's one
	report  RelayReport
}

// Run measures what was asked for, and then verifies the ledger. A report that isn't OK
// comes without an error; an error says that the run came to no end.
func (o Relay) Run(ctx context.Context) (report RelayReport, err error) {
	if err := o.Validate(); err != nil {
		return RelayReport{}, err
	}
	db, err := openDatabase(ctx, o.DatabaseURL)
	if err != nil {
		return RelayReport{}, err
	}
	defer func() { err = errors.Join(err, db.close(context.WithoutCancel(ctx))) }()
	bus, err := newRelayBus(ctx, o.SyncAlways)
	if err != nil {
		return RelayReport{}, err
	}
	defer func() { err = errors.Join(err, bus.remove(context.WithoutCancel(ctx))) }()
	r := &relayRun{Relay: o, db: db, bus: bus, name: eventPrefix + strconv.FormatInt(time.Now().UnixMilli(), 36)}
	r.report = RelayReport{
		Bench: "relay", Clients: o.Clients, Rounds: o.Rounds, DurationSeconds: seconds(o.Duration),
		SyncAlways: o.SyncAlways, CPUs: runtime.NumCPU(),
	}
	if r.report.PostgreSQL, r.report.Fsync, err = db.about(ctx); err != nil {
		return RelayReport{}, err
	}
	// The backlog is last of those that make entries: whoever publishes after it has it all
	// to look through.
	for _, step := range []struct {
		part string
		do   func(context.Context) error
	}{{SteadyPart, r.steady}, {CostPart, r.cost}, {BacklogPart, r.publishBacklog}, {LossPart, r.lose}} {
		if !slices.Contains(o.Parts, step.part) {
			continue
		}
		if err := step.do(ctx); err != nil {
			return RelayReport{}, fmt.Errorf("%s: %w", step.part, err)
		}
	}
	return r.report, r.verify(ctx)
}

// event names an event of this run.
func (r *relayRun) event(what string) string { return r.name + "-" + what }

// verify recomputes every invariant of the ledger.
func (r *relayRun) verify(ctx context.Context) (err error) {
	started := time.Now()
	r.report.Verified, r.report.Violations, err = verified(ctx, r.db.url)
	r.report.VerifySeconds = seconds(time.Since(started))
	return err
}

// watch reports progress until the returned function is called.
func (r *relayRun) watch(doing string, of int64, long time.Duration, done func() int64) (stop func()) {
	if r.Progress == nil {
		return func() {}
	}
	started := time.Now()
	return tick(func() {
		r.Progress(RelayProgress{Doing: doing, Done: done(), Of: of, Elapsed: time.Since(started), Long: long})
	})
}

// hold asks for holds of an event, each for another customer, at a rate or (0) without a
// rest. The phase is unique in the run.
func (r *relayRun) hold(ctx context.Context, t target, event, phase string, rate float64, clients int, b load.Bound) (*load.Recorder, load.Pace) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	to := load.NewRecorder()
	defer r.watch(phase, b.Turns, b.For, func() int64 { return to.Count(outcomeHeld) })()
	turn := func(client int, n int64, due time.Time) {
		customer := phase + "-" + strconv.FormatInt(n, 10)
		outcome, err := t.place(context.WithoutCancel(ctx), client,
			ask{event: r.event(event), key: r.name + "-" + customer, customer: customer, quantity: 1})
		if err == nil && outcome != outcomeHeld {
			err = fmt.Errorf("refused: %s", outcome) // there are tickets for all
		}
		if err == nil {
			to.Answered(outcome, time.Since(due))
		} else if to.Failed(err.Error()) >= maxFailed {
			giveUp()
		}
	}
	if rate > 0 {
		return to, load.Open(ctx, clients, rate, b, turn)
	}
	took := load.Closed(ctx, clients, b, func(client int, n int64) { turn(client, n, time.Now()) })
	return to, load.Pace{Took: took}
}
