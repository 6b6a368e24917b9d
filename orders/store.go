package orders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Options configure a Store. All but Log are required.
type Options struct {
	Ledger *ledger.Ledger
	Reader *ledger.Reader
	Events *buckets.Store
	Holds  *holds.Store
	Cases  *cases.Store
	Reads  *pgxpool.Pool
	// Providers are whom payments are made with: new ones with the first, others with
	// the one that they began with.
	Providers []payments.Provider
	Observe   func(payments.Kind, OperationStatus) // told of every operation's new state; may be nil
	Log       *slog.Logger                         // nil: nowhere
}

// Store sells, cancels, refunds and reads orders. It's safe for concurrent use.
type Store struct {
	Options
	clock *pg.Clock

	slots  chan struct{} // of calls to providers
	ctx    context.Context
	stop   context.CancelFunc // of the calls under way
	mu     sync.Mutex
	idle   sync.Cond // on mu: no call is under way
	calls  int       // under way
	closed bool
}

// maxCalls bounds the calls to providers that are under way in a process; what finds no
// place is done by the janitor, of this process or another.
const maxCalls = 1024

// NewStore makes a store. Close it before the ledger.
func NewStore(o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{Options: o, clock: pg.NewClock(o.Reads), slots: make(chan struct{}, maxCalls)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.idle.L = &s.mu
	return s
}

// Close begins no more calls and waits for those under way. When ctx ends it breaks them
// off: their outcomes are unknown then, and another process's janitor finds them out.
func (s *Store) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	defer context.AfterFunc(ctx, s.stop)()
	s.Idle()
	s.stop()
}

// Idle waits until no call to a provider is under way in this process. It's for a process
// that wants to see the outcome of what it has begun; new calls may begin meanwhile.
func (s *Store) Idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.calls > 0 {
		s.idle.Wait()
	}
}

// background runs f, unless the store is closed or too many calls are under way.
func (s *Store) background(f func(context.Context)) bool {
	if !s.enter() {
		return false
	}
	go func() {
		defer s.ended()
		f(s.ctx)
	}()
	return true
}

// enter counts a call to a provider, unless the store is closed or too many are under
// way. After it comes ended.
func (s *Store) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return false
	}
	s.calls++
	return true
}

// ended counts the end of a call.
func (s *Store) ended() {
	<-s.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls--; s.calls == 0 {
		s.idle.Broadcast()
	}
}

