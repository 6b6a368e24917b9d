package orders_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tierledger/tierledger/orders"
)

// The checks find what a wrong program or person could do to the rows.
func TestChecksFindSabotage(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_ok")
	if err := s.refund(o.ID, orders.RefundRequest{Items: []orders.RefundLine{{Tier: "ga", Quantity: 1}}, ReturnTickets: true}); err != nil {
		t.Fatal(err)
	}
	s.flush()
	if err := s.sim.SetWebhookURL(""); err != nil {
		t.Fatal(err)
	}
	s.buy("bob", 1, "sim_requires_action")
	s.buy("cid", 1, "sim_capture_timeout") // confirmed, its authorization stands
	for i, c := range []struct{ check, sql string }{
		{"orders_recorded", `UPDATE orders SET reconciling = NOT reconciling`},
		{"orders_recorded", `UPDATE orders SET payment_status = 'voided'`},
		{"orders_recorded", `UPDATE orders SET pay_until = pay_until + interval '1 hour'`},
		{"orders_recorded", `UPDATE orders SET version = version - 1`},
		{"operations_recorded", `UPDATE operations SET status = 'declined' WHERE kind = 'refund'`},
		{"operations_recorded", `UPDATE operations SET reference = 'op_x'`},
		{"operations_recorded", `UPDATE operations SET amount = amount + 1 WHERE kind = 'refund'`},
		{"sold_by_orders", `UPDATE orders SET status = 'cancelled' WHERE status = 'confirmed'`},
		{"sold_by_orders", `UPDATE orders SET items = replace(items::text, '"returned":1', '"returned":2')::json`},
		{"orders_of_holds", `DELETE FROM orders WHERE status = 'confirmed'`},
		{"orders_of_holds", `UPDATE holds SET pay_until = NULL WHERE status = 'confirmed'`},
		{"capture_pending_by_orders", `UPDATE orders SET status = 'captured', captured = face + fee + tax WHERE status = 'confirmed'`},
		{"authorizations_open", `UPDATE operations SET authorized = 0`},
		{"refunds_pending_by_operations", `UPDATE operations SET status = 'pending', due_at = now() WHERE kind = 'refund'`},
		{"refunded_by_operations", `UPDATE orders SET refunded_face = refunded_face - 1, refunded_fee = refunded_fee + 1 WHERE refunded_face > 0`},
		{"paid_once", `UPDATE operations SET status = 'declined' WHERE kind = 'capture'`},
		{"paid_once", `DELETE FROM operations WHERE kind = 'capture'`},
		{"checkouts_counted", `UPDATE checkouts SET pending = pending + 1`},
		{"checkouts_counted", `DELETE FROM checkouts`},
		{"webhooks_recorded", `UPDATE webhooks SET version = 1`},
	} {
		t.Run(strconv.Itoa(i)+" "+c.check, func(t *testing.T) {
			s.exec(`BEGIN`)
			defer s.exec(`ROLLBACK`)
			if found := s.violations(); len(found) != 0 {
				t.Fatal(found)
			}
			s.exec(c.sql)
			if found := s.violations(); found[c.check] == 0 {
				t.Errorf("it found %v", found)
			}
		})
	}
}

// violations counts what the package's checks find.
func (s *shop) violations() map[string]int {
	s.Helper()
	found := map[string]int{}
	for _, c := range orders.Checks() {
		rows, err := s.owner.Query(s.ctx, c.SQL, nil)
		if err != nil {
			s.Fatal(err)
		}
		if list := collect[string](s, rows); len(list) > 0 {
			found[c.Name] = len(list)
		}
	}
	return found
}

// The database refuses what no decision may do, whoever asks with the service's rights.
func TestTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	o := s.buy("ann", 2, "sim_ok")
	s.flush()
	conn, err := pgx.Connect(s.ctx, s.db.ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	const denied = "42501"
	for sql, want := range map[string]string{
		`UPDATE orders SET refunded_face = captured + 1`:                "orders_refunded",
		`UPDATE orders SET refunded_face = -1`:                          "orders_refunded",
		`UPDATE orders SET captured = captured + 1`:                     "orders_captured",
		`UPDATE orders SET status = 'lost'`:                             "orders_status",
		`UPDATE operations SET status = 'lost', due_at = now()`:         "operations_status",
		`UPDATE operations SET authorized = amount + 1`:                 "operations_authorized",
		`UPDATE operations SET status = 'pending', due_at = NULL`:       "operations_due",
		`UPDATE operations SET face = amount, fee = 1`:                  "operations_parts",
		`UPDATE operations SET taken = 1 WHERE kind = 'capture'`:        "operations_taken",
		`UPDATE webhooks SET status = 'parked'`:                         "webhooks_due",
		`UPDATE checkouts SET pending = -1`:                             "checkouts_pending",
		`UPDATE holds SET status = 'payment_pending', pay_until = NULL`: "holds_paying",
		`INSERT INTO orders SELECT * FROM orders`:                       "orders_pkey",
		`INSERT INTO operations SELECT * FROM operations`:               "operations_pkey",
		`UPDATE operations SET amount = 1`:                              denied,
		`UPDATE operations SET operation_id = order_id`:                 denied,
		`UPDATE operations SET kind = 'void'`:                           denied,
		`UPDATE orders SET face = 1`:                                    denied,
		`UPDATE orders SET customer = 'bob'`:                            denied,
		`UPDATE webhooks SET body = ''`:                                 denied,
		`DELETE FROM orders`:                                            denied,
		`DELETE FROM operations`:                                        denied,
		`DELETE FROM webhooks`:                                          denied,
		`TRUNCATE operations`:                                           denied,
	} {
		_, err := conn.Exec(s.ctx, sql)
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.ConstraintName != want && e.Code != want {
			t.Errorf("%s: %v", sql, err)
		}
	}
	s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
}
