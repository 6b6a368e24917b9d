package orders

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Receive verifies a webhook over its raw body and commits it, with what it brings. When
// it returns nil the webhook is durably stored: applied, parked or unidentified. Errors:
// ErrProviderNotFound, payments.ErrWebhookSignatureInvalid, payments.ErrWebhookTimestamp,
// payments.ErrWebhookUnreadable, and those of ledger.Do: the provider sends it again.
func (s *Store) Receive(ctx context.Context, provider string, body []byte, header http.Header) error {
	p := s.provider(provider)
	if p == nil {
		return ErrProviderNotFound.Because("%q", provider)
	}
	now, err := s.clock.Now(ctx)
	if err != nil {
		return err
	}
	event, err := p.ParseWebhook(body, header, now)
	if err != nil {
		return err
	}
	w := &webhook{provider: provider, event: event.ID, kind: event.Type, operation: event.Result.Operation, body: body}
	return s.take(ctx, w, event.Result, "webhook")
}

// again tries a parked webhook: its body was verified when it came. One that can't be
// read now, as when its provider isn't configured any more, waits for the next step of
// the schedule like the others, so that it doesn't stand in their way.
func (s *Store) again(ctx context.Context, journal ledger.JournalID, w *webhook) error {
	mark := "webhook " + strconv.Itoa(w.tries)
	p := s.provider(w.provider)
	if p == nil {
		return s.commitWebhook(ctx, journal, w, mark, &park{w})
	}
	result, err := p.ReadWebhook(w.body)
	if err != nil {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "a parked webhook couldn't be read", slog.String("event_id", w.event), slog.Any("error", err))
		return s.commitWebhook(ctx, journal, w, mark, &park{w})
	}
	return s.take(ctx, w, result, mark)
}

// take commits what a webhook says.
func (s *Store) take(ctx context.Context, w *webhook, r payments.Result, mark string) error {
	a, err := s.about(ctx, w.provider, r)
	switch {
	case err != nil:
		return err
	case !a.ours:
		return s.commitWebhook(ctx, ledger.System, w, mark, &unidentified{ledger.System, w, r})
	case !a.found && w.tries >= len(schedule)-1: // nobody has begun it, after so long
		return s.commitWebhook(ctx, a.journal, w, mark, &unidentified{a.journal, w, r})
	case !a.found:
		return s.commitWebhook(ctx, a.journal, w, mark, &park{w})
	}
	journal := a.journal
	err = s.commitWebhook(ctx, journal, w, mark,
		&observe{ref: a.ref, operation: a.operation, evidence: evidence{fromWebhook, r}, webhook: w})
	if f := fault.As(err); errors.Is(err, errParked) || f != nil && f.Kind == fault.Internal {
		if !errors.Is(err, errParked) {
			s.Log.LogAttrs(ctx, slog.LevelError, "a webhook couldn't be applied", slog.String("event_id", w.event), slog.Any("error", err))
		}
		return s.commitWebhook(ctx, journal, w, mark, &park{w})
	}
	return err
}

// subject is what a webhook is about.
type subject struct {
	ref
	journal   ledger.JournalID
	operation uuid.UUID // that it names; uuid.Nil for a step of the provider's own
	ours      bool      // it names an event of ours
	found     bool      // and an order
}

// about finds what a provider's word is about: the operation that it names, if that's
// ours, else a step of the provider's own with the payment that an operation of ours made.
func (s *Store) about(ctx context.Context, provider string, r payments.Result) (subject, error) {
	var a subject
	for _, named := range []uuid.UUID{r.Operation, r.Payment.Operation} {
		journal, ok, err := s.Events.JournalOf(ctx, named)
		if err != nil {
			return a, err
		}
		if !ok {
			continue
		}
		to, found, err := s.findRef(ctx, journal, sqlRefOfOperation, named)
		switch {
		case err != nil:
			return a, err
		case found && to.provider != provider:
			continue // no provider speaks for another
		}
		a.ours, a.journal = true, journal
		if !found {
			continue
		}
		a.ref, a.found = to, true
		if named == r.Operation {
			a.operation = named
		}
		return a, nil
	}
	return a, nil
}

// commitWebhook commits a command of a webhook, and begins what it has sent.
func (s *Store) commitWebhook(ctx context.Context, journal ledger.JournalID, w *webhook, mark string, body ledger.Body) error {
	receipt, err := s.Ledger.Do(ctx, journal, ledger.Command{
		ID:        ledger.NewID(journal, ledger.SystemPrincipal, mark, w.provider, w.event),
		Principal: ledger.SystemPrincipal, Body: body,
	})
	if err != nil || receipt.Replayed {
		return err
	}
	if b, ok := body.(*observe); ok && receipt.Kind != KindWebhook {
		var o Order
		if err := unmarshal(receipt.Data, &o); err != nil {
			return err
		}
		s.follow(ctx, b.ref, receipt, &o)
	}
	return nil
}
