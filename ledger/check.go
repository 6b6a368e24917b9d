package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Check is an invariant as a query. Its parameter is a journal's number, or NULL
// for all; every row of its single text column names one violation.
type Check struct {
	Name string // stable, snake_case
	Says string // what holds when it finds nothing
	SQL  string
}

// Checks are this package's invariants, but for the hash chain (CheckChain).
func Checks() []Check { return checks }

var checks = []Check{
	{"entries_balanced", "the postings of every entry sum to zero per unit", `
SELECT format('journal %s entry %s: %s sums to %s', journal_id, seq, unit, sum(amount))
FROM postings
WHERE $1::bigint IS NULL OR journal_id = $1
GROUP BY journal_id, seq, unit
HAVING sum(amount) <> 0`},

	{"balances_chained", "the balance after every posting is the one before plus its amount", `
SELECT format('journal %s entry %s: account %s %s has %s after %s', journal_id, seq, account, unit, balance, amount)
FROM (SELECT *, lag(balance, 1, 0::bigint) OVER (PARTITION BY journal_id, account, unit ORDER BY seq) AS before
      FROM postings
      WHERE $1::bigint IS NULL OR journal_id = $1) p
WHERE balance <> before + amount`},

	{"balances_posted", "every account has the sum and the version of its postings", `
SELECT format('journal %s account %s %s: has %s at version %s, postings sum to %s at %s', journal_id,
              code, unit, a.balance, a.version, p.balance, p.version)
FROM (SELECT * FROM accounts
      WHERE ($1::bigint IS NULL OR journal_id = $1) AND code <> ALL (ARRAY['held', 'sold'])) a
FULL JOIN (SELECT journal_id, account AS code, unit, sum(amount)::bigint AS balance, max(seq) AS version
           FROM postings
           WHERE $1::bigint IS NULL OR journal_id = $1
           GROUP BY journal_id, account, unit) p USING (journal_id, code, unit)
WHERE (a.balance, a.version) IS DISTINCT FROM (p.balance, p.version)`},

	{"control_accounts", "every control account is the sum of the accounts below it", `
SELECT format('journal %s account %s %s: has %s at version %s, those below sum to %s at %s', journal_id,
              code, unit, c.balance, c.version, s.balance, s.version)
FROM (SELECT * FROM accounts
      WHERE ($1::bigint IS NULL OR journal_id = $1) AND code = ANY (ARRAY['held', 'sold'])) c
FULL JOIN (SELECT journal_id, control AS code, unit, sum(balance)::bigint AS balance, max(version) AS version
           FROM accounts
           WHERE control IS NOT NULL AND ($1::bigint IS NULL OR journal_id = $1)
           GROUP BY journal_id, control, unit) s USING (journal_id, code, unit)
WHERE (c.balance, c.version) IS DISTINCT FROM (s.balance, s.version)`},

	{"sequence_gapless", "entries are numbered from 1 to the journal's head without a gap", `
SELECT format('journal %s: %s entries from %s to %s, head is %s', j.journal_id, count(e.seq), min(e.seq), max(e.seq), j.seq)
FROM journals j
LEFT JOIN entries e ON e.journal_id = j.journal_id
WHERE $1::bigint IS NULL OR j.journal_id = $1
GROUP BY j.journal_id, j.seq
HAVING count(e.seq) <> j.seq OR coalesce(max(e.seq), 0) <> j.seq`},

	{"time_forward", "the time of an entry is never before the entry ahead of it", `
SELECT format('journal %s entry %s: %s is before %s', journal_id, seq, at, before)
FROM (SELECT journal_id, seq, at, lag(at) OVER (PARTITION BY journal_id ORDER BY seq) AS before
      FROM entries
      WHERE $1::bigint IS NULL OR journal_id = $1) e
WHERE at < before`},

	{"ids_once", "a command has one entry, in the journal that its id tells", `
SELECT format('journal %s id %s: %s entries, the first is %s', journal_id, id, count(*), min(seq))
FROM entries
WHERE $1::bigint IS NULL OR journal_id = $1
GROUP BY journal_id, id
HAVING count(*) > 1 OR ('x' || left(id::text, 8))::bit(32)::bigint <> journal_id`},

	{"postings_owned", "every posting belongs to an entry, whose legs are numbered from 0 without a gap", `
SELECT format('journal %s entry %s: legs %s to %s, %s of them, of %s', p.journal_id, p.seq, min(p.leg), max(p.leg),
              count(*), CASE WHEN e.seq IS NULL THEN 'no entry' ELSE e.kind END)
FROM postings p
LEFT JOIN entries e ON e.journal_id = p.journal_id AND e.seq = p.seq
WHERE $1::bigint IS NULL OR p.journal_id = $1
GROUP BY p.journal_id, p.seq, e.seq, e.kind
HAVING e.seq IS NULL OR min(p.leg) <> 0 OR max(p.leg) <> count(*) - 1`},
}

const (
	sqlChainEntries = `
SELECT journal_id, seq, id, kind, at, principal, digest, data, hash
FROM entries
WHERE $1::bigint IS NULL OR journal_id = $1
ORDER BY journal_id, seq`

	sqlChainPostings = `
SELECT journal_id, seq, account, unit, amount, balance
FROM postings
WHERE $1::bigint IS NULL OR journal_id = $1
ORDER BY journal_id, seq, leg`
)

// CheckChain recomputes the hash chains from the entries and postings, and
// compares them with the entries' hashes and the journals' heads. It tells every
// violation, and reads each row once: entries on one connection, postings on the
// other, which must see the same snapshot.
func CheckChain(ctx context.Context, entries, postings pgx.Tx, journal *JournalID, violated func(string)) error {
	heads, err := collect(ctx, entries, func(row pgx.CollectableRow) (h journalHead, err error) {
		var hash []byte
		err = row.Scan(&h.journal, &h.seq, &hash)
		copy(h.hash[:], hash)
		return h, err
	}, sqlJournals, journal)
	if err != nil {
		return fail(err, "read journals")
	}
	legs, err := postings.Query(ctx, sqlChainPostings, journal)
	if err != nil {
		return fail(err, "read postings")
	}
	defer legs.Close()
	rows, err := entries.Query(ctx, sqlChainEntries, journal)
	if err != nil {
		return fail(err, "read entries")
	}
	defer rows.Close()
	w := walk{legs: legs, last: make(map[JournalID]Hash)}
	for rows.Next() {
		if err := w.entry(rows, violated); err != nil {
			return fail(err, "check hash chain")
		}
	}
	if err := rows.Err(); err != nil {
		return fail(err, "check hash chain")
	}
	for _, h := range heads {
		if last := w.last[h.journal]; last != h.hash {
			violated(fmt.Sprintf("journal %d: its head's hash isn't the last entry's", h.journal))
		}
	}
	return nil
}
