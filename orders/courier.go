package orders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// pay calls the provider for an authorization that was just committed as sent, commits
// what came of it, and answers the checkout. The call outlives the caller.
func (s *Store) pay(ctx context.Context, to ref, op *Operation, created ledger.Receipt) (Answer, error) {
	type outcome struct {
		answer Answer
		err    error
	}
	done := make(chan outcome, 1)
	open := Answer{Receipt: created, Open: true}
	started := s.background(func(ctx context.Context) {
		receipt, o, err := s.perform(ctx, to, op, created.Seq)
		switch {
		case err != nil:
			done <- outcome{answer: open} // committed as sent: the janitor goes on
		case receipt.Kind == "" || o.find(op.ID).Answered != receipt.Seq: // a webhook was faster
			a, err := s.answered(ctx, to, op.ID, created)
			a.Replayed = false
			done <- outcome{a, err}
		default:
			a, err := answerOf(receipt, o, op.ID)
			done <- outcome{a, err}
		}
	})
	if !started {
		return open, nil
	}
	select {
	case o := <-done:
		return o.answer, o.err
	case <-ctx.Done():
		return open, nil
	}
}

// answerOf is what a checkout is answered with, by the entry that gave its authorization
// an outcome. With an error it tells no more than whether that's a repeat.
func answerOf(receipt ledger.Receipt, o *Order, operation uuid.UUID) (Answer, error) {
	no := Answer{Receipt: ledger.Receipt{Replayed: receipt.Replayed}}
	switch op := o.find(operation); op.Status {
	case OpDeclined:
		return no, ErrPaymentDeclined.Because("%s", op.Reason).
			With("order_id", o.ID).With("operation_id", op.ID).With("reason", op.Reason)
	case OpNotAttempted:
		return no, payments.ErrProviderUnavailable.Because("nothing was sent to it").
			With("order_id", o.ID).After(retryPending)
	}
	return Answer{Receipt: receipt, Open: o.Status == Pending || o.Status == Cancelled}, nil
}

// repeat answers a checkout that was accepted before: with what came of it, or with the
// order as it is while nothing has. One whose call was never made is made now.
func (s *Store) repeat(ctx context.Context, to ref, op *Operation, created ledger.Receipt) (Answer, error) {
	journal, _ := ledger.JournalOf(to.order)
	receipt, _, err := s.do(ctx, journal, ownCommand(journal, &claim{ref: to, operation: op.ID, again: true}))
	switch {
	case err == nil:
		return s.pay(ctx, to, op, receipt)
	case !errors.Is(err, errNotDue):
		return Answer{}, err
	}
	answer, err := s.answered(ctx, to, op.ID, created)
	if errors.Is(err, payments.ErrProviderUnavailable) { // and the call can't be made any more
		h, herr := s.Holds.Get(ctx, to.hold)
		if herr == nil && !h.Status.Claims() {
			err = ErrHoldExpired.Because("hold %s has ended", h.ID).With("hold_id", h.ID)
		}
	}
	return answer, err
}

// answered gives the answer that an authorization's first outcome made.
func (s *Store) answered(ctx context.Context, to ref, operation uuid.UUID, created ledger.Receipt) (Answer, error) {
	now, err := s.Get(ctx, to.order) // with its operations, as of one instant
	if err != nil {
		return Answer{}, err
	}
	op := now.find(operation)
	if op.Answered == 0 {
		created.Data = now.data()
		return Answer{Receipt: created, Open: true}, nil
	}
	journal, _ := ledger.JournalOf(to.order)
	data, err := s.Reader.EntryData(ctx, journal, op.Answered)
	if err != nil {
		return Answer{}, err
	}
	var o Order
	if err := unmarshal(data, &o); err != nil {
		return Answer{}, err
	}
	return answerOf(ledger.Receipt{Seq: op.Answered, Data: data, Replayed: true}, &o, operation)
}

// operation reads an operation's row.
func (s *Store) operation(ctx context.Context, journal ledger.JournalID, id uuid.UUID) (*Operation, error) {
	rows, _ := s.Reads.Query(ctx, sqlOperation, int64(journal), id) // its error comes with the row
	op, err := pgx.CollectExactlyOneRow(rows, scanOperation)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("read operation %s: %w", id, err))
	}
	return op, nil
}

// perform makes the call of an operation that an entry has leased to this process, and
// commits what came of it. The receipt's kind is "" when that was known already.
func (s *Store) perform(ctx context.Context, to ref, op *Operation, leased ledger.Seq) (ledger.Receipt, *Order, error) {
	op.Order = to.order
	result, err := s.call(ctx, op)
	if err != nil {
		s.Log.LogAttrs(ctx, slog.LevelDebug, "a call to the provider failed", slog.String("operation_id", op.ID.String()),
			slog.String("kind", string(op.Kind)), slog.String("outcome", string(result.Outcome)), slog.Any("error", err))
	}
	return s.apply(ctx, to, op.ID, evidence{fromAnswer, result}, leased)
}

