package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lateAfter is how far behind its time a turn of an open loop may begin
	// without being called late: timers are a millisecond or two off on a busy machine.
	lateAfter = 5 * time.Millisecond
	// dropAfter is when a turn that no client was free for isn't begun any more.
	dropAfter = time.Second
)

// Bound ends a loop, by whichever comes first; 0 is no bound of that sort. A
// loop without any does nothing.
type Bound struct {
	Turns int64
	For   time.Duration
}

func (b Bound) allows(turn int64, elapsed time.Duration) bool {
	return b != Bound{} && (b.Turns == 0 || turn < b.Turns) && (b.For == 0 || elapsed < b.For)
}

// Closed runs turns, numbered from 0, on so many clients, each of which takes its
// next turn when its last has ended. It returns how long that took, when the last
// turn has ended. A ctx that ends stops the loop.
func Closed(ctx context.Context, clients int, b Bound, turn func(client int, n int64)) time.Duration {
	started := time.Now()
	var next atomic.Int64
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1) - 1
				if !b.allows(n, time.Since(started)) {
					return
				}
				turn(client, n)
			}
		})
	}
	all.Wait()
	return time.Since(started)
}

// Pace tells how an open loop kept its pace.
type Pace struct {
	Begun   int64
	Late    int64 // begun more than 5 ms behind their time
	Dropped int64 // not begun at all: a second behind their time nobody was free
	Took    time.Duration
}

// Open runs turns at so many a second, evenly, on whichever of the clients is
// free. Each turn is told when it was due: a latency that counts from then hides
// no wait. It needs more clients than turns that are under way at a time, or
// turns begin late.
func Open(ctx context.Context, clients int, rate float64, b Bound, turn func(client int, n int64, due time.Time)) Pace {
	if rate <= 0 {
		return Pace{}
	}
	started := time.Now()
	var next, begun, late, dropped atomic.Int64
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			timer := time.NewTimer(0)
			defer timer.Stop()
			for ctx.Err() == nil {
				n := next.Add(1) - 1
				after := time.Duration(float64(n) / rate * float64(time.Second))
				if !b.allows(n, after) {
					return
				}
				due := started.Add(after)
				if !waitUntil(ctx, timer, due) {
					return
				}
				switch behind := time.Since(due); {
				case behind > dropAfter:
					dropped.Add(1)
					continue
				case behind > lateAfter:
					late.Add(1)
				}
				begun.Add(1)
				turn(client, n, due)
			}
		})
	}
	all.Wait()
	return Pace{begun.Load(), late.Load(), dropped.Load(), time.Since(started)}
}

// waitUntil waits for a time; false when ctx ends first.
func waitUntil(ctx context.Context, timer *time.Timer, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return true
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
