package tickets_test

import (
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/tickets"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), tickets.Statements, "sql.go")
}

// manyTickets are four tickets of each of 10,000 orders in each of two journals.
var manyTickets = []string{
	`INSERT INTO ticketed_orders (journal_id, order_id, seq)
	 SELECT journal, md5(journal || ' ' || n)::uuid, n FROM generate_series(1, 2) journal, generate_series(1, 10000) n`,
	`INSERT INTO tickets (journal_id, order_id, number, line, ticket_id, tier, seat, token, issued_seq, issued_at)
	 SELECT journal_id, order_id, n, 1, md5(order_id || ' ' || n)::uuid, 'ga', '', 'a token', seq, now()
	 FROM ticketed_orders, generate_series(1, 4) n`,
}

// Tickets are found by their keys, whatever plan was made before there were any.
func TestPlansMadeForNoTicketsServeMany(t *testing.T) {
	t.Parallel()
	ids := `ARRAY[md5('1 1')::uuid, md5('1 20')::uuid, md5('none')::uuid]`
	pgtest.Plans{
		Statements: tickets.Statements, Tables: `tickets, ticketed_orders`, Many: manyTickets, MaxPages: 60,
		Commits: map[string]string{
			"sqlOpenBooks":      `(1, ` + ids + `, '{1,2,3}')`,
			"sqlLockBooks":      `(1, ` + ids + `)`,
			"sqlKeepBooks":      `(1, ` + ids + `, '{1,2,3}')`,
			"sqlTicketsOfBooks": `(1, ` + ids + `)`,
			"sqlKeepTickets": `(1, ` + ids + `, '{1,2,3}', '{1,1,1}', ARRAY[md5('a')::uuid, md5('b')::uuid, md5('c')::uuid],
			                   '{ga,ga,ga}', '{"","",""}', '{"","",""}', '{1,1,1}', '{now,now,now}', '{20000,20000,20000}')`,
		},
		Reads: map[string]string{
			"sqlTicket":         `(md5(md5('1 1')::uuid || ' 1')::uuid)`,
			"sqlTicketsOfOrder": `(1, md5('1 20')::uuid, 1, 10)`,
		},
	}.Check(t)
}
