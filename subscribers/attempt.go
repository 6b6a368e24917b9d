package subscribers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

const (
	// maxData bounds an entry's data in a webhook; larger data stays in the journal, as on
	// the bus.
	maxData = 256 << 10
	// maxError bounds what's kept of an error, in bytes.
	maxError = 500
	// recordFor is how long the recording of an attempt is tried; the lease lasts longer
	// than a call and this.
	recordFor   = 20 * time.Second
	recordPause = 250 * time.Millisecond
	// unmadePause is how long a webhook waits that couldn't be made.
	unmadePause = 10 * time.Second
)

// What a call says about its subscriber.
var (
	errFailed  = errors.New("subscribers: the call failed")
	errUnknown = errors.New("subscribers: nothing is known of the subscriber") // the breaker doesn't count it
	errLost    = errors.New("subscribers: the lease is another's")
)

// Outcome is what came of a call.
type Outcome string

// The outcomes of calls.
const (
	OutcomeDelivered Outcome = "delivered"
	OutcomeFailed    Outcome = "failed" // it's tried again
	OutcomeDead      Outcome = "dead"   // that was the last attempt
	OutcomeGone      Outcome = "gone"   // the subscriber wants no more, and is disabled
)

// Outcomes lists the outcomes.
func Outcomes() []Outcome {
	return []Outcome{OutcomeDelivered, OutcomeFailed, OutcomeDead, OutcomeGone}
}

// Sent tells an observer of a call that was recorded.
type Sent struct {
	Outcome Outcome
	Took    time.Duration
}

// inOrder sorts jobs as their queues are sorted. Those of one subscription that were leased
// together have been due in the order of their journal, if they haven't failed before.
func inOrder(jobs []job) {
	slices.SortFunc(jobs, func(a, b job) int {
		return cmp.Or(slices.Compare(a.subscription[:], b.subscription[:]), cmp.Compare(a.journal, b.journal), cmp.Compare(a.seq, b.seq))
	})
}

// deliver makes one attempt and records it. The error is nil after success, errFailed when
// the subscriber has failed, and errUnknown else.
func (w *worker) deliver(ctx context.Context, t target, j job) (answer, error) {
	e, at, err := w.event(ctx, j)
	if err != nil {
		w.Log.Warn("a webhook couldn't be made", append(j.attributes(), slog.Any("error", err))...)
		w.giveBack(ctx, j, unmadePause)
		return answer{}, errUnknown
	}
	a := w.caller.post(ctx, t.url, t.secrets, webhookID(t.id, j.journal, j.seq), at, e.Append(nil))
	if a.cancelled {
		return a, errUnknown // the lease runs out
	}
	v := judge(j.attempts-j.spent+1, a, rand.Float64())
	if err := w.persist(ctx, func(ctx context.Context) error { return w.record(ctx, j, a, v, at, e) }); err != nil {
		w.Log.Warn("what came of a webhook couldn't be recorded", append(j.attributes(), slog.Int("status", a.status), slog.Any("error", err))...)
		return a, errUnknown
	}
	w.told(j, a, v)
	if !a.delivered() {
		return a, errFailed
	}
	return a, nil
}

// attributes name a delivery in the log.
func (j *job) attributes() []any {
	return []any{slog.String("subscription_id", j.subscription.String()), slog.Int64("journal", int64(j.journal)),
		slog.Int64("seq", int64(j.seq)), slog.Int("attempt", j.attempts+1)}
}

// why names in the log what went wrong.
func (a *answer) why() []any {
	return []any{slog.String("reason", clip(a.problem)), slog.String("cause", a.cause)}
}

// event reads what a delivery is about, and the time for its signature.
func (w *worker) event(ctx context.Context, j job) (e outbox.Event, at time.Time, err error) {
	if at, err = w.clock.Now(ctx); err != nil {
		return e, at, err
	}
	entry, err := w.Reader.Entry(ctx, j.journal, j.seq)
	if err != nil {
		return e, at, err
	}
	e = outbox.Event{Journal: j.journal, Seq: j.seq, ID: entry.ID, Kind: entry.Kind, At: entry.At, Data: entry.Data}
	if len(e.Data) > maxData {
		e.Data = nil
	}
	return e, at, nil
}

// record writes an attempt and what it means for the delivery, in one transaction; errLost
// when the lease is another's, and nothing is written. Locks are taken in the order of dead
// letter, subscription, delivery.
func (w *worker) record(ctx context.Context, j job, a answer, v verdict, at time.Time, e outbox.Event) error {
	return pgx.BeginFunc(ctx, w.Pool, func(tx pgx.Tx) error {
		switch {
		case v.status == Dead:
			letter := outbox.Letter{
				Consumer: ConsumerName, Event: e, Target: j.subscription.String(), Payload: e.Append(nil),
				Reason: clip(a.problem), Attempts: j.attempts - j.spent + 1,
			}
			if err := outbox.Bury(ctx, tx, letter); err != nil {
				return err
			}
		case v.gone:
			if _, err := one(ctx, tx, sqlLockSubscription, j.subscription, j.subscription); err != nil {
				return err
			}
		}
		var again *time.Duration
		if v.status == Pending {
			again = &v.again
		}
		tag, err := tx.Exec(ctx, sqlRecord, j.subscription, int64(j.journal), int64(j.seq), j.lease, string(v.status), again)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errLost
		}
		if _, err := tx.Exec(ctx, sqlInsertAttempt, j.subscription, int64(j.journal), int64(j.seq), j.attempts+1, at,
			a.took.Milliseconds(), a.status, clip(a.problem), a.response); err != nil || !v.gone {
			return err
		}
		_, err = disable(ctx, tx, ledger.SystemPrincipal, j.subscription, "the subscriber answered 410: it wants no more")
		return err
	})
}

// told logs what became of a delivery, and tells the observer.
func (w *worker) told(j job, a answer, v verdict) {
	outcome := OutcomeDelivered
	switch {
	case v.gone:
		outcome = OutcomeGone
		w.Log.Warn("a subscriber wants no more", j.attributes()...)
	case v.status == Dead:
		outcome = OutcomeDead
		w.Log.Error("a webhook was given up", append(j.attributes(), a.why()...)...)
	case v.status == Pending:
		outcome = OutcomeFailed
		w.Log.Debug("a webhook failed", append(j.attributes(), a.why()...)...)
	}
	w.Observe(Sent{outcome, a.took})
}

// persist repeats what the database can't take now, also after ctx has ended: what a
// subscriber said shouldn't have to be asked for again.
func (w *worker) persist(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordFor)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil || errors.Is(err, errLost) {
			return err
		}
		if !wait.For(ctx, recordPause) {
			return err
		}
	}
}

// giveBack ends a lease early: the delivery is due after a pause. When that fails the lease
// runs out.
func (w *worker) giveBack(ctx context.Context, j job, pause time.Duration) {
	_, err := w.Pool.Exec(context.WithoutCancel(ctx), sqlReturnLease, j.subscription, int64(j.journal), int64(j.seq), j.lease, pause)
	if err != nil {
		w.Log.Debug("a lease couldn't be given back", append(j.attributes(), slog.Any("error", fmt.Errorf("give back: %w", err)))...)
	}
}

// clip bounds an error's text, and leaves out what can't be kept.
func clip(s string) string {
	if len(s) > maxError {
		s = s[:maxError]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
}
