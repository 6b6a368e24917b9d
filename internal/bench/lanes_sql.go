package bench

// Statements about the lanes of an event.
const (
	// Where a tier's tickets are in every lane, of one snapshot: a row a lane, and what its
	// accounts come to. $3 are the accounts.
	sqlLanesNow = `
SELECT j.lane,
       coalesce(sum(a.balance) FILTER (WHERE a.code = 'available'), 0)::bigint,
       coalesce(sum(a.balance) FILTER (WHERE a.code = 'transit'), 0)::bigint,
       coalesce(sum(a.balance) FILTER (WHERE a.code = 'sold'), 0)::bigint,
       coalesce(sum(a.balance) FILTER (WHERE a.code = 'capacity'), 0)::bigint,
       coalesce(sum(a.balance), 0)::bigint
FROM event_journals j
CROSS JOIN unnest($3::text[]) AS c (code)
LEFT JOIN LATERAL (
    SELECT code, balance
    FROM accounts
    WHERE journal_id = j.event_journal_id
      AND code = c.code
      AND unit = $2
    OFFSET 0) a ON true
WHERE j.journal_id = 0
  AND j.event = $1
GROUP BY j.lane
ORDER BY j.lane`

	sqlMovesByCause = `
SELECT m.cause, count(*), sum(m.quantity)::bigint
FROM quota_moves m
JOIN event_journals j ON j.event_journal_id = m.journal_id
WHERE j.journal_id = 0
  AND j.event = $1
  AND m.status = 'moved'
GROUP BY m.cause`
)
