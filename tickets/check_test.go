package tickets_test

import (
	"strconv"
	"testing"

	"github.com/tierledger/tierledger/orders"
)

// sabotage is what a wrong program or person could do to the rows, each with a check that
// finds it.
var sabotage = []struct{ check, sql string }{
	{"tickets_of_orders", `DELETE FROM tickets WHERE seat = 'A-1-2'`},
	{"tickets_of_orders", `UPDATE tickets SET revoked_seq = NULL WHERE tier = 'ga'`},
	{"tickets_of_orders", `UPDATE tickets SET revoked_seq = (SELECT max(revoked_seq) FROM tickets) WHERE tier = 'ga'`},
	{"tickets_of_orders", `UPDATE tickets SET line = 3 - line`},
	{"tickets_of_orders", `UPDATE tickets SET seat = 'A-1-3' WHERE seat = 'A-1-2'`},
	{"tickets_of_orders", `UPDATE tickets SET tier = 'lawn' WHERE tier = 'ga'`},
	{"tickets_of_orders", `UPDATE orders SET status = 'cancelled'`},
	{"tickets_of_orders", `UPDATE inbox SET seq = 99`}, // of bob's order: captured, and not followed
	{"tickets_issued", `UPDATE tickets SET issued_seq = issued_seq - 1`},
	{"tickets_issued", `UPDATE tickets SET issued_at = issued_at - interval '1 hour'`},
	{"tickets_issued", `UPDATE tickets SET seat = '' WHERE seat = 'A-1-2'`},
	{"tickets_issued", `UPDATE tickets SET seat = 'A-1-3' WHERE seat = 'A-1-2'`},
	{"tickets_issued", `UPDATE tickets SET line = 3`},
	{"tickets_issued", `INSERT INTO tickets SELECT journal_id, gen_random_uuid(), number, line, gen_random_uuid(), tier, seat, token, issued_seq, issued_at
		FROM tickets WHERE number = 1`},
	{"tickets_revoked", `UPDATE tickets SET revoked_seq = 999 WHERE revoked_seq IS NOT NULL`},
	{"tickets_numbered", `DELETE FROM tickets WHERE number = 2`},
	{"tickets_numbered", `UPDATE tickets SET number = number + 1 WHERE number = (SELECT max(number) FROM tickets)`},
	{"tickets_numbered", `DELETE FROM ticketed_orders`},
	{"tickets_numbered", `UPDATE ticketed_orders SET seq = 1`},
	{"tickets_admit_one", `UPDATE tickets SET seat = 'A-1-2' WHERE seat = 'A-1-1'`},
	{"tickets_signed", `UPDATE tickets SET token = 'x'`},
	{"tickets_signed", `UPDATE tickets SET token = 'a.b.' || split_part(token, '.', 3)`},
	{"tickets_signed", `UPDATE tickets SET token = (SELECT max(token) FROM tickets)`},
	{"tickets_signed", `UPDATE tickets SET ticket_id = gen_random_uuid()`},
	{"tickets_signed", `UPDATE tickets SET tier = 'lawn' WHERE tier = 'ga'`},
	{"tickets_signed", `UPDATE tickets SET seat = 'A-1-3' WHERE seat = 'A-1-2'`},
	{"tickets_signed", `UPDATE tickets SET issued_at = issued_at + interval '2 seconds'`},
}

func TestChecksFindSabotage(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.buy("ann", "sim_ok", "2 ga", "A-1-1", "A-1-2")
	b.until(id, orders.Captured)
	b.refund(id, orders.RefundLine{Tier: "ga", Quantity: 1})
	b.until(id, orders.PartiallyRefunded)
	b.follow()
	b.want(id, "ga (ga) A-1-1 A-1-2")
	b.until(b.buy("bob", "sim_ok", "1 ga"), orders.Captured)
	b.sound() // what's ahead of the consumer isn't missing
	for i, c := range sabotage {
		t.Run(strconv.Itoa(i)+" "+c.check, func(t *testing.T) {
			b.exec(`BEGIN`)
			defer b.exec(`ROLLBACK`)
			b.exec(c.sql)
			if found := b.violations(); len(found[c.check]) == 0 {
				t.Errorf("it found %v", found)
			}
		})
	}
}
