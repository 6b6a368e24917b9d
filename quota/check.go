package quota

import "github.com/tierledger/tierledger/ledger"

// Checks are this package's invariants.
func Checks() []ledger.Check { return checks }

var checks = []ledger.Check{
	{Name: "moves_recorded", Says: "every quota move is what the entry at its version records", SQL: `
SELECT format('journal %s move %s: differs from entry %s', m.journal_id, m.move_id, m.version)
FROM (SELECT * FROM quota_moves WHERE $1::bigint IS NULL OR journal_id = $1) m
LEFT JOIN entries e ON e.journal_id = m.journal_id AND e.seq = m.version AND e.kind LIKE 'quota.%'
LEFT JOIN LATERAL json_to_record(e.data) AS r (move_id uuid, tier text, "from" json, "to" json, quantity bigint, up_to boolean,
              any_lane boolean, status text, cause text, reason text, asked_by text, decided_by text, asked_at timestamptz,
              moved_at timestamptz) ON true
LEFT JOIN lanes l ON l.journal_id = m.journal_id
WHERE (m.move_id, m.unit, m.account, m.to_account, m.to_journal, m.from_lane, m.to_lane, m.quantity, m.up_to, m.any_lane, m.status, m.cause, m.reason, m.principal,
       m.decided_by, m.asked_at, m.moved_at) IS DISTINCT FROM
      (r.move_id, r.tier,
       CASE WHEN m.unit = '_uses' THEN m.account ELSE 'available' || coalesce(':' || (r."from" ->> 'allotment'), '') END,
       CASE WHEN m.unit = '_uses' THEN m.account ELSE 'available' || coalesce(':' || (r."to" ->> 'allotment'), '') END,
       coalesce(l.journals[(r."to" ->> 'lane')::integer], m.journal_id), (r."from" ->> 'lane')::integer, (r."to" ->> 'lane')::integer, r.quantity, coalesce(r.up_to, false),
       coalesce(r.any_lane, false), r.status, r.cause, coalesce(r.reason, ''), r.asked_by, r.decided_by, r.asked_at, r.moved_at)
   OR e.kind <> CASE WHEN m.status = 'awaiting_approval' THEN 'quota.requested'
                     WHEN m.status = 'rejected' THEN 'quota.rejected'
                     WHEN m.to_journal = m.journal_id THEN 'quota.moved'
                     ELSE 'quota.sent' END`},

	{Name: "moves_posted", Says: "a quota move took its tickets from where it says, and its other end brought as many to where it says", SQL: `
SELECT format('journal %s entry %s: posted %s of %s to %s, the move says %s', p.journal_id, p.seq, p.amount, p.unit,
              p.account, s.amount)
FROM (SELECT p.*
      FROM postings p
      JOIN entries e USING (journal_id, seq)
      WHERE e.kind LIKE 'quota.%' AND ($1::bigint IS NULL OR p.journal_id = $1)) p
FULL JOIN (SELECT journal_id, version AS seq, account, unit, -quantity AS amount
           FROM quota_moves
           WHERE status = 'moved' AND ($1::bigint IS NULL OR journal_id = $1)
           UNION ALL
           SELECT journal_id, version, CASE WHEN to_journal = journal_id THEN to_account ELSE 'transit' || coalesce(':' || nullif(split_part(to_account, ':', 2), ''), '') END, unit, quantity
           FROM quota_moves
           WHERE status = 'moved' AND ($1::bigint IS NULL OR journal_id = $1)
           UNION ALL
           SELECT journal_id, version, 'transit' || coalesce(':' || nullif(split_part(account, ':', 2), ''), ''), unit, -quantity
           FROM quota_arrivals
           WHERE $1::bigint IS NULL OR journal_id = $1
           UNION ALL
           SELECT journal_id, version, account, unit, quantity
           FROM quota_arrivals
           WHERE $1::bigint IS NULL OR journal_id = $1) s USING (journal_id, seq, account, unit)
WHERE p.amount IS DISTINCT FROM s.amount`},

	{Name: "moves_arrived", Says: "what arrived in a lane is what another lane sent there, once", SQL: `
SELECT format('journal %s entry %s: %s of %s arrived on %s by move %s; journal %s sent %s to journal %s', a.journal_id, a.version,
              a.quantity, a.unit, a.account, a.move_id, a.from_journal, m.quantity, m.to_journal)
FROM quota_arrivals a
LEFT JOIN quota_moves m ON m.journal_id = a.from_journal AND m.move_id = a.move_id AND m.status = 'moved'
WHERE ($1::bigint IS NULL OR a.journal_id = $1)
  AND (a.journal_id, a.unit, a.account, a.quantity) IS DISTINCT FROM (m.to_journal, m.unit, m.to_account, m.quantity)`},

	{Name: "transit_moved", Says: "a lane's transit is what it sent less what came, and over all lanes what is under way", SQL: `
SELECT format('journal %s tier %s: transit has %s, %s was sent and %s came', journal_id, unit, a.balance, m.quantity, r.quantity)
FROM (SELECT journal_id, unit, sum(balance) AS balance
      FROM accounts
      WHERE code LIKE 'transit%' AND ($1::bigint IS NULL OR journal_id = $1)
      GROUP BY journal_id, unit) a
FULL JOIN (SELECT journal_id, unit, sum(quantity) AS quantity
           FROM quota_moves
           WHERE status = 'moved' AND to_journal <> journal_id AND ($1::bigint IS NULL OR journal_id = $1)
           GROUP BY journal_id, unit) m USING (journal_id, unit)
FULL JOIN (SELECT journal_id, unit, sum(quantity) AS quantity
           FROM quota_arrivals
           WHERE $1::bigint IS NULL OR journal_id = $1
           GROUP BY journal_id, unit) r USING (journal_id, unit)
WHERE coalesce(a.balance, 0) <> coalesce(m.quantity, 0) - coalesce(r.quantity, 0)`},

	{Name: "lanes_conserved", Says: "the lanes of an event together have the tickets that its home brought into being", SQL: `
SELECT format('event %s tier %s: %s tickets, of which %s are under way, capacity %s', d.event, a.unit,
              sum(a.balance) FILTER (WHERE a.code <> 'capacity'), sum(a.balance) FILTER (WHERE a.code LIKE 'transit%'),
              -sum(a.balance) FILTER (WHERE a.code = 'capacity'))
FROM (SELECT event, event_journal_id AS journal_id, lane FROM event_journals) d
JOIN accounts a ON a.journal_id = d.journal_id AND a.type = 'inventory' AND a.control IS NULL
WHERE $1::bigint IS NULL OR d.event = (SELECT event FROM event_journals WHERE event_journal_id = $1)
GROUP BY d.event, a.unit
HAVING sum(a.balance) <> 0
    OR bool_or(a.code = 'capacity' AND d.lane > 1)
UNION ALL
SELECT format('event %s tier %s: %s are under way to %s', d.event, a.unit, sum(a.balance), a.code)
FROM event_journals d
JOIN accounts a ON a.journal_id = d.event_journal_id AND a.code LIKE 'transit%'
WHERE $1::bigint IS NULL OR d.event = (SELECT event FROM event_journals WHERE event_journal_id = $1)
GROUP BY d.event, a.unit, a.code
HAVING sum(a.balance) < 0`},
}
