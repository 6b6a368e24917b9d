package outbox

const (
	// A retry further away than any pause was set before the clock was put back.
	retryDue = `(i.retry_at <= clock_timestamp() OR i.retry_at > clock_timestamp() + interval '10 minutes')`

	sqlOpenInbox = `
INSERT INTO inbox (consumer, journal_id, seq)
SELECT $1, journal_id, 0
FROM journals
WHERE journal_id = $2
ON CONFLICT (consumer, journal_id) DO NOTHING`

	// Whoever works on the journal keeps the row; another process waits here, and finds it
	// done.
	sqlLockInbox = `
SELECT i.seq, i.attempts, coalesce(NOT ` + retryDue + `, false), j.seq
FROM inbox i
JOIN journals j ON j.journal_id = i.journal_id
WHERE i.consumer = $1
  AND i.journal_id = $2
FOR UPDATE OF i`

	sqlInboxEntries = `
SELECT seq, id, kind, at, data
FROM entries
WHERE journal_id = $1
  AND seq > $2
  AND seq <= $3
  AND (kind = ANY ($4) OR coalesce(cardinality($4::text[]), 0) = 0)
ORDER BY seq
LIMIT $5`

	sqlMoveInbox = `
UPDATE inbox
SET seq = $3, attempts = 0, retry_at = NULL, reason = ''
WHERE consumer = $1
  AND journal_id = $2`

	// Not if it has moved on since, or another process has counted the same attempt.
	sqlFailInbox = `
UPDATE inbox
SET attempts = attempts + 1, retry_at = clock_timestamp() + $5::interval, reason = $6
WHERE consumer = $1
  AND journal_id = $2
  AND seq < $3
  AND attempts = $4
RETURNING attempts`

	// Journals in which the consumer isn't at the end, and may go on; in a circle, the last
	// sweep's after all others.
	sqlInboxBehind = `
SELECT j.journal_id
FROM journals j
LEFT JOIN LATERAL (
    SELECT seq, retry_at
    FROM inbox
    WHERE consumer = $1
      AND journal_id = j.journal_id
    OFFSET 0) i ON true
WHERE j.seq > coalesce(i.seq, 0)
  AND (i.retry_at IS NULL OR ` + retryDue + `)
ORDER BY j.journal_id <= $3, j.journal_id
LIMIT $2`

	sqlInboxLag = `
SELECT coalesce(sum(j.seq - coalesce(i.seq, 0)), 0)::bigint,
       count(*) FILTER (WHERE i.attempts > 0)
FROM journals j
LEFT JOIN LATERAL (
    SELECT seq, attempts
    FROM inbox
    WHERE consumer = $1
      AND journal_id = j.journal_id
    OFFSET 0) i ON true`
)
