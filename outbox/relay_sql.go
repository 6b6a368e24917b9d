package outbox

const (
	// A lease is free when nobody has it, when it has run out, or when it's too long to be
	// one: the clock was put back since.
	leaseFree = `(r.holder IS NULL OR r.holder = $1 OR r.held_until < clock_timestamp()
               OR r.held_until > clock_timestamp() + 2 * $2::interval)`

	// Journals whose entries the stream may not have: new ones, those of another stream, and
	// those that it's suspected of having lost; and those with a trouble. They come in a
	// circle, the last scan's after all others.
	sqlBehind = `
SELECT j.journal_id, coalesce(r.suspect OR r.stream <> $3, false)
FROM journals j
LEFT JOIN relays r ON r.journal_id = j.journal_id
WHERE (j.seq > coalesce(r.seq, 0) OR r.stream <> $3 OR r.suspect OR r.problem <> '')
  AND j.seq > 0
  AND (r.journal_id IS NULL OR ` + leaseFree + `)
ORDER BY j.journal_id <= $5, j.journal_id
LIMIT $4`

	sqlClaim = `
INSERT INTO relays AS r (journal_id, holder, held_until)
VALUES ($3, $1, clock_timestamp() + $2::interval)
ON CONFLICT (journal_id) DO UPDATE
SET holder = $1, held_until = clock_timestamp() + $2::interval
WHERE ` + leaseFree + `
RETURNING seq, stream, stream_seq, reached, suspect, problem <> ''`

	// The stream has it already, so a cursor that a crash sets back costs one look there.
	sqlNoWait = `SET LOCAL synchronous_commit = off`

	sqlMove = `
UPDATE relays
SET seq = $4, stream = $5, stream_seq = $6, reached = greatest(reached, $4), suspect = false, problem = '',
    held_until = clock_timestamp() + $2::interval
WHERE journal_id = $3
  AND holder = $1`

	// As far as it's known, while it's looked where the stream stands.
	sqlNote = `
UPDATE relays
SET seq = $4, stream = $5, stream_seq = $6, reached = greatest(reached, $4), held_until = clock_timestamp() + $2::interval
WHERE journal_id = $3
  AND holder = $1`

	sqlTrouble = `
UPDATE relays
SET problem = $3
WHERE journal_id = $2
  AND holder = $1
  AND problem <> $3`

	sqlLeave = `
UPDATE relays
SET holder = NULL, held_until = NULL
WHERE journal_id = ANY (ARRAY(
    SELECT journal_id
    FROM relays
    WHERE holder = $1
    ORDER BY journal_id
    FOR UPDATE))`

	sqlUnpublished = `
SELECT seq, id, kind, at, data, clock_timestamp()
FROM entries
WHERE journal_id = $1
  AND seq > $2
ORDER BY seq
LIMIT $3`

	// In order: else a plan that was made without entries may take the index of ids for it,
	// and read the journal.
	sqlEntryIDs = `
SELECT seq, id
FROM entries
WHERE journal_id = $1
  AND seq BETWEEN $2 AND $3
ORDER BY seq`

	// The next few journals after one, and whether there's something to compare.
	sqlPatrol = `
SELECT journal_id, seq, stream_seq, stream = $2 AND stream_seq > 0 AND NOT suspect
FROM relays
WHERE journal_id > $1
ORDER BY journal_id
LIMIT $3`

	// Not if the cursor has moved on since.
	sqlSuspect = `
UPDATE relays
SET suspect = true
WHERE journal_id = $1
  AND stream = $2
  AND seq = $3`

	sqlEnd = `
SELECT coalesce(max(stream_seq), 0)
FROM relays
WHERE stream = $1`

	// In the order of their key, as everybody who locks several does.
	sqlSuspectTail = `
UPDATE relays
SET suspect = true
WHERE journal_id = ANY (ARRAY(
    SELECT journal_id
    FROM relays
    WHERE stream = $1
      AND stream_seq > $2
    ORDER BY journal_id
    FOR UPDATE))`

	sqlBacklog = `
SELECT coalesce(sum(j.seq - coalesce(r.seq, 0)), 0)::bigint,
       count(*) FILTER (WHERE r.problem <> ''),
       coalesce(max(r.problem), '')
FROM journals j
LEFT JOIN relays r ON r.journal_id = j.journal_id`
)
