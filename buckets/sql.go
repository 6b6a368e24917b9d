package buckets

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"
)

// Every statement on event_journals, events, tiers and prices.
const (
	sqlTakenNames = `
SELECT event
FROM event_journals
WHERE journal_id = $1
  AND event = ANY ($2::text[])`

	sqlInsertDirectory = `
INSERT INTO event_journals (journal_id, event, event_journal_id)
VALUES ($1, $2, $3)`

	eventColumns = `event, name, currency, hold_seconds, grace_seconds, limit_per_customer,
       sale_opens_at, sale_closes_at, organiser, late_payment_policy, honour_until, created_at, version`

	sqlBatchEvent = `
SELECT ` + eventColumns + `
FROM events
WHERE journal_id = $1`

	sqlInsertEvent = `
INSERT INTO events (journal_id, ` + eventColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

	sqlBatchTiers = `
SELECT t.tier, t.position, t.name, t.limit_per_customer, t.seated, t.version,
       p.price_version, p.amount, p.fee, p.tax_rate::text
FROM tiers t
JOIN prices p ON p.journal_id = t.journal_id
             AND p.tier = t.tier
             AND p.price_version = t.price_version
WHERE t.journal_id = $1
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
  AND d.event = $2`

	sqlNameJournal = `
SELECT event, currency, organiser
FROM events
WHERE journal_id = $1`

	sqlCreatedOnly = `
SELECT d.event_journal_id
FROM event_journals d
LEFT JOIN events e ON e.journal_id = d.event_journal_id
WHERE d.journal_id = $1
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

func scanEvent(rows pgx.Rows) (*Event, error) {
	e := &Event{}
	err := rows.Scan(&e.Event, &e.Name, &e.Currency, &e.HoldSeconds, &e.GraceSeconds, &e.LimitPerCustomer,
		&e.SaleOpensAt, &e.SaleClosesAt, &e.Organiser, &e.LatePaymentPolicy, &e.HonourUntil, &e.CreatedAt, &e.Version)
	for _, at := range []*time.Time{e.SaleOpensAt, e.SaleClosesAt, e.HonourUntil, &e.CreatedAt} {
		if at != nil {
			*at = at.UTC()
		}
	}
	return e, err
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
