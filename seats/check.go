package seats

import "github.com/tierledger/tierledger/ledger"

// Checks are this package's invariants.
func Checks() []ledger.Check { return checks }

// history is every change of every seat, with what the seat was before.
const history = `
    SELECT c.journal_id, c.seq, c.line, c.state, c.hold_id, n.seat,
           lag(c.state) OVER seat_history AS was, lag(c.hold_id) OVER seat_history AS was_hold,
           lead(c.seq) OVER seat_history IS NULL AS last
    FROM seat_changes c
    CROSS JOIN LATERAL unnest(c.seats) AS n (seat)
    WHERE $1::bigint IS NULL OR c.journal_id = $1
    WINDOW seat_history AS (PARTITION BY c.journal_id, n.seat ORDER BY c.seq, c.line)`

var checks = []ledger.Check{
	{Name: "seats_charted", Says: "every seat of the chart has a row in its place, and no other seat has", SQL: `
SELECT format('journal %s seat %s: chart says row %s place %s tier %s, its row %s %s %s', journal_id, seat, c.row_number, c.place,
              c.tier, s.row_number, s.place, s.tier)
FROM (SELECT journal_id, seat, row_number, place, tier
      FROM seats
      WHERE $1::bigint IS NULL OR journal_id = $1) s
FULL JOIN (SELECT r.journal_id, (r.section || '-' || (r.given ->> 'row') || '-' || (n.given ->> 'seat')) COLLATE "C" AS seat,
                  r.row_number, n.position - 1 AS place, r.tier
           FROM (SELECT c.journal_id, c.section, c.tier, g.given,
                        row_number() OVER (PARTITION BY c.journal_id ORDER BY c.position, g.position) - 1 AS row_number
                 FROM seat_sections c
                 CROSS JOIN LATERAL json_array_elements(c.rows) WITH ORDINALITY AS g (given, position)
                 WHERE $1::bigint IS NULL OR c.journal_id = $1) r
           CROSS JOIN LATERAL json_array_elements(r.given -> 'seats') WITH ORDINALITY AS n (given, position)) c
       USING (journal_id, seat)
WHERE (s.row_number, s.place, s.tier) IS DISTINCT FROM (c.row_number, c.place, c.tier)`},

	{Name: "seats_balanced", Says: "the tickets of a tier that's sold by seat are where its seats are", SQL: `
SELECT format('journal %s tier %s %s: the accounts have %s, %s seats are', journal_id, tier, code, coalesce(a.balance, 0), coalesce(s.n, 0))
FROM (SELECT a.journal_id, a.unit AS tier, a.code, CASE WHEN a.code = 'capacity' THEN -a.balance ELSE a.balance END AS balance
      FROM accounts a
      JOIN tiers t ON t.journal_id = a.journal_id AND t.tier = a.unit AND t.seated
      WHERE a.code IN ('capacity', 'available', 'held', 'sold', 'blocked', 'void', 'transit')
        AND a.balance <> 0
        AND ($1::bigint IS NULL OR a.journal_id = $1)) a
FULL JOIN (SELECT journal_id, tier, coalesce(state, 'capacity') COLLATE "C" AS code, count(*) AS n
           FROM seats
           WHERE $1::bigint IS NULL OR journal_id = $1
           GROUP BY GROUPING SETS ((journal_id, tier, state), (journal_id, tier))) s USING (journal_id, tier, code)
WHERE a.balance IS DISTINCT FROM s.n`},

	{Name: "seats_summarized", Says: "a row's summary is the states of its seats", SQL: `
SELECT format('journal %s row %s: says %s at %s, its seats are %s at %s', journal_id, row_number, r.states, r.version, s.states, s.version)
FROM (SELECT r.journal_id, r.row_number, r.section, r.tier, r.states, r.version
      FROM seat_rows r
      WHERE $1::bigint IS NULL OR r.journal_id = $1) r
FULL JOIN (SELECT journal_id, row_number, string_agg(left(state, 1), '' ORDER BY place) AS states, max(version) AS version,
                  min(tier) AS tier, min(split_part(seat, '-', 1)) AS section
           FROM seats
           WHERE $1::bigint IS NULL OR journal_id = $1
           GROUP BY 1, 2) s USING (journal_id, row_number)
WHERE (r.states, r.version, r.tier, r.section) IS DISTINCT FROM (s.states, s.version, s.tier, s.section)`},

	{Name: "seats_recorded", Says: "every seat is what the last entry that changed it made it", SQL: `
SELECT format('journal %s seat %s: is %s of hold %s at %s, entry %s made it %s of hold %s', journal_id, seat, s.state, s.hold_id,
              s.version, h.seq, h.state, h.hold_id)
FROM (SELECT journal_id, seat, state, hold_id, version
      FROM seats
      WHERE $1::bigint IS NULL OR journal_id = $1) s
FULL JOIN (SELECT * FROM (` + history + `) h WHERE last) h USING (journal_id, seat)
WHERE (s.state, s.hold_id, s.version) IS DISTINCT FROM (h.state, h.hold_id, h.seq)`},

	{Name: "seats_changed_legally", Says: "a seat is taken when it's free, and given back or sold by the hold that has it", SQL: `
SELECT format('journal %s entry %s seat %s: from %s of hold %s to %s of hold %s', journal_id, seq, seat, was, was_hold, state, hold_id)
FROM (` + history + `) h
WHERE NOT CASE
    WHEN was IS NULL THEN state = 'available' AND hold_id IS NULL
    WHEN was = 'available' THEN state IN ('held', 'sold') AND hold_id IS NOT NULL OR state = 'blocked' AND hold_id IS NULL
    WHEN was = 'held' THEN state IN ('available', 'sold') AND hold_id IS NOT DISTINCT FROM was_hold
    WHEN was = 'sold' THEN state = 'available' AND hold_id IS NOT DISTINCT FROM was_hold
    ELSE state = 'available' AND hold_id IS NULL
    END`},

	{Name: "seats_posted", Says: "an entry's postings of free tickets are the seats that it freed, less those that it took", SQL: `
SELECT format('journal %s entry %s tier %s: posts %s, its seats come to %s', journal_id, seq, tier, coalesce(p.amount, 0), coalesce(c.n, 0))
FROM (SELECT p.journal_id, p.seq, p.unit AS tier, p.amount
      FROM postings p
      JOIN tiers t ON t.journal_id = p.journal_id AND t.tier = p.unit AND t.seated
      WHERE p.account = 'available' AND ($1::bigint IS NULL OR p.journal_id = $1)) p
FULL JOIN (SELECT h.journal_id, h.seq, s.tier,
                  count(*) FILTER (WHERE h.state = 'available') - count(*) FILTER (WHERE h.was = 'available') AS n
           FROM (` + history + `) h
           JOIN seats s ON s.journal_id = h.journal_id AND s.seat = h.seat
           GROUP BY 1, 2, 3
           HAVING count(*) FILTER (WHERE h.state = 'available') <> count(*) FILTER (WHERE h.was = 'available')) c
       USING (journal_id, seq, tier)
WHERE p.amount IS DISTINCT FROM c.n`},
}
