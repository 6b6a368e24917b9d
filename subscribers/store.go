package subscribers

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
)

// Options configure a store.
type Options struct {
	Pool   *pgxpool.Pool // of the outbox
	Reads  *pgxpool.Pool
	Reader *ledger.Reader
	Events *buckets.Store
	// Ring seals the subscriptions' secrets. Empty: none can be made, and nothing is sent.
	Ring keyring.Ring
	// AllowPrivate lets webhooks go to any address, and over http. For development only:
	// whoever may make subscriptions can reach what this machine can.
	AllowPrivate bool
	// Every is how often workers look for what's due; 0 is 200 ms.
	Every time.Duration
	// Cooldown is how long nothing is sent to a subscriber that has failed several times in
	// a row, before it's tried again; 0 is 30 s.
	Cooldown time.Duration
	// Resolver finds the addresses of names; nil: the system's.
	Resolver *net.Resolver
	// TLS says which certificates are trusted; nil: the system's.
	TLS *tls.Config
	// Observe is told of every call; may be nil.
	Observe func(Sent)
	Log     *slog.Logger // nil: nowhere
}

// Store keeps subscriptions and what was sent to them, and sends. It's safe for concurrent
// use, by any number of processes.
type Store struct {
	Options
	caller *caller
	clock  *pg.Clock
	wake   chan struct{} // something may be due
}

// NewStore makes a store. It doesn't connect.
func NewStore(o Options) *Store {
	if o.Every == 0 {
		o.Every = 200 * time.Millisecond
	}
	if o.Cooldown == 0 {
		o.Cooldown = 30 * time.Second
	}
	if o.Observe == nil {
		o.Observe = func(Sent) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{
		Options: o, caller: newCaller(o.AllowPrivate, o.Resolver, o.TLS), clock: pg.NewClock(o.Pool),
		wake: make(chan struct{}, 1),
	}
}

// Issued is a subscription after a change. Only the change that made a secret has it.
type Issued struct {
	Subscription
	Secret   string `json:"secret,omitempty"`
	Replayed bool   `json:"-"` // the change was made before, under the same key
}

// Get reads a subscription; ErrSubscriptionNotFound.
func (s *Store) Get(ctx context.Context, id uuid.UUID) (Subscription, error) {
	return one(ctx, s.Reads, sqlSubscription, id, id)
}

// List reads up to limit subscriptions in the order of their ids, after one.
func (s *Store) List(ctx context.Context, after uuid.UUID, limit int) ([]Subscription, error) {
	rows, _ := s.Reads.Query(ctx, sqlSubscriptions, after, limit) // its error comes with the rows
	list, err := pgx.CollectRows(rows, scanSubscription)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("list subscriptions: %w", err))
	}
	return list, nil
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// one runs a statement that gives the subscription of an id; ErrSubscriptionNotFound.
func one(ctx context.Context, q querier, sql string, id uuid.UUID, args ...any) (Subscription, error) {
	rows, _ := q.Query(ctx, sql, args...) // its error comes with the row
	found, err := pgx.CollectExactlyOneRow(rows, scanSubscription)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return found, notFound(id)
	case err != nil:
		return found, pg.Fault(fmt.Errorf("subscription %s: %w", id, err))
	}
	return found, nil
}

func scanSubscription(row pgx.CollectableRow) (s Subscription, err error) {
	err = row.Scan(&s.ID, &s.URL, &s.Kinds, &s.Event, &s.Description, &s.Status, &s.Reason, &s.OldSecretUntil,
		&s.ActiveSince, &s.CreatedBy, &s.CreatedAt, &s.ChangedBy, &s.ChangedAt)
	s.ActiveSince, s.CreatedAt, s.ChangedAt = s.ActiveSince.UTC(), s.CreatedAt.UTC(), s.ChangedAt.UTC()
	if s.OldSecretUntil != nil {
		s.OldSecretUntil = new(s.OldSecretUntil.UTC())
	}
	return s, err
}

// request is a change that somebody asks for under a key.
type request struct {
	principal, key string
	kind           string
	subscription   uuid.UUID // Nil: the one that the key makes
	asked          any       // what else a repeat must have in common with it
}

// id is the change's, and that of a subscription that it makes.
func (r *request) id() uuid.UUID {
	return ledger.NewID(ledger.System, r.principal, r.key, "subscription")
}

// once makes a change in a transaction, unless it was made before: then it gives the
// subscription, and what was answered if that was kept. Errors: ledger.ErrIdempotencyMismatch,
// ledger.ErrOutcomeUnknown, pg.ErrUnavailable, and those of make, after which nothing is
// changed or remembered.
func (s *Store) once(ctx context.Context, r request, make func(pgx.Tx) error) (replayed bool, answer json.RawMessage, err error) {
	text, err := json.Marshal(struct {
		Kind         string
		Subscription uuid.UUID
		Asked        any
	}{r.kind, r.subscription, r.asked})
	if err != nil {
		return false, nil, err
	}
	digest := sha256.Sum256(text)
	subject := r.subscription
	if subject == uuid.Nil {
		subject = r.id()
	}
	err = s.within(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlInsertChange, r.id(), subject, r.kind, digest[:], r.principal)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 1 {
			return make(tx)
		}
		var known []byte
		replayed = true
		if err := tx.QueryRow(ctx, sqlFindChange, r.id()).Scan(new(uuid.UUID), &known, &answer); err != nil {
			return err
		}
		if string(known) != string(digest[:]) {
			return ledger.ErrIdempotencyMismatch.Because("the key was used for another request")
		}
		return nil
	})
	return replayed, answer, err
}

// commitTimeout bounds a commit, which doesn't end with the caller.
const commitTimeout = 5 * time.Second

// within runs a function in a transaction and commits it. An error whose cause is the
// commit is ledger.ErrOutcomeUnknown.
func (s *Store) within(ctx context.Context, do func(pgx.Tx) error) error {
	tx, err := s.Pool.Begin(ctx)
	if err != nil {
		return pg.Fault(fmt.Errorf("begin: %w", err))
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // after a commit it does nothing
	if err := do(tx); err != nil {
		return pg.Fault(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	err = tx.Commit(ctx)
	if err != nil && pg.Classify(err) == pg.Lost {
		return ledger.ErrOutcomeUnknown.Because("").From(err)
	}
	return pg.Fault(err)
}

// hint tells workers of this process that something may be due.
func (s *Store) hint() {
	select {
	case s.wake <- struct{}{}:
	default: // it's told already
	}
}
