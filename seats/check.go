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

	{Name: "seats_posted", Says: "an entry's postings of tickets are the seats that came to each state, less those that left it", SQL: `
SELECT format('journal %s entry %s tier %s %s: posts %s, its seats come to %s', journal_id, seq, tier, state, coalesce(p.amount, 0), coalesce(c.n, 0))
FROM (SELECT p.journal_id, p.seq, p.unit AS tier, split_part(p.account, ':', 1) COLLATE "C" AS state, sum(p.amount)::bigint AS amount
      FROM postings p
      JOIN tiers t ON t.journal_id = p.journal_id AND t.tier = p.unit AND t.seated
      WHERE p.account <> 'capacity' AND ($1::bigint IS NULL OR p.journal_id = $1)
      GROUP BY 1, 2, 3, 4
      HAVING sum(p.amount) <> 0) p
FULL JOIN (SELECT m.journal_id, m.seq, s.tier, m.state COLLATE "C" AS state, sum(m.n)::bigint AS n
           FROM (SELECT journal_id, seq, seat, state, 1 AS n FROM (` + history + `) came
                 UNION ALL
                 SELECT journal_id, seq, seat, was, -1 FROM (` + history + `) went WHERE was IS NOT NULL) m
           JOIN seats s ON s.journal_id = m.journal_id AND s.seat = m.seat
           GROUP BY 1, 2, 3, 4
           HAVING sum(m.n) <> 0) c USING (journal_id, seq, tier, state)
WHERE p.amount IS DISTINCT FROM c.n`},

	{Name: "seats_loaded", Says: "the chart's sections are those of the entries that loaded them, in their order", SQL: `
SELECT format('journal %s section %s: differs from entry %s', coalesce(c.journal_id, e.journal_id), coalesce(c.section, e.section), e.seq)
FROM (SELECT c.journal_id, c.section, c.position, c.name, c.tier, c.version, encode(sha256(c.rows::text::bytea), 'hex') AS digest
      FROM seat_sections c
      WHERE $1::bigint IS NULL OR c.journal_id = $1) c
FULL JOIN (SELECT e.journal_id, e.seq, s.*, row_number() OVER (PARTITION BY e.journal_id ORDER BY e.seq, l.n) - 1 AS position
           FROM entries e
           CROSS JOIN LATERAL json_array_elements(e.data -> 'sections') WITH ORDINALITY AS l (given, n)
           CROSS JOIN LATERAL json_to_record(l.given) AS s (section text, name text, tier text, digest text)
           WHERE e.kind = 'chart.loaded' AND ($1::bigint IS NULL OR e.journal_id = $1)) e
       ON e.journal_id = c.journal_id AND e.section = c.section
WHERE (c.position, c.name, c.tier, c.version, c.digest) IS DISTINCT FROM (e.position, e.name, e.tier, e.seq, e.digest)`},

	{Name: "seats_set_aside", Says: "a blocked seat is set aside for whom the entry that blocked it says", SQL: `
SELECT format('journal %s seat %s: for %s, entry %s says %s', s.journal_id, s.seat, s.allotment, s.version, e.data ->> 'allotment')
FROM seats s
LEFT JOIN entries e ON e.journal_id = s.journal_id AND e.seq = s.version AND e.kind = 'seats.blocked'
WHERE s.state = 'blocked'
  AND s.allotment IS DISTINCT FROM CASE WHEN e.seq IS NOT NULL THEN coalesce(e.data ->> 'allotment', '') END
  AND ($1::bigint IS NULL OR s.journal_id = $1)`},

	{Name: "seats_entered", Says: "seats change with entries of the kinds that change them", SQL: `
SELECT format('journal %s entry %s line %s: %s seats became %s by %s', c.journal_id, c.seq, c.line, cardinality(c.seats), c.state, e.kind)
FROM seat_changes c
LEFT JOIN entries e ON e.journal_id = c.journal_id AND e.seq = c.seq
WHERE ($1::bigint IS NULL OR c.journal_id = $1)
  AND NOT coalesce(CASE c.state
      WHEN 'held' THEN e.kind = 'hold.placed'
      WHEN 'blocked' THEN e.kind = 'seats.blocked'
      WHEN 'sold' THEN e.kind LIKE 'order.%'
      ELSE e.kind IN ('chart.loaded', 'seats.unblocked', 'hold.released', 'hold.expired') OR e.kind LIKE 'order.%'
      END, false)`},
}
