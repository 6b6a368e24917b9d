package bench

// Statements of the baseline for seats. Its sessions see the clones.
const (
	seatColumns = `s.seat, s.row_number, s.place, s.tier, s.state`

	// In the order of the seats, so that requests that overlap don't lock each other out.
	sqlLockSeats = `
SELECT ` + seatColumns + `
FROM seats s
WHERE s.journal_id = $1
  AND s.seat = ANY($2)
ORDER BY s.seat
FOR UPDATE`

	// The best rows that have so many free seats side by side, and where in the row. $5
	// is what the states of such seats look like.
	sqlFindBlocks = `
SELECT r.row_number, strpos(r.states, $5) - 1
FROM seat_rows r
WHERE r.journal_id = $1
  AND ($2 = '' OR r.section = $2)
  AND ($3 = '' OR r.tier = $3)
  AND strpos(r.states, $5) > 0
ORDER BY r.row_number
LIMIT $4`

	// A row's seats from a place on, those that nobody else is about to take.
	sqlLockFree = `
SELECT ` + seatColumns + `
FROM seats s
WHERE s.journal_id = $1
  AND s.row_number = $2
  AND s.row_number >= 0 -- as its index says
  AND s.place >= $3
  AND s.place < $4
  AND s.state = 'available'
ORDER BY s.seat
FOR UPDATE SKIP LOCKED`

	sqlReadOffer = `
SELECT e.event, e.currency, e.hold_seconds, e.limit_per_customer, p.amount, p.price_version
FROM tiers t
JOIN events e ON e.journal_id = t.journal_id
JOIN prices p ON p.journal_id = t.journal_id
             AND p.tier = t.tier
             AND p.price_version = t.price_version
WHERE t.journal_id = $1
  AND t.tier = $2`

	// The journal's row is locked last, for as short as can be.
	sqlLockHead = sqlReadHead + `
FOR UPDATE`

	sqlTakeSeats = `
UPDATE seats
SET state = 'held',
    hold_id = $3,
    until = $4,
    version = $5
WHERE journal_id = $1
  AND seat = ANY($2)
  AND state = 'available'`

	sqlReturnSeats = `
UPDATE seats
SET state = 'available',
    until = NULL,
    version = $4
WHERE journal_id = $1
  AND seat = ANY($2)
  AND state = 'held'
  AND hold_id = $3`

	sqlUpdateRow = `
UPDATE seat_rows
SET states = overlay(states PLACING $4 FROM $3 + 1),
    version = $5
WHERE journal_id = $1
  AND row_number = $2`

	sqlInsertChange = `
INSERT INTO seat_changes (journal_id, seq, line, state, hold_id, seats)
VALUES ($1, $2, 0, $3, $4, $5)`

	sqlLockHold = `
SELECT customer, status, created_at, expires_at, items, total, version, clock_timestamp()
FROM holds
WHERE journal_id = $1
  AND hold_id = $2
FOR UPDATE`

	sqlEndHold = `
UPDATE holds
SET status = $3,
    version = $4
WHERE journal_id = $1
  AND hold_id = $2`

	sqlDueHolds = `
SELECT hold_id
FROM holds
WHERE journal_id = $1
  AND status = 'held'
  AND expires_at <= clock_timestamp()
ORDER BY expires_at
LIMIT $2`
)
