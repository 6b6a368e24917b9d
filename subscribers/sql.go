package subscribers

// Every statement on subscriptions, subscription_changes, deliveries and
// delivery_attempts. Queues are walked by deliveries_pending, whose rows all have a due
// time: due_at < 'infinity' says so in a way that the index can use. It has the ids as text.
const (
	subscriptionColumns = `subscription_id, url, kinds, coalesce(event, ''), description, status, reason,
       CASE WHEN old_until > clock_timestamp() THEN old_until END, active_since, created_by, created_at, changed_by, changed_at`

	sqlSubscription = `
SELECT ` + subscriptionColumns + `
FROM subscriptions
WHERE subscription_id = $1`

	sqlLockSubscription = sqlSubscription + `
FOR NO KEY UPDATE`

	sqlSubscriptions = `
SELECT ` + subscriptionColumns + `
FROM subscriptions
WHERE subscription_id > $1
ORDER BY subscription_id
LIMIT $2`

	sqlInsertChange = `
INSERT INTO subscription_changes (change_id, subscription_id, kind, digest, changed_by, changed_at)
VALUES ($1, $2, $3, $4, $5, clock_timestamp())
ON CONFLICT (change_id) DO NOTHING`

	sqlFindChange = `
SELECT subscription_id, digest, answer
FROM subscription_changes
WHERE change_id = $1`

	sqlAnswerChange = `
UPDATE subscription_changes
SET answer = $2
WHERE change_id = $1`

	sqlCountActive = `
SELECT count(*)
FROM subscriptions
WHERE status = 'active'`

	sqlInsertSubscription = `
INSERT INTO subscriptions (subscription_id, url, kinds, event, description, status, reason, secret, active_since,
                           created_by, created_at, changed_by, changed_at)
SELECT $1, $2, $3, nullif($4, ''), $5, 'active', '', $6, c.now, $7, c.now, $7, c.now
FROM (SELECT clock_timestamp() AS now OFFSET 0) c
RETURNING ` + subscriptionColumns

	changed = `,
    changed_by = $2,
    changed_at = clock_timestamp()
WHERE subscription_id = $1
RETURNING ` + subscriptionColumns

	sqlUpdateSubscription = `
UPDATE subscriptions
SET url = coalesce($3, url),
    kinds = coalesce($4, kinds),
    event = CASE WHEN $5::text IS NULL THEN event ELSE nullif($5, '') END,
    description = coalesce($6, description)` + changed

	sqlRotateSecret = `
UPDATE subscriptions
SET secret = $3,
    old_secret = CASE WHEN $4::interval > '0' THEN secret END,
    old_until = CASE WHEN $4::interval > '0' THEN clock_timestamp() + $4::interval END` + changed

	sqlEnable = `
UPDATE subscriptions
SET status = 'active',
    reason = '',
    active_since = CASE status WHEN 'active' THEN active_since ELSE clock_timestamp() END` + changed

	sqlDisable = `
UPDATE subscriptions
SET status = 'disabled',
    reason = $3` + changed

	// Some of what a subscription has pending.
	sqlDropPending = `
UPDATE deliveries
SET status = 'dropped',
    due_at = NULL,
    ended_at = clock_timestamp()
WHERE ctid = ANY (ARRAY(
    SELECT ctid
    FROM deliveries
    WHERE subscription_id::text COLLATE "C" = $1::uuid::text
      AND due_at < 'infinity'
    LIMIT $2
    FOR UPDATE))`

	// Those that were disabled while the consumer went over the subscriptions.
	sqlDisabledPending = `
SELECT s.subscription_id
FROM subscriptions s
CROSS JOIN LATERAL (
    SELECT
    FROM deliveries
    WHERE subscription_id::text COLLATE "C" = s.subscription_id::text
      AND due_at < 'infinity'
    LIMIT 1) d
WHERE s.status = 'disabled'`

	sqlWanted = `
SELECT kinds
FROM subscriptions
WHERE status = 'active'`

	sqlNoneActive = `
SELECT NOT EXISTS (SELECT FROM subscriptions WHERE status = 'active')`

	// Entries of one journal, $1, which records the event $5. All of them are due at one
	// time, so that their order in a queue is the journal's.
	sqlFanOut = `
INSERT INTO deliveries (subscription_id, journal_id, seq, kind, status, created_at, due_at)
SELECT s.subscription_id, $1, e.seq, e.kind, 'pending', c.now, c.now
FROM (SELECT clock_timestamp() AS now OFFSET 0) c
CROSS JOIN unnest($2::bigint[], $3::text[], $4::timestamptz[]) AS e (seq, kind, at)
JOIN subscriptions s ON s.status = 'active'
                    AND s.active_since <= e.at
                    AND (s.event IS NULL OR s.event = $5)
                    AND (cardinality(s.kinds) = 0
                         OR EXISTS (SELECT
                                    FROM unnest(s.kinds) AS k (kind)
                                    WHERE k.kind = e.kind
                                       OR k.kind LIKE '%.*' AND starts_with(e.kind, left(k.kind, -1))))
ON CONFLICT (subscription_id, journal_id, seq) DO NOTHING`

	sqlDueSubscriptions = `
SELECT s.subscription_id, s.url, s.secret, CASE WHEN s.old_until > clock_timestamp() THEN s.old_secret END
FROM subscriptions s
CROSS JOIN LATERAL (
    SELECT
    FROM deliveries
    WHERE subscription_id::text COLLATE "C" = s.subscription_id::text
      AND due_at <= now()
    LIMIT 1) d
WHERE s.status = 'active'`

	sqlSecrets = `
SELECT url, secret, CASE WHEN old_until > clock_timestamp() THEN old_secret END
FROM subscriptions
WHERE subscription_id = $1`

	// Of each subscription so many as it has room for.
	sqlLease = `
UPDATE deliveries
SET due_at = clock_timestamp() + $3::interval
WHERE ctid = ANY (ARRAY(
    SELECT d.ctid
    FROM unnest($1::uuid[], $2::integer[]) AS k (id, room)
    CROSS JOIN LATERAL (
        SELECT ctid
        FROM deliveries
        WHERE subscription_id::text COLLATE "C" = k.id::text
          AND due_at <= now()
        ORDER BY due_at, journal_id, seq
        LIMIT k.room
        FOR UPDATE SKIP LOCKED) d))
RETURNING subscription_id, journal_id, seq, attempts, spent, due_at`

	// Whoever has the lease knows its end.
	sqlReturnLease = `
UPDATE deliveries
SET due_at = clock_timestamp() + $5::interval
WHERE subscription_id = $1
  AND journal_id = $2
  AND seq = $3
  AND due_at = $4`

	sqlRecord = `
UPDATE deliveries
SET status = $5,
    attempts = attempts + 1,
    due_at = CASE $5 WHEN 'pending' THEN clock_timestamp() + $6::interval END,
    ended_at = CASE WHEN $5 <> 'pending' THEN clock_timestamp() END
WHERE subscription_id = $1
  AND journal_id = $2
  AND seq = $3
  AND due_at = $4`

	sqlInsertAttempt = `
INSERT INTO delivery_attempts (subscription_id, journal_id, seq, attempt, at, milliseconds, status_code, error, response)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	deliveryColumns = `journal_id, seq, kind, status, attempts, created_at, due_at, ended_at`

	sqlDelivery = `
SELECT ` + deliveryColumns + `
FROM deliveries
WHERE subscription_id = $1
  AND journal_id = $2
  AND seq = $3`

	// The newest first.
	sqlDeliveries = `
SELECT ` + deliveryColumns + `
FROM deliveries
WHERE subscription_id = $1
  AND (created_at, journal_id, seq) < ($2, $3, $4)
  AND ($5 = '' OR status = $5)
ORDER BY created_at DESC, journal_id DESC, seq DESC
LIMIT $6`

	sqlAttempts = `
SELECT a.journal_id, a.seq, a.attempt, a.at, a.milliseconds, a.status_code, a.error, a.response
FROM unnest($2::bigint[], $3::bigint[]) AS k (journal, seq)
CROSS JOIN LATERAL (
    SELECT *
    FROM delivery_attempts
    WHERE subscription_id = $1
      AND journal_id = k.journal
      AND seq = k.seq
    OFFSET 0) a
ORDER BY a.journal_id, a.seq, a.attempt`

	resent = `
UPDATE deliveries
SET status = 'pending',
    spent = attempts,
    due_at = now(),
    ended_at = NULL`

	// In a transaction all of them are due at one time, so that their order is the journal's.
	sqlResendOne = resent + `
WHERE subscription_id = $1
  AND journal_id = $2
  AND seq = $3`

	toResend = `
    SELECT ctid
    FROM deliveries
    WHERE subscription_id = $1
      AND status = ANY ($2::text[])
      AND created_at >= $3
      AND created_at < $4
    ORDER BY created_at, journal_id, seq
    LIMIT $5`
	sqlResend = resent + `
WHERE ctid = ANY (ARRAY(` + toResend + `
    FOR UPDATE))`
	sqlCountResend = `
SELECT count(*)
FROM (` + toResend + `) d`

	sqlRedo = resent + `
WHERE subscription_id = $1
  AND journal_id = $2
  AND seq = $3
  AND status = 'dead'`

	sqlSubscriptionsToPrune = `
SELECT s.subscription_id
FROM subscriptions s
CROSS JOIN LATERAL (
    SELECT
    FROM deliveries
    WHERE subscription_id = s.subscription_id
      AND created_at < now() - $1::interval
      AND ended_at < now() - $1::interval
      AND status IN ('delivered', 'dropped')
    ORDER BY created_at, journal_id, seq
    LIMIT 1) d`

	sqlPrune = `
DELETE FROM deliveries
WHERE ctid = ANY (ARRAY(
    SELECT ctid
    FROM deliveries
    WHERE subscription_id = $1
      AND created_at < now() - $2::interval
      AND ended_at < now() - $2::interval
      AND status IN ('delivered', 'dropped')
    ORDER BY created_at, journal_id, seq
    LIMIT $3
    FOR UPDATE SKIP LOCKED))
RETURNING journal_id, seq`

	sqlPruneAttempts = `
DELETE FROM delivery_attempts
WHERE ctid = ANY (ARRAY(
    SELECT a.ctid
    FROM unnest($2::bigint[], $3::bigint[]) AS k (journal, seq)
    CROSS JOIN LATERAL (
        SELECT ctid
        FROM delivery_attempts
        WHERE subscription_id = $1
          AND journal_id = k.journal
          AND seq = k.seq
        OFFSET 0) a))`

	sqlBacklog = `
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8
FROM (SELECT created_at
      FROM deliveries
      WHERE due_at < 'infinity'
      LIMIT $1) d`
)
