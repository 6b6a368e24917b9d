package sale

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// control makes the simulated provider's faults short, so that a sale needn't wait for
// them. It returns what the settings were.
func (s *sale) control(ctx context.Context) (before json.RawMessage, err error) {
	if err := s.api.read(ctx, "/sim/control", &before); err != nil {
		return nil, fmt.Errorf("the simulated provider: %w", err)
	}
	return before, s.configure(ctx, map[string]any{
		"hold_answer_ms": holdAnswer.Milliseconds(), "slow_ms": slowAnswer.Milliseconds(),
		"webhook_delay_ms": lateWebhook.Milliseconds(),
	})
}

// The simulated provider's times during a sale.
const (
	holdAnswer  = 300 * time.Millisecond // of a call that times out
	slowAnswer  = 800 * time.Millisecond
	lateWebhook = 3 * time.Second
)

func (s *sale) configure(ctx context.Context, settings any) error {
	got, _, err := s.api.call(ctx, "POST", "/sim/control", "", settings)
	if err == nil && got.status != 200 {
		err = fmt.Errorf("POST /sim/control: %s", got)
	}
	return err
}

// act is the bank's yes or no to a payment. The bank doesn't know the buyer's keys.
func (s *sale) act(ctx context.Context, payment, word string) error {
	got, _, err := s.api.call(ctx, "POST", "/sim/payments/"+payment+"/"+word, "", nil)
	if err == nil && got.status != 200 {
		err = fmt.Errorf("the bank's %s to %s: %s", word, payment, got)
	}
	return err
}
