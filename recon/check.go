package recon

import "github.com/tierledger/tierledger/ledger"

// Checks are this package's invariants.
func Checks() []ledger.Check { return checks }

var checks = []ledger.Check{
	{Name: "report_fees_booked", Says: "what a provider's fees come to, but for what people posted, is what its reports' lines tell", SQL: `
SELECT format('journal %s account %s %s: fees of %s posted, lines tell %s', journal_id, account, unit,
              coalesce(p.amount, 0), coalesce(l.fee, 0))
FROM (SELECT p.journal_id, p.account, p.unit, sum(p.amount) AS amount
      FROM postings p
      JOIN entries e ON e.journal_id = p.journal_id AND e.seq = p.seq
      WHERE p.account LIKE 'fees:provider:%'
        AND e.kind <> 'entry.posted'
        AND ($1::bigint IS NULL OR p.journal_id = $1)
      GROUP BY 1, 2, 3) p
FULL JOIN (SELECT journal_id, 'fees:provider:' || provider AS account, currency AS unit, sum(fee) AS fee
           FROM report_lines
           WHERE $1::bigint IS NULL OR journal_id = $1
           GROUP BY 1, 2, 3) l USING (journal_id, account, unit)
WHERE coalesce(p.amount, 0) <> coalesce(l.fee, 0)`},

	{Name: "report_lines_recorded", Says: "every line of a report is what the last report.booked entry that names it records, and has its version", SQL: `
SELECT format('journal %s line %s of %s: version %s, recorded by entry %s', journal_id, line_id, provider,
              l.version, r.version)
FROM (SELECT * FROM report_lines WHERE $1::bigint IS NULL OR journal_id = $1) l
FULL JOIN (SELECT DISTINCT ON (e.journal_id, e.provider, b.line_id)
                  e.journal_id, e.provider, e.seq AS version, b.*
           FROM (SELECT journal_id, seq, data, (data ->> 'provider') COLLATE "C" AS provider
                 FROM entries
                 WHERE kind = 'report.booked'
                   AND ($1::bigint IS NULL OR journal_id = $1)
                 OFFSET 0) e -- or an entry's data would be read again for each of its lines
           CROSS JOIN LATERAL json_to_recordset(e.data -> 'lines')
                AS b (line_id text COLLATE "C", type text, payment text, operation_id uuid, created_at timestamptz,
                      gross bigint, fee bigint, net bigint, currency text, result text)
           ORDER BY e.journal_id, e.provider, b.line_id, e.seq DESC) r USING (journal_id, provider, line_id)
WHERE (l.version, l.type, l.payment, l.operation_id, l.created_at, l.gross, l.fee, l.net, l.currency, l.result)
      IS DISTINCT FROM
      (r.version, r.type, r.payment, r.operation_id, r.created_at, r.gross, r.fee, r.net, r.currency, r.result)`},

	{Name: "report_lines_once", Says: "a line of a provider is booked in one journal", SQL: `
SELECT format('line %s of %s: in journals %s', line_id, provider, string_agg(journal_id::text, ' ' ORDER BY journal_id))
FROM report_lines
GROUP BY provider, line_id
HAVING count(*) > 1 AND ($1::bigint IS NULL OR bool_or(journal_id = $1))`},
}
