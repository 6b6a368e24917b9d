package sale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// readEvery is how often the availability is read and progress is told.
	readEvery = 100 * time.Millisecond
	// settleTimeout bounds the wait for the last overdue hold to be expired.
	settleTimeout = 10 * time.Second
)

// sale is one that is being played.
type sale struct {
	plan   Plan
	api    *api
	book   book
	keys   atomic.Int64
	begun  time.Time
	closes time.Time // nobody waits for longer

	mu       sync.Mutex // guards readings
	readings []availability
}

// Run plays a sale to its end and reports it. watch is told of the progress a few
// times a second, from one goroutine; it may be nil. An error says that the sale
// couldn't be played; what went wrong in it is in the report.
func Run(ctx context.Context, p Plan, watch func(Progress)) (Report, error) {
	if watch == nil {
		watch = func(Progress) {}
	}
	api, err := newAPI(p.URL)
	if err != nil {
		return Report{}, err
	}
	defer api.close()
	s := &sale{plan: p, api: api}
	if err := s.open(ctx); err != nil {
		return Report{}, err
	}
	watched, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watch(watched, watch) })
	s.rush(ctx) // from here on nobody buys any more
	took := time.Since(s.begun)
	err = s.settle(ctx)
	stop()
	watcher.Wait()
	if err != nil {
		return Report{}, err
	}
	s.book.audit(s.readings)
	return s.report(took), nil
}

// open creates the event; its sale opens a moment later.
func (s *sale) open(ctx context.Context) error {
	s.begun = time.Now()
	s.closes = s.begun.Add(s.plan.rush() + (holdSeconds+1)*time.Second)
	// Who comes before the opening is told when that is: part of every rush.
	spec := s.plan.spec(s.begun.Add(openAfter))
	got, _, err := s.api.call(ctx, "POST", "/v1/events", "create-"+s.plan.Event, spec)
	if err == nil && got.status != 201 {
		err = errors.New(got.String())
	}
	if err != nil {
		return fmt.Errorf("create the event: %w", err)
	}
	return nil
}

// rush lets the buyers in as they arrive and returns when all have gone.
func (s *sale) rush(ctx context.Context) {
	var inside sync.WaitGroup
	defer inside.Wait()
	for _, b := range s.plan.crowd() {
		if !s.waitUntil(ctx, s.begun.Add(b.arrives)) {
			return
		}
		inside.Go(func() { s.visit(ctx, b) })
	}
}

// settle waits until the last hold has ended and reads how each of them did.
func (s *sale) settle(ctx context.Context) error {
	last := s.book.lastDeadline()
	ctx, cancel := context.WithDeadline(ctx, last.Add(settleTimeout))
	defer cancel()
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		a, err := s.read(ctx)
		if err != nil {
			return fmt.Errorf("wait for the last holds to end: %w", err)
		}
		// A hold that ran out may count as held until somebody looks at the event.
		if a.held() == 0 && time.Now().After(last) {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%d tickets are still held, %v after the last hold ran out", a.held(), settleTimeout)
		}
	}
	return s.readEnds(ctx)
}

// readEnds reads every hold once more.
func (s *sale) readEnds(ctx context.Context) error {
	var readers sync.WaitGroup
	var next atomic.Int64
	failed := make(chan error, connections)
	for range connections {
		readers.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(s.book.receipts) {
					return
				}
				r := s.book.receipts[n]
				if err := s.api.read(ctx, "/v1/holds/"+r.hold.ID, &r.ended); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	readers.Wait()
	close(failed)
	return <-failed
}

// read reads the availability and keeps the reading for the audit.
func (s *sale) read(ctx context.Context) (availability, error) {
	var a availability
	err := s.api.read(ctx, s.path("/availability"), &a)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.readings = append(s.readings, a)
	}
	return a, err
}

// latest is the latest reading.
func (s *sale) latest() availability {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.readings) == 0 {
		return availability{}
	}
	return slices.MaxFunc(s.readings, func(x, y availability) int { return cmp.Compare(x.Version, y.Version) })
}

// watch reads the availability and tells the progress until ctx ends, and once
// after.
func (s *sale) watch(ctx context.Context, watch func(Progress)) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if _, err := s.read(ctx); err != nil && ctx.Err() == nil {
			s.book.surprise("the availability couldn't be read: %v", err)
		}
		watch(s.progress())
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	watch(s.progress())
}

// path is a path below the event.
func (s *sale) path(rest string) string { return "/v1/events/" + s.plan.Event + rest }

// newKey makes an idempotency key that nobody else uses.
func (s *sale) newKey(customer string) string {
	return fmt.Sprintf("%s.%d", customer, s.keys.Add(1))
}

// waitUntil waits for a time; false when that's after the sale, or ctx ends first.
func (s *sale) waitUntil(ctx context.Context, t time.Time) bool {
	if t.After(s.closes) {
		return false
	}
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
