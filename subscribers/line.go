package subscribers

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/sony/gobreaker/v2"
)

const (
	maxCalls     = 256 // at once; each may hold a connection and an entry
	maxCallsEach = 8   // to one subscriber
	maxCallsSlow = 2   // to one that's slow
	maxSlow      = 128 // to all that are slow
	maxUnproven  = 192 // to these and those that aren't known yet: the rest is for who is quick
	// quickCall is how long a call may take to count as quick. One whose body had to be cut
	// off took longer.
	quickCall = bodyTimeout
	// maxFailures opens a subscriber's breaker: so many in a row.
	maxFailures = 5
	// maxRest bounds how long a subscriber can have all its deliveries put off.
	maxRest = 5 * time.Minute
)

// pace is what a subscriber's last call says of it.
type pace int

const (
	unknown pace = iota
	slow
	quick
)

// line is what a worker knows of a subscriber. The worker's mutex guards it.
type line struct {
	breaker  *gobreaker.TwoStepCircuitBreaker[struct{}]
	pace     pace
	window   int // so many calls at once
	underway int
	begun    time.Time // the last call
	rest     time.Time // nothing is sent before
	warned   time.Time // of a fault of ours
}

// line gives what's known of a subscriber. The mutex is held.
func (w *worker) line(id uuid.UUID) *line {
	l := w.lines[id]
	if l == nil {
		l = &line{window: 1}
		l.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			MaxRequests: 1, Timeout: w.Cooldown,
			ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= maxFailures },
			IsExcluded:   func(err error) bool { return err == errUnknown },
			IsSuccessful: func(err error) bool { return err == nil },
		})
		w.lines[id] = l
	}
	return l
}

// share says how many calls to each subscriber may begin now. Where there isn't room for
// all, it goes to those with the fewest calls under way, and of these to who has waited
// longest. Those that are slow have only a part of it, whatever they answer.
func (w *worker) share(targets []target) (ids []uuid.UUID, rooms []int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := map[pace]int{unknown: maxUnproven, slow: maxSlow, quick: maxCalls}
	take := func(l *line, n int) {
		left[quick] -= n
		if l.pace != quick {
			left[unknown] -= n
		}
		if l.pace == slow {
			left[slow] -= n
		}
	}
	for _, l := range w.lines {
		take(l, l.underway)
	}
	slices.SortStableFunc(targets, func(a, b target) int {
		la, lb := w.line(a.id), w.line(b.id)
		return cmp.Or(cmp.Compare(la.underway, lb.underway), la.begun.Compare(lb.begun))
	})
	for _, t := range targets {
		l := w.line(t.id)
		n := min(l.room(), left[quick], left[l.pace])
		if l.pace == slow {
			n = min(n, left[unknown])
		}
		if n > 0 {
			ids, rooms = append(ids, t.id), append(rooms, int32(n))
			take(l, n)
		}
	}
	return ids, rooms
}

// room is how many calls to the subscriber may begin now, as far as it depends on it alone.
func (l *line) room() int {
	switch state := l.breaker.State(); {
	case state == gobreaker.StateOpen, time.Now().Before(l.rest):
		return 0
	case state == gobreaker.StateHalfOpen:
		return max(1-l.underway, 0)
	}
	return max(l.window-l.underway, 0)
}

// ended opens or closes a subscriber's window by what came of a call, and how soon.
func (w *worker) ended(l *line, done func(error), a answer, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	done(err)
	l.underway--
	if err == errUnknown {
		return
	}
	l.pace = quick
	if a.took >= quickCall {
		l.pace = slow
	}
	switch {
	case err == nil && l.pace == quick:
		l.window = min(l.window+1, maxCallsEach)
	case err == nil:
		l.window = maxCallsSlow
	default:
		l.window = 1
		if a.retryAfter > 0 {
			l.rest = time.Now().Add(min(a.retryAfter, maxRest))
		}
	}
}

// warn logs a fault of ours that concerns a subscription, now and then.
func (w *worker) warn(id uuid.UUID, text string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.line(id); time.Since(l.warned) > maxRest {
		w.Log.Error(text, slog.String("subscription_id", id.String()), slog.Any("error", err))
		l.warned = time.Now()
	}
}
