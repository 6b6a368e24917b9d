package outbox

import (
	"slices"

	"github.com/tierledger/tierledger/ledger"
)

// Checks are this package's invariants.
func Checks() []ledger.Check { return slices.Concat(checks, letterChecks) }

var checks = []ledger.Check{
	{Name: "relays_behind_journals", Says: "nothing is published that a journal doesn't have", SQL: `
SELECT format('journal %s: published up to %s, has %s', r.journal_id, r.seq, coalesce(j.seq::text, 'no entries'))
FROM (SELECT * FROM relays WHERE $1::bigint IS NULL OR journal_id = $1) r
LEFT JOIN journals j ON j.journal_id = r.journal_id
WHERE r.seq > coalesce(j.seq, -1)`},

	{Name: "inbox_behind_journals", Says: "no consumer has taken an entry that a journal doesn't have", SQL: `
SELECT format('journal %s consumer %s: has taken up to %s, there are %s', i.journal_id, i.consumer, i.seq, coalesce(j.seq::text, 'none'))
FROM (SELECT * FROM inbox WHERE $1::bigint IS NULL OR journal_id = $1) i
LEFT JOIN journals j ON j.journal_id = i.journal_id
WHERE i.seq > coalesce(j.seq, -1)`},
}
