package orders_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tierledger/tierledger/orders"
)

// Of what an entry records of an order, its operations and its hold, nothing can be
// changed beside it: each act of sabotage changes one column that a check compares.
func TestEveryColumnIsCompared(t *testing.T) {
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
	s.buy("cid", 1, "sim_capture_timeout") // confirmed
	for check, acts := range map[string][]string{
		"orders_recorded": {
			`UPDATE orders SET hold_id = gen_random_uuid()`,
			`UPDATE orders SET customer = 'zoe'`,
			`UPDATE orders SET status = 'refunded' WHERE status = 'partially_refunded'`,
			`UPDATE orders SET items = '[]'`,
			`UPDATE orders SET face = face + 1`,
			`UPDATE orders SET fee = fee + 1`,
			`UPDATE orders SET tax = tax + 1`,
			`UPDATE orders SET captured = captured - 1 WHERE captured > 0`,
			`UPDATE orders SET refunded_face = refunded_face - 1 WHERE refunded_face > 0`,
			`UPDATE orders SET refunded_fee = refunded_fee - 1 WHERE refunded_fee > 0`,
			`UPDATE orders SET refunded_tax = refunded_tax - 1 WHERE refunded_tax > 0`,
			`UPDATE orders SET created_at = created_at - interval '1 second'`,
		},
		"operations_recorded": {
			`UPDATE operations SET order_id = gen_random_uuid()`,
			`UPDATE operations SET kind = 'void' WHERE kind = 'refund'`,
			`UPDATE operations SET attempt = attempt + 1`,
			`UPDATE operations SET provider = 'other'`,
			`UPDATE operations SET payment = 'other'`,
			`UPDATE operations SET reason = 'other'`,
			`UPDATE operations SET due_at = now() WHERE due_at IS NULL`,
			`UPDATE operations SET updated_at = updated_at + interval '1 second'`,
		},
		"orders_of_holds": {
			`DELETE FROM holds`,
			`UPDATE holds SET customer = 'zoe'`,
			`UPDATE holds SET total = total + 1`,
			`UPDATE holds SET status = 'payment_pending' WHERE status = 'confirmed'`,
			`UPDATE holds SET status = 'reconciling' WHERE status = 'payment_pending'`,
			`UPDATE orders SET status = 'pending' WHERE status = 'confirmed'`,
		},
		"paid_once": {
			`UPDATE operations SET kind = 'capture' WHERE kind = 'authorize' AND status = 'succeeded' AND authorized = 0`,
		},
	} {
		for _, act := range acts {
			s.exec(`BEGIN`)
			s.exec(act)
			if found := s.violations(); found[check] == 0 {
				t.Errorf("%s didn't find %s; %v did", check, act, found)
			}
			s.exec(`ROLLBACK`)
		}
	}
}

// The schema refuses what can't be, even from its owner.
func TestTheSchemaRefuses(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	s.buy("ann", 2, "sim_ok")
	s.flush()
	for sql, want := range map[string]string{
		`UPDATE holds SET status = 'lost'`:                                      "holds_status",
		`UPDATE holds SET pay_until = expires_at - interval '1 second'`:         "holds_grace",
		`UPDATE events SET sale_closes_at = 'tomorrow', honour_until = 'today'`: "events_honour_until",
		`UPDATE orders SET payment_status = 'lost'`:                             "orders_payment_status",
		`UPDATE orders SET face = -1, fee = fee + face + 1`:                     "orders_parts",
		`UPDATE operations SET kind = 'gift' WHERE kind = 'capture'`:            "operations_kind",
		`UPDATE operations SET amount = -1`:                                     "operations_amount",
		`UPDATE operations SET disputed = 1 WHERE kind = 'capture'`:             "operations_disputed",
		`UPDATE operations SET sent_at = NULL`:                                  "operations_sent",
		`UPDATE webhooks SET status = 'lost'`:                                   "webhooks_status",
	} {
		_, err := s.owner.Exec(s.ctx, sql)
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.ConstraintName != want {
			t.Errorf("%s: %v, want %s", sql, err, want)
		}
	}
}
