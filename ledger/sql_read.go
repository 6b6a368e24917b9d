package ledger

// Reads for people and reports; nothing decides by them.
const (
	// Of several journals at one instant. The accounts of allotments are those between the
	// name with a colon and the next name.
	sqlStocks = `
SELECT j.journal_id, j.seq, clock_timestamp(), a.unit, a.code, a.balance, a.version
FROM unnest($1::bigint[]) AS k (id)
JOIN journals j ON j.journal_id = k.id
LEFT JOIN LATERAL (
    SELECT f.*
    FROM unnest($2::text[]) AS c (code)
    CROSS JOIN LATERAL (
        SELECT unit, code, balance, version
        FROM accounts
        WHERE journal_id = k.id
          AND code = c.code
          AND unit <> $3
        OFFSET 0) f
    UNION ALL
    SELECT f.*
    FROM (VALUES ('available:', 'available;'), ('transit:', 'transit;')) AS c (low, high)
    CROSS JOIN LATERAL (
        SELECT unit, code, balance, version
        FROM accounts
        WHERE journal_id = k.id
          AND code > c.low COLLATE "C"
          AND code < c.high COLLATE "C"
          AND unit <> $3
        OFFSET 0) f) a ON true`

	sqlAccepted = `
SELECT EXISTS (
    SELECT
    FROM unnest($1::bigint[], $2::uuid[]) AS k (journal, id)
    CROSS JOIN LATERAL (
        SELECT
        FROM entries
        WHERE journal_id = k.journal
          AND id = k.id
        OFFSET 0) e)`

	// The last entry at or before a time, by bisection: time never goes back in a
	// journal. Everything up to lo is early enough, everything after hi is too late.
	sqlSeqAt = `
WITH RECURSIVE search (lo, hi) AS (
    SELECT 0::bigint, seq
    FROM journals
    WHERE journal_id = $1
    UNION ALL
    SELECT CASE WHEN e.at <= $2 THEN e.seq ELSE s.lo END,
           CASE WHEN e.at <= $2 THEN s.hi ELSE e.seq - 1 END
    FROM search s
    JOIN entries e ON e.journal_id = $1
                  AND e.seq = (s.lo + s.hi + 1) / 2
    WHERE s.lo < s.hi
)
SELECT lo
FROM search
WHERE lo = hi`

	sqlHead = `
SELECT seq
FROM journals
WHERE journal_id = $1`

	accountsNow = `
SELECT code, unit, type, coalesce(control, ''), balance, version
FROM accounts a`

	// An account's balance at a point is its last posting's up to there; a control
	// account's is the sum of the postings below it.
	accountsAt = `
SELECT a.code, a.unit, a.type, coalesce(a.control, ''), coalesce(p.balance, 0), coalesce(p.seq, 0)
FROM accounts a
LEFT JOIN LATERAL (
    SELECT own.balance, own.seq
    FROM (SELECT balance, seq
          FROM postings
          WHERE journal_id = a.journal_id
            AND account = a.code
            AND unit = a.unit
            AND seq <= $5
          ORDER BY seq DESC
          LIMIT 1) own
    WHERE a.code <> ALL ($6::text[])
    UNION ALL
    SELECT sum(amount)::bigint, max(seq)
    FROM postings
    WHERE a.code = ANY ($6::text[])
      AND journal_id = a.journal_id
      AND account > a.code || ':'
      AND account < a.code || ';'
      AND unit = a.unit
      AND seq <= $5
    HAVING count(*) > 0
) p ON true`

	// A page of all accounts, or one account in one unit or in all: the parameters
	// are in the same places.
	pageOfAccounts = `
WHERE a.journal_id = $1
  AND (a.code, a.unit) > ($2, $3)
ORDER BY a.code, a.unit
LIMIT $4`
	oneAccount = `
WHERE a.journal_id = $1
  AND a.code = $2
  AND ($3 = '' OR a.unit = $3)
ORDER BY a.code, a.unit
LIMIT $4`

	sqlAccounts   = accountsNow + pageOfAccounts
	sqlAccountsAt = accountsAt + pageOfAccounts
	sqlAccount    = accountsNow + oneAccount
	sqlAccountAt  = accountsAt + oneAccount

	sqlTrialBalance = `
SELECT code, unit, type, balance
FROM accounts
WHERE journal_id = $1
  AND control IS NULL
ORDER BY code, unit`

	sqlTrialBalanceAt = `
SELECT coalesce(a.control, a.code), a.unit, a.type, sum(p.amount)::bigint
FROM postings p
JOIN accounts a ON a.journal_id = p.journal_id
               AND a.code = p.account
               AND a.unit = p.unit
WHERE p.journal_id = $1
  AND p.seq <= $2
GROUP BY coalesce(a.control, a.code), a.unit, a.type
ORDER BY 1, 2`

	// Both sides begin after $4, whichever of them the planner walks along.
	statement = `
SELECT p.seq, e.at, e.kind, e.id, p.account, p.unit, p.amount, p.balance
FROM postings p
JOIN entries e ON e.journal_id = p.journal_id
              AND e.seq = p.seq
WHERE p.journal_id = $1
  AND p.seq > $4
  AND e.seq > $4`
	inUnit = `
  AND ($3 = '' OR p.unit = $3)`
	statementOrder = `
ORDER BY p.seq, p.leg
LIMIT $5`

	// The statement of an account; of a control account, all postings below it. In
	// one unit an entry has one leg, and the index gives any page in order.
	sqlStatement = statement + inUnit + `
  AND p.account = $2` + statementOrder
	sqlUnitStatement = statement + `
  AND p.account = $2
  AND p.unit = $3
ORDER BY p.seq
LIMIT $5`
	sqlControlStatement = statement + inUnit + `
  AND p.account > $2 || ':'
  AND p.account < $2 || ';'` + statementOrder

	sqlEntry = `
SELECT seq, id, kind, at, principal, digest, data, hash
FROM entries
WHERE journal_id = $1
  AND seq = $2`

	sqlEntries = `
SELECT seq, id, kind, at, principal, digest, data, hash
FROM entries
WHERE journal_id = $1
  AND seq > $2
ORDER BY seq
LIMIT $3`

	sqlPostingsBetween = `
SELECT seq, account, unit, amount, balance
FROM postings
WHERE journal_id = $1
  AND seq BETWEEN $2 AND $3
ORDER BY seq, leg`

	sqlJournals = `
SELECT journal_id, seq, hash
FROM journals
WHERE $1::bigint IS NULL
   OR journal_id = $1
ORDER BY journal_id`
)
