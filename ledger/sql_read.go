package ledger

// Reads for people and reports; nothing decides by them.
const (
	sqlStock = `
SELECT j.seq, clock_timestamp(), a.unit, a.code, a.balance, a.version
FROM journals j
LEFT JOIN accounts a ON a.journal_id = j.journal_id
                    AND a.code = ANY ($2::text[])
WHERE j.journal_id = $1`

	sqlEntry = `
SELECT seq, id, kind, at, principal, data, hash
FROM entries
WHERE journal_id = $1
  AND seq = $2`

	sqlEntries = `
SELECT seq, id, kind, at, principal, data, hash
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
)
