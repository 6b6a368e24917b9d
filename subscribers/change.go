package subscribers

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
)

// Create makes a subscription. What it gives has the secret; what a repeat gives hasn't.
// Errors: ErrInvalidRequest with the field, ErrAddressNotAllowed, buckets.ErrEventNotFound,
// ErrSecretKeysRequired, ErrTooManySubscriptions, and those of a change.
func (s *Store) Create(ctx context.Context, principal, key string, spec Spec) (Issued, error) {
	if spec.Kinds == nil {
		spec.Kinds = []string{}
	}
	change := spec.change()
	if err := s.valid(ctx, change); err != nil {
		return Issued{}, err
	}
	r := request{principal: principal, key: key, kind: "created", asked: spec}
	secret, sealed, err := newSecret(s.Ring, r.id())
	if err != nil {
		return Issued{}, err
	}
	return s.issue(ctx, r, secret, func(tx pgx.Tx) (made Subscription, err error) {
		if err := roomForAnother(ctx, tx); err != nil {
			return made, err
		}
		return one(ctx, tx, sqlInsertSubscription, r.id(), r.id(), spec.URL, spec.Kinds, spec.Event, spec.Description, sealed, principal)
	})
}

// Update changes what a subscription is for, or where it goes. Errors: ErrInvalidRequest
// with the field, ErrAddressNotAllowed, buckets.ErrEventNotFound, ErrSubscriptionNotFound,
// and those of a change.
func (s *Store) Update(ctx context.Context, principal, key string, id uuid.UUID, c Change) (Issued, error) {
	if err := s.valid(ctx, c); err != nil {
		return Issued{}, err
	}
	r := request{principal, key, "changed", id, c}
	return s.issue(ctx, r, "", func(tx pgx.Tx) (Subscription, error) {
		return one(ctx, tx, sqlUpdateSubscription, id, id, principal, c.URL, c.Kinds, c.Event, c.Description)
	})
}

// valid refuses a change that can't be right, and one to an event that isn't there.
func (s *Store) valid(ctx context.Context, c Change) error {
	if err := c.validate(s.AllowPrivate); err != nil {
		return err
	}
	if c.Event == nil || *c.Event == "" {
		return nil
	}
	_, err := s.Events.Journal(ctx, *c.Event)
	return err
}

// Rotate gives a subscription another secret. The old one signs too for a while; not at all
// for 0, or when no key opens it any more. What it gives has the new secret; what a repeat gives hasn't. Errors:
// ErrInvalidRequest with the field, ErrSecretKeysRequired, ErrSubscriptionNotFound, and
// those of a change.
func (s *Store) Rotate(ctx context.Context, principal, key string, id uuid.UUID, overlap time.Duration) (Issued, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Issued{}, fault.BadField("overlap_seconds", "must be 0 to %d", int(MaxOverlap/time.Second))
	}
	secret, sealed, err := newSecret(s.Ring, id)
	if err != nil {
		return Issued{}, err
	}
	return s.issue(ctx, request{principal, key, "rotated", id, overlap}, secret, func(tx pgx.Tx) (Subscription, error) {
		if was, err := one(ctx, tx, sqlLockSubscription, id, id); err != nil {
			return was, err
		}
		var present []byte
		if err := tx.QueryRow(ctx, sqlSecrets, id).Scan(new(string), &present, new([]byte)); err != nil {
			return Subscription{}, err
		}
		overlap := overlap
		if _, err := s.Ring.Open(present, id.String()); err != nil {
			overlap = 0
		}
		return one(ctx, tx, sqlRotateSecret, id, id, principal, sealed, overlap)
	})
}

// roomForAnother refuses another active subscription when there are as many as there may
// be: ErrTooManySubscriptions.
func roomForAnother(ctx context.Context, tx pgx.Tx) error {
	var n int
	if err := tx.QueryRow(ctx, sqlCountActive).Scan(&n); err != nil {
		return err
	}
	if n >= maxActive {
		return ErrTooManySubscriptions.Because("%d are active", n).With("most", maxActive)
	}
	return nil
}

// Enable makes a subscription active. It isn't told of what happened while it was disabled.
// Errors: ErrTooManySubscriptions, ErrSubscriptionNotFound, and those of a change.
func (s *Store) Enable(ctx context.Context, principal, key string, id uuid.UUID) (Issued, error) {
	return s.issue(ctx, request{principal, key, "enabled", id, nil}, "", func(tx pgx.Tx) (Subscription, error) {
		was, err := one(ctx, tx, sqlLockSubscription, id, id)
		if err == nil && was.Status != Active {
			err = roomForAnother(ctx, tx)
		}
		if err != nil {
			return was, err
		}
		return one(ctx, tx, sqlEnable, id, id, principal)
	})
}

// Disable ends what's sent to a subscription; what's pending is dropped. Errors:
// ErrInvalidRequest with the field, ErrSubscriptionNotFound, and those of a change.
func (s *Store) Disable(ctx context.Context, principal, key string, id uuid.UUID, reason string) (Issued, error) {
	if reason == "" || len(reason) > buckets.MaxReason {
		return Issued{}, fault.BadField("reason", "must have 1 to %d bytes", buckets.MaxReason)
	}
	return s.issue(ctx, request{principal, key, "disabled", id, reason}, "", func(tx pgx.Tx) (Subscription, error) {
		return disable(ctx, tx, principal, id, reason)
	})
}

// maxDropped bounds what one statement drops; workers drop the rest.
const maxDropped = 5000

// disable locks the subscription before its deliveries, as whoever changes several of them.
func disable(ctx context.Context, tx pgx.Tx, principal string, id uuid.UUID, reason string) (Subscription, error) {
	sub, err := one(ctx, tx, sqlDisable, id, id, principal, reason)
	if err == nil {
		_, err = tx.Exec(ctx, sqlDropPending, id, maxDropped)
	}
	return sub, err
}

// issue makes a change once, and gives the subscription after it; after a repeat as it is
// now, without the secret.
func (s *Store) issue(ctx context.Context, r request, secret string, change func(pgx.Tx) (Subscription, error)) (made Issued, err error) {
	made.Replayed, _, err = s.once(ctx, r, func(tx pgx.Tx) (err error) {
		made.Subscription, err = change(tx)
		return err
	})
	if err != nil {
		return Issued{}, err
	}
	if !made.Replayed {
		made.Secret = secret
		return made, nil
	}
	id := r.subscription
	if id == uuid.Nil {
		id = r.id()
	}
	made.Subscription, err = one(ctx, s.Pool, sqlSubscription, id, id)
	return made, err
}
