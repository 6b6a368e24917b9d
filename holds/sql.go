package holds

import "github.com/tierledger/tierledger/seats"

// Every statement on holds.
const (
	holdColumns = `hold_id, customer, status, created_at, expires_at, pay_until, coalesce(code, '') AS code, items, total, version`

	// The clock is read once, or a hold between two readings would be in neither arm;
	// in a subquery, so that the index serves it. No open hold runs out before $4; see
	// marks.
	sqlAhead = `
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
(SELECT ` + holdColumns + `
 FROM holds
 WHERE journal_id = $1
   AND status = 'held'
   AND expires_at >= $4
   AND expires_at <= (SELECT now FROM clock)
 ORDER BY expires_at
 LIMIT $2)
UNION ALL
(SELECT ` + holdColumns + `
 FROM holds
 WHERE journal_id = $1
   AND status = 'held'
   AND expires_at > (SELECT now FROM clock)
 ORDER BY expires_at
 LIMIT $3)`

	sqlBatchHolds = `
SELECT ` + holdColumns + `
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM holds
    WHERE journal_id = $1
      AND hold_id = k.id
    OFFSET 0) h`

	// The seats of the holds that sqlAhead gives as due, or of one that came due between
	// the two.
	sqlDueSeats = `
SELECT ` + seats.Columns + `
FROM (
    SELECT items
    FROM holds
    WHERE journal_id = $1
      AND status = 'held'
      AND expires_at >= $3
      AND expires_at <= (SELECT clock_timestamp())
    ORDER BY expires_at
    LIMIT $2) h` + seatsOfItems

	sqlSeatsOfHolds = `
SELECT ` + seats.Columns + `
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT items
    FROM holds
    WHERE journal_id = $1
      AND hold_id = k.id
    OFFSET 0) h` + seatsOfItems

	seatsOfItems = `
CROSS JOIN LATERAL json_array_elements(h.items) AS i (item)
CROSS JOIN LATERAL json_array_elements_text(i.item -> 'seats') AS n (label)
CROSS JOIN LATERAL (
    SELECT *
    FROM seats
    WHERE journal_id = $1
      AND seat = n.label
    OFFSET 0) s`

	sqlInsertHolds = `
INSERT INTO holds (journal_id, hold_id, customer, status, created_at, expires_at, pay_until, code, items, total, version)
SELECT $1, h.hold_id, h.customer, h.status, h.created_at, h.expires_at, h.pay_until, nullif(h.code, ''), h.items::json,
       h.total, h.version
FROM unnest($2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::text[],
            $9::text[], $10::bigint[], $11::bigint[])
     AS h (hold_id, customer, status, created_at, expires_at, pay_until, code, items, total, version)`

	// What has ended can't change; the row is found through its key.
	sqlUpdateHolds = sqlInsertHolds + `
ON CONFLICT (journal_id, hold_id) DO UPDATE
SET status = excluded.status,
    pay_until = excluded.pay_until,
    version = excluded.version
WHERE holds.status IN ('held', 'payment_pending', 'reconciling')`

	// The first deadline to come in any of some journals, now when none is; and the journals in
	// which one has passed.
	sqlNextDue = `
SELECT greatest(coalesce(min(h.expires_at), c.now), c.now), c.now,
       coalesce(array_agg(k.journal) FILTER (WHERE h.expires_at <= c.now), '{}')
FROM (SELECT clock_timestamp() AS now) c
CROSS JOIN unnest($1::bigint[]) AS k (journal)
LEFT JOIN LATERAL (
    SELECT expires_at
    FROM holds
    WHERE journal_id = k.journal
      AND status = 'held'
    ORDER BY expires_at
    LIMIT 1) h ON true
GROUP BY c.now`

	sqlHold = `
SELECT ` + holdColumns + `, clock_timestamp()
FROM holds
WHERE journal_id = $1
  AND hold_id = $2`

	// A hold that has run out reads as expired, whatever has been written yet.
	listHolds = `
SELECT ` + holdColumns + `, c.now
FROM holds, (SELECT clock_timestamp() AS now) c
WHERE journal_id = $1
  AND hold_id > $2
  AND ($3 = '' OR $3 = CASE WHEN status = 'held' AND expires_at <= c.now THEN 'expired' ELSE status END)`
	listHoldsEnd = `
ORDER BY hold_id
LIMIT $4`
	sqlAllHolds        = listHolds + listHoldsEnd
	sqlHoldsOfCustomer = listHolds + `
  AND customer = $5` + listHoldsEnd

	// All that are open are few beside those that have ended: they're taken through
	// their own index and then sorted. Materialized, or else the order would make
	// the planner walk over every hold of the journal.
	sqlOpenHolds = `
WITH open AS MATERIALIZED (
    SELECT ` + holdColumns + `, c.now
    FROM holds, (SELECT clock_timestamp() AS now) c
    WHERE journal_id = $1
      AND status = 'held'
      AND expires_at > c.now
)
SELECT hold_id, customer, status, created_at, expires_at, pay_until, code, items, total, version, now
FROM open
WHERE hold_id > $2
ORDER BY hold_id
LIMIT $3`

	// For every journal that has open holds, the deadline of its first: a walk
	// over the index from journal to journal, not over the holds.
	sqlFirstDue = `
WITH RECURSIVE first (journal_id, expires_at) AS (
    (SELECT journal_id, expires_at
     FROM holds
     WHERE status = 'held'
     ORDER BY journal_id, expires_at
     LIMIT 1)
    UNION ALL
    SELECT n.journal_id, n.expires_at
    FROM first f
    CROSS JOIN LATERAL (
        SELECT journal_id, expires_at
        FROM holds
        WHERE status = 'held'
          AND journal_id > f.journal_id
        ORDER BY journal_id, expires_at
        LIMIT 1) n
)
SELECT journal_id, extract(epoch FROM clock_timestamp() - expires_at)::float8
FROM first
WHERE expires_at <= clock_timestamp()`
)
