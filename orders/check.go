package orders

import "github.com/tierledger/tierledger/ledger"

// Checks are this package's invariants.
func Checks() []ledger.Check { return checks }

// Entries of orders record the order with its operations as they then are.
var checks = []ledger.Check{
	{Name: "orders_recorded", Says: "every order is what the entry at its version records", SQL: `
SELECT format('journal %s order %s: differs from entry %s', o.journal_id, o.order_id, o.version)
FROM (SELECT * FROM orders WHERE $1::bigint IS NULL OR journal_id = $1) o
LEFT JOIN entries e ON e.journal_id = o.journal_id AND e.seq = o.version AND e.kind LIKE 'order.%'
LEFT JOIN LATERAL json_to_record(e.data) AS r (order_id uuid, hold_id uuid, customer text, status text,
              reconciling boolean, payment_status text, items json, parts json, captured json, refunded_parts json,
              created_at timestamptz, pay_until timestamptz)
       ON true
WHERE (o.order_id, o.hold_id, o.customer, o.status, o.reconciling, o.payment_status, o.items::text, o.face, o.fee, o.tax,
       o.captured, o.refunded_face, o.refunded_fee, o.refunded_tax, o.created_at, o.pay_until) IS DISTINCT FROM
      (r.order_id, r.hold_id, r.customer, r.status, r.reconciling, r.payment_status, r.items::text,
       (r.parts ->> 'face')::bigint, (r.parts ->> 'fee')::bigint, (r.parts ->> 'tax')::bigint,
       (r.captured ->> 'amount')::bigint, (r.refunded_parts ->> 'face')::bigint, (r.refunded_parts ->> 'fee')::bigint,
       (r.refunded_parts ->> 'tax')::bigint, r.created_at, r.pay_until)`},

	{Name: "operations_recorded", Says: "every operation is what the entry at its version records of it", SQL: `
SELECT format('journal %s operation %s: differs from entry %s', p.journal_id, p.operation_id, p.version)
FROM (SELECT * FROM operations WHERE $1::bigint IS NULL OR journal_id = $1) p
LEFT JOIN entries e ON e.journal_id = p.journal_id AND e.seq = p.version AND e.kind LIKE 'order.%'
LEFT JOIN LATERAL json_array_elements(e.data -> 'operations') AS n (data) ON n.data ->> 'operation_id' = p.operation_id::text
LEFT JOIN LATERAL json_to_record(n.data) AS r (kind text, attempt integer, status text, provider text,
              provider_reference text, provider_payment text, amount json, reason text, next_attempt_at timestamptz,
              updated_at timestamptz)
       ON true
WHERE (e.data ->> 'order_id', p.kind, p.attempt, p.status, p.provider, p.reference, p.payment, p.amount, p.currency,
       p.reason, p.due_at, p.updated_at) IS DISTINCT FROM
      (p.order_id::text, r.kind, r.attempt, r.status, r.provider, r.provider_reference, r.provider_payment,
       (r.amount ->> 'amount')::bigint, r.amount ->> 'currency', coalesce(r.reason, ''), r.next_attempt_at, r.updated_at)`},

	{Name: "sold_by_orders", Says: "what a customer owns is what the customer's orders bought and didn't return", SQL: `
SELECT format('journal %s account %s %s: has %s, orders own %s', journal_id, code, unit, a.balance, o.quantity)
FROM (SELECT journal_id, code, unit, balance
      FROM accounts
      WHERE control = 'sold' AND balance <> 0 AND ($1::bigint IS NULL OR journal_id = $1)) a
FULL JOIN (SELECT journal_id, 'sold:' || customer AS code, i.tier COLLATE "C" AS unit,
                  sum(i.quantity - coalesce(i.returned, 0))::bigint AS quantity
           FROM orders, json_to_recordset(items) AS i (tier text, quantity bigint, returned bigint)
           WHERE status NOT IN ('pending', 'cancelled') AND ($1::bigint IS NULL OR journal_id = $1)
           GROUP BY 1, 2, 3
           HAVING sum(i.quantity - coalesce(i.returned, 0)) <> 0) o USING (journal_id, code, unit)
WHERE a.balance IS DISTINCT FROM o.quantity`},

	{Name: "orders_of_holds", Says: "a hold that's paid for or bought has an order that says so, of the same customer and lines", SQL: `
SELECT format('journal %s hold %s is %s: order %s is %s', h.journal_id, h.hold_id, h.status, o.order_id, o.status)
FROM (SELECT * FROM holds WHERE $1::bigint IS NULL OR journal_id = $1) h
FULL JOIN (SELECT * FROM orders WHERE $1::bigint IS NULL OR journal_id = $1) o
       ON o.journal_id = h.journal_id AND o.hold_id = h.hold_id
WHERE CASE
    WHEN h.hold_id IS NULL THEN true
    WHEN o.order_id IS NULL THEN h.status IN ('payment_pending', 'reconciling', 'confirmed') OR h.pay_until IS NOT NULL
    ELSE o.customer <> h.customer
        OR o.face + o.fee + o.tax <> h.total
        OR o.pay_until IS DISTINCT FROM h.pay_until
        OR h.status IN ('payment_pending', 'reconciling') AND o.status <> 'pending'
        OR h.status = 'confirmed' AND o.status = 'pending'
        OR h.status = 'reconciling' AND NOT o.reconciling
    END`},

	{Name: "capture_pending_by_orders", Says: "what's claimed and not captured is what confirmed orders cost, and what captures fell short of", SQL: `
SELECT format('journal %s capture-pending %s: has %s, orders claim %s', journal_id, unit, a.balance, o.amount)
FROM (SELECT journal_id, unit, sum(balance)::bigint AS balance
      FROM accounts
      WHERE code LIKE 'capture-pending:%' AND ($1::bigint IS NULL OR journal_id = $1)
      GROUP BY 1, 2
      HAVING sum(balance) <> 0) a
FULL JOIN (SELECT journal_id, unit, sum(amount)::bigint AS amount
           FROM (SELECT o.journal_id, e.currency AS unit, o.face + o.fee + o.tax - o.captured AS amount
                 FROM orders o
                 LEFT JOIN lanes l ON l.journal_id = o.journal_id
                 JOIN events e ON e.journal_id = coalesce(l.home, o.journal_id)
                 WHERE o.status NOT IN ('pending', 'cancelled') AND ($1::bigint IS NULL OR o.journal_id = $1)
                 UNION ALL
                 SELECT o.journal_id, c.currency, -least(sum(c.amount), o.face + o.fee + o.tax - o.captured)
                 FROM cases c
                 JOIN orders o USING (journal_id, order_id)
                 WHERE c.reason = 'capture_failed' AND c.status = 'resolved' AND c.resolution = 'write_off'
                   AND o.status NOT IN ('pending', 'cancelled')
                   AND ($1::bigint IS NULL OR o.journal_id = $1)
                 GROUP BY o.journal_id, o.order_id, c.currency) p
           GROUP BY 1, 2
           HAVING sum(amount) <> 0) o USING (journal_id, unit)
WHERE a.balance IS DISTINCT FROM o.amount`},

	{Name: "authorizations_open", Says: "the memo of open authorizations is what operations have reserved", SQL: `
SELECT format('journal %s auth:open %s: has %s, operations have reserved %s', journal_id, unit, a.balance, o.amount)
FROM (SELECT journal_id, unit, balance
      FROM accounts
      WHERE code = 'auth:open' AND balance <> 0 AND ($1::bigint IS NULL OR journal_id = $1)) a
FULL JOIN (SELECT p.journal_id, (e.currency || '.AUTH') COLLATE "C" AS unit, sum(p.authorized)::bigint AS amount
           FROM operations p
           LEFT JOIN lanes l ON l.journal_id = p.journal_id
           JOIN events e ON e.journal_id = coalesce(l.home, p.journal_id)
           WHERE p.authorized <> 0 AND ($1::bigint IS NULL OR p.journal_id = $1)
           GROUP BY 1, 2) o USING (journal_id, unit)
WHERE a.balance IS DISTINCT FROM o.amount`},

	{Name: "refunds_pending_by_operations", Says: "what's owed to buyers is what refunds under way amount to", SQL: `
SELECT format('journal %s refunds-pending %s: has %s, refunds amount to %s', journal_id, unit, a.balance, o.amount)
FROM (SELECT journal_id, unit, -sum(balance)::bigint AS balance
      FROM accounts
      WHERE code LIKE 'refunds-pending:%' AND ($1::bigint IS NULL OR journal_id = $1)
      GROUP BY 1, 2
      HAVING sum(balance) <> 0) a
FULL JOIN (SELECT p.journal_id, p.currency AS unit, sum(p.amount)::bigint AS amount
           FROM operations p
           WHERE p.kind = 'refund' AND p.sends > 0
             AND p.status NOT IN ('succeeded', 'declined', 'not_attempted')
             AND ($1::bigint IS NULL OR p.journal_id = $1)
           GROUP BY 1, 2) o USING (journal_id, unit)
WHERE a.balance IS DISTINCT FROM o.amount`},

	{Name: "refunded_by_operations", Says: "what was taken back of each part of an order is what its refunds and chargebacks take", SQL: `
SELECT format('journal %s order %s: refunded %s %s %s, operations take %s %s %s', o.journal_id, o.order_id,
              o.refunded_face, o.refunded_fee, o.refunded_tax, p.face, p.fee, p.tax)
FROM (SELECT * FROM orders WHERE $1::bigint IS NULL OR journal_id = $1) o
LEFT JOIN (SELECT journal_id, order_id, sum(face)::bigint AS face, sum(fee)::bigint AS fee, sum(tax)::bigint AS tax
           FROM operations
           WHERE (kind = 'chargeback' AND status = 'succeeded'
                  OR kind = 'refund' AND status NOT IN ('declined', 'not_attempted'))
             AND ($1::bigint IS NULL OR journal_id = $1)
           GROUP BY 1, 2) p USING (journal_id, order_id)
WHERE (o.refunded_face, o.refunded_fee, o.refunded_tax) <> (coalesce(p.face, 0), coalesce(p.fee, 0), coalesce(p.tax, 0))`},

	{Name: "paid_once", Says: "a paid order was paid by one payment, taken once", SQL: `
SELECT format('journal %s order %s is %s: captured %s, %s captures and payments have succeeded', o.journal_id, o.order_id,
              o.status, o.captured, count(p.operation_id))
FROM (SELECT * FROM orders WHERE $1::bigint IS NULL OR journal_id = $1) o
LEFT JOIN operations p ON p.journal_id = o.journal_id
                      AND p.order_id = o.order_id
                      AND p.status = 'succeeded'
                      AND (p.kind = 'capture' OR p.taken > 0)
                      AND NOT EXISTS (SELECT FROM cases c
                                      WHERE c.journal_id = p.journal_id
                                        AND c.operation_id = p.operation_id
                                        AND (c.reason IN ('late_payment', 'duplicate_payment', 'not_confirmable')
                                             OR c.reason = 'amount_mismatch' AND p.kind = 'authorize')
                                        AND (c.status, c.resolution) <> ('resolved', 'honour'))
WHERE o.captured > 0
GROUP BY o.journal_id, o.order_id, o.status, o.captured
HAVING count(p.operation_id) <> 1`},

	{Name: "checkouts_counted", Says: "the count of an event's pending orders is right", SQL: `
SELECT format('journal %s: counted %s pending orders, there are %s', journal_id, c.pending, o.n)
FROM (SELECT journal_id, pending
      FROM checkouts
      WHERE pending <> 0 AND ($1::bigint IS NULL OR journal_id = $1)) c
FULL JOIN (SELECT journal_id, count(*) AS n
           FROM orders
           WHERE status = 'pending' AND ($1::bigint IS NULL OR journal_id = $1)
           GROUP BY 1) o USING (journal_id)
WHERE c.pending IS DISTINCT FROM o.n`},

	{Name: "webhooks_recorded", Says: "every webhook has the entry that took it in", SQL: `
SELECT format('journal %s webhook %s of %s: no entry %s', w.journal_id, w.event_id, w.provider, w.version)
FROM webhooks w
LEFT JOIN entries e ON e.journal_id = w.journal_id AND e.seq = w.version
                   AND CASE w.status WHEN 'parked' THEN e.kind = 'webhook.parked'
                                     WHEN 'unidentified' THEN e.kind = 'webhook.unidentified'
                                     ELSE e.kind LIKE 'order.%' OR e.kind = 'webhook.received' END
WHERE e.seq IS NULL
  AND ($1::bigint IS NULL OR w.journal_id = $1)`},

	{Name: "seats_of_orders", Says: "an order's seats that weren't returned are sold to it, and no other seat is sold", SQL: `
SELECT format('journal %s seat %s: sold to hold %s, order of hold %s owns it', journal_id, seat, s.hold_id, o.hold_id)
FROM (SELECT journal_id, seat, tier, hold_id
      FROM seats
      WHERE state = 'sold' AND ($1::bigint IS NULL OR journal_id = $1)) s
FULL JOIN (SELECT o.journal_id, n.seat COLLATE "C" AS seat, i.tier, o.hold_id
           FROM orders o
           CROSS JOIN LATERAL json_to_recordset(o.items) AS i (tier text, seats json, returned_seats json)
           CROSS JOIN LATERAL json_array_elements_text(i.seats) AS n (seat)
           WHERE o.status NOT IN ('pending', 'cancelled')
             AND n.seat NOT IN (SELECT json_array_elements_text(i.returned_seats))
             AND ($1::bigint IS NULL OR o.journal_id = $1)) o USING (journal_id, seat)
WHERE (s.tier, s.hold_id) IS DISTINCT FROM (o.tier, o.hold_id)`},
}
