package tickets

import (
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// Every statement on tickets.
const (
	// Orders that are new here begin with the last entry that's about to be followed: a row
	// never stands without that.
	sqlOpenBooks = `
INSERT INTO ticketed_orders (journal_id, order_id, seq)
SELECT $1, k.order_id, k.seq
FROM unnest($2::uuid[], $3::bigint[]) AS k (order_id, seq)
ON CONFLICT (journal_id, order_id) DO NOTHING
RETURNING order_id`

	sqlLockBooks = `
SELECT b.order_id, b.seq
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM ticketed_orders
    WHERE journal_id = $1
      AND order_id = k.id
    OFFSET 0
    FOR UPDATE) b`

	sqlKeepBooks = `
INSERT INTO ticketed_orders (journal_id, order_id, seq)
SELECT $1, k.order_id, k.seq
FROM unnest($2::uuid[], $3::bigint[]) AS k (order_id, seq)
ON CONFLICT (journal_id, order_id) DO UPDATE
SET seq = excluded.seq
WHERE ticketed_orders.seq < excluded.seq`

	sqlTicketsOfBooks = `
SELECT ` + ticketColumns + `
FROM unnest($2::uuid[]) AS k (id)
CROSS JOIN LATERAL (
    SELECT order_id, number, line, ticket_id, tier, seat, '' AS token, issued_seq, issued_at, revoked_seq
    FROM tickets
    WHERE journal_id = $1
      AND order_id = k.id
    ORDER BY number
    OFFSET 0) t`

	// A number names one unit for good: of a ticket that's there nothing changes but that it's
	// taken back.
	sqlKeepTickets = `
INSERT INTO tickets (journal_id, ` + ticketColumns + `)
SELECT $1, t.*
FROM unnest($2::uuid[], $3::integer[], $4::integer[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::bigint[],
            $10::timestamptz[], $11::bigint[])
     AS t (` + ticketColumns + `)
ON CONFLICT (journal_id, order_id, number) DO UPDATE
SET revoked_seq = excluded.revoked_seq
WHERE tickets.revoked_seq IS NULL`

	ticketColumns = `order_id, number, line, ticket_id, tier, seat, token, issued_seq, issued_at, revoked_seq`

	sqlTicket = `
SELECT ` + ticketColumns + `
FROM tickets
WHERE ticket_id = $1`

	sqlTicketsOfOrder = `
SELECT ` + ticketColumns + `
FROM tickets
WHERE journal_id = $1
  AND order_id = $2
  AND number > $3
ORDER BY number
LIMIT $4`
)

// readTicket reads the columns of a ticket. Its event is the journal's.
func readTicket(row pgx.CollectableRow) (*Ticket, error) {
	t := &Ticket{}
	var revoked *ledger.Seq
	err := row.Scan(&t.Order, &t.Number, &t.line, &t.ID, &t.Tier, &t.Seat, &t.Token, &t.issued, &t.IssuedAt, &revoked)
	if revoked != nil {
		t.revoked = *revoked
	}
	t.settle()
	return t, err
}
