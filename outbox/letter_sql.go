package outbox

// Every statement on dead_letters, replays and replay_steps.
const (
	letterColumns = `letter_id, consumer, journal_id, seq, target, kind, money, reason, attempts, died_at, status, taken,
       replay_id, ended_at`

	// Currencies are upper case, and so are memos of them; tiers are lower case.
	sqlBury = `
INSERT INTO dead_letters AS d (letter_id, consumer, journal_id, seq, target, kind, payload, money, reason, attempts, died_at)
SELECT $1, $2, $3, $4, $5, $6, $7, m.money, $8, $9, clock_timestamp()
FROM (SELECT count(*) > 0 AS money
      FROM postings
      WHERE journal_id = $3
        AND seq = $4
        AND unit ~ '^[A-Z]{3}(\.|$)'
      OFFSET 0) m
ON CONFLICT (letter_id) DO UPDATE
SET reason = excluded.reason,
    attempts = d.attempts + excluded.attempts,
    died_at = excluded.died_at,
    status = 'dead',
    ended_at = NULL`

	sqlLetter = `
SELECT ` + letterColumns + `, payload
FROM dead_letters
WHERE letter_id = $1`

	// What a filter selects, of the rows d.
	letterFilter = `
WHERE ($1 = '' OR d.consumer = $1)
  AND ($2 = '' OR d.kind = $2)
  AND ($3::bigint[] IS NULL OR d.journal_id = ANY ($3))
  AND ($4 = '' OR d.target = $4)
  AND ($5 = '' OR strpos(d.reason, $5) > 0)
  AND ($6::uuid IS NULL OR d.replay_id = $6)
  AND d.died_at >= $7
  AND d.died_at < $8`

	// A page of letters, the newest first, before one. An index gives them by their time
	// alone, those of one time in any order: all of the last time are read, or one would be
	// missed. Of those that are dead, whatever there was before: an index has them alone.
	letterPage = letterFilter + `
        AND ($9 = '' OR d.status = $9)
        AND (d.died_at, d.letter_id) < ($10, $11)
      ORDER BY d.died_at DESC
      FETCH FIRST $12 ROWS WITH TIES) d
ORDER BY d.died_at DESC, d.letter_id DESC
LIMIT $12`
	sqlLetters = `
SELECT ` + letterColumns + `
FROM (SELECT *
      FROM dead_letters d` + letterPage
	theDead = `
FROM (SELECT *
      FROM dead_letters
      WHERE status = 'dead'
      OFFSET 0) d`
	sqlDeadLetters = `
SELECT ` + letterColumns + `
FROM (SELECT *` + theDead + letterPage

	// What can be done with a letter: replayed when it has an entry, and somebody who can.
	canBeDone = `
  AND ($9 = 'discard' OR d.seq > 0 AND d.consumer = ANY ($10::text[]))`

	// Those of a filter that a replay may have, in the order in which it takes them: that of
	// the journals. $11 is the stopped replay whose letters may be taken over.
	sqlChoose = `
SELECT ` + letterColumns + theDead + letterFilter + canBeDone + `
  AND (NOT d.taken OR d.replay_id = $11)
ORDER BY d.journal_id, d.seq, d.letter_id
LIMIT $12`

	// Those of a filter that it may not have: others have them, or nobody can do them again.
	sqlLeftOut = `
SELECT count(*) FILTER (WHERE d.taken AND d.replay_id IS DISTINCT FROM $11),
       count(*) FILTER (WHERE NOT (d.taken AND d.replay_id IS DISTINCT FROM $11) AND $9 = 'replay'
                          AND NOT (d.seq > 0 AND d.consumer = ANY ($10::text[])))` + theDead + letterFilter

	sqlNamedLetters = `
SELECT ` + letterColumns + `
FROM unnest($1::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM dead_letters
    WHERE letter_id = k.id
    OFFSET 0) d
ORDER BY d.journal_id, d.seq, d.letter_id`

	// Whoever was first has it: the others wait here for its end, and find it taken. One that
	// hasn't ended is dead; saying so would offer the index of those to the planner.
	sqlTake = `
UPDATE dead_letters
SET taken = true, replay_id = $2
WHERE letter_id = $1
  AND ended_at IS NULL
  AND (NOT taken OR replay_id = $3)
RETURNING money`

	sqlFree = `
UPDATE dead_letters
SET taken = false
WHERE replay_id = $1
  AND taken`

	replayColumns = `replay_id, action, status, chosen, rate, canary, reason, requested_by, requested_at, coalesce(decided_by, ''),
       changed_at, note, letters, money, done, failed, freed, due_at`

	sqlReplay = `
SELECT ` + replayColumns + `
FROM replays
WHERE replay_id = $1`
	sqlLockReplay = sqlReplay + `
FOR UPDATE`

	// A page of replays, as one of letters. That a time is finite too makes a range of it,
	// which a planner that knows nothing of the table takes for few rows: it reads them in
	// the index's order then, up to the limit, where it else sorted all that are older.
	sqlReplays = `
SELECT ` + replayColumns + `
FROM (SELECT *
      FROM replays
      WHERE requested_at > '-infinity'
        AND requested_at <= $1
        AND (requested_at, replay_id) < ($1, $2)
        AND ($3 = '' OR status = $3)
        AND ($4 = '' OR action = $4)
      ORDER BY requested_at DESC
      FETCH FIRST $5 ROWS WITH TIES) r
ORDER BY requested_at DESC, replay_id DESC
LIMIT $5`

	sqlInsertReplay = `
INSERT INTO replays (replay_id, action, status, chosen, rate, canary, reason, requested_by, requested_at, changed_at)
SELECT $1, $2, 'awaiting_approval', $3, $4, $5, $6, $7, c.now, c.now
FROM (SELECT clock_timestamp() AS now) c
ON CONFLICT (replay_id) DO NOTHING`

	sqlBeginReplay = `
UPDATE replays
SET letters = $2, money = $3, status = $4, due_at = CASE $4 WHEN 'running' THEN clock_timestamp() END
WHERE replay_id = $1`

	// due_at is set when it's to run.
	sqlChangeReplay = `
UPDATE replays
SET status = $2,
    note = $3,
    decided_by = coalesce(nullif($4, ''), decided_by),
    freed = freed + $5,
    changed_at = clock_timestamp(),
    due_at = CASE $2 WHEN 'running' THEN clock_timestamp() END
WHERE replay_id = $1`

	sqlInsertStep = `
INSERT INTO replay_steps (step_id, replay_id, step, principal, at, reason)
VALUES ($1, $2, $3, $4, clock_timestamp(), $5)
ON CONFLICT (step_id) DO NOTHING`

	sqlStep = `
SELECT replay_id, step, principal, at, reason
FROM replay_steps
WHERE step_id = $1`

	sqlSteps = `
SELECT replay_id, step, principal, at, reason
FROM replay_steps
WHERE replay_id = $1
ORDER BY at, step_id`

	// The replay whose turn is due, unless another process is at it.
	sqlDueReplay = `
SELECT ` + replayColumns + `
FROM replays
WHERE due_at <= (SELECT clock_timestamp())
ORDER BY due_at
LIMIT 1
FOR UPDATE SKIP LOCKED`

	// Its next letter, and that with its entry, which may not be there.
	sqlTakenLetter = `
SELECT ` + letterColumns + `
FROM dead_letters
WHERE replay_id = $1
  AND taken
ORDER BY journal_id, seq, letter_id
LIMIT 1`
	sqlNextLetter = `
SELECT d.*, e.id, e.kind, e.at, e.data
FROM (` + sqlTakenLetter + `) d
LEFT JOIN LATERAL (
    SELECT id, kind, at, data
    FROM entries
    WHERE journal_id = d.journal_id
      AND seq = d.seq
    OFFSET 0) e ON true`

	// Its consumer does nothing in that journal meanwhile.
	sqlHoldInbox = `
SELECT
FROM inbox
WHERE consumer = $1
  AND journal_id = $2
FOR UPDATE`

	sqlEndLetter = `
UPDATE dead_letters
SET status = $2, taken = false, ended_at = clock_timestamp()
WHERE letter_id = $1`

	sqlDieAgain = `
UPDATE dead_letters
SET reason = $2, attempts = attempts + 1, taken = false, died_at = clock_timestamp()
WHERE letter_id = $1`

	// The next turn is one letter's time after this one's. A replay that was kept from its
	// turns catches up with those of the last second, and no more.
	sqlCountLetter = `
UPDATE replays
SET done = done + $2,
    failed = failed + $3,
    note = '',
    due_at = greatest(due_at, clock_timestamp() - interval '1 second') + interval '1 second' / rate
WHERE replay_id = $1`

	sqlPauseReplay = `
UPDATE replays
SET due_at = clock_timestamp() + $2::interval,
    note = $3
WHERE replay_id = $1
  AND status = 'running'`

	sqlCountDead = `
SELECT consumer, count(*), extract(epoch FROM clock_timestamp() - min(died_at))::float8
FROM dead_letters
WHERE status = 'dead'
GROUP BY consumer
ORDER BY consumer`

	sqlCountReplays = `
SELECT count(*) FILTER (WHERE status = 'awaiting_approval'),
       count(*) FILTER (WHERE status = 'running'),
       count(*) FILTER (WHERE status = 'stopped')
FROM replays
WHERE status IN ('awaiting_approval', 'running', 'stopped')`
)
