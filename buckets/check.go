package buckets

import "github.com/tierledger/tierledger/ledger"

// Checks are this package's invariants.
func Checks() []ledger.Check { return checks }

var checks = []ledger.Check{
	{Name: "tickets_conserved", Says: "capacity, available, held, sold, blocked, transit and void of every tier sum to zero", SQL: `
SELECT format('journal %s tier %s: its accounts sum to %s', journal_id, unit, sum(balance))
FROM accounts
WHERE type = 'inventory'
  AND control IS NULL
  AND ($1::bigint IS NULL OR journal_id = $1)
GROUP BY journal_id, unit
HAVING sum(balance) <> 0`},

	{Name: "tickets_have_tier", Says: "tickets are of a tier that the journal's event has, and every tier has tickets, or is to get seats", SQL: `
SELECT format('journal %s tier %s: on account %s', journal_id, unit, code)
FROM accounts a
LEFT JOIN lanes l USING (journal_id)
WHERE type = 'inventory'
  AND unit <> '_uses'
  AND ($1::bigint IS NULL OR journal_id = $1)
  AND NOT EXISTS (SELECT FROM tiers t WHERE t.journal_id = coalesce(l.home, a.journal_id) AND t.tier = a.unit)
UNION ALL
SELECT format('journal %s tier %s: no capacity account', journal_id, tier)
FROM tiers t
WHERE NOT t.seated
  AND ($1::bigint IS NULL OR journal_id = $1)
  AND NOT EXISTS (SELECT FROM accounts a
                  WHERE a.journal_id = t.journal_id AND a.code = 'capacity' AND a.unit = t.tier)`},

	{Name: "prices_in_force", Says: "every tier's price in force is its newest, and there's an event for it", SQL: `
SELECT format('journal %s tier %s: price version %s in force, newest is %s', t.journal_id, t.tier, t.price_version,
              max(p.price_version))
FROM tiers t
LEFT JOIN prices p ON p.journal_id = t.journal_id AND p.tier = t.tier
LEFT JOIN events e ON e.journal_id = t.journal_id
WHERE $1::bigint IS NULL OR t.journal_id = $1
GROUP BY t.journal_id, t.tier, t.price_version, e.journal_id
HAVING max(p.price_version) IS DISTINCT FROM t.price_version OR e.journal_id IS NULL`},

	{Name: "events_listed", Says: "the directory has every event and journal, and what the system journal created", SQL: `
SELECT format('journal %s: directory has event %L lane %s, system entry created %L lane %s, journal records %L lane %s',
              journal_id, d.event, d.lane, c.event, c.lane, e.event, e.lane)
FROM (SELECT journal_id
      FROM journals
      WHERE journal_id <> 0 AND ($1::bigint IS NULL OR journal_id = $1)) j
FULL JOIN (SELECT journal_id, event, 1 AS lane
           FROM events
           WHERE $1::bigint IS NULL OR journal_id = $1
           UNION ALL
           SELECT l.journal_id, h.event, l.lane
           FROM lanes l
           JOIN events h ON h.journal_id = l.home
           WHERE l.lane > 1 AND ($1::bigint IS NULL OR l.journal_id = $1)) e USING (journal_id)
FULL JOIN (SELECT event_journal_id AS journal_id, event, lane
           FROM event_journals
           WHERE $1::bigint IS NULL OR event_journal_id = $1) d USING (journal_id)
FULL JOIN (SELECT seq AS journal_id, data ->> 'event' AS event, coalesce((data ->> 'lane')::integer, 1) AS lane
           FROM entries
           WHERE journal_id = 0
             AND kind IN ('event.created', 'lane.created')
             AND ($1::bigint IS NULL OR seq = $1)) c USING (journal_id)
WHERE d.event IS NULL
   OR (d.event, d.lane) IS DISTINCT FROM (c.event, c.lane)
   OR (d.event, d.lane) <> (e.event, e.lane) -- no row: it was created and isn't open yet`},

	{Name: "events_recorded", Says: "every event is what the entry that opened it records", SQL: `
SELECT format('journal %s event %s: differs from entry %s', e.journal_id, e.event, e.version)
FROM (SELECT * FROM events WHERE $1::bigint IS NULL OR journal_id = $1) e
LEFT JOIN entries n ON n.journal_id = e.journal_id AND n.seq = e.version AND n.kind = 'event.opened'
LEFT JOIN LATERAL json_to_record(n.data) AS r (event text, name text, currency text, hold_seconds integer,
              grace_seconds integer, limit_per_customer bigint, sale_opens_at timestamptz, sale_closes_at timestamptz,
              organiser text, late_payment_policy text, honour_until timestamptz, approve_moves_from bigint,
              created_at timestamptz)
       ON true
WHERE (e.event, e.name, e.currency, e.hold_seconds, e.grace_seconds, e.limit_per_customer, e.sale_opens_at,
       e.sale_closes_at, e.organiser, e.late_payment_policy, e.honour_until, e.approve_moves_from, e.created_at) IS DISTINCT FROM
      (r.event, r.name, r.currency, r.hold_seconds, r.grace_seconds, r.limit_per_customer, r.sale_opens_at,
       r.sale_closes_at, r.organiser, r.late_payment_policy, r.honour_until, coalesce(r.approve_moves_from, 1000), r.created_at)`},

	{Name: "tiers_recorded", Says: "every tier and its price in force are what the entry at the tier's version records", SQL: `
SELECT format('journal %s tier %s: differs from entry %s', t.journal_id, t.tier, t.version)
FROM (SELECT * FROM tiers WHERE $1::bigint IS NULL OR journal_id = $1) t
LEFT JOIN prices p ON p.journal_id = t.journal_id AND p.tier = t.tier AND p.price_version = t.price_version
LEFT JOIN (SELECT e.journal_id, e.seq, r.*
           FROM entries e
           CROSS JOIN LATERAL json_to_recordset(CASE e.kind WHEN 'event.opened' THEN e.data -> 'tiers'
                                                            ELSE json_build_array(e.data) END)
                AS r (tier text, name text, seated boolean, limit_per_customer bigint, price_version bigint, price json,
                      fee json, tax_rate numeric)
           WHERE e.kind IN ('event.opened', 'tier.added', 'tier.changed')
             AND ($1::bigint IS NULL OR e.journal_id = $1)) r
       ON r.journal_id = t.journal_id AND r.seq = t.version AND r.tier = t.tier
WHERE (t.name, t.seated, t.limit_per_customer, t.price_version, p.amount, p.fee, p.tax_rate) IS DISTINCT FROM
      (r.name, coalesce(r.seated, false), r.limit_per_customer, r.price_version, (r.price ->> 'amount')::bigint, (r.fee ->> 'amount')::bigint,
       r.tax_rate)`},

	{Name: "lanes_recorded", Says: "what a lane knows of its split is what the entry at that version records, and no lane is ahead of its home", SQL: `
SELECT format('journal %s lane %s: differs from entry %s, or is ahead of journal %s', l.journal_id, l.lane, l.version, l.home)
FROM lanes l
LEFT JOIN lanes h ON h.journal_id = l.home
LEFT JOIN entries e ON e.journal_id = l.journal_id AND e.seq = l.version AND e.kind IN ('lane.opened', 'lanes.changed')
WHERE ($1::bigint IS NULL OR l.journal_id = $1)
  AND ((l.lane, l.generation, array_to_json(l.counts)::text, array_to_json(l.journals)::text) IS DISTINCT FROM
       ((e.data ->> 'lane')::integer, (e.data ->> 'generation')::bigint, e.data ->> 'counts', e.data ->> 'journals')
       OR l.generation > coalesce(h.generation, 0)
       OR l.journals[l.lane] <> l.journal_id)`},

	{Name: "customers_in_one_lane", Says: "no customer has tickets in two lanes of an event", SQL: `
SELECT format('event %s customer %s: has tickets in journals %s', d.event, c.customer, array_agg(DISTINCT d.journal))
FROM (SELECT event, event_journal_id AS journal, count(*) OVER (PARTITION BY event) AS lanes FROM event_journals) d
JOIN (SELECT journal_id, substr(code, length(control) + 2) AS customer
      FROM accounts
      WHERE control IS NOT NULL AND balance > 0) c ON c.journal_id = d.journal
WHERE d.lanes > 1
  AND ($1::bigint IS NULL OR d.event = (SELECT event FROM event_journals WHERE event_journal_id = $1))
GROUP BY d.event, c.customer
HAVING count(DISTINCT d.journal) > 1`},

	{Name: "allotments_recorded", Says: "every allotment and access code is what an entry records", SQL: `
SELECT format('journal %s allotment %s: differs from entry %s', a.journal_id, a.allotment, a.version)
FROM allotments a
LEFT JOIN entries e ON e.journal_id = a.journal_id
                   AND e.seq = a.version
                   AND e.kind IN ('allotment.opened', 'allotment.closed')
LEFT JOIN LATERAL json_to_record(e.data) AS r (allotment text, name text, opens_at timestamptz, releases_at timestamptz,
              code_required boolean, created_at timestamptz, closed_at timestamptz) ON true
WHERE ($1::bigint IS NULL OR a.journal_id = $1)
  AND (a.allotment, a.name, a.opens_at, a.releases_at, a.code_required, a.created_at, a.closed_at) IS DISTINCT FROM
      (r.allotment, r.name, r.opens_at, r.releases_at, coalesce(r.code_required, false), r.created_at, r.closed_at)
UNION ALL
SELECT format('journal %s access code %s: entry %s has %s uses for %s', coalesce(c.journal_id, r.journal_id),
              coalesce(c.code, r.code), coalesce(c.version, r.seq), r.max_uses, r.allotment)
FROM (SELECT * FROM access_codes WHERE $1::bigint IS NULL OR journal_id = $1) c
FULL JOIN (SELECT e.journal_id, e.seq, e.data ->> 'allotment' AS allotment, r.code COLLATE "C" AS code, r.max_uses
           FROM entries e
           CROSS JOIN LATERAL json_to_recordset(e.data -> 'codes') AS r (code text, max_uses bigint)
           WHERE e.kind IN ('allotment.opened', 'allotment.codes_added')
             AND ($1::bigint IS NULL OR e.journal_id = $1)) r
       ON r.journal_id = c.journal_id AND r.code = c.code
WHERE (c.allotment, c.max_uses, c.version) IS DISTINCT FROM (r.allotment, r.max_uses, r.seq)`},

	{Name: "codes_counted", Says: "the uses of every access code, free, taken and between lanes, are as many as it was issued with", SQL: `
SELECT format('event %s access code %s: %s uses, of %s', d.event, c.code, sum(a.balance), c.max_uses)
FROM access_codes c
JOIN event_journals h ON h.event_journal_id = c.journal_id
JOIN event_journals d ON d.event = h.event
LEFT JOIN LATERAL (
    SELECT balance
    FROM accounts
    WHERE journal_id = d.event_journal_id
      AND code = ANY (ARRAY['code:' || c.code, 'redeemed:' || c.code])
      AND unit = '_uses'
    UNION ALL
    SELECT m.quantity
    FROM quota_moves m
    WHERE m.journal_id = d.event_journal_id
      AND m.account = 'code:' || c.code
      AND m.status = 'moved'
      AND NOT EXISTS (SELECT FROM quota_arrivals r WHERE r.journal_id = m.to_journal AND r.move_id = m.move_id)) a ON true
WHERE $1::bigint IS NULL OR c.journal_id = $1
GROUP BY d.event, c.code, c.max_uses
HAVING coalesce(sum(a.balance), 0) <> c.max_uses`},
}
