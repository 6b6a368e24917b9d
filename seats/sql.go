package seats

// Every statement on seats.
const (
	// noHold stands for none: it's simpler to scan and to send than NULL.
	noHold = `'00000000-0000-0000-0000-000000000000'::uuid`

	// What a process doesn't know of the chart; almost always nothing.
	sqlSections = `
SELECT section, name, tier, rows, version
FROM seat_sections
WHERE journal_id = $1
  AND position >= $2
ORDER BY position`

	sqlBatchSeats = `
SELECT ` + Columns + `
FROM unnest($2::text[]) AS k (seat)
CROSS JOIN LATERAL (
    SELECT *
    FROM seats
    WHERE journal_id = $1
      AND seat = k.seat
    OFFSET 0) s`

	// Rows of which nothing is free and nothing may come back aren't worth reading.
	sqlBatchRows = `
SELECT row_number, states
FROM seat_rows
WHERE journal_id = $1
  AND (section = ANY ($2::text[]) OR tier = ANY ($3::text[]) OR $4)
  AND (strpos(states, 'a') > 0 OR strpos(states, 'h') > 0)`

	// A seat changes only as the state machine allows: anything else makes its version
	// NULL, which the table refuses, and with it the batch. Found through its key; the
	// values of the chart's columns are only there to be valid.
	sqlChangeSeats = `
INSERT INTO seats (journal_id, seat, row_number, place, tier, state, hold_id, until, allotment, version)
SELECT $1, c.seat, 0, 0, '', c.state, nullif(c.hold_id, ` + noHold + `), c.until, c.allotment, c.version
FROM unnest($2::text[], $3::text[], $4::uuid[], $5::timestamptz[], $6::text[], $7::bigint[])
     AS c (seat, state, hold_id, until, allotment, version)
ON CONFLICT (journal_id, seat) DO UPDATE
SET state = excluded.state,
    hold_id = excluded.hold_id,
    until = excluded.until,
    allotment = excluded.allotment,
    version = CASE
        WHEN seats.state = 'available' AND excluded.state <> 'available' THEN excluded.version
        WHEN seats.state = 'held' AND excluded.state IN ('available', 'sold') AND seats.hold_id = excluded.hold_id
            THEN excluded.version
        WHEN seats.state = 'sold' AND excluded.state = 'available' AND seats.hold_id = excluded.hold_id
            THEN excluded.version
        WHEN seats.state = 'blocked' AND excluded.state = 'available' AND excluded.hold_id IS NULL
            THEN excluded.version
        END`

	// The rows of changed seats, computed anew from all their seats.
	sqlSummarize = `
INSERT INTO seat_rows (journal_id, row_number, section, tier, states, version)
SELECT $1, t.row_number, '', '', r.states, t.version
FROM (SELECT s.row_number, max(c.version) AS version
      FROM unnest($2::text[], $3::bigint[]) AS c (seat, version)
      CROSS JOIN LATERAL (
          SELECT row_number
          FROM seats
          WHERE journal_id = $1
            AND seat = c.seat
          OFFSET 0) s
      GROUP BY s.row_number) t
CROSS JOIN LATERAL (
    SELECT string_agg(left(state, 1), '' ORDER BY place) AS states
    FROM seats
    WHERE journal_id = $1
      AND row_number = t.row_number
      AND row_number >= 0 -- as its index says
    OFFSET 0) r
ON CONFLICT (journal_id, row_number) DO UPDATE
SET states = excluded.states,
    version = excluded.version`

	sqlInsertChanges = `
INSERT INTO seat_changes (journal_id, seq, line, state, hold_id, seats)
SELECT $1, c.seq, c.line, c.state, nullif(c.hold_id, ` + noHold + `), string_to_array(c.seats, ' ')
FROM unnest($2::bigint[], $3::smallint[], $4::text[], $5::uuid[], $6::text[]) AS c (seq, line, state, hold_id, seats)`

	sqlSeat = `
SELECT state, hold_id, until, allotment, version
FROM seats
WHERE journal_id = $1
  AND seat = $2`

	// Reads for the map; nothing decides by them.
	sqlHead = `
SELECT seq, clock_timestamp()
FROM journals
WHERE journal_id = $1`

	// Changes after a version: so many, and of so many seats, that it's more than a reader
	// gets if there are more.
	sqlChangesAfter = `
SELECT seq, state, seats
FROM (SELECT seq, line, state, seats, sum(cardinality(seats)) OVER (ORDER BY seq, line) AS total
      FROM seat_changes
      WHERE journal_id = $1
        AND seq > $2
      ORDER BY seq, line
      LIMIT $3) c
WHERE total - cardinality(seats) <= $4
ORDER BY seq, line`

	sqlRows = `
SELECT states, version
FROM seat_rows
WHERE journal_id = $1
ORDER BY row_number`

	sqlInsertSection = `
INSERT INTO seat_sections (journal_id, section, position, name, tier, rows, version)
VALUES ($1, $2, $3, $4, $5, $6::text::json, $7)`

	sqlInsertRows = `
INSERT INTO seat_rows (journal_id, row_number, section, tier, states, version)
SELECT $1, r.row_number, $2, $3, r.states, $4
FROM unnest($5::integer[], $6::text[]) AS r (row_number, states)`

	sqlInsertSeats = `
INSERT INTO seats (journal_id, seat, row_number, place, tier, state, allotment, version)
SELECT $1, s.seat, s.row_number, s.place, $2, 'available', '', $3
FROM unnest($4::text[], $5::integer[], $6::smallint[]) AS s (seat, row_number, place)`
)