// call asks the provider. An operation of a provider that's no longer configured stays as
// it is.
func (s *Store) call(ctx context.Context, op *Operation) (payments.Result, error) {
	p := s.provider(op.Provider)
	if p == nil {
		return payments.Result{Operation: op.ID, Kind: op.Kind, Outcome: payments.NotAttempted},
			payments.ErrProviderUnavailable.Because("provider %s isn't configured", op.Provider)
	}
	step := payments.Step{Operation: op.ID, Payment: op.Payment, Amount: op.Amount}
	switch op.Kind {
	case payments.Authorize:
		return p.Authorize(ctx, payments.Authorization{
			Operation: op.ID, Amount: op.Amount, Method: op.method, ReturnURL: op.returnURL,
			Metadata: map[string]string{"order_id": op.Order.String()},
		})
	case payments.Capture:
		return p.Capture(ctx, step)
	case payments.Void:
		return p.Void(ctx, step)
	case payments.Refund:
		return p.Refund(ctx, step)
	}
	return p.CancelIntent(ctx, step)
}

// apply commits evidence. It's repeated while the database can't be reached, as long as
// the lease lasts: what a provider said shouldn't have to be asked for again.
func (s *Store) apply(ctx context.Context, to ref, operation uuid.UUID, e evidence, leased ledger.Seq) (ledger.Receipt, *Order, error) {
	journal, _ := ledger.JournalOf(to.order)
	c := ledger.Command{
		ID: ledger.NewID(journal, ledger.SystemPrincipal, string(e.source), operation.String(),
			strconv.FormatInt(int64(leased), 10)),
		Principal: ledger.SystemPrincipal,
		Body:      &observe{ref: to, operation: operation, evidence: e},
	}
	var receipt ledger.Receipt
	var o *Order
	err := s.persist(ctx, func() (err error) {
		receipt, o, err = s.do(ctx, journal, c)
		return err
	})
	if err != nil {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "evidence couldn't be committed", slog.String("operation_id", operation.String()),
			slog.String("source", string(e.source)), slog.Any("error", err))
		return receipt, o, err
	}
	s.follow(ctx, to, receipt, o)
	return receipt, o, nil
}

// persistFor is how long a commit that can't be made is tried again; a lease lasts
// longer.
const (
	persistFor   = 10 * time.Second
	persistPause = 250 * time.Millisecond
)

// persist repeats a commit that the database can't take now.
func (s *Store) persist(ctx context.Context, commit func() error) error {
	ctx, cancel := context.WithTimeout(ctx, persistFor)
	defer cancel()
	for {
		err := commit()
		if err == nil || !errors.Is(err, pg.ErrUnavailable) && !errors.Is(err, ledger.ErrOutcomeUnknown) &&
			!errors.Is(err, ledger.ErrOverloaded) {
			return err
		}
		if !wait.For(ctx, persistPause) {
			return err
		}
	}
}

// follow begins what an entry has sent and left to this process: calls, and what policy
// decides about a case. All of it is found by the janitor too.
func (s *Store) follow(ctx context.Context, to ref, receipt ledger.Receipt, o *Order) {
	if receipt.Kind == "" || receipt.Replayed {
		return
	}
	for _, op := range o.Operations {
		if op.Version != receipt.Seq {
			continue
		}
		if s.Observe != nil {
			s.Observe(op.Kind, op.Status)
		}
		if op.Status == OpSent && op.Kind != payments.Authorize {
			s.background(func(ctx context.Context) { _, _, _ = s.perform(ctx, to, op, receipt.Seq) }) // it has logged
		}
	}
	for _, c := range o.Cases {
		if c.Status == cases.Open && c.NextAttemptAt != nil {
			s.background(func(ctx context.Context) { _ = s.settle(ctx, to, c.ID) }) // the janitor does it again
		}
	}
}

// ownCommand makes a command that the program gives of itself and that's judged anew each
// time: its decision says whether there's still something to do.
func ownCommand(journal ledger.JournalID, body ledger.Body) ledger.Command {
	return ledger.Command{
		ID:        ledger.NewID(journal, ledger.SystemPrincipal, "own", uuid.NewString()),
		Principal: ledger.SystemPrincipal, Body: body,
	}
}

// route finds the way of a command that may honour a late payment, and if it would, brings
// to the order's lane what that would take, when other lanes have it. That's only an attempt: what
// the lane then has decides.
func (s *Store) route(ctx context.Context, journal ledger.JournalID, to ref, honour bool) (*buckets.Route, error) {
	name, err := s.Events.Named(ctx, journal)
	if err != nil {
		return nil, err
	}
	layout, err := s.Events.Look(ctx, name.Event)
	if err != nil {
		return nil, err
	}
	// No other lane can have accepted the command: the ids that it would have there are of none.
	route := layout.Route(journal, to.customer, ledger.SystemPrincipal, to.order.String())
	if !layout.Split() || !honour {
		return route, nil
	}
	o, err := s.Get(ctx, to.order)
	if err != nil || o.Status != Cancelled {
		return route, err
	}
	hold, err := s.Holds.Get(ctx, o.HoldID)
	if err != nil {
		return route, err
	}
	return route, s.Holds.Supply(ctx, name.Event, hold, o.tickets())
}

// settle has policy decide a case.
func (s *Store) settle(ctx context.Context, to ref, id uuid.UUID) error {
	journal, _ := ledger.JournalOf(id)
	route, err := s.route(ctx, journal, to, true)
	if err != nil {
		return err
	}
	receipt, o, err := s.do(ctx, journal, ownCommand(journal, &settle{ref: to, route: route, caseID: id}))
	if err == nil {
		s.follow(ctx, to, receipt, o)
	}
	return err
}
