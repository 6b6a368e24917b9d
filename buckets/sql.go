package buckets

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/ledger"
)

// Every statement on event_journals, lanes, events, tiers, prices, allotments and
// access_codes.
const (
	sqlTakenNames = `
SELECT d.event, d.lane
FROM unnest($2::text[], $3::integer[]) AS k (event, lane)
CROSS JOIN LATERAL (
    SELECT event, lane
    FROM event_journals
    WHERE journal_id = $1
      AND event = k.event
      AND lane = k.lane
    OFFSET 0) d`

	sqlInsertDirectory = `
INSERT INTO event_journals (journal_id, event, lane, event_journal_id)
VALUES ($1, $2, $3, $4)`

	eventColumns = `event, name, currency, hold_seconds, grace_seconds, limit_per_customer,
       sale_opens_at, sale_closes_at, organiser, late_payment_policy, honour_until, approve_moves_from, created_at, version`

	// Which journal has what is for sale: that of the first lane.
	home = `coalesce((SELECT home FROM lanes WHERE journal_id = $1), $1)`

	laneColumns = `lane, generation, counts, journals, version`

	sqlBatchEvent = `
SELECT e.event, e.name, e.currency, e.hold_seconds, e.grace_seconds, e.limit_per_customer, e.sale_opens_at,
       e.sale_closes_at, e.organiser, e.late_payment_policy, e.honour_until, e.approve_moves_from, e.created_at, e.version,
       l.lane, l.generation, l.counts, l.journals, l.version
FROM (SELECT * FROM events WHERE journal_id = ` + home + ` OFFSET 0) e
LEFT JOIN (SELECT * FROM lanes WHERE journal_id = $1 OFFSET 0) l ON true`

	sqlKeepLane = `
INSERT INTO lanes (journal_id, home, lane, generation, counts, journals, version)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (journal_id) DO UPDATE
SET generation = excluded.generation,
    counts = excluded.counts,
    journals = excluded.journals,
    version = excluded.version
WHERE lanes.generation < excluded.generation`

	sqlLayout = `
SELECT ` + laneColumns + `
FROM lanes
WHERE journal_id = $1`

	// With how far the lanes' journals have come, all together.
	sqlSplitEvents = `
SELECT e.event, s.seq
FROM lanes l
JOIN events e ON e.journal_id = l.journal_id
CROSS JOIN LATERAL (
    SELECT sum(j.seq)::bigint AS seq
    FROM unnest(l.journals) AS k (id)
    CROSS JOIN LATERAL (
        SELECT seq
        FROM journals
        WHERE journal_id = k.id
        OFFSET 0) j
    OFFSET 0) s
WHERE l.lane = 1
ORDER BY l.journal_id`

	sqlInTransit = `
SELECT e.event
FROM lanes l
JOIN events e ON e.journal_id = l.journal_id
WHERE l.lane = 1
  AND EXISTS (SELECT
              FROM unnest(l.journals) AS k (id)
              CROSS JOIN LATERAL (
                  SELECT code, unit, balance
                  FROM accounts
                  WHERE journal_id = k.id
                    AND code >= 'transit'
                    AND code < 'transit;'
                  OFFSET 0) a
              GROUP BY a.code, a.unit
              HAVING sum(a.balance) <> 0)
ORDER BY l.journal_id`

	sqlLanesBehind = `
SELECT e.event
FROM lanes l
JOIN events e ON e.journal_id = l.journal_id
WHERE l.lane = 1
  AND EXISTS (SELECT FROM unnest(l.journals) AS k (id)
              LEFT JOIN lanes f ON f.journal_id = k.id
              WHERE f.generation IS DISTINCT FROM l.generation)
ORDER BY l.journal_id`

	// What other lanes have of customers, and how new the layout is by which they go: all
	// of one snapshot, so that what isn't there can't come any more.
	sqlElsewhere = `
SELECT k.n, coalesce(l.generation, 0), t.tickets, e.accepted
FROM unnest($2::bigint[], $3::text[], $4::uuid[]) WITH ORDINALITY AS k (journal, customer, id, n)
LEFT JOIN LATERAL (
    SELECT generation
    FROM lanes
    WHERE journal_id = k.journal
    OFFSET 0) l ON true
CROSS JOIN LATERAL (
    SELECT coalesce(sum(a.balance), 0)::bigint AS tickets
    FROM unnest(ARRAY['held:' || k.customer, 'sold:' || k.customer]) AS c (code)
    CROSS JOIN LATERAL (
        SELECT balance
        FROM accounts
        WHERE journal_id = k.journal
          AND code = c.code
        OFFSET 0) a
    OFFSET 0) t
CROSS JOIN LATERAL (
    SELECT count(*) > 0 AS accepted
    FROM entries
    WHERE journal_id = k.journal
      AND id = k.id
    OFFSET 0) e
WHERE k.journal <> $1
ORDER BY k.n`

	// Of allotments that have ended, what they have left in the batch's own journal too.
	sqlBatchAllotments = `
SELECT a.allotment, a.name, a.opens_at, a.releases_at, a.code_required, a.created_at, a.closed_at, a.version,
       coalesce(f.units, '{}'), coalesce(f.version, 0)
FROM (SELECT * FROM allotments WHERE journal_id = ` + home + ` OFFSET 0) a
LEFT JOIN LATERAL (
    SELECT array_agg(unit ORDER BY unit) AS units, max(version) AS version
    FROM accounts
    WHERE journal_id = $1
      AND code = 'available:' || a.allotment
      AND balance > 0
      AND (a.closed_at IS NOT NULL OR a.releases_at <= (SELECT clock_timestamp()))
    OFFSET 0) f ON true`

	sqlKeepAllotment = `
INSERT INTO allotments (journal_id, allotment, name, opens_at, releases_at, code_required, created_at, closed_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (journal_id, allotment) DO UPDATE
SET closed_at = excluded.closed_at,
    version = excluded.version
WHERE allotments.closed_at IS NULL`

	sqlBatchCodes = `
SELECT c.code, c.allotment, c.max_uses, c.version
FROM unnest($2::text[]) AS k (code)
CROSS JOIN LATERAL (
    SELECT *
    FROM access_codes
    WHERE journal_id = ` + home + `
      AND code = k.code
    OFFSET 0) c`

	sqlInsertCodes = `
INSERT INTO access_codes (journal_id, code, allotment, max_uses, version)
SELECT $1, c.code, c.allotment, c.max_uses, c.version
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS c (code, allotment, max_uses, version)`

	// Journals in which allotments that have ended have tickets left.
	sqlLeftovers = `
SELECT DISTINCT d.event_journal_id
FROM allotments a
JOIN event_journals h ON h.journal_id = $1 AND h.event_journal_id = a.journal_id
JOIN event_journals d ON d.journal_id = $1 AND d.event = h.event
WHERE (a.closed_at IS NOT NULL OR a.releases_at <= (SELECT clock_timestamp()))
  AND EXISTS (SELECT
              FROM accounts f
              WHERE f.journal_id = d.event_journal_id
                AND f.code = 'available:' || a.allotment
                AND f.balance > 0)`

	// With what allotments that have ended haven't returned yet to what's everybody's.
	sqlFree = `
WITH ended AS MATERIALIZED (
    SELECT a.allotment
    FROM (SELECT event_journal_id FROM event_journals WHERE journal_id = $1 AND event = $2 AND lane = 1 OFFSET 0) h
    CROSS JOIN LATERAL (
        SELECT allotment
        FROM allotments
        WHERE journal_id = h.event_journal_id
          AND (closed_at IS NOT NULL OR releases_at <= (SELECT clock_timestamp()))
        OFFSET 0) a
    WHERE $3 = 'available'
)
SELECT d.event_journal_id, d.lane, a.free, a.transit, a.held, r.unreturned, r.coming
FROM (SELECT event_journal_id, lane FROM event_journals WHERE journal_id = $1 AND event = $2 OFFSET 0) d
CROSS JOIN LATERAL (
    SELECT coalesce(sum(b.balance) FILTER (WHERE c.code = $3), 0)::bigint AS free,
           coalesce(sum(b.balance) FILTER (WHERE c.code = $4), 0)::bigint AS transit,
           coalesce(sum(b.balance) FILTER (WHERE c.code = 'held'), 0)::bigint AS held
    FROM unnest(ARRAY[$3, $4, 'held']) AS c (code)
    CROSS JOIN LATERAL (
        SELECT balance
        FROM accounts
        WHERE journal_id = d.event_journal_id
          AND code = c.code
          AND unit = $5
        OFFSET 0) b
    OFFSET 0) a
CROSS JOIN LATERAL (
    SELECT coalesce(sum(b.balance) FILTER (WHERE c.name = 'available:'), 0)::bigint AS unreturned,
           coalesce(sum(b.balance) FILTER (WHERE c.name = 'transit:'), 0)::bigint AS coming
    FROM ended e
    CROSS JOIN (VALUES ('available:'), ('transit:')) AS c (name)
    CROSS JOIN LATERAL (
        SELECT balance
        FROM accounts
        WHERE journal_id = d.event_journal_id
          AND code = c.name || e.allotment
          AND unit = $5
        OFFSET 0) b
    OFFSET 0) r
ORDER BY d.lane`

	sqlAllotments = `
SELECT allotment, name, opens_at, releases_at, code_required, created_at, closed_at, version, '{}'::text[], 0::bigint
FROM allotments
WHERE journal_id = $1
ORDER BY allotment`

	sqlInsertEvent = `
INSERT INTO events (journal_id, ` + eventColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

	sqlBatchTiers = `
SELECT t.tier, t.position, t.name, t.limit_per_customer, t.seated, t.version,
       p.price_version, p.amount, p.fee, p.tax_rate::text
FROM tiers t
JOIN prices p ON p.journal_id = t.journal_id
             AND p.tier = t.tier
             AND p.price_version = t.price_version
WHERE t.journal_id = ` + home + `
ORDER BY t.position`

	sqlInsertTier = `
INSERT INTO tiers (journal_id, tier, position, name, price_version, limit_per_customer, seated, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	sqlUpdateTier = `
UPDATE tiers
SET name = $3,
    price_version = $4,
    limit_per_customer = $5,
    version = $6
WHERE journal_id = $1
  AND tier = $2`

	sqlInsertPrice = `
INSERT INTO prices (journal_id, tier, price_version, amount, fee, tax_rate)
VALUES ($1, $2, $3, $4, $5, $6::numeric)`

	sqlFindJournal = `
SELECT d.event_journal_id
FROM event_journals d
JOIN events e ON e.journal_id = d.event_journal_id
WHERE d.journal_id = $1
  AND d.event = $2
  AND d.lane = 1`

	// Of every lane, the first lane's first.
	sqlFindLanes = `
SELECT event_journal_id
FROM event_journals
WHERE journal_id = $1
  AND event = $2
ORDER BY lane`

	sqlNameJournal = `
SELECT event, currency, organiser
FROM events
WHERE journal_id = ` + home + `
`

	sqlCreatedOnly = `
SELECT d.event_journal_id
FROM event_journals d
LEFT JOIN events e ON e.journal_id = d.event_journal_id
WHERE d.journal_id = $1
  AND d.lane = 1
  AND e.journal_id IS NULL
ORDER BY d.event_journal_id
LIMIT 100`

	sqlListEvents = `
SELECT journal_id
FROM events
WHERE event > $1
ORDER BY event
LIMIT $2`
)

// targets are those of eventColumns.
func (e *Event) targets() []any {
	return []any{&e.Event, &e.Name, &e.Currency, &e.HoldSeconds, &e.GraceSeconds, &e.LimitPerCustomer,
		&e.SaleOpensAt, &e.SaleClosesAt, &e.Organiser, &e.LatePaymentPolicy, &e.HonourUntil, &e.ApproveMovesFrom,
		&e.CreatedAt, &e.Version}
}

// scanEventLane reads an event with what the batch's journal knows of its split; nil for
// nothing.
func scanEventLane(rows pgx.Rows) (*Event, *Lane, error) {
	e := &Event{}
	var lane *int
	var generation *int64
	var version *ledger.Seq
	l := &Lane{}
	if err := rows.Scan(append(e.targets(), &lane, &generation, &l.Counts, &l.Journals, &version)...); err != nil {
		return nil, nil, err
	}
	inUTC(e.SaleOpensAt, e.SaleClosesAt, e.HonourUntil, &e.CreatedAt)
	if lane == nil {
		return e, nil, nil
	}
	l.Lane, l.Generation, l.Version = *lane, *generation, *version
	return e, l, nil
}

func scanAllotment(row pgx.CollectableRow) (*Allotment, error) {
	a := &Allotment{}
	err := row.Scan(&a.Allotment, &a.Name, &a.OpensAt, &a.ReleasesAt, &a.CodeRequired, &a.CreatedAt, &a.ClosedAt, &a.Version,
		&a.Left, &a.LeftVersion)
	inUTC(a.OpensAt, a.ReleasesAt, &a.CreatedAt, a.ClosedAt)
	return a, err
}

func inUTC(times ...*time.Time) {
	for _, at := range times {
		if at != nil {
			*at = at.UTC()
		}
	}
}

func scanTier(rows pgx.Rows) (*Tier, error) {
	t := &Tier{}
	var rate string
	err := rows.Scan(&t.Tier, &t.Position, &t.Name, &t.LimitPerCustomer, &t.Seated, &t.Version,
		&t.Price.Version, &t.Price.Amount, &t.Price.Fee, &rate)
	if err != nil {
		return nil, err
	}
	t.Price.TaxRate, err = decimal.NewFromString(rate)
	return t, err
}
