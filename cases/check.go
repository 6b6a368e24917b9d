package cases

import "github.com/tierledger/tierledger/ledger"

// Checks are this package's invariants.
func Checks() []ledger.Check { return checks }

var checks = []ledger.Check{
	{Name: "cases_recorded", Says: "every case is what the entry at its version records", SQL: `
SELECT format('journal %s case %s: differs from entry %s', c.journal_id, c.case_id, c.version)
FROM (SELECT * FROM cases WHERE $1::bigint IS NULL OR journal_id = $1) c
LEFT JOIN entries e ON e.journal_id = c.journal_id AND e.seq = c.version
LEFT JOIN LATERAL json_array_elements(e.data -> 'cases') AS n (data) ON n.data ->> 'case_id' = c.case_id::text
LEFT JOIN LATERAL json_to_record(n.data) AS r (reason text, status text, amount json, suspended bigint,
              hold_id uuid, order_id uuid, operation_id uuid, provider text, told_at timestamptz, opened_at timestamptz,
              owner text, last_fact text, deadline timestamptz, next_attempt_at timestamptz, resolution text,
              resolved_reason text, evidence text, proposed_by text, decided_by text, resolved_at timestamptz)
       ON true
WHERE (c.reason, c.status, c.amount, c.currency, c.suspended, c.hold_id, c.order_id, c.operation_id, c.provider,
       c.told_at, c.opened_at, c.owner, c.last_fact, c.deadline, c.due_at, c.resolution,
       c.resolved_reason, c.evidence, c.proposed_by, c.decided_by, c.resolved_at) IS DISTINCT FROM
      (r.reason, r.status, (r.amount ->> 'amount')::bigint, r.amount ->> 'currency', r.suspended, r.hold_id, r.order_id,
       r.operation_id, coalesce(r.provider, ''), r.told_at, r.opened_at, r.owner, r.last_fact,
       r.deadline, r.next_attempt_at, coalesce(r.resolution, ''), coalesce(r.resolved_reason, ''),
       coalesce(r.evidence, ''), coalesce(r.proposed_by, ''), coalesce(r.decided_by, ''), r.resolved_at)`},

	{Name: "suspense_by_cases", Says: "what rests in suspense is what the cases that aren't resolved account for", SQL: `
SELECT format('journal %s suspense %s: holds %s, cases account for %s', journal_id, unit, a.balance, c.suspended)
FROM (SELECT journal_id, unit, -sum(balance)::bigint AS balance
      FROM accounts
      WHERE code IN ('suspense:late', 'suspense:unidentified') AND ($1::bigint IS NULL OR journal_id = $1)
      GROUP BY 1, 2
      HAVING sum(balance) <> 0) a
FULL JOIN (SELECT journal_id, currency AS unit, sum(suspended)::bigint AS suspended
           FROM cases
           WHERE suspended <> 0 AND ($1::bigint IS NULL OR journal_id = $1)
           GROUP BY 1, 2) c USING (journal_id, unit)
WHERE a.balance IS DISTINCT FROM c.suspended`},
}
