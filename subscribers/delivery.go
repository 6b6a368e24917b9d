package subscribers

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/ledger"
)

// DeliveryStatus is the state of a delivery.
type DeliveryStatus string

// The states of a delivery.
const (
	Pending   DeliveryStatus = "pending"   // it's attempted when it's due
	Delivered DeliveryStatus = "delivered" // an answer was 2xx
	Dead      DeliveryStatus = "dead"      // all attempts failed
	Dropped   DeliveryStatus = "dropped"   // the subscription was disabled before
)

// DeliveryStatuses lists the states.
func DeliveryStatuses() []DeliveryStatus {
	return []DeliveryStatus{Pending, Delivered, Dead, Dropped}
}

// Valid tells whether s is a state.
func (s DeliveryStatus) Valid() bool { return slices.Contains(DeliveryStatuses(), s) }

// Delivery is one entry for one subscriber.
type Delivery struct {
	Journal       ledger.JournalID `json:"journal"`
	Seq           ledger.Seq       `json:"seq"`
	Kind          string           `json:"kind"`
	WebhookID     string           `json:"webhook_id"` // the same in all attempts
	Status        DeliveryStatus   `json:"status"`
	Attempts      int              `json:"attempts"`
	CreatedAt     time.Time        `json:"created_at"`
	NextAttemptAt *time.Time       `json:"next_attempt_at,omitempty"` // while one is under way: when it's given up
	EndedAt       *time.Time       `json:"ended_at,omitempty"`
	Log           []Attempt        `json:"log"` // of all attempts
}

// Attempt is what came of one call.
type Attempt struct {
	Attempt      int       `json:"attempt"` // from 1
	At           time.Time `json:"at"`
	Milliseconds int64     `json:"milliseconds"`
	StatusCode   int       `json:"status_code"`        // 0: there was no answer
	Error        string    `json:"error,omitempty"`    // why it doesn't count as delivered
	Response     string    `json:"response,omitempty"` // the beginning of the answer's body; not in lists
}

// webhookID names a delivery in all its attempts. It has no dot, which would end it in what
// is signed.
func webhookID(subscription uuid.UUID, journal ledger.JournalID, seq ledger.Seq) string {
	return fmt.Sprintf("%s-%d-%d", subscription, journal, seq)
}

// schedule are the pauses before each attempt of a delivery, as Standard Webhooks suggests
// them: the first attempt is made at once, the last one three days later.
var schedule = []time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
	5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// maxRetryAfter bounds how long a subscriber can put its delivery off.
const maxRetryAfter = 24 * time.Hour

// verdict is what an attempt means for its delivery.
type verdict struct {
	status DeliveryStatus
	again  time.Duration // of a pending one: the pause before the next attempt
	gone   bool          // the subscriber wants no more
}

// judge says what becomes of a delivery after an attempt, of which it's the n-th of its
// schedule, from 1. jitter is from 0 to 1.
func judge(n int, a answer, jitter float64) verdict {
	switch {
	case a.delivered():
		return verdict{status: Delivered}
	case a.status == statusGone:
		return verdict{status: Dropped, gone: true}
	case n >= len(schedule):
		return verdict{status: Dead}
	}
	pause := schedule[n]
	pause += time.Duration(jitter * float64(pause) / 10) // those who failed together don't come back together
	return verdict{status: Pending, again: max(pause, min(a.retryAfter, maxRetryAfter))}
}
