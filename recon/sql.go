package recon

// Every statement on the lines of reports, and the one that adds up the provider's
// accounts.
const (
	lineColumns = `line_id, type, payment, operation_id, created_at, gross, fee, net, currency, result, version`

	sqlBatchLines = `
SELECT ` + lineColumns + `, provider
FROM unnest($2::text[], $3::text[]) AS k (in_provider, id)
CROSS JOIN LATERAL (
    SELECT *
    FROM report_lines
    WHERE journal_id = $1
      AND provider = k.in_provider
      AND line_id = k.id
    OFFSET 0) l`

	sqlInsertLines = `
INSERT INTO report_lines (journal_id, provider, ` + lineColumns + `)
SELECT $1, l.provider, l.line_id, l.type, l.payment, l.operation_id, l.created_at, l.gross, l.fee, l.net, l.currency,
       l.result, l.version
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::timestamptz[], $8::bigint[], $9::bigint[],
            $10::bigint[], $11::text[], $12::text[], $13::bigint[])
     AS l (provider, line_id, type, payment, operation_id, created_at, gross, fee, net, currency, result, version)`

	// The rows exist, and are found through their key.
	sqlJudgeLines = sqlInsertLines + `
ON CONFLICT (journal_id, provider, line_id) DO UPDATE
SET operation_id = excluded.operation_id,
    result = excluded.result,
    version = excluded.version`

	// In whatever journal: what a line is about may have become known since.
	sqlKnownLines = `
SELECT ` + lineColumns + `, journal_id
FROM unnest($2::text[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM report_lines
    WHERE provider = $1
      AND line_id = k.id
    OFFSET 0) l`

	// The lines that have one of the operations.
	sqlClaims = `
SELECT l.line_id, l.type, l.operation_id
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM report_lines
    WHERE operation_id = k.id
      AND provider = $1
      AND result NOT IN ('missing_here', 'duplicate')
    OFFSET 0) l`

	// Where the reports before and after a time end and begin.
	sqlSpan = `
SELECT (SELECT max(created_at)
        FROM report_lines
        WHERE provider = $1
          AND created_at < $2),
       (SELECT min(created_at)
        FROM report_lines
        WHERE provider = $1
          AND created_at > $3)`

	// Journal by journal, as each has its own accounts of the name.
	sqlProviderBalance = `
SELECT a.unit, sum(a.balance)::bigint
FROM journals j
CROSS JOIN LATERAL (
    SELECT unit, balance
    FROM accounts
    WHERE journal_id = j.journal_id
      AND code = $1
    OFFSET 0) a
GROUP BY a.unit`
)
