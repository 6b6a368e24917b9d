package orders

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/payments"
)

// The waits are those of the schedule, then daily for ever, each give or take a fifth:
// the same for an operation however often it's asked, and not the same for all.
func TestBackoff(t *testing.T) {
	t.Parallel()
	for sends, step := range []time.Duration{
		5 * time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour,
		24 * time.Hour, 24 * time.Hour, 24 * time.Hour,
	} {
		waits := map[time.Duration]bool{}
		for n := range byte(50) {
			op := &Operation{ID: uuid.UUID{n}, sends: sends}
			wait := op.backoff()
			if wait < step-step/5 || wait > step+step/5 || wait != op.backoff() {
				t.Fatalf("after %d sendings it waits %s, want about %s", sends, wait, step)
			}
			waits[wait] = true
		}
		if len(waits) < 25 {
			t.Errorf("after %d sendings, 50 operations have %d different waits", sends, len(waits))
		}
	}
}

// Whoever sends an operation has it to itself for the length of a lease at least, and
// longer where the schedule says so.
func TestASendingIsALease(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	op := &Operation{ID: uuid.UUID{1}, Status: OpPrepared}
	for n := 1; n <= 8; n++ {
		at := now.Add(time.Duration(n) * time.Hour)
		op.send(at)
		if wait := op.NextAttemptAt.Sub(at); wait < lease || wait < op.backoff() || op.sends != n {
			t.Errorf("the sending %d of %d is a lease of %s", op.sends, n, wait)
		}
		if !op.sentAt.Equal(now.Add(time.Hour)) || op.Status != OpSent {
			t.Errorf("it's %s, and was sent for the first time at %s", op.Status, op.sentAt)
		}
	}
}

// The commands of one batch count against the limit of a customer's pending orders; one
// that's pending already may be tried again under it.
func TestPendingOrdersAreCountedWithinABatch(t *testing.T) {
	t.Parallel()
	j := openJournal(t, buckets.Review, 10, 4)
	var last *holds.Hold
	for n := range maxPendingOf + 1 {
		h, err := j.hold("ann", holds.Item{Tier: "ga", Quantity: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.checkout(h); (err != nil) != (n == maxPendingOf) {
			t.Fatalf("checkout %d: %v", n+1, err)
		}
		if n == 0 {
			last = h
		}
	}
	j.told(last, payments.Authorize, payments.Declined, nil)
	if _, err := j.checkout(last); err != nil {
		t.Errorf("another attempt: %v", err)
	}
}

// A case about a late payment is overdue when it can't be honoured any more, if that's
// before its usual time.
func TestTheDeadlineOfALatePayment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ until, want time.Duration }{
		"soon":     {time.Hour, time.Hour},
		"far away": {1000 * time.Hour, 72 * time.Hour},
		"over":     {-time.Hour, 72 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, h := paying(t)
			j.told(h, payments.Authorize, payments.Declined, nil)
			if _, err := j.do("ann", &cancel{ref: j.of(h)}); err != nil {
				t.Fatal(err)
			}
			j.event.HonourUntil = new(j.now.Add(c.until))
			j.told(h, payments.Authorize, payments.Succeeded, nil)
			if late := j.caseOf(h, cases.LatePayment); late == nil || !late.Deadline.Equal(j.now.Add(c.want)) {
				t.Errorf("%+v, want it in %s", late, c.want)
			}
		})
	}
}

// Whatever the commands of a batch do to a row, it's written once, as new or as changed.
func TestABatchWritesEveryRowOnce(t *testing.T) {
	t.Parallel()
	j, h := paying(t)
	j.told(h, payments.Authorize, payments.Succeeded, nil)
	for range 3 {
		j.told(h, payments.Capture, payments.Succeeded, func(r *payments.Result) { r.Amount.Amount++ })
	}
	j.told(h, payments.Capture, payments.Succeeded, nil)
	o := j.order(h)
	if !slices.Equal(j.shelf.newOrders, []*Order{o}) || len(j.shelf.changedOrders) != 0 {
		t.Errorf("%d new orders, %d changed", len(j.shelf.newOrders), len(j.shelf.changedOrders))
	}
	if len(j.shelf.newOps) != len(o.Operations) || len(j.shelf.changedOps) != 0 {
		t.Errorf("%d new operations, %d changed", len(j.shelf.newOps), len(j.shelf.changedOps))
	}
	// The next batch finds them in the database.
	j.shelf.newOrders, j.shelf.newOps = nil, nil
	for range 2 {
		if _, err := j.do("ann", &refund{ref: j.of(h), request: RefundRequest{Amount: &buckets.Money{Amount: 100, Currency: "USD"}, Reason: "rain"}}); err != nil {
			t.Fatal(err)
		}
		j.told(h, payments.Refund, payments.Pending, nil)
	}
	for range 2 {
		j.told(h, payments.Capture, payments.Declined, func(r *payments.Result) { r.Reference += uuid.NewString() })
	}
	if !slices.Equal(j.shelf.changedOrders, []*Order{o}) || len(j.shelf.newOrders) != 0 {
		t.Errorf("then %d new orders, %d changed", len(j.shelf.newOrders), len(j.shelf.changedOrders))
	}
	if len(j.shelf.newOps) != 2 {
		t.Errorf("then %d new operations", len(j.shelf.newOps))
	}
	// And the next one finds the refunds there.
	j.shelf.newOps, j.shelf.changedOps = nil, nil
	op := o.last(payments.Refund)
	for n, outcome := range []payments.Outcome{payments.Succeeded, payments.Declined, payments.Succeeded} {
		j.told(h, payments.Refund, outcome, func(r *payments.Result) { r.At = r.At.Add(time.Duration(n) * time.Second) })
	}
	if !slices.Equal(j.shelf.changedOps, []*Operation{op}) || len(j.shelf.newOps) != 0 {
		t.Errorf("at last %d new operations, %d changed", len(j.shelf.newOps), len(j.shelf.changedOps))
	}
}
