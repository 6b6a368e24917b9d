package subscribers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// maxResend bounds what one request sends again.
const maxResend = 10_000

// Resend says which deliveries are sent again: one, by journal and seq, whatever its
// status; or those of some statuses that were made in a time.
type Resend struct {
	Journal *ledger.JournalID `json:"journal,omitempty"`
	Seq     *ledger.Seq       `json:"seq,omitempty"`
	Status  []DeliveryStatus  `json:"status,omitempty"` // none: dead and dropped
	Since   *time.Time        `json:"since,omitempty"`  // nil: from the first on
	Until   *time.Time        `json:"until,omitempty"`  // nil: up to now
}

// Resent tells how many deliveries are sent again.
type Resent struct {
	Deliveries int64 `json:"deliveries"`
	More       bool  `json:"more"` // there are others: ask again, under another key
}

// validate refuses what no state could make right.
func (r *Resend) validate() error {
	one := r.Journal != nil || r.Seq != nil
	switch {
	case one && (r.Journal == nil || r.Seq == nil):
		return fault.BadField("seq", "journal and seq name one delivery together")
	case one && (len(r.Status) > 0 || r.Since != nil || r.Until != nil):
		return fault.BadField("status", "give either journal and seq, or a filter")
	}
	for _, status := range r.Status {
		if !status.Valid() {
			return fault.BadField("status", "must be of pending, delivered, dead and dropped")
		}
	}
	return nil
}

// Resend makes deliveries due now, with all attempts before them, in the order of their
// journals. Their webhook-ids stay. Errors: ErrInvalidRequest with the field,
// ErrSubscriptionNotFound, ErrSubscriptionDisabled, ErrDeliveryNotFound, and those of a
// change.
func (s *Store) Resend(ctx context.Context, principal, key string, id uuid.UUID, r Resend, dryRun bool) (done Resent, replayed bool, err error) {
	if err := r.validate(); err != nil {
		return done, false, err
	}
	if dryRun {
		done, err = s.wouldResend(ctx, id, r)
		return done, false, err
	}
	q := request{principal, key, "resent", id, r}
	replayed, answer, err := s.once(ctx, q, func(tx pgx.Tx) error {
		if err := lockActive(ctx, tx, id); err != nil {
			return err
		}
		if done, err = resend(ctx, tx, id, r); err != nil {
			return err
		}
		text, err := json.Marshal(done)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, sqlAnswerChange, q.id(), text)
		return err
	})
	switch {
	case err != nil:
		return Resent{}, false, err
	case replayed:
		err = json.Unmarshal(answer, &done)
	default:
		s.hint()
	}
	return done, replayed, err
}

// lockActive locks a subscription; ErrSubscriptionNotFound, ErrSubscriptionDisabled.
func lockActive(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	sub, err := one(ctx, tx, sqlLockSubscription, id, id)
	if err == nil && sub.Status != Active {
		err = disabled(id)
	}
	return err
}

func resend(ctx context.Context, tx pgx.Tx, id uuid.UUID, r Resend) (Resent, error) {
	if r.Seq != nil {
		tag, err := tx.Exec(ctx, sqlResendOne, id, int64(*r.Journal), int64(*r.Seq))
		if err == nil && tag.RowsAffected() == 0 {
			err = deliveryNotFound(*r.Journal, *r.Seq)
		}
		return Resent{Deliveries: 1}, err
	}
	tag, err := tx.Exec(ctx, sqlResend, r.arguments(id, maxResend)...)
	return Resent{Deliveries: tag.RowsAffected(), More: tag.RowsAffected() == maxResend}, err
}

// arguments are those of the statements by filter.
func (r *Resend) arguments(id uuid.UUID, most int) []any {
	statuses := r.Status
	if len(statuses) == 0 {
		statuses = []DeliveryStatus{Dead, Dropped}
	}
	since, until := time.Unix(0, 0), endOfTime
	if r.Since != nil {
		since = *r.Since
	}
	if r.Until != nil {
		until = *r.Until
	}
	texts := make([]string, len(statuses))
	for i, status := range statuses {
		texts[i] = string(status)
	}
	return []any{id, texts, since, until, most}
}

// endOfTime is after all times that rows have.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// wouldResend counts what a resend would send now.
func (s *Store) wouldResend(ctx context.Context, id uuid.UUID, r Resend) (done Resent, err error) {
	sub, err := s.Get(ctx, id)
	switch {
	case err != nil:
		return done, err
	case sub.Status != Active:
		return done, disabled(id)
	case r.Seq != nil:
		_, err := s.Delivery(ctx, id, *r.Journal, *r.Seq)
		return Resent{Deliveries: 1}, err
	}
	err = s.Reads.QueryRow(ctx, sqlCountResend, r.arguments(id, maxResend)...).Scan(&done.Deliveries)
	done.More = done.Deliveries == maxResend
	return done, fail(err, "count deliveries of %s", id)
}

// parseTarget reads the subscription that a dead letter was for.
func parseTarget(target string) (uuid.UUID, error) {
	id, err := uuid.Parse(target)
	if err != nil {
		return id, ErrSubscriptionNotFound.Because("%q", target)
	}
	return id, nil
}

// fail says what failed, in callers' terms; nil stays nil.
func fail(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return pg.Fault(fmt.Errorf(format+": %w", append(args, err)...))
}
