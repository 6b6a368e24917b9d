package subscribers_test

import (
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/subscribers"
)

// manyDeliveries are 3,000 for each of 20 subscriptions: of every hundred one is due, another
// waits, and the others were delivered at the first attempt.
var manyDeliveries = []string{
	`INSERT INTO subscriptions (subscription_id, url, kinds, event, description, status, reason, secret, active_since, created_by, created_at,
	                            changed_by, changed_at)
	 SELECT md5(n::text)::uuid, 'https://example.com', '{hold.*}', 'e' || n, '', 'active', '', '', '-infinity', 'x', now(), 'x', now()
	 FROM generate_series(1, 20) n`,
	`INSERT INTO deliveries (subscription_id, journal_id, seq, kind, status, attempts, created_at, due_at, ended_at)
	 SELECT md5(n::text)::uuid, s / 300, s, 'hold.placed', CASE WHEN s % 100 < 2 THEN 'pending' ELSE 'delivered' END,
	        CASE WHEN s % 100 < 2 THEN 0 ELSE 1 END, now() - s * interval '1 s',
	        CASE s % 100 WHEN 0 THEN now() - interval '1 s' WHEN 1 THEN now() + interval '1 h' END, CASE WHEN s % 100 >= 2 THEN now() - s * interval '1 s' END
	 FROM generate_series(1, 20) n, generate_series(1, 3000) s`,
	`INSERT INTO delivery_attempts (subscription_id, journal_id, seq, attempt, at, milliseconds, status_code, error, response)
	 SELECT subscription_id, journal_id, seq, 1, now(), 1, 204, '', ''
	 FROM deliveries
	 WHERE attempts = 1`,
}

// The plans of what workers do are made when there are no deliveries, and kept: when there
// are many, each goes to the rows that it's about, however long the log is.
func TestPlansMadeForNoDeliveriesServeMany(t *testing.T) {
	t.Parallel()
	worked := map[string]string{
		"sqlNoneActive":           ``,
		"sqlFanOut":               `(900, '{1,2}', '{hold.placed,order.captured}', ARRAY[now(), now()], 'e7')`,
		"sqlDueSubscriptions":     ``,
		"sqlLease":                `(ARRAY[md5('7')::uuid, md5('8')::uuid], '{3,4}', '1 min')`,
		"sqlReturnLease":          `(md5('7')::uuid, 1, 301, now(), '1 s')`,
		"sqlRecord":               `(md5('7')::uuid, 1, 401, now(), 'delivered', NULL)`,
		"sqlInsertAttempt":        `(md5('7')::uuid, 1, 401, 1, now(), 1, 204, '', '')`,
		"sqlLockSubscription":     `(md5('7')::uuid)`,
		"sqlDropPending":          `(md5('9')::uuid, 10)`,
		"sqlDisabledPending":      ``,
		"sqlPrune":                `(md5('7')::uuid, '49 min', 10)`,
		"sqlPruneAttempts":        `(md5('8')::uuid, '{1,1}', '{302,303}')`,
		"sqlSubscriptionsToPrune": `('49 min')`,
		"sqlResendOne":            `(md5('7')::uuid, 1, 302)`,
		"sqlRedo":                 `(md5('7')::uuid, 1, 303)`,
	}
	read := map[string]string{
		"sqlWanted":     ``,
		"sqlDelivery":   `(md5('7')::uuid, 1, 302)`,
		"sqlDeliveries": `(md5('7')::uuid, 'infinity', 0, 0, '', 11)`,
		"sqlAttempts":   `(md5('7')::uuid, '{1,1}', '{302,303}')`,
	}
	pgtest.Plans{
		Statements: subscribers.Statements, Commits: worked, Reads: read, Many: manyDeliveries, MaxPages: 300,
		Tables: `subscriptions, deliveries, delivery_attempts`,
	}.Check(t)
}
