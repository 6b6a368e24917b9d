package bench

// schema is where the clones are.
const schema = "tierledger_bench"

// clonedTables are those that a hold reads or writes.
var clonedTables = []string{"journals", "entries", "postings", "accounts", "events", "tiers", "prices", "holds"}

// clonedSeats are those beside them that a hold of seats reads or writes.
var clonedSeats = []string{"seat_sections", "seats", "seat_rows", "seat_changes"}

// Statements that prepare and measure.
const (
	sqlDropSchema = `DROP SCHEMA IF EXISTS ` + schema + ` CASCADE`

	sqlCreateSchema = `CREATE SCHEMA ` + schema

	sqlOtherEvent = `
SELECT event
FROM events
WHERE event NOT LIKE $1
LIMIT 1`

	sqlTableOptions = `
SELECT coalesce(array_to_string(reloptions, ', '), '')
FROM pg_class
WHERE oid = ('public.' || $1)::regclass`

	sqlAbout = `
SELECT current_setting('server_version'), current_setting('fsync')`

	sqlPosition = `
SELECT (pg_current_wal_lsn() - '0/0')::bigint`

	sqlLogOfOthers = `
SELECT coalesce(sum(combined_size), 0)::bigint
FROM pg_get_wal_stats('0/0'::pg_lsn + $1::bigint, '0/0'::pg_lsn + $2::bigint)
WHERE "resource_manager/record_type" NOT IN ('XLOG', 'Standby')`

	sqlJournal = `
SELECT event_journal_id
FROM event_journals
WHERE journal_id = 0
  AND event = $1`

	sqlHead = `
SELECT seq
FROM journals
WHERE journal_id = (` + sqlJournal + `)`

	sqlBatches = `
SELECT count(*), count(DISTINCT at)
FROM entries
WHERE journal_id = (` + sqlJournal + `)
  AND seq > $2`

	sqlWebhooks = `
SELECT count(*)
FROM webhooks
WHERE journal_id = (` + sqlJournal + `)`

	// Seats that more than one hold claims, each beyond the first.
	sqlDoubleHolds = `
SELECT coalesce(sum(n - 1), 0)::bigint
FROM (SELECT count(*) AS n
      FROM holds, json_array_elements(items) AS i (item), json_array_elements_text(item -> 'seats') AS s (seat)
      WHERE status NOT IN ('released', 'expired')
        AND item -> 'seats' IS NOT NULL
      GROUP BY journal_id, seat
      HAVING count(*) > 1) d`

	// The last state that each seat of an event had come to by a version.
	sqlStatesAt = `
SELECT DISTINCT ON (s.seat) s.seat, c.state
FROM seat_changes c
CROSS JOIN unnest(c.seats) AS s (seat)
WHERE c.journal_id = (` + sqlJournal + `)
  AND c.seq <= $2
ORDER BY s.seat, c.seq DESC, c.line DESC`

	sqlServiceSessions = `
SELECT count(*)
FROM pg_stat_activity
WHERE datname = current_database()
  AND application_name IN ('tierledger commits', 'tierledger reads')`

	sqlRowsWritten = `
SELECT coalesce(sum(n_tup_ins + n_tup_upd), 0)::bigint
FROM pg_stat_user_tables
WHERE schemaname = 'public'
  AND relname <> 'goose_db_version'`
)
