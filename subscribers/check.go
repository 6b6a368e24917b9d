package subscribers

import "github.com/tierledger/tierledger/ledger"

// Checks are this package's invariants.
func Checks() []ledger.Check { return checks }

var checks = []ledger.Check{
	{Name: "deliveries_entered", Says: "every delivery is of an entry of its kind, for a subscription", SQL: `
SELECT format('subscription %s journal %s entry %s: delivers %s, the entry is %s', d.subscription_id, d.journal_id, d.seq,
              d.kind, coalesce(e.kind, 'missing'))
FROM (SELECT * FROM deliveries WHERE $1::bigint IS NULL OR journal_id = $1) d
LEFT JOIN entries e ON e.journal_id = d.journal_id AND e.seq = d.seq
LEFT JOIN subscriptions s ON s.subscription_id = d.subscription_id
WHERE e.kind IS DISTINCT FROM d.kind
   OR s.subscription_id IS NULL`},

	{Name: "deliveries_attempted", Says: "a delivery counts the attempts that are recorded, and has ended as the last of them says", SQL: `
SELECT format('subscription %s journal %s entry %s: %s after %s attempts, %s are recorded, the last with status %s',
              d.subscription_id, d.journal_id, d.seq, d.status, d.attempts, a.n, a.last)
FROM (SELECT * FROM deliveries WHERE $1::bigint IS NULL OR journal_id = $1) d
CROSS JOIN LATERAL (SELECT count(*) AS n, coalesce(max(attempt), 0) AS number,
                           (array_agg(status_code ORDER BY attempt DESC))[1] AS last
                    FROM delivery_attempts
                    WHERE subscription_id = d.subscription_id AND journal_id = d.journal_id AND seq = d.seq) a
WHERE d.attempts <> a.n
   OR d.attempts <> a.number
   OR d.status = 'delivered' AND coalesce(a.last NOT BETWEEN 200 AND 299, true)
   OR d.status = 'dead' AND coalesce(a.last BETWEEN 200 AND 299, true)`},

	{Name: "attempts_of_deliveries", Says: "every attempt is of a delivery, and says why unless it was taken", SQL: `
SELECT format('subscription %s journal %s entry %s attempt %s: status %s, %s', a.subscription_id, a.journal_id, a.seq,
              a.attempt, a.status_code, CASE WHEN d.seq IS NULL THEN 'no delivery' ELSE 'error "' || a.error || '"' END)
FROM (SELECT * FROM delivery_attempts WHERE $1::bigint IS NULL OR journal_id = $1) a
LEFT JOIN deliveries d USING (subscription_id, journal_id, seq)
WHERE d.seq IS NULL
   OR (a.error = '') <> (a.status_code BETWEEN 200 AND 299)`},

	{Name: "deliveries_buried", Says: "a delivery whose attempts have all failed has a dead letter", SQL: `
SELECT format('subscription %s journal %s entry %s is dead: no dead letter', d.subscription_id, d.journal_id, d.seq)
FROM deliveries d
WHERE d.status = 'dead'
  AND ($1::bigint IS NULL OR d.journal_id = $1)
  AND NOT EXISTS (SELECT FROM dead_letters l
                  WHERE l.consumer = 'webhooks'
                    AND l.journal_id = d.journal_id
                    AND l.seq = d.seq
                    AND l.target = d.subscription_id::text)`},

	{Name: "subscriptions_sealed", Says: "no secret of a subscription is readable", SQL: `
SELECT format('subscription %s: a secret isn''t sealed', subscription_id)
FROM subscriptions
WHERE $1::bigint IS NULL
  AND (position('whsec_'::bytea IN secret) > 0
       OR position('whsec_'::bytea IN coalesce(old_secret, '')) > 0
       OR octet_length(secret) < 60
       OR octet_length(old_secret) < 60)`},

	{Name: "subscriptions_changed", Says: "every subscription has the request that made it", SQL: `
SELECT format('subscription %s: nobody asked for it', s.subscription_id)
FROM subscriptions s
LEFT JOIN subscription_changes c ON c.change_id = s.subscription_id
                                AND c.subscription_id = s.subscription_id
                                AND c.kind = 'created'
                                AND c.changed_by = s.created_by
WHERE $1::bigint IS NULL
  AND c.change_id IS NULL`},
}
