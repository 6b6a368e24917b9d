package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

const (
	// warmUpTime lets plans be cached and pages be allocated before it counts; a
	// short measurement has a shorter one.
	warmUpTime = 2 * time.Second
	// maxFailed ends a measurement that goes wrong all the time.
	maxFailed = 1000
	// soldOutQuantity is small, so that the warm-up takes it all.
	soldOutQuantity = 100
	progressEvery   = 500 * time.Millisecond
)

// outcomeHeld is the outcome of a request that got its hold; every other outcome
// is the code of a refusal.
const outcomeHeld = "held"

// measurement is what a system did in one time of load.
type measurement struct {
	system   string
	recorder *load.Recorder
	pace     load.Pace
	// The rates of the first and the last tenth, when the number was given.
	startPerS, endPerS float64
}

func (m *measurement) held() int64 { return m.recorder.Count(outcomeHeld) }

func (m *measurement) refused() int64 {
	var n int64
	for outcome, count := range m.recorder.Outcomes() {
		if outcome != outcomeHeld {
			n += count
		}
	}
	return n
}

func (m *measurement) holdsPerS() float64   { return float64(m.held()) / m.pace.Took.Seconds() }
func (m *measurement) refusedPerS() float64 { return float64(m.refused()) / m.pace.Took.Seconds() }

// warmUp loads a system without measuring, and then evens out what differs
// between systems: dirty pages.
func (r *run) warmUp(ctx context.Context, t target, event, phase string) error {
	recorder := load.NewRecorder()
	bound := load.Bound{For: min(warmUpTime, r.Duration/2)}
	load.Closed(ctx, r.Clients, bound, func(client int, n int64) {
		r.turn(ctx, t, recorder, client, r.ask(event, phase, n), time.Now())
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if texts := recorder.FailureTexts(); len(texts) > 0 {
		return fmt.Errorf("warm-up: %s", strings.Join(texts, "; "))
	}
	r.held += recorder.Count(outcomeHeld)
	return r.db.checkpoint(ctx)
}

// measure loads a system and keeps what comes back.
func (r *run) measure(ctx context.Context, t target, system, event string) *measurement {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	m := &measurement{system: system, recorder: load.NewRecorder()}
	tenth := max(1, r.Holds/10)
	started := time.Now()
	var first, last atomic.Int64 // nanoseconds: when the first tenth ended, when the last began
	turn := func(client int, n int64, due time.Time) {
		so := r.turn(ctx, t, m.recorder, client, r.ask(event, "run", n), due)
		if so.failed >= maxFailed {
			giveUp()
		}
		switch so.held {
		case tenth:
			first.Store(int64(time.Since(started)))
		case r.Holds - tenth:
			last.Store(int64(time.Since(started)))
		}
	}
	stop := r.watch(m, started)
	if r.Rate > 0 {
		m.pace = load.Open(ctx, r.Clients, r.Rate, r.bound(), turn)
	} else {
		m.pace.Took = load.Closed(ctx, r.Clients, r.bound(), func(client int, n int64) {
			turn(client, n, time.Now())
		})
	}
	stop()
	if r.Holds > 0 && m.held() == r.Holds {
		m.startPerS = float64(tenth) / time.Duration(first.Load()).Seconds()
		m.endPerS = float64(tenth) / (m.pace.Took - time.Duration(last.Load())).Seconds()
	}
	return m
}

// count is where a recorder stands after a turn: the number of the hold, or of
// the failure, that the turn brought.
type count struct{ held, failed int64 }

// turn places one hold and records what came of it. One that has begun is waited
// for even when ctx ends, so that the system isn't left with broken connections.
func (r *run) turn(ctx context.Context, t target, to *load.Recorder, client int, a ask, due time.Time) count {
	outcome, err := t.place(context.WithoutCancel(ctx), client, a)
	switch {
	case err != nil:
		return count{failed: to.Failed(err.Error())}
	case outcome == outcomeHeld:
		return count{held: to.Answered(outcome, time.Since(due))}
	}
	to.Answered(outcome, time.Since(due))
	return count{}
}

// ask is one request for a hold.
type ask struct {
	event    string
	key      string
	customer string
	quantity int64
}

// ask makes the n-th request of a phase; the same for the same seed.
func (r *run) ask(event, phase string, n int64) ask {
	number := strconv.FormatInt(n, 10)
	a := ask{event: r.event(event), key: r.name + "-" + phase + "-" + number, quantity: r.PerHold}
	if r.Customers == 0 {
		a.customer = phase + "-" + number
	} else {
		a.customer = "c-" + strconv.FormatUint(mix(r.Seed+uint64(n))%uint64(r.Customers), 10)
	}
	return a
}

// mix scatters a number (splitmix64), so that neighbours are different customers.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// watch reports progress until the returned function is called.
func (r *run) watch(m *measurement, started time.Time) (stop func()) {
	if r.Progress == nil {
		return func() {}
	}
	return tick(func() {
		r.Progress(Progress{m.system, m.held(), m.refused(), m.recorder.Failures(), time.Since(started)})
	})
}

// tick calls f again and again until the returned function is called; it has returned by
// then.
func tick(f func()) (stop func()) {
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				f()
			}
		}
	})
	return func() { close(done); watcher.Wait() }
}
