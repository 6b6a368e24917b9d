package tickets

import "github.com/tierledger/tierledger/ledger"

// Checks are this package's invariants. They're about what the consumer has taken from the
// journals: what's still ahead of it isn't missing, nor is what it was made to give up.
func Checks() []ledger.Check { return checks }

// givenUp are the entries of which the consumer did nothing: dead letters that weren't
// replayed.
const givenUp = `
SELECT e.journal_id, e.seq, e.data ->> 'order_id' AS order_id
FROM dead_letters d
JOIN entries e ON e.journal_id = d.journal_id AND e.seq = d.seq
WHERE d.consumer = 'tickets' AND d.status <> 'replayed'`

// paidStatuses are those of orders whose units have tickets.
const paidStatuses = `('captured', 'partially_refunded', 'refunded')`

var checks = []ledger.Check{
	{Name: "tickets_of_orders", Says: "an order that's paid has a valid ticket for each unit that it owns, and no other order has one", SQL: `
WITH followed AS (
    SELECT o.*, EXISTS (SELECT FROM tickets t
                        WHERE t.journal_id = o.journal_id AND t.order_id = o.order_id AND t.revoked_seq IS NULL) AS ticketed
    FROM orders o
    JOIN inbox i ON i.consumer = 'tickets' AND i.journal_id = o.journal_id AND i.seq >= o.version
    WHERE ($1::bigint IS NULL OR o.journal_id = $1)
      AND NOT EXISTS (SELECT FROM (` + givenUp + `) g WHERE g.journal_id = o.journal_id AND g.order_id = o.order_id::text))
SELECT format('journal %s order %s, line %s of %s %s: %s valid tickets, owns %s', journal_id, order_id, line, tier, seat,
              coalesce(t.n, 0), coalesce(u.n, 0))
FROM (SELECT o.journal_id, o.order_id, n.line::integer AS line, r.tier COLLATE "C" AS tier, s.seat COLLATE "C" AS seat,
             sum(s.units)::bigint AS n
      FROM followed o
      CROSS JOIN LATERAL json_array_elements(o.items) WITH ORDINALITY AS n (item, line)
      CROSS JOIN LATERAL json_to_record(n.item) AS r (tier text, quantity bigint, returned bigint, seats json, returned_seats json)
      CROSS JOIN LATERAL (SELECT '' AS seat, r.quantity - coalesce(r.returned, 0) AS units
                          WHERE r.seats IS NULL
                          UNION ALL
                          SELECT l.seat, 1
                          FROM json_array_elements_text(r.seats) AS l (seat)
                          WHERE l.seat NOT IN (SELECT json_array_elements_text(r.returned_seats))) s
      WHERE o.status IN ` + paidStatuses + ` OR o.status = 'confirmed' AND o.ticketed
      GROUP BY 1, 2, 3, 4, 5
      HAVING sum(s.units) <> 0) u
FULL JOIN (SELECT journal_id, order_id, t.line, t.tier, t.seat, count(*) AS n
           FROM followed
           JOIN tickets t USING (journal_id, order_id)
           WHERE t.revoked_seq IS NULL
           GROUP BY 1, 2, 3, 4, 5) t USING (journal_id, order_id, line, tier, seat)
WHERE u.n IS DISTINCT FROM t.n`},

	{Name: "tickets_issued", Says: "every ticket was issued from an entry by which its order was paid, of a unit of that order, at that time", SQL: `
SELECT format('journal %s order %s ticket %s: not of entry %s', t.journal_id, t.order_id, t.number, t.issued_seq)
FROM (SELECT * FROM tickets WHERE $1::bigint IS NULL OR journal_id = $1) t
LEFT JOIN entries e ON e.journal_id = t.journal_id AND e.seq = t.issued_seq
                   AND e.kind LIKE 'order.%'
                   AND e.data ->> 'order_id' = t.order_id::text
                   AND e.data ->> 'status' IN ` + paidStatuses + `
LEFT JOIN LATERAL json_to_record(e.data -> 'items' -> (t.line - 1)) AS r (tier text, seats json) ON true
WHERE (e.at, r.tier) IS DISTINCT FROM (t.issued_at, t.tier)
   OR (r.seats IS NULL) <> (t.seat = '')
   OR t.seat <> '' AND t.seat NOT IN (SELECT json_array_elements_text(r.seats))`},

	{Name: "tickets_revoked", Says: "every revoked ticket was taken back by an entry of its order", SQL: `
SELECT format('journal %s order %s ticket %s: not taken back by entry %s', t.journal_id, t.order_id, t.number, t.revoked_seq)
FROM (SELECT * FROM tickets WHERE revoked_seq IS NOT NULL AND ($1::bigint IS NULL OR journal_id = $1)) t
LEFT JOIN entries e ON e.journal_id = t.journal_id AND e.seq = t.revoked_seq
                   AND e.kind LIKE 'order.%'
                   AND e.data ->> 'order_id' = t.order_id::text
                   AND (e.data ->> 'status' = 'cancelled' OR e.data ->> 'status' IN ` + paidStatuses + `)
WHERE e.seq IS NULL`},

	{Name: "tickets_numbered", Says: "an order's tickets are numbered from 1 without a gap, and none follows a later entry than the order's last", SQL: `
SELECT format('journal %s order %s: %s tickets, numbered %s to %s, follow entry %s, the order %s', t.journal_id, t.order_id, count(*),
              min(t.number), max(t.number), max(coalesce(t.revoked_seq, t.issued_seq)), b.seq)
FROM (SELECT * FROM tickets WHERE $1::bigint IS NULL OR journal_id = $1) t
LEFT JOIN ticketed_orders b ON b.journal_id = t.journal_id AND b.order_id = t.order_id
GROUP BY t.journal_id, t.order_id, b.seq
HAVING min(t.number) <> 1 OR max(t.number) <> count(*)
    OR b.seq IS NULL OR b.seq < max(greatest(t.revoked_seq, t.issued_seq))`},

	{Name: "tickets_admit_one", Says: "no seat has two valid tickets", SQL: `
SELECT format('journal %s seat %s: %s valid tickets', t.journal_id, t.seat, count(*))
FROM tickets t
WHERE t.revoked_seq IS NULL
  AND t.seat <> ''
  AND ($1::bigint IS NULL OR t.journal_id = $1)
  AND NOT EXISTS (SELECT FROM (` + givenUp + `) g WHERE g.journal_id = t.journal_id)
GROUP BY t.journal_id, t.seat
HAVING count(*) > 1`},

	{Name: "tickets_signed", Says: "every ticket's token says what the ticket is", SQL: `
SELECT format('journal %s order %s ticket %s: its token says something else', t.journal_id, t.order_id, t.number)
FROM (SELECT *, translate(split_part(token, '.', 2), '-_', '+/') AS claims
      FROM tickets
      WHERE $1::bigint IS NULL OR journal_id = $1) t
LEFT JOIN lanes l ON l.journal_id = t.journal_id
LEFT JOIN events v ON v.journal_id = coalesce(l.home, t.journal_id)
WHERE NOT CASE WHEN token ~ '^[\w-]+\.[\w-]+\.[\w-]{86}$' AND length(claims) % 4 <> 1 THEN
    (SELECT bool_and(position(convert_to(claim, 'UTF8') IN decode(rpad(claims, (length(claims) + 3) / 4 * 4, '='), 'base64')) > 0)
     FROM unnest(ARRAY[
         format('"iat":%s,', floor(extract(epoch FROM issued_at))::bigint), format('"jti":"%s"', ticket_id), format('"event":"%s"', v.event),
         format('"tier":"%s"', tier), format('"order":"%s","number":%s}', order_id, number),
         CASE seat WHEN '' THEN format('"tier":"%s","order"', tier) ELSE format('"seat":"%s"', seat) END]) AS claim)
    ELSE false END`},
}
