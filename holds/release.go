package holds

import (
	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// release is the command that gives a hold's tickets back.
type release struct {
	holdID  uuid.UUID
	ifMatch *ledger.Seq // the version that the caller has seen; nil for any
}

// Accounts is empty: the shelf names those that the hold leads to.
func (r *release) Accounts() []string { return nil }

// HoldIDs names the hold.
func (r *release) HoldIDs() []uuid.UUID { return []uuid.UUID{r.holdID} }

// Decide releases a hold that's held. One that has run out expires instead; one
// that has ended stays as it is, and that's the answer. One that's bought or being
// paid for isn't the customer's to release: its order can be cancelled.
func (r *release) Decide(s *ledger.State) (ledger.Decision, error) {
	h, ok := shelfOf(s).holds[r.holdID]
	switch {
	case !ok:
		return ledger.Decision{}, NotFound(r.holdID)
	case r.ifMatch != nil && *r.ifMatch != h.Version:
		return ledger.Decision{}, buckets.ErrVersionConflict.Because("hold %s has version %d", r.holdID, h.Version).
			With("version", h.Version)
	case h.Due(s.Now):
		return end(s, h, Expired, KindExpired), nil
	case h.Status == Confirmed:
		return ledger.Decision{}, ErrHoldConfirmed.Because("hold %s was bought", r.holdID).With("hold_id", r.holdID)
	case h.Status.Claims() && h.Status != Held:
		return ledger.Decision{}, ErrPaymentInProgress.Because("hold %s is being paid for", r.holdID).
			With("hold_id", r.holdID)
	case h.Status != Held:
		event := buckets.ShelfOf(s).Event
		h.of(event.Event, event.Currency)
		return ledger.Decision{Data: h.data()}, nil
	}
	return end(s, h, Released, KindReleased), nil
}

// expire is the command that time gives; it matches id, state and deadline.
type expire struct{ holdID uuid.UUID }

func (e *expire) Accounts() []string { return nil }

func (e *expire) Decide(s *ledger.State) (ledger.Decision, error) {
	h, ok := shelfOf(s).holds[e.holdID]
	if !ok || !h.Due(s.Now) {
		return ledger.Decision{}, nil
	}
	return end(s, h, Expired, KindExpired), nil
}

// end decides that a hold ends.
func end(s *ledger.State, h *Hold, to Status, kind string) ledger.Decision {
	ended, legs := h.end(to, s.NextSeq())
	event := buckets.ShelfOf(s).Event
	ended.of(event.Event, event.Currency)
	return ledger.Decision{Kind: kind, Legs: legs, Data: ended.data(), Rows: []ledger.Row{changedRow{&ended}}}
}

// NotFound is ErrHoldNotFound about a hold.
func NotFound(id uuid.UUID) error {
	return ErrHoldNotFound.Because("%s", id).With("hold_id", id)
}
