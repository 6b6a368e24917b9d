package quota

import (
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// Every statement on quota_moves and quota_arrivals.
const (
	moveColumns = `move_id, status, unit, account, from_lane, any_lane, to_journal, to_lane, to_account, quantity, up_to, cause, reason,
       principal, coalesce(decided_by, ''), asked_at, moved_at, version`

	sqlBatchMoves = `
SELECT ` + moveColumns + `
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM quota_moves
    WHERE journal_id = $1
      AND move_id = k.id
    OFFSET 0) m`

	// Moves that other journals sent here.
	sqlBatchSent = `
SELECT m.move_id, m.status, m.unit, m.to_account, m.to_journal, m.quantity, a.arrived
FROM unnest($2::bigint[], $3::uuid[]) AS k (journal, id)
CROSS JOIN LATERAL (
    SELECT *
    FROM quota_moves
    WHERE journal_id = k.journal
      AND move_id = k.id
    OFFSET 0) m
CROSS JOIN LATERAL (
    SELECT count(*) > 0 AS arrived
    FROM quota_arrivals
    WHERE journal_id = $1
      AND move_id = k.id
    OFFSET 0) a`

	sqlKeepMove = `
INSERT INTO quota_moves (journal_id, move_id, status, unit, account, from_lane, any_lane, to_journal, to_lane, to_account,
                         quantity, up_to, cause, reason, principal, decided_by, asked_at, moved_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, nullif($16, ''), $17, $18, $19)
ON CONFLICT (journal_id, move_id) DO UPDATE
SET status = excluded.status,
    quantity = excluded.quantity,
    reason = excluded.reason,
    decided_by = excluded.decided_by,
    moved_at = excluded.moved_at,
    version = excluded.version
WHERE quota_moves.status = 'awaiting_approval'`

	sqlInsertArrival = `
INSERT INTO quota_arrivals (journal_id, move_id, from_journal, unit, account, quantity, at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	sqlMove = `
SELECT ` + moveColumns + `
FROM quota_moves
WHERE journal_id = $1
  AND move_id = $2`

	// The history of all lanes of an event, newest first, before a move.
	sqlMoves = `
SELECT ` + moveColumns + `
FROM quota_moves
WHERE journal_id = ANY ($1::bigint[])
  AND (asked_at, move_id) < ($2, $3)
  AND ($4 = '' OR status = $4)
  AND ($5 = '' OR unit = $5)
  AND ($6 = '' OR cause = $6)
  AND unit <> $8
ORDER BY asked_at DESC, move_id DESC
LIMIT $7`

	// Moves of a journal whose tickets haven't come to the other one, after a version. Those
	// up to it have.
	sqlUnderWay = `
SELECT m.move_id, m.to_journal, m.version
FROM quota_moves m
CROSS JOIN LATERAL (
    SELECT count(*) > 0 AS arrived
    FROM quota_arrivals
    WHERE journal_id = m.to_journal
      AND move_id = m.move_id
    OFFSET 0) a
WHERE m.journal_id = $1
  AND m.version > $2
  AND m.status = 'moved'
  AND m.to_journal <> m.journal_id
  AND NOT a.arrived
ORDER BY m.version
LIMIT $3`
)

func scanMove(row pgx.CollectableRow) (*Move, error) {
	m := &Move{}
	err := row.Scan(&m.ID, &m.Status, &m.Tier, &m.account, &m.From.Lane, &m.AnyLane, &m.toJournal, &m.To.Lane, &m.toAccount, &m.Quantity,
		&m.UpTo, &m.Cause, &m.Reason, &m.AskedBy, &m.DecidedBy, &m.AskedAt, &m.MovedAt, &m.Version)
	if err != nil {
		return nil, err
	}
	m.AskedAt = m.AskedAt.UTC()
	if m.MovedAt != nil {
		*m.MovedAt = m.MovedAt.UTC()
	}
	m.From.Allotment, _ = ledger.Free(m.account)
	m.To.Allotment, _ = ledger.Free(m.toAccount)
	return m, nil
}
