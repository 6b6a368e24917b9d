package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// The events of a run.
const (
	wholeEvent = "whole"
	splitEvent = "split"
)

// lanesMeasured is what came back on one way, over all rounds.
type lanesMeasured struct {
	system   string
	event    string // with the run's name
	way      way
	recorder *load.Recorder
	took     time.Duration
	waits    []lockWaits // by process
}

func (m *lanesMeasured) held() int64        { return m.recorder.Count(outcomeHeld) }
func (m *lanesMeasured) holdsPerS() float64 { return float64(m.held()) / m.took.Seconds() }

// compare loads an event that isn't split and one that is by turns, so that whatever else
// changes meanwhile is the same for both: the one that isn't through all processes, which
// wait for each other, and through one, which has the lock to itself.
func (r *lanesRun) compare(ctx context.Context) error {
	if _, err := r.fleet.open(ctx, r.event(wholeEvent), maxQuantity, ticketPrice, 1); err != nil {
		return err
	}
	layout, err := r.fleet.open(ctx, r.event(splitEvent), maxQuantity, ticketPrice, r.Split)
	if err != nil {
		return err
	}
	ways := []*lanesMeasured{
		{system: "one lane", event: r.event(wholeEvent), way: r.anywhere},
		{system: "one lane, one process", event: r.event(wholeEvent), way: toFirst},
		{system: strconv.Itoa(r.Split) + " lanes", event: r.event(splitEvent), way: r.byLane(layout)},
	}
	split := ways[2]
	auditor := newAuditor(r.db, split.event, maxQuantity)
	for _, m := range ways {
		m.recorder, m.waits = load.NewRecorder(), make([]lockWaits, r.Processes)
		if err := r.warmUp(ctx, m); err != nil {
			return err
		}
	}
	for round := range r.Rounds {
		for _, m := range ways {
			stop := func() error { return nil }
			if m == split {
				stop = auditor.watch(ctx, pollEvery)
			}
			err := r.round(ctx, m, round)
			if stopErr := stop(); err == nil {
				err = stopErr
			}
			if err != nil {
				return err
			}
		}
	}
	r.report.take(ways)
	r.report.audited(auditor)
	return nil
}

const (
	// ticketPrice is what nobody pays here: holds are all there is.
	ticketPrice = 5000
	// pollEvery is how often the buckets are looked at beside the load.
	pollEvery = 100 * time.Millisecond
)

// warmUp loads without measuring.
func (r *lanesRun) warmUp(ctx context.Context, m *lanesMeasured) error {
	recorder := load.NewRecorder()
	r.load(ctx, m, recorder, "warm-"+m.key(), min(warmUpTime, r.Duration/2))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if texts := recorder.FailureTexts(); len(texts) > 0 {
		return fmt.Errorf("warm-up: %s", strings.Join(texts, "; "))
	}
	return nil
}

// key tells the ways apart in keys and customers' names.
func (m *lanesMeasured) key() string { return strings.NewReplacer(" ", "-", ",", "").Replace(m.system) }

// round is one turn of one way. It begins without dirty pages.
func (r *lanesRun) round(ctx context.Context, m *lanesMeasured, round int) error {
	if err := r.db.checkpoint(ctx); err != nil {
		return err
	}
	before, err := r.fleet.lockWaits(ctx)
	if err != nil {
		return err
	}
	m.took += r.load(ctx, m, m.recorder, m.key()+"-"+strconv.Itoa(round), r.Duration/time.Duration(r.Rounds))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	after, err := r.fleet.lockWaits(ctx)
	for p := range after {
		m.waits[p].add(after[p], before[p])
	}
	return err
}

// load places holds, each of another customer, for a time. The phase is unique in the run.
func (r *lanesRun) load(ctx context.Context, m *lanesMeasured, to *load.Recorder, phase string, long time.Duration) time.Duration {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	started := time.Now()
	if r.Progress != nil {
		defer tick(func() {
			r.Progress(Progress{m.system, to.Count(outcomeHeld), 0, to.Failures(), time.Since(started)})
		})()
	}
	return load.Closed(ctx, r.Clients, load.Bound{For: long}, func(client int, n int64) {
		customer := phase + "-" + strconv.FormatInt(n, 10)
		a := ask{event: m.event, key: r.name + "-" + customer, customer: customer, quantity: 1}
		started := time.Now()
		outcome, err := r.fleet.processes[m.way(customer, n)].place(context.WithoutCancel(ctx), client, a)
		if err == nil && outcome != outcomeHeld {
			err = fmt.Errorf("refused: %s", outcome) // there are tickets for all
		}
		if err == nil {
			to.Answered(outcome, time.Since(started))
		} else if to.Failed(err.Error()) >= maxFailed {
			giveUp()
		}
	})
}
