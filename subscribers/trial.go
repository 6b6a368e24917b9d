package subscribers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// KindTest is the kind of the event that a test sends. No entry has it.
const KindTest = "subscription.test"

// trialTimeout bounds a test: its caller waits for the outcome.
const trialTimeout = 8 * time.Second

// Trial is what came of a test.
type Trial struct {
	WebhookID    string `json:"webhook_id"`
	Delivered    bool   `json:"delivered"`
	Milliseconds int64  `json:"milliseconds"`
	StatusCode   int    `json:"status_code"` // 0: there was no answer
	Error        string `json:"error,omitempty"`
	Response     string `json:"response,omitempty"`
}

// Try sends a made-up event to a subscriber at once, and gives what came of it. It's of no
// journal and isn't in the log; a repeat under the same key has the same webhook-id. Errors:
// ErrSubscriptionNotFound, ErrSubscriptionDisabled.
func (s *Store) Try(ctx context.Context, principal, key string, id uuid.UUID) (Trial, error) {
	sub, err := s.Get(ctx, id)
	if err == nil && sub.Status != Active {
		err = disabled(id)
	}
	if err != nil {
		return Trial{}, err
	}
	var url string
	var secret, old []byte
	err = s.Reads.QueryRow(ctx, sqlSecrets, id).Scan(&url, &secret, &old)
	if errors.Is(err, pgx.ErrNoRows) {
		return Trial{}, notFound(id)
	}
	if err != nil {
		return Trial{}, pg.Fault(fmt.Errorf("read subscription %s: %w", id, err))
	}
	secrets, _, err := openSecrets(s.Ring, id, secret, old)
	if err != nil {
		return Trial{}, ErrSecretKeysRequired.Because("none that's configured opens this subscription's secret: add the one that sealed it, or rotate the secret").From(err)
	}
	at, err := s.clock.Now(ctx)
	if err != nil {
		return Trial{}, err
	}
	data, err := json.Marshal(map[string]uuid.UUID{"subscription_id": id})
	if err != nil {
		return Trial{}, err
	}
	e := outbox.Event{ID: ledger.NewID(ledger.System, principal, key, KindTest, id.String()), Kind: KindTest, At: at, Data: data}
	webhook := fmt.Sprintf("%s-test-%s", id, e.ID)
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	a := s.caller.post(ctx, url, secrets, webhook, at, e.Append(nil))
	if !a.delivered() {
		s.Log.Info("a subscription's test failed", append(a.why(), slog.String("subscription_id", id.String()))...)
	}
	return Trial{webhook, a.delivered(), a.took.Milliseconds(), a.status, clip(a.problem), a.response}, nil
}