// provider finds a provider by its name; nil when there's none.
func (s *Store) provider(name string) payments.Provider {
	for _, p := range s.Providers {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Answer is what an accepted command on an order gives.
type Answer struct {
	ledger.Receipt      // its data is the order
	Open           bool // what came of it isn't known yet
}

// Checkout begins to pay for a hold and waits for what comes of it, as long as ctx
// lasts: the payment goes on without it. The answer's data is the order. Errors, in
// order of precedence: holds.ErrHoldNotFound, fault.ErrInvalidRequest with the field,
// ErrHoldExpired, holds.ErrHoldConfirmed, holds.ErrPaymentInProgress, ErrTooLate,
// ErrPriceChanged, holds.ErrLimitExceeded, ErrTooManyOperations, ErrTooManyCheckouts,
// those of ledger.Do, ErrPaymentDeclined, payments.ErrProviderUnavailable. A repeat gives
// what came of the first. A call that was never made is made by the repeat; when it can't
// be any more, that's ErrHoldExpired.
func (s *Store) Checkout(ctx context.Context, principal, key string, hold uuid.UUID, r CheckoutRequest) (Answer, error) {
	h, err := s.Holds.Get(ctx, hold)
	if err != nil {
		return Answer{}, err
	}
	if err := r.validate(); err != nil {
		return Answer{}, err
	}
	journal, _ := ledger.JournalOf(hold)
	to := ref{order: OrderID(journal, hold), hold: hold, customer: h.Customer}
	if h.PayUntil != nil { // there's an order already
		if to, _, err = s.findRef(ctx, journal, sqlRefOfOrder, to.order); err != nil {
			return Answer{}, err
		}
	} else if err := s.complement(ctx, journal, &to); err != nil {
		return Answer{}, err
	}
	parameters := struct {
		HoldID uuid.UUID
		CheckoutRequest
	}{hold, r}
	c, err := ledger.NewCommand(journal, principal, key, KindCreated, parameters,
		&checkout{ref: to, request: r, noProvider: s.provider(to.provider) == nil})
	if err != nil {
		return Answer{}, err
	}
	receipt, o, err := s.do(ctx, journal, c)
	if err != nil {
		return Answer{}, err
	}
	op := o.last(payments.Authorize)
	if op == nil {
		return Answer{Receipt: receipt}, nil // free
	}
	op.method, op.returnURL = r.PaymentMethod, r.ReturnURL
	if receipt.Replayed {
		return s.repeat(ctx, to, op, receipt)
	}
	return s.pay(ctx, to, op, receipt)
}

// complement fills in whom the order's event belongs to, and for an order that has no
// operation yet the provider.
func (s *Store) complement(ctx context.Context, journal ledger.JournalID, r *ref) error {
	if r.provider == "" {
		r.provider = noProvider
		if len(s.Providers) > 0 {
			r.provider = s.Providers[0].Name()
		}
	}
	name, err := s.Events.Named(ctx, journal)
	r.organiser = name.Organiser
	return err
}

// noProvider stands for the provider where none is configured.
const noProvider = "none"

// do commits a command on an order and reads the order that its entry records.
func (s *Store) do(ctx context.Context, journal ledger.JournalID, c ledger.Command) (ledger.Receipt, *Order, error) {
	receipt, err := s.Ledger.Do(ctx, journal, c)
	if err != nil {
		return receipt, nil, err
	}
	var o Order
	return receipt, &o, unmarshal(receipt.Data, &o)
}

// Cancel ends an order that isn't paid. The answer's data is the order; it's open while
// the provider is asked to end the payment. Errors: ErrOrderNotFound,
// buckets.ErrVersionConflict, ErrOrderCaptured, holds.ErrPaymentInProgress, and those of
// ledger.Do.
func (s *Store) Cancel(ctx context.Context, principal, key string, id uuid.UUID, ifMatch *ledger.Seq) (Answer, error) {
	to, journal, err := s.refOf(ctx, id)
	if err != nil {
		return Answer{}, err
	}
	parameters := struct {
		OrderID uuid.UUID
		IfMatch *ledger.Seq
	}{id, ifMatch}
	c, err := ledger.NewCommand(journal, principal, key, KindCancelled, parameters, &cancel{to, ifMatch})
	if err != nil {
		return Answer{}, err
	}
	return s.command(ctx, to, journal, c)
}

// Refund owes an amount of a captured order to its buyer and has the provider pay it
// back. The answer's data is the order. Errors: fault.ErrInvalidRequest with the field,
// ErrOrderNotFound, buckets.ErrVersionConflict, ErrOrderNotCaptured, ErrCurrencyMismatch,
// ErrTooManyOperations, ErrTicketsNotOwned, ErrRefundExceedsCaptured, and those of
// ledger.Do.
func (s *Store) Refund(ctx context.Context, principal, key string, id uuid.UUID, r RefundRequest, ifMatch *ledger.Seq) (Answer, error) {
	if err := r.validate(); err != nil {
		return Answer{}, err
	}
	to, journal, err := s.refOf(ctx, id)
	if err != nil {
		return Answer{}, err
	}
	parameters := struct {
		OrderID uuid.UUID
		RefundRequest
		IfMatch *ledger.Seq
	}{id, r, ifMatch}
	c, err := ledger.NewCommand(journal, principal, key, KindRefundAsked, parameters, &refund{to, r, ifMatch})
	if err != nil {
		return Answer{}, err
	}
	return s.command(ctx, to, journal, c)
}

// command commits a caller's command on an order and begins what it has sent.
func (s *Store) command(ctx context.Context, to ref, journal ledger.JournalID, c ledger.Command) (Answer, error) {
	receipt, o, err := s.do(ctx, journal, c)
	if err != nil {
		return Answer{}, err
	}
	if !receipt.Replayed {
		s.follow(ctx, to, receipt, o)
	}
	return Answer{Receipt: receipt, Open: o.Status == Pending}, nil
}

// refOf reads what never changes about an order.
func (s *Store) refOf(ctx context.Context, id uuid.UUID) (ref, ledger.JournalID, error) {
	journal, err := s.journalOf(ctx, id)
	if err != nil {
		return ref{}, 0, err
	}
	to, found, err := s.findRef(ctx, journal, sqlRefOfOrder, id)
	if err == nil && !found {
		err = notFound(id)
	}
	return to, journal, err
}

func (s *Store) findRef(ctx context.Context, journal ledger.JournalID, sql string, id uuid.UUID) (ref, bool, error) {
	var to ref
	err := s.Reads.QueryRow(ctx, sql, int64(journal), id).Scan(to.columns()...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return to, false, nil
	case err != nil:
		return to, false, pg.Fault(fmt.Errorf("find the order of %s: %w", id, err))
	}
	return to, true, s.complement(ctx, journal, &to)
}

// Approve carries out what somebody else proposed for a case of an order. The receipt's
// data is the order, with the case. Errors: cases.ErrCaseNotFound,
// buckets.ErrVersionConflict, cases.ErrCaseState, fault.ErrSamePerson,
// cases.ErrResolution, those of holds.Fits, and those of ledger.Do.
func (s *Store) Approve(ctx context.Context, principal, key string, c cases.Case, ifMatch *ledger.Seq) (ledger.Receipt, error) {
	to, journal, err := s.refOf(ctx, *c.OrderID)
	if err != nil {
		return ledger.Receipt{}, err
	}
	parameters := struct {
		CaseID  uuid.UUID
		IfMatch *ledger.Seq
	}{c.ID, ifMatch}
	route, err := s.route(ctx, journal, to, c.Resolution == cases.Honour)
	if err != nil {
		return ledger.Receipt{}, err
	}
	command, err := ledger.NewCommand(journal, principal, key, "case.approved", parameters,
		&settle{ref: to, route: route, caseID: c.ID, approver: principal, ifMatch: ifMatch})
	if err != nil {
		return ledger.Receipt{}, err
	}
	a, err := s.command(ctx, to, journal, command)
	return a.Receipt, err
}

// unmarshal reads what an entry records.
func unmarshal(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read an entry's data: %w", err)
	}
	return nil
}
