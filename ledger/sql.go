package ledger

// Every statement on journals, entries, postings and accounts that changes them
// or serves a decision; reads for reports are in sql_read.go. All of them begin
// with the journal.
const (
	sqlBegin         = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
	sqlBeginSnapshot = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	sqlCommit        = `COMMIT`
	sqlRollback      = `ROLLBACK`

	sqlCreateJournal = `
INSERT INTO journals (journal_id)
VALUES ($1)
ON CONFLICT DO NOTHING`

	sqlLockJournal = `
SELECT seq, at, hash, false
FROM journals
WHERE journal_id = $1
FOR UPDATE`

	// Tells too whether somebody had the lock when the snapshot was taken: the row's
	// xmax is then a transaction that was running, one that the snapshot lists or one
	// that began after its end. Transaction numbers are compared in a circle of 2^32.
	sqlReadJournal = `
SELECT seq, at, hash,
       xmax <> '0'
       AND (xmax::text::bigint IN (SELECT x::text::bigint & 4294967295
                                   FROM pg_snapshot_xip(pg_current_snapshot()) AS x)
            OR (xmax::text::bigint - (pg_snapshot_xmax(pg_current_snapshot())::text::bigint & 4294967295)
                + 4294967296) % 4294967296 < 2147483648)
FROM journals
WHERE journal_id = $1`

	// A statement of its own: in the locking one it would be read before the lock.
	// The transaction's start is when BEGIN arrived, so the difference is the wait.
	// Tells too whether commits wait for a standby.
	sqlClock = `
SELECT clock_timestamp(), extract(epoch FROM clock_timestamp() - now())::float8,
       current_setting('synchronous_standby_names') <> ''`

	sqlPastEntries = `
SELECT e.id, e.digest, e.kind, e.seq, e.at, e.data
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM entries
    WHERE journal_id = $1
      AND id = k.id
    OFFSET 0) e`

	sqlBatchAccounts = `
SELECT a.code, a.unit, a.type, coalesce(a.control, ''), a.balance, a.version
FROM unnest($2::text[]) AS k (code)
CROSS JOIN LATERAL (
    SELECT *
    FROM accounts
    WHERE journal_id = $1
      AND code = k.code
    OFFSET 0) a`

	sqlInsertEntries = `
INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
SELECT $1, e.seq, e.id, e.kind, $2, e.principal, e.digest, e.data::json, e.hash
FROM unnest($3::bigint[], $4::uuid[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::bytea[])
     AS e (seq, id, kind, principal, digest, data, hash)`

	sqlInsertPostings = `
INSERT INTO postings (journal_id, seq, leg, account, unit, amount, balance)
SELECT $1, p.seq, p.leg, p.account, p.unit, p.amount, p.balance
FROM unnest($2::bigint[], $3::smallint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
     AS p (seq, leg, account, unit, amount, balance)`

	sqlInsertAccounts = `
INSERT INTO accounts (journal_id, code, unit, type, control, balance, version)
SELECT $1, a.code, a.unit, a.type, nullif(a.control, ''), a.balance, a.version
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
     AS a (code, unit, type, control, balance, version)`

	// Not UPDATE … FROM: a conflict is found through the key, whatever the plan.
	sqlUpdateAccounts = sqlInsertAccounts + `
ON CONFLICT (journal_id, code, unit) DO UPDATE
SET balance = excluded.balance,
    version = excluded.version`

	sqlUpdateJournal = `
UPDATE journals
SET seq = $2,
    at = $3,
    hash = $4
WHERE journal_id = $1`
)
