package orders_test

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/recon"
)

// What tests of orders look at.

// op gives the last operation of a kind.
func (s *shop) op(id uuid.UUID, kind payments.Kind) *orders.Operation {
	s.Helper()
	return s.ops(id, kind)[len(s.ops(id, kind))-1]
}

// ops gives the operations of a kind; there must be one.
func (s *shop) ops(id uuid.UUID, kind payments.Kind) []*orders.Operation {
	s.Helper()
	var list []*orders.Operation
	for _, op := range s.order(id).Operations {
		if op.Kind == kind {
			list = append(list, op)
		}
	}
	if len(list) == 0 {
		s.Fatalf("the order has no %s", kind)
	}
	return list
}

// is compares an order's states.
func (s *shop) is(id uuid.UUID, status orders.Status, payment orders.PaymentStatus, reconciling bool) {
	s.Helper()
	if o := s.order(id); o.Status != status || o.PaymentStatus != payment || o.Reconciling != reconciling {
		s.Errorf("the order is %s, its payment %s, reconciling: %t; want %s, %s, %t", o.Status, o.PaymentStatus, o.Reconciling,
			status, payment, reconciling)
	}
}

// holdIs compares a hold's state.
func (s *shop) holdIs(id uuid.UUID, status holds.Status) {
	s.Helper()
	h, err := s.Holds.Get(s.ctx, id)
	if err != nil || h.Status != status {
		s.Errorf("the hold is %s, want %s: %v", h.Status, status, err)
	}
}

// refused compares an error's code.
func (s *shop) refused(err error, want *fault.Def) {
	s.Helper()
	if f := fault.As(err); f == nil || f.Def != want {
		s.Errorf("got %v, want %s", err, want.Code)
	}
}

// kinds gives the kinds of the event's entries that begin with "order.", in their order.
func (s *shop) kinds() []string {
	s.Helper()
	rows, err := s.owner.Query(s.ctx, `SELECT kind FROM entries WHERE kind LIKE 'order.%' ORDER BY journal_id, seq`)
	if err != nil {
		s.Fatal(err)
	}
	return collect[string](s, rows)
}

// entries counts entries of a kind.
func (s *shop) entries(kind string) int {
	s.Helper()
	n := 0
	for _, k := range s.kinds() {
		if k == kind {
			n++
		}
	}
	return n
}

// webhooks counts the stored webhooks of a status.
func (s *shop) webhooks(status string) (n int) {
	s.Helper()
	if err := s.owner.QueryRow(s.ctx, `SELECT count(*) FROM webhooks WHERE status = $1`, status).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// cases gives the cases in their order of opening; of one reason, or of all for "".
func (s *shop) cases(reason cases.Reason) []cases.Case {
	s.Helper()
	list, err := s.Cases.List(s.ctx, cases.Filter{Reason: reason, Limit: 100})
	if err != nil {
		s.Fatal(err)
	}
	slices.SortStableFunc(list, func(a, b cases.Case) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return list
}

// openCases gives the reasons of the cases that aren't resolved.
func (s *shop) openCases() (reasons []cases.Reason) {
	s.Helper()
	for _, c := range s.cases("") {
		if c.Status != cases.Resolved {
			reasons = append(reasons, c.Reason)
		}
	}
	return reasons
}

// theCase gives the one case of a reason, which must be in a state.
func (s *shop) theCase(reason cases.Reason, status cases.Status) cases.Case {
	s.Helper()
	list := s.cases(reason)
	if len(list) != 1 || list[0].Status != status {
		s.Fatalf("there are %d cases %s, want one that's %s: %+v", len(list), reason, status, list)
	}
	return list[0]
}

// endGrace moves an order's times as if its hold's deadline and grace had passed just now.
func (s *shop) endGrace(id uuid.UUID) {
	s.Helper()
	s.db.Except("holds_recorded", "orders_recorded") // entries have the times that they were given
	s.exec(`UPDATE holds h SET expires_at = clock_timestamp(), pay_until = clock_timestamp()
		FROM orders o WHERE o.hold_id = h.hold_id AND o.order_id = $1`, id)
	s.exec(`UPDATE orders o SET pay_until = h.pay_until, due_at = CASE WHEN o.due_at IS NOT NULL THEN h.pay_until END
		FROM holds h WHERE o.hold_id = h.hold_id AND o.order_id = $1`, id)
}

// ahead sets the provider's clock ahead of ours.
func (s *shop) ahead(d time.Duration) {
	s.Helper()
	settings := s.sim.Settings()
	settings.ClockOffset = d.Milliseconds()
	if err := s.sim.Configure(settings); err != nil {
		s.Fatal(err)
	}
}

// endHold moves the deadline of an order's hold to now; the grace goes on.
func (s *shop) endHold(id uuid.UUID) {
	s.Helper()
	s.db.Except("holds_recorded")
	s.exec(`UPDATE holds h SET expires_at = clock_timestamp() FROM orders o WHERE o.hold_id = h.hold_id AND o.order_id = $1`, id)
}

// age makes what was sent look as if it had been sent so much earlier.
func (s *shop) age(d time.Duration) {
	s.Helper()
	s.exec(`UPDATE operations SET sent_at = sent_at - $1::interval WHERE sent_at IS NOT NULL`, d)
}

func (s *shop) exec(sql string, args ...any) {
	s.Helper()
	if _, err := s.owner.Exec(s.ctx, sql, args...); err != nil {
		s.Fatal(err)
	}
}

// refund asks for a refund under a new key.
func (s *shop) refund(id uuid.UUID, r orders.RefundRequest) error {
	s.Helper()
	if r.Reason == "" {
		r.Reason = "asked"
	}
	s.gate.RLock()
	_, err := s.Orders.Refund(s.ctx, "tester", s.key(), id, r, nil)
	s.gate.RUnlock()
	s.idle()
	return err
}

func usd(n ledger.Amount) *buckets.Money { return &buckets.Money{Amount: n, Currency: "USD"} }

// policy is the usual event under a policy for late payments.
func policy(name string) option {
	spec := usual()
	spec.LatePaymentPolicy = name
	return option{spec: spec, webhooks: true}
}

var refundIt = recon.Resolution{Resolution: cases.Refund, Reason: "the buyer asked"}

var honourIt = recon.Resolution{Resolution: cases.Honour, Reason: "the buyer has waited long enough"}
