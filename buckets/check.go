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

	{Name: "tickets_have_tier", Says: "tickets are of a tier that the journal's event has, and every tier has tickets", SQL: `
SELECT format('journal %s tier %s: on account %s', journal_id, unit, code)
FROM accounts a
WHERE type = 'inventory'
  AND ($1::bigint IS NULL OR journal_id = $1)
  AND NOT EXISTS (SELECT FROM tiers t WHERE t.journal_id = a.journal_id AND t.tier = a.unit)
UNION ALL
SELECT format('journal %s tier %s: no capacity account', journal_id, tier)
FROM tiers t
WHERE ($1::bigint IS NULL OR journal_id = $1)
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

	{Name: "events_listed", Says: "every event is in the directory under its name and journal", SQL: `
SELECT format('journal %s event %s: directory has journal %s', e.journal_id, e.event, d.event_journal_id)
FROM events e
LEFT JOIN event_journals d ON d.journal_id = 0 AND d.event = e.event
WHERE d.event_journal_id IS DISTINCT FROM e.journal_id
  AND ($1::bigint IS NULL OR e.journal_id = $1)`},
}
