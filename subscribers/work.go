package subscribers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

const (
	// lease is how long a delivery is a worker's: longer than a call and its recording.
	lease = time.Minute
	// stopGrace is how long calls under way may go on after the worker is told to stop.
	stopGrace = 3 * time.Second
	// sweepEvery is how often it's looked for what disabled subscriptions left pending.
	sweepEvery = 5 * time.Second
)

// job is a delivery that's leased to this worker.
type job struct {
	subscription uuid.UUID
	journal      ledger.JournalID
	seq          ledger.Seq
	attempts     int
	spent        int
	lease        time.Time // its end
}

// target is where a subscription's deliveries go now.
type target struct {
	id      uuid.UUID
	url     string
	secrets payments.Secrets
}

// worker leases deliveries and sends them. One goroutine leases.
type worker struct {
	*Store
	ctx   context.Context // of the calls
	calls sync.WaitGroup  // and the pruning

	mu    sync.Mutex
	lines map[uuid.UUID]*line
}

// Work sends what's due until ctx ends. Then calls under way have a little time to end;
// what came of one that's given up isn't known, and its delivery is due again when its lease
// has run out. Any number of processes may work at once.
func (s *Store) Work(ctx context.Context) {
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	w := &worker{Store: s, ctx: calls, lines: make(map[uuid.UUID]*line)}
	defer s.caller.close()
	defer w.calls.Wait()
	w.calls.Go(func() { w.prune(ctx) })
	defer func() { time.AfterFunc(stopGrace, cancel) }()

	every := time.NewTicker(s.Every)
	defer every.Stop()
	var swept time.Time
	for failed := false; ctx.Err() == nil; {
		err := w.round(ctx)
		if err == nil && time.Since(swept) > sweepEvery {
			swept = time.Now()
			err = w.sweep(ctx)
		}
		if err != nil && ctx.Err() == nil && !failed { // the first of many alike
			s.Log.Warn("looking for due webhooks failed", slog.Any("error", err))
		}
		failed = err != nil
		select {
		case <-ctx.Done():
		case <-every.C:
		case <-s.wake:
		}
	}
}

// round leases what's due and there's room for, and begins to send it.
func (w *worker) round(ctx context.Context) error {
	targets, err := w.due(ctx)
	if err != nil || len(targets) == 0 {
		return err
	}
	to := make(map[uuid.UUID]target, len(targets))
	for _, t := range targets {
		to[t.id] = t
	}
	ids, rooms := w.share(targets)
	if len(ids) == 0 {
		return nil
	}
	jobs, err := w.lease(ctx, ids, rooms)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		w.begin(to[j.subscription], j)
	}
	return nil
}

// due lists the subscriptions that something is due for.
func (w *worker) due(ctx context.Context) ([]target, error) {
	rows, err := w.Pool.Query(ctx, sqlDueSubscriptions)
	if err != nil {
		return nil, fmt.Errorf("look for due deliveries: %w", err)
	}
	var targets []target
	var t target
	var secret, old []byte
	_, err = pgx.ForEachRow(rows, []any{&t.id, &t.url, &secret, &old}, func() (err error) {
		var lost error
		if t.secrets, lost, err = openSecrets(w.Ring, t.id, secret, old); err != nil {
			w.warn(t.id, "a subscription can't be sent to: its secret can't be opened", err)
			return nil
		}
		if lost != nil {
			w.warn(t.id, "a subscription's old secret can't be opened: only the new one signs", lost)
		}
		targets = append(targets, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for due deliveries: %w", err)
	}
	return targets, nil
}

// lease takes due deliveries of subscriptions, of each as many as there's room for.
func (w *worker) lease(ctx context.Context, ids []uuid.UUID, rooms []int32) ([]job, error) {
	rows, err := w.Pool.Query(ctx, sqlLease, ids, rooms, lease)
	if err != nil {
		return nil, fmt.Errorf("lease deliveries: %w", err)
	}
	jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (j job, err error) {
		err = row.Scan(&j.subscription, &j.journal, &j.seq, &j.attempts, &j.spent, &j.lease)
		return j, err
	})
	if err != nil {
		return nil, fmt.Errorf("lease deliveries: %w", err)
	}
	inOrder(jobs)
	return jobs, nil
}

// begin sends a delivery. When the breaker has opened meanwhile it goes back.
func (w *worker) begin(t target, j job) {
	w.mu.Lock()
	l := w.line(t.id)
	done, err := l.breaker.Allow()
	if err == nil {
		l.underway++
		l.begun = time.Now()
	}
	w.mu.Unlock()
	if err != nil {
		w.giveBack(w.ctx, j, 0)
		return
	}
	w.calls.Go(func() {
		a, err := w.deliver(w.ctx, t, j)
		w.ended(l, done, a, err)
		w.hint()
	})
}

// sweep drops what disabled subscriptions have pending.
func (w *worker) sweep(ctx context.Context) error {
	rows, err := w.Pool.Query(ctx, sqlDisabledPending)
	if err != nil {
		return fmt.Errorf("look for disabled subscriptions: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("look for disabled subscriptions: %w", err)
	}
	for _, id := range ids {
		err := pgx.BeginFunc(ctx, w.Pool, func(tx pgx.Tx) error {
			sub, err := one(ctx, tx, sqlLockSubscription, id, id)
			if err == nil && sub.Status == Disabled { // it may be enabled again
				_, err = tx.Exec(ctx, sqlDropPending, id, maxDropped)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("drop deliveries of %s: %w", id, err)
		}
	}
	return nil
}
