package load

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// turns notes which turns ran; the clients share it.
type turns struct {
	mu   sync.Mutex
	seen map[int64]int
}

func (t *turns) note(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = make(map[int64]int)
	}
	t.seen[n]++
}

// wantEach fails unless the turns 0 to n-1 ran once each.
func (t *turns) wantEach(tb testing.TB, n int64) {
	tb.Helper()
	for i := range n {
		if t.seen[i] != 1 {
			tb.Errorf("turn %d ran %d times", i, t.seen[i])
		}
	}
	if len(t.seen) != int(n) {
		tb.Errorf("%d turns ran, want %d", len(t.seen), n)
	}
}

func TestClosedByNumber(t *testing.T) {
	var ran turns
	Closed(t.Context(), 7, Bound{Turns: 100}, func(_ int, n int64) { ran.note(n) })
	ran.wantEach(t, 100)
}

func TestClosedByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran turns
		took := Closed(t.Context(), 3, Bound{For: time.Second}, func(_ int, n int64) {
			ran.note(n)
			time.Sleep(300 * time.Millisecond)
		})
		if took != 1200*time.Millisecond { // what has begun is finished
			t.Errorf("took %s", took)
		}
		ran.wantEach(t, 12)
	})
}

func TestClosedEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var ran turns
	Closed(ctx, 1, Bound{Turns: 10}, func(_ int, n int64) {
		ran.note(n)
		if n == 2 {
			cancel()
		}
	})
	ran.wantEach(t, 3)
}

func TestLoopsWithoutBoundDoNothing(t *testing.T) {
	Closed(t.Context(), 2, Bound{}, func(int, int64) { t.Error("a turn ran") })
	Open(t.Context(), 2, 100, Bound{}, func(int, int64, time.Time) { t.Error("a turn ran") })
	Open(t.Context(), 2, 0, Bound{Turns: 1}, func(int, int64, time.Time) { t.Error("a turn ran") })
}

func TestOpenKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		var ran turns
		pace := Open(t.Context(), 4, 100, Bound{For: time.Second}, func(_ int, n int64, due time.Time) {
			ran.note(n)
			if want := started.Add(time.Duration(n) * 10 * time.Millisecond); !due.Equal(want) || time.Now() != due {
				t.Errorf("turn %d began at %s, was due at %s, want %s", n, time.Since(started), due.Sub(started), want.Sub(started))
			}
			time.Sleep(30 * time.Millisecond)
		})
		ran.wantEach(t, 100)
		if pace.Begun != 100 || pace.Late != 0 || pace.Dropped != 0 {
			t.Errorf("%+v", pace)
		}
	})
}

// A server that stands still must show in the latencies of all who waited for it,
// not of the one request that it stood still on.
func TestOpenCountsFromTheTimeDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder()
		pace := Open(t.Context(), 1, 100, Bound{For: time.Second}, func(_ int, n int64, due time.Time) {
			if n == 0 {
				time.Sleep(500 * time.Millisecond)
			}
			r.Answered("ok", time.Since(due))
		})
		if pace.Late != 49 || pace.Dropped != 0 {
			t.Errorf("%+v", pace)
		}
		if p := r.Latency(75); p < 200*time.Millisecond || p > 300*time.Millisecond {
			t.Errorf("p75 is %s", p)
		}
	})
}

func TestOpenDropsWhatWaitsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := Open(t.Context(), 1, 10, Bound{For: 10 * time.Second}, func(_ int, n int64, _ time.Time) {
			if n == 0 {
				time.Sleep(5050 * time.Millisecond)
			}
		})
		if pace.Begun != 60 || pace.Dropped != 40 || pace.Took != 9900*time.Millisecond {
			t.Errorf("%+v", pace)
		}
	})
}
