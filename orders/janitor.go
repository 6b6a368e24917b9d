package orders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Limits of a round of the janitor.
const (
	maxDue     = 256              // of each sort; the next round goes on
	maxWorkers = 32               // at once
	maxStep    = 20 * time.Second // for one of them: calls have deadlines of their own
)

// Backlog is what waits for an outcome.
type Backlog struct {
	Due     int           // worked on in this round
	Unknown int           // operations that were sent and have no outcome
	Oldest  time.Duration // since the first of them was sent
	Parked  int           // webhooks about what isn't known yet
}

// due is something whose time has come.
type due struct {
	journal ledger.JournalID
	ref     ref
	id      uuid.UUID // of the operation; of an order that's due, its own
}

// Work does what is due: operations without outcome, orders whose time is over, parked
// webhooks, cases for policy. It's idempotent; any number may run at once, in any number
// of processes, for a lease gives each operation to one. What fails is due again later;
// the errors are joined.
func (s *Store) Work(ctx context.Context) (Backlog, error) {
	var b Backlog
	sorts := []func(context.Context) ([]func(context.Context) error, error){
		s.dueOperations, s.dueOrders, s.dueWebhooks, s.dueCases,
	}
	errs, found := make([]error, len(sorts)), make([]int, len(sorts))
	var workers sync.WaitGroup
	for i, sort := range sorts {
		workers.Go(func() { // a provider that hangs keeps only its own operations waiting
			steps, err := sort(ctx)
			found[i] = len(steps)
			errs[i] = errors.Join(err, s.run(ctx, steps))
		})
	}
	workers.Wait()
	for _, n := range found {
		b.Due += n
	}
	var seconds float64
	if err := s.Reads.QueryRow(ctx, sqlUnsettled).Scan(&b.Unknown, &seconds, &b.Parked); err != nil {
		errs = append(errs, pg.Fault(fmt.Errorf("count operations without outcome: %w", err)))
	}
	b.Oldest = time.Duration(seconds * float64(time.Second))
	return b, errors.Join(errs...)
}

// stepsOf makes a step of everything in a list.
func stepsOf[T any](list []T, do func(context.Context, T) error) []func(context.Context) error {
	steps := make([]func(context.Context) error, len(list))
	for i, item := range list {
		steps[i] = func(ctx context.Context) error { return do(ctx, item) }
	}
	return steps
}

// run does steps side by side.
func (s *Store) run(ctx context.Context, steps []func(context.Context) error) error {
	errs := make([]error, len(steps))
	places := make(chan struct{}, maxWorkers)
	var workers sync.WaitGroup
	for i, step := range steps {
		places <- struct{}{}
		workers.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, maxStep)
			defer cancel()
			if err := step(ctx); err != nil && !errors.Is(err, errNotDue) {
				errs[i] = err
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// find reads what is due by a statement.
func (s *Store) find(ctx context.Context, sql string) ([]due, error) {
	rows, _ := s.Reads.Query(ctx, sql, maxDue) // its error comes with the rows
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d due, err error) {
		err = row.Scan(append(append([]any{&d.journal}, d.ref.columns()...), &d.id)...)
		return d, err
	})
	return list, pg.Fault(err)
}

// refDue says which order is due.
func (s *Store) refDue(ctx context.Context, d due) (ref, error) {
	to := d.ref
	return to, s.complement(ctx, d.journal, &to)
}

func (s *Store) dueOperations(ctx context.Context) ([]func(context.Context) error, error) {
	list, err := s.find(ctx, sqlDueOperations)
	return stepsOf(list, s.workOn), err
}

// workOn leases an operation and finds out what came of it: by its first call, or by a
// lookup; if the provider doesn't know it, by calling again under its id.
func (s *Store) workOn(ctx context.Context, d due) error {
	if !s.enter() {
		return nil // it's due in the next round too
	}
	defer s.ended()
	to, err := s.refDue(ctx, d)
	if err != nil {
		return err
	}
	receipt, o, err := s.do(ctx, d.journal, ownCommand(d.journal, &claim{ref: to, operation: d.id}))
	if err != nil {
		return err
	}
	op, err := s.operation(ctx, d.journal, d.id)
	if err != nil {
		return err
	}
	ctx = s.ctx // from here on the provider is told: only Close breaks that off
	if op.sends == 1 {
		_, _, err = s.perform(ctx, to, op, receipt.Seq)
		return err
	}
	p := s.provider(op.Provider)
	if p == nil {
		return payments.ErrProviderUnavailable.Because("provider %s isn't configured", op.Provider)
	}
	finding, err := p.Lookup(ctx, op.ID)
	switch {
	case err != nil:
		s.Log.LogAttrs(ctx, slog.LevelDebug, "a lookup failed", slog.String("operation_id", op.ID.String()), slog.Any("error", err))
		return nil // it's due again by the schedule
	case finding.Found:
		_, _, err = s.apply(ctx, to, op.ID, evidence{fromLookup, finding.Result}, receipt.Seq)
		return err
	}
	return s.workOnMissing(ctx, to, op, o, receipt, p.Capabilities(op.method).KeyLifetime)
}

// workOnMissing goes on with an operation that the provider doesn't know.
func (s *Store) workOnMissing(ctx context.Context, to ref, op *Operation, o *Order, leased ledger.Receipt, keyLifetime time.Duration) error {
	now := leased.At
	age := now.Sub(*op.sentAt)
	sent := op.Status == OpSent || op.Status == OpUnknown
	var err error
	switch {
	case sent && age < keyLifetime-keyMargin && (op.Kind != payments.Authorize || o.Status == Pending && now.Before(o.PayUntil)):
		_, _, err = s.perform(ctx, to, op, leased.Seq)
	case op.Kind == payments.Authorize && sent && age >= settles:
		_, _, err = s.apply(ctx, to, op.ID, evidence{fromAbsence, payments.Result{
			Operation: op.ID, Kind: op.Kind, Outcome: payments.NotAttempted, Reason: "unknown_to_provider",
		}}, leased.Seq)
	}
	return err
}

func (s *Store) dueOrders(ctx context.Context) ([]func(context.Context) error, error) {
	list, err := s.find(ctx, sqlDueOrders)
	return stepsOf(list, func(ctx context.Context, d due) error {
		to, err := s.refDue(ctx, d)
		if err != nil {
			return err
		}
		receipt, o, err := s.do(ctx, d.journal, ownCommand(d.journal, &timeout{to}))
		if err == nil {
			s.follow(ctx, to, receipt, o)
		}
		return err
	}), err
}

func (s *Store) dueCases(ctx context.Context) ([]func(context.Context) error, error) {
	list, err := s.Cases.Due(ctx, maxDue)
	return stepsOf(list, func(ctx context.Context, d cases.Due) error {
		to, _, err := s.refOf(ctx, d.Order)
		if err != nil {
			return err
		}
		return s.settle(ctx, to, d.ID)
	}), err
}

func (s *Store) dueWebhooks(ctx context.Context) ([]func(context.Context) error, error) {
	rows, _ := s.Reads.Query(ctx, sqlDueWebhooks, maxDue) // its error comes with the rows
	type parked struct {
		journal ledger.JournalID
		webhook
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p parked, err error) {
		var operation *uuid.UUID
		err = row.Scan(&p.journal, &p.provider, &p.event, &p.kind, &operation, &p.body, &p.receivedAt, &p.tries)
		if operation != nil {
			p.operation = *operation
		}
		return p, err
	})
	return stepsOf(list, func(ctx context.Context, p parked) error { return s.again(ctx, p.journal, &p.webhook) }),
		pg.Fault(err)
}
