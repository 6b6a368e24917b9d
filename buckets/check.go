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
WHERE type = 'inventory'
  AND ($1::bigint IS NULL OR journal_id = $1)
  AND NOT EXISTS (SELECT FROM tiers t WHERE t.journal_id = a.journal_id AND t.tier = a.unit)
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
SELECT format('journal %s: directory has event %L, system entry created %L, journal records %L', journal_id,
              d.event, c.event, e.event)
FROM (SELECT journal_id
      FROM journals
      WHERE journal_id <> 0 AND ($1::bigint IS NULL OR journal_id = $1)) j
FULL JOIN (SELECT journal_id, event
           FROM events
           WHERE $1::bigint IS NULL OR journal_id = $1) e USING (journal_id)
FULL JOIN (SELECT event_journal_id AS journal_id, event
           FROM event_journals
           WHERE $1::bigint IS NULL OR event_journal_id = $1) d USING (journal_id)
FULL JOIN (SELECT seq AS journal_id, data ->> 'event' AS event
           FROM entries
           WHERE journal_id = 0 AND kind = 'event.created' AND ($1::bigint IS NULL OR seq = $1)) c USING (journal_id)
WHERE d.event IS NULL
   OR d.event IS DISTINCT FROM c.event
   OR d.event <> e.event -- no row: it was created and isn't open yet`},

	{Name: "events_recorded", Says: "every event is what the entry that opened it records", SQL: `
SELECT format('journal %s event %s: differs from entry %s', e.journal_id, e.event, e.version)
FROM (SELECT * FROM events WHERE $1::bigint IS NULL OR journal_id = $1) e
LEFT JOIN entries n ON n.journal_id = e.journal_id AND n.seq = e.version AND n.kind = 'event.opened'
LEFT JOIN LATERAL json_to_record(n.data) AS r (event text, name text, currency text, hold_seconds integer,
              grace_seconds integer, limit_per_customer bigint, sale_opens_at timestamptz, sale_closes_at timestamptz,
              organiser text, late_payment_policy text, honour_until timestamptz, created_at timestamptz)
       ON true
WHERE (e.event, e.name, e.currency, e.hold_seconds, e.grace_seconds, e.limit_per_customer, e.sale_opens_at,
       e.sale_closes_at, e.organiser, e.late_payment_policy, e.honour_until, e.created_at) IS DISTINCT FROM
      (r.event, r.name, r.currency, r.hold_seconds, r.grace_seconds, r.limit_per_customer, r.sale_opens_at,
       r.sale_closes_at, r.organiser, r.late_payment_policy, r.honour_until, r.created_at)`},

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
}
