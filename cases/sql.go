package cases

import (
	"github.com/jackc/pgx/v5"
)

// Every statement on cases.
const (
	caseColumns = `case_id, reason, status, amount, currency, suspended, hold_id, order_id, operation_id, provider, told_at,
       opened_at, owner, last_fact, deadline, due_at, resolution, resolved_reason, evidence, proposed_by, decided_by, resolved_at,
       version`

	sqlBatchCases = `
SELECT ` + caseColumns + `
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM cases
    WHERE journal_id = $1
      AND case_id = k.id
    OFFSET 0) c`

	sqlCasesOfOrders = `
SELECT ` + caseColumns + `
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM cases
    WHERE journal_id = $1
      AND order_id = k.id
    OFFSET 0) c`

	// A statement a case: they're few.
	sqlKeepCase = `
INSERT INTO cases (journal_id, ` + caseColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)
ON CONFLICT (journal_id, case_id) DO UPDATE
SET status = excluded.status,
    amount = excluded.amount,
    told_at = excluded.told_at,
    suspended = excluded.suspended,
    owner = excluded.owner,
    last_fact = excluded.last_fact,
    due_at = excluded.due_at,
    resolution = excluded.resolution,
    resolved_reason = excluded.resolved_reason,
    evidence = excluded.evidence,
    proposed_by = excluded.proposed_by,
    decided_by = excluded.decided_by,
    resolved_at = excluded.resolved_at,
    version = excluded.version
WHERE cases.status <> 'resolved'`

	sqlCase = `
SELECT ` + caseColumns + `, extract(epoch FROM clock_timestamp() - opened_at)::bigint
FROM cases
WHERE journal_id = $1
  AND case_id = $2`

	// Of one journal, or of all; ids begin with the journal's number, so they order both.
	sqlListCases = `
SELECT ` + caseColumns + `, extract(epoch FROM clock_timestamp() - opened_at)::bigint
FROM cases
WHERE ($1::bigint IS NULL OR journal_id = $1)
  AND case_id > $2
  AND ($3 = '' OR status = $3)
  AND ($4 = '' OR reason = $4)
  AND opened_at <= clock_timestamp() - make_interval(secs => $5::float8)
ORDER BY case_id
LIMIT $6`

	sqlDueCases = `
SELECT case_id, order_id
FROM cases
WHERE due_at <= (SELECT clock_timestamp())
ORDER BY due_at
LIMIT $1`

	sqlCountOpen = `
SELECT reason, count(*)
FROM cases
WHERE status <> 'resolved'
GROUP BY reason`
)

// scanCase reads a row. The event's name is the event's to say. Further targets take
// the columns behind the case's.
func scanCase(row pgx.CollectableRow, further ...any) (*Case, error) {
	c := &Case{}
	err := row.Scan(append([]any{&c.ID, &c.Reason, &c.Status, &c.Amount.Amount, &c.Amount.Currency, &c.Suspended,
		&c.HoldID, &c.OrderID, &c.OperationID, &c.Provider, &c.ToldAt, &c.OpenedAt, &c.Owner, &c.LastFact, &c.Deadline, &c.NextAttemptAt,
		&c.Resolution, &c.ResolvedReason, &c.Evidence, &c.ProposedBy, &c.DecidedBy, &c.ResolvedAt, &c.Version}, further...)...)
	if err != nil {
		return nil, err
	}
	c.OpenedAt, c.Deadline = c.OpenedAt.UTC(), c.Deadline.UTC()
	if c.ToldAt != nil {
		*c.ToldAt = c.ToldAt.UTC()
	}
	if c.NextAttemptAt != nil {
		*c.NextAttemptAt = c.NextAttemptAt.UTC()
	}
	if c.ResolvedAt != nil {
		*c.ResolvedAt = c.ResolvedAt.UTC()
	}
	return c, nil
}
