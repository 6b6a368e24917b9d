package orders_test

import (
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/orders"
)

// manyOrders are 20,000 orders in each of two journals, of 2,000 customers, with two
// operations each.
var manyOrders = []string{
	`INSERT INTO orders (journal_id, order_id, hold_id, customer, status, reconciling, payment_status, items, face, fee, tax,
	                     captured, refunded_face, refunded_fee, refunded_tax, created_at, pay_until, version)
	 SELECT journal, md5(journal || ' ' || n)::uuid, md5('h' || n)::uuid, 'c' || n % 2000, 'captured', false, 'captured', '[]', 1, 0, 0,
	        1, 0, 0, 0, now(), now(), n
	 FROM generate_series(1, 2) journal, generate_series(1, 20000) n`,
	`INSERT INTO operations (journal_id, operation_id, order_id, kind, attempt, status, provider, method, return_url, payment, reference,
	                         amount, currency, authorized, taken, face, fee, tax, disputed, reason, sends, sent_at, answered,
	                         updated_at, version)
	 SELECT journal_id, md5(order_id || kind)::uuid, order_id, kind, 1, 'succeeded', 'sim', '', '', '', '', 1, 'USD', 0, 0, 0, 0, 0, 0, '',
	        1, now(), 1, now(), 1
	 FROM orders, unnest('{authorize,capture}'::text[]) kind`,
}

// Orders, their operations and what a customer has pending are found by their keys,
// whatever plan was made before there were any.
func TestPlansMadeForNoOrdersServeMany(t *testing.T) {
	t.Parallel()
	ids := `ARRAY[md5('1 1')::uuid, md5('1 20')::uuid, md5('none')::uuid]`
	pgtest.Plans{
		Statements: orders.Statements, Tables: `orders, operations`, Many: manyOrders, MaxPages: 300,
		Commits: map[string]string{
			"sqlBatchOrders":     `(1, ` + ids + `)`,
			"sqlBatchOperations": `(1, ` + ids + `)`,
			"sqlPendingOf":       `(1, '{c7}')`,
		},
	}.Check(t)
}
