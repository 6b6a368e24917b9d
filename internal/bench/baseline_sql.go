package bench

// Statements of the baselines. Their sessions see the clones.
const (
	sqlOnlyEvent = `
SELECT event, journal_id
FROM events`

	sqlPast = `
SELECT digest, seq, data
FROM entries
WHERE journal_id = $1
  AND id = $2`

	sqlLockTier = `
SELECT e.event, e.currency, e.hold_seconds, t.limit_per_customer, p.amount, p.price_version
FROM tiers t
JOIN events e ON e.journal_id = t.journal_id
JOIN prices p ON p.journal_id = t.journal_id
             AND p.tier = t.tier
             AND p.price_version = t.price_version
WHERE t.journal_id = $1
  AND t.tier = $2
FOR UPDATE OF t`

	sqlReadHead = `
SELECT seq, at, hash, clock_timestamp()
FROM journals
WHERE journal_id = $1`

	// As the product reads them: with = ANY the plan would get slower as the table
	// grows, and the comparison unfair.
	sqlReadAccounts = `
SELECT a.code, a.balance
FROM unnest($3::text[]) AS k (code)
CROSS JOIN LATERAL (
    SELECT *
    FROM accounts
    WHERE journal_id = $1
      AND code = k.code
      AND unit = $2
    OFFSET 0) a`

	sqlInsertEntry = `
INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	sqlInsertPostings = `
INSERT INTO postings (journal_id, seq, leg, account, unit, amount, balance)
VALUES ($1, $2, 0, 'available', $3, $4, $5),
       ($1, $2, 1, $6, $3, $7, $8)`

	sqlUpsertAccounts = `
INSERT INTO accounts (journal_id, code, unit, type, control, balance, version)
VALUES ($1, 'available', $2, 'inventory', NULL, $3, $7),
       ($1, 'held', $2, 'inventory', NULL, $4, $7),
       ($1, $5, $2, 'inventory', 'held', $6, $7)
ON CONFLICT (journal_id, code, unit) DO UPDATE
SET balance = excluded.balance,
    version = excluded.version`

	sqlInsertHold = `
INSERT INTO holds (journal_id, hold_id, customer, status, created_at, expires_at, items, total, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	sqlUpdateHead = `
UPDATE journals
SET seq = $2,
    at = $3,
    hash = $4
WHERE journal_id = $1`

	// The update of the journal is the lock: everything else waits for its row.
	// Rows that others have changed meanwhile are read anew, because they are
	// updated here too.
	sqlPlaceInOne = `
WITH offer AS (
    SELECT e.event, e.currency, e.hold_seconds, t.limit_per_customer, p.amount, p.price_version,
           coalesce((SELECT balance
                     FROM accounts
                     WHERE journal_id = $1
                       AND code = 'sold:' || $5::text
                       AND unit = $6), 0) AS sold
    FROM tiers t
    JOIN events e ON e.journal_id = t.journal_id
    JOIN prices p ON p.journal_id = t.journal_id
                 AND p.tier = t.tier
                 AND p.price_version = t.price_version
    WHERE t.journal_id = $1
      AND t.tier = $6
), head AS (
    UPDATE journals j
    SET seq = j.seq + 1,
        at = greatest(j.at, clock_timestamp()),
        hash = sha256(j.hash || uuid_send($2) || $4::bytea)
    FROM offer
    WHERE j.journal_id = $1
    RETURNING j.seq, j.at, j.hash, j.at + make_interval(secs => offer.hold_seconds) AS expires_at, offer.*
), free AS (
    UPDATE accounts a
    SET balance = a.balance - $7::bigint,
        version = head.seq
    FROM head
    WHERE a.journal_id = $1
      AND a.code = 'available'
      AND a.unit = $6
    RETURNING a.balance
), held AS (
    INSERT INTO accounts AS a (journal_id, code, unit, type, control, balance, version)
    SELECT $1, 'held', $6, 'inventory', NULL, $7, seq
    FROM head
    ON CONFLICT (journal_id, code, unit) DO UPDATE
    SET balance = a.balance + excluded.balance,
        version = excluded.version
), mine AS (
    INSERT INTO accounts AS a (journal_id, code, unit, type, control, balance, version)
    SELECT $1, 'held:' || $5, $6, 'inventory', 'held',
           CASE WHEN sold + $7 <= coalesce(limit_per_customer, 9e18) THEN $7 END, seq
    FROM head
    ON CONFLICT (journal_id, code, unit) DO UPDATE
    SET balance = CASE WHEN a.balance + excluded.balance + (SELECT sold FROM offer)
                            <= coalesce((SELECT limit_per_customer FROM offer), 9e18)
                       THEN a.balance + excluded.balance END,
        version = excluded.version
    RETURNING a.balance
), items AS (
    SELECT json_build_array(json_build_object('tier', $6, 'quantity', $7,
               'unit_price', json_build_object('amount', amount, 'currency', currency),
               'price_version', price_version)) AS items
    FROM offer
), entry AS (
    INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
    SELECT $1, seq, $2, 'hold.placed', at, $3, $4,
           json_build_object('hold_id', $2, 'event', event, 'customer', $5, 'status', 'held', 'version', seq,
               'created_at', at, 'expires_at', expires_at, 'items', items,
               'total', json_build_object('amount', amount * $7, 'currency', currency)), hash
    FROM head, items
    RETURNING seq, data
), legs AS (
    INSERT INTO postings (journal_id, seq, leg, account, unit, amount, balance)
    SELECT $1, seq, 0, 'available', $6, -$7, free.balance
    FROM head, free
    UNION ALL
    SELECT $1, seq, 1, 'held:' || $5, $6, $7, mine.balance
    FROM head, mine
), claim AS (
    INSERT INTO holds (journal_id, hold_id, customer, status, created_at, expires_at, items, total, version)
    SELECT $1, $2, $5, 'held', at, expires_at, items, amount * $7, seq
    FROM head, items
)
SELECT seq, data
FROM entry`
)
