package subscribers

import (
	"net/netip"
	"time"

	"github.com/tierledger/tierledger/ledger"

	"github.com/google/uuid"
)

// Statements are the package's SQL, for the tests that prepare and explain them.
var Statements = map[string]string{
	"sqlSubscription":         sqlSubscription,
	"sqlLockSubscription":     sqlLockSubscription,
	"sqlSubscriptions":        sqlSubscriptions,
	"sqlInsertChange":         sqlInsertChange,
	"sqlFindChange":           sqlFindChange,
	"sqlAnswerChange":         sqlAnswerChange,
	"sqlCountActive":          sqlCountActive,
	"sqlInsertSubscription":   sqlInsertSubscription,
	"sqlUpdateSubscription":   sqlUpdateSubscription,
	"sqlRotateSecret":         sqlRotateSecret,
	"sqlEnable":               sqlEnable,
	"sqlDisable":              sqlDisable,
	"sqlDropPending":          sqlDropPending,
	"sqlDisabledPending":      sqlDisabledPending,
	"sqlNoneActive":           sqlNoneActive,
	"sqlWanted":               sqlWanted,
	"sqlFanOut":               sqlFanOut,
	"sqlDueSubscriptions":     sqlDueSubscriptions,
	"sqlSecrets":              sqlSecrets,
	"sqlLease":                sqlLease,
	"sqlReturnLease":          sqlReturnLease,
	"sqlRecord":               sqlRecord,
	"sqlInsertAttempt":        sqlInsertAttempt,
	"sqlDelivery":             sqlDelivery,
	"sqlDeliveries":           sqlDeliveries,
	"sqlAttempts":             sqlAttempts,
	"sqlResendOne":            sqlResendOne,
	"sqlResend":               sqlResend,
	"sqlCountResend":          sqlCountResend,
	"sqlRedo":                 sqlRedo,
	"sqlSubscriptionsToPrune": sqlSubscriptionsToPrune,
	"sqlPrune":                sqlPrune,
	"sqlPruneAttempts":        sqlPruneAttempts,
	"sqlBacklog":              sqlBacklog,
}

// What the tests outside of the package hold it to.
const (
	MaxFailures  = maxFailures
	MaxCallsEach = maxCallsEach
	MaxAnswer    = maxAnswer
	CallTimeout  = callTimeout
	BodyTimeout  = bodyTimeout
	MaxActive    = maxActive
	MaxPruned    = maxPruned
)

// Tries is how many attempts a schedule has.
var Tries = len(schedule)

// Public tells whether webhooks may go to an address.
func Public(a netip.Addr) bool { return public(a) }

// WebhookID names a delivery.
func WebhookID(id uuid.UUID, journal ledger.JournalID, seq ledger.Seq) string {
	return webhookID(id, journal, seq)
}

// NextPause is the pause after the n-th attempt of a schedule, which failed with a status.
func NextPause(n, status int, retryAfter time.Duration, jitter float64) (DeliveryStatus, time.Duration) {
	v := judge(n, answer{status: status, retryAfter: retryAfter}, jitter)
	return v.status, v.again
}

// Line is what a worker knows of a subscriber, for Share.
type Line struct {
	Pace             string // unknown, slow or quick
	Window, Underway int
	Waits            time.Duration // since its last call
}

// Share gives how many calls may begin to each of several subscribers.
func Share(lines []Line) []int {
	w := &worker{Store: NewStore(Options{}), lines: make(map[uuid.UUID]*line)}
	targets, place := make([]target, len(lines)), make(map[uuid.UUID]int)
	paces := map[string]pace{"unknown": unknown, "slow": slow, "quick": quick}
	now := time.Now()
	for i, l := range lines {
		id := uuid.New()
		targets[i], place[id] = target{id: id}, i
		known := w.line(id)
		known.pace, known.window, known.underway, known.begun = paces[l.Pace], l.Window, l.Underway, now.Add(-l.Waits)
	}
	shares := make([]int, len(lines))
	ids, rooms := w.share(targets)
	for i, id := range ids {
		shares[place[id]] = int(rooms[i])
	}
	return shares
}
