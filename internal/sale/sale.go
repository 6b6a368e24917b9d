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

	"github.com/tierledger/tierledger/internal/wait"
)

const (
	// readEvery is how often the availability is read and progress is told.
	readEvery = 100 * time.Millisecond
	// restoreTimeout bounds the end of a sale that was interrupted.
	restoreTimeout = 5 * time.Second
)

// sale is one that is being played.
type sale struct {
	plan   Plan
	api    *api
	book   book
	keys   atomic.Int64
	begun  time.Time
	closes time.Time // nobody waits for longer

	gallery *gallery // nil: there are no assigned seats

	mu       sync.Mutex // guards readings and due
	readings []availability
	due      time.Time // when the last order that's waited for is due; zero: none is
}

// Run plays a sale to its end and reports it, on a store that has no other orders: the
// provider's report is about all of them. watch is told of the progress a few times a
// second, by one goroutine at a time; it may be nil. An error says that the sale
// couldn't be played; what went wrong in it is in the report.
func Run(ctx context.Context, p Plan, watch func(Progress)) (report Report, err error) {
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
	if err := s.openGallery(ctx); err != nil {
		return Report{}, err
	}
	defer s.gallery.leave()
	before, err := s.control(ctx)
	if err != nil {
		return Report{}, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
		defer cancel()
		err = errors.Join(err, s.configure(ctx, before))
	}()
	took, err := s.play(ctx, watch)
	if err != nil {
		return Report{}, err
	}
	if err := s.readEnds(ctx); err != nil {
		return Report{}, err
	}
	money, err := s.money(ctx)
	if err != nil {
		return Report{}, err
	}
	s.book.audit(s.readings)
	s.auditMaps()
	report = s.report(took, money)
	watch(report.Progress)
	return report, nil
}

// play lets the buyers in and waits until everything is over that can be waited for.
// The last reading is taken before it returns.
func (s *sale) play(ctx context.Context, watch func(Progress)) (took time.Duration, err error) {
	watched, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watch(watched, watch) })
	defer watcher.Wait()
	defer stop()
	s.rush(ctx) // from here on nobody buys any more
	took = time.Since(s.begun)
	if err := s.finish(ctx); err != nil {
		return took, err
	}
	if err := s.settle(ctx); err != nil {
		return took, err
	}
	return took, s.gallery.close(ctx)
}

// open creates the event; its sale opens a moment later, when its chart is loaded.
func (s *sale) open(ctx context.Context) error {
	s.begun = time.Now().Add(s.plan.loading())
	s.closes = s.begun.Add(s.plan.rush() + (holdSeconds+1)*time.Second)
	// Who comes before the opening is told when that is: part of every rush.
	spec := s.plan.spec(s.begun.Add(openAfter), s.plan.house())
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

// readEnds reads every hold once more.
func (s *sale) readEnds(ctx context.Context) error {
	return each(s.book.receipts, func(r *receipt) error {
		return s.api.read(ctx, "/v1/holds/"+r.hold.ID, &r.ended)
	})
}

// each does something with every one of a list, on all connections, and gives the
// first error.
func each[T any](list []T, do func(T) error) error {
	var workers sync.WaitGroup
	var next atomic.Int64
	failed := make(chan error, connections)
	for range connections {
		workers.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(list) {
					return
				}
				if err := do(list[n]); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	workers.Wait()
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
	return wait.For(ctx, time.Until(t))
}
