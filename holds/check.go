package holds

import "github.com/tierledger/tierledger/ledger"

// Checks are this package's invariants.
func Checks() []ledger.Check { return checks }

var checks = []ledger.Check{
	{Name: "held_by_holds", Says: "what a customer's account holds is what the customer's open holds claim", SQL: `
SELECT format('journal %s account %s %s: has %s, holds claim %s', journal_id, code, unit, a.balance, h.quantity)
FROM (SELECT journal_id, code, unit, balance
      FROM accounts
      WHERE control = 'held' AND balance <> 0 AND ($1::bigint IS NULL OR journal_id = $1)) a
FULL JOIN (SELECT journal_id, 'held:' || customer AS code, i.tier COLLATE "C" AS unit, sum(i.quantity)::bigint AS quantity
           FROM holds, json_to_recordset(items) AS i (tier text, quantity bigint)
           WHERE status IN ('held', 'payment_pending', 'reconciling') AND ($1::bigint IS NULL OR journal_id = $1)
           GROUP BY 1, 2, 3) h USING (journal_id, code, unit)
WHERE a.balance IS DISTINCT FROM h.quantity`},

	{Name: "holds_placed", Says: "every hold has the entry that placed it, and every such entry its hold", SQL: `
SELECT format('journal %s hold %s: entry %s', coalesce(h.journal_id, e.journal_id), coalesce(h.hold_id, e.id), e.seq)
FROM (SELECT journal_id, hold_id, created_at FROM holds WHERE $1::bigint IS NULL OR journal_id = $1) h
FULL JOIN (SELECT journal_id, id, seq, at
           FROM entries
           WHERE kind = 'hold.placed' AND ($1::bigint IS NULL OR journal_id = $1)) e
       ON e.journal_id = h.journal_id AND e.id = h.hold_id
WHERE h.hold_id IS NULL OR e.id IS NULL OR h.created_at <> e.at`},

	{Name: "holds_recorded", Says: "every hold is what the entry at its version records", SQL: `
SELECT format('journal %s hold %s: differs from entry %s', h.journal_id, h.hold_id, h.version)
FROM (SELECT * FROM holds WHERE $1::bigint IS NULL OR journal_id = $1) h
LEFT JOIN (SELECT journal_id, seq, CASE WHEN kind LIKE 'hold.%' THEN data ELSE data -> 'hold' END AS data
           FROM entries
           WHERE (kind LIKE 'hold.%' OR kind LIKE 'order.%')
             AND ($1::bigint IS NULL OR journal_id = $1)) e
       ON e.journal_id = h.journal_id AND e.seq = h.version
LEFT JOIN LATERAL json_to_record(e.data) AS r (hold_id uuid, customer text, status text, expires_at timestamptz,
                                               pay_until timestamptz, code text, items json, total json)
       ON true
WHERE (h.hold_id, h.customer, h.status, h.expires_at, h.pay_until, h.code, h.items::text, h.total) IS DISTINCT FROM
      (r.hold_id, r.customer, r.status, r.expires_at, r.pay_until, r.code, r.items::text, (r.total ->> 'amount')::bigint)`},

	{Name: "holds_ended_once", Says: "a hold that ended or was bought has one entry that did it, another has none", SQL: `
SELECT format('journal %s hold %s: is %s at version %s, ended by %s entries, the last is %s', h.journal_id, h.hold_id,
              h.status, h.version, count(e.seq), max(e.seq))
FROM holds h
LEFT JOIN (SELECT journal_id, seq, (hold ->> 'hold_id')::uuid AS hold_id, hold ->> 'status' AS status
           FROM (SELECT journal_id, seq, CASE WHEN kind LIKE 'hold.%' THEN data ELSE data -> 'hold' END AS hold
                 FROM entries
                 WHERE (kind IN ('hold.released', 'hold.expired') OR kind LIKE 'order.%')
                   AND ($1::bigint IS NULL OR journal_id = $1)) n
           WHERE hold ->> 'status' IN ('confirmed', 'released', 'expired')) e
       ON e.journal_id = h.journal_id AND e.hold_id = h.hold_id
WHERE $1::bigint IS NULL OR h.journal_id = $1
GROUP BY h.journal_id, h.hold_id, h.status, h.version
HAVING CASE WHEN h.status IN ('held', 'payment_pending', 'reconciling') THEN count(e.seq) <> 0
            ELSE count(e.seq) <> 1 OR max(e.seq) <> h.version OR max(e.status) <> h.status END`},

	{Name: "expired_when_due", Says: "no hold expired before its deadline, and none was released after it", SQL: `
SELECT format('journal %s entry %s: %s at %s of a hold until %s', e.journal_id, e.seq, e.kind, e.at, h.expires_at)
FROM holds h
JOIN entries e ON e.journal_id = h.journal_id AND e.seq = h.version
WHERE h.status IN ('released', 'expired')
  AND (h.status = 'expired') <> (e.at >= h.expires_at)
  AND ($1::bigint IS NULL OR h.journal_id = $1)`},

	{Name: "hold_prices", Says: "a hold costs what its price versions say", SQL: `
SELECT format('journal %s hold %s: total %s, its lines cost %s', h.journal_id, h.hold_id, h.total,
              sum(i.quantity * (p.amount + p.fee + round((p.amount + p.fee) * p.tax_rate))))
FROM holds h
CROSS JOIN LATERAL json_to_recordset(h.items) AS i (tier text, quantity bigint, price_version bigint)
LEFT JOIN lanes l ON l.journal_id = h.journal_id
LEFT JOIN prices p ON p.journal_id = coalesce(l.home, h.journal_id)
                  AND p.tier = i.tier COLLATE "C"
                  AND p.price_version = i.price_version
WHERE $1::bigint IS NULL OR h.journal_id = $1
GROUP BY h.journal_id, h.hold_id, h.total
HAVING sum(i.quantity * (p.amount + p.fee + round((p.amount + p.fee) * p.tax_rate))) IS DISTINCT FROM h.total`},

	{Name: "seats_of_holds", Says: "an open hold's seats are held by it until its deadline, and no other seat is held", SQL: `
SELECT format('journal %s seat %s: held by %s until %s, hold %s until %s claims it', journal_id, seat, s.hold_id, s.until, h.hold_id, h.expires_at)
FROM (SELECT journal_id, seat, tier, hold_id, until
      FROM seats
      WHERE state = 'held' AND ($1::bigint IS NULL OR journal_id = $1)) s
FULL JOIN (SELECT h.journal_id, n.seat COLLATE "C" AS seat, i.tier, h.hold_id, h.expires_at
           FROM holds h
           CROSS JOIN LATERAL json_to_recordset(h.items) AS i (tier text, seats json)
           CROSS JOIN LATERAL json_array_elements_text(i.seats) AS n (seat)
           WHERE h.status IN ('held', 'payment_pending', 'reconciling') AND ($1::bigint IS NULL OR h.journal_id = $1)) h
       USING (journal_id, seat)
WHERE (s.tier, s.hold_id, s.until) IS DISTINCT FROM (h.tier, h.hold_id, h.expires_at)`},

	{Name: "seats_counted", Says: "a line of a hold has as many seats as tickets if its tier is sold by seat, else none", SQL: `
SELECT format('journal %s hold %s tier %s: %s tickets, %s seats', h.journal_id, h.hold_id, i.tier, i.quantity, coalesce(json_array_length(i.seats), 0))
FROM holds h
CROSS JOIN LATERAL json_to_recordset(h.items) AS i (tier text, quantity bigint, seats json)
LEFT JOIN lanes l ON l.journal_id = h.journal_id
JOIN tiers t ON t.journal_id = coalesce(l.home, h.journal_id) AND t.tier = i.tier COLLATE "C"
WHERE ($1::bigint IS NULL OR h.journal_id = $1)
  AND CASE WHEN t.seated THEN i.quantity ELSE 0 END <> coalesce(json_array_length(i.seats), 0)`},

	{Name: "codes_redeemed", Says: "the uses that are taken of an access code are those of holds that are open or were bought, in time or late", SQL: `
SELECT format('journal %s account redeemed:%s: has %s, %s holds have taken one', journal_id, code, a.balance, h.uses)
FROM (SELECT journal_id, substr(code, 10) AS code, balance
      FROM accounts
      WHERE code > 'redeemed:' AND code < 'redeemed;' AND balance <> 0 AND ($1::bigint IS NULL OR journal_id = $1)) a
FULL JOIN (SELECT h.journal_id, h.code, count(*) AS uses
           FROM holds h
           LEFT JOIN (SELECT DISTINCT journal_id, (data ->> 'hold_id')::uuid AS hold_id
                      FROM entries
                      WHERE kind = 'order.honoured' AND ($1::bigint IS NULL OR journal_id = $1)) late
                  ON late.journal_id = h.journal_id AND late.hold_id = h.hold_id
           WHERE h.code IS NOT NULL
             AND (h.status NOT IN ('released', 'expired') OR late.hold_id IS NOT NULL)
             AND ($1::bigint IS NULL OR h.journal_id = $1)
           GROUP BY h.journal_id, h.code) h USING (journal_id, code)
WHERE a.balance IS DISTINCT FROM h.uses`},
}
