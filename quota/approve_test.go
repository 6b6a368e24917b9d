package quota_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// fourEyes has moves from a quantity on wait for a second person.
func fourEyes(from int64) func(*buckets.Spec) {
	return func(s *buckets.Spec) { s.ApproveMovesFrom = &from }
}

func (d *desk) decide(principal string, id uuid.UUID, approve bool, reason string) (m quota.Move, err error) {
	receipt, err := d.Quotas.Decide(context.Background(), principal, uuid.NewString(), id, approve, reason)
	if err != nil {
		return m, err
	}
	return decoded[quota.Move](d, receipt), nil
}

func TestAMoveOfManyNeedsTwoPeople(t *testing.T) {
	t.Parallel()
	d := open(t, 60, fourEyes(10))
	d.split(2)
	_, err := d.move("ann", request(lane(1), lane(2), 9))
	d.must(err)
	before, r := d.entries(), request(lane(1), lane(2), 10)
	r.Reason = "a test"
	dry, err := d.Quotas.Move(context.Background(), "ann", "dry", d.event, r, nil, true)
	if d.must(err); dry.Kind != quota.KindRequested || d.entries() != before {
		t.Errorf("%+v, %d entries became %d", dry, before, d.entries())
	}
	asked, err := d.move("ann", request(lane(1), lane(2), 10))
	if d.must(err); asked.Status != quota.Awaiting || asked.MovedAt != nil || fmt.Sprint(d.free()) != "[21 39]" {
		t.Errorf("%+v %v", asked, d.free())
	}
	_, err = d.decide("ann", asked.ID, true, "")
	d.refused(err, fault.ErrSamePerson)
	_, err = d.decide("ann", asked.ID, false, "changed my mind")
	d.refused(err, fault.ErrSamePerson)
	_, err = d.decide("bob", asked.ID, false, "")
	if d.refused(err, fault.ErrInvalidRequest); said(err, "field") != "reason" {
		t.Error(err)
	}
	moved, err := d.decide("bob", asked.ID, true, "")
	if d.must(err); moved.Status != quota.Moved || moved.DecidedBy != "bob" || moved.AskedBy != "ann" || moved.MovedAt == nil {
		t.Errorf("%+v", moved)
	}
	for _, approve := range []bool{true, false} {
		_, err = d.decide("cid", asked.ID, approve, "late")
		if d.refused(err, quota.ErrMoveDecided); said(err, "decided_by") != "bob" {
			t.Error(err)
		}
	}
	if got := fmt.Sprint(d.free()); got != "[11 49]" {
		t.Error(got)
	}
	read, err := d.Quotas.Get(context.Background(), asked.ID)
	if d.must(err); read.Status != quota.Moved || read.DecidedBy != "bob" || read.Event != d.event || read.Quantity != 10 {
		t.Errorf("%+v", read)
	}
	for _, id := range []uuid.UUID{uuid.New(), uuid.Nil, ledger.NewID(1, "x"), ledger.NewID(77, "x")} {
		_, err = d.decide("bob", id, true, "")
		d.refused(err, quota.ErrMoveNotFound)
		_, err = d.Quotas.Get(context.Background(), id)
		d.refused(err, quota.ErrMoveNotFound)
	}
}

func TestAMoveIsRejectedOnce(t *testing.T) {
	t.Parallel()
	d := open(t, 60, fourEyes(10))
	d.split(2)
	asked, err := d.move("ann", request(lane(1), lane(2), 10))
	d.must(err)
	for range 2 { // the same key: the same answer
		receipt, err := d.Quotas.Decide(context.Background(), "bob", "no", asked.ID, false, "not today")
		if d.must(err); receipt.Kind != quota.KindRejected {
			t.Errorf("%+v", receipt)
		}
	}
	_, err = d.Quotas.Decide(context.Background(), "bob", "no", asked.ID, true, "not today")
	d.refused(err, ledger.ErrIdempotencyMismatch)
	_, err = d.decide("bob", asked.ID, true, "")
	if d.refused(err, quota.ErrMoveDecided); said(err, "move_status") != quota.Rejected {
		t.Error(err)
	}
	if got := fmt.Sprint(d.free()); got != "[30 30]" {
		t.Error(got)
	}
}

// What was free when a move was asked for is gone when it's approved: it still waits, and
// can be approved when the tickets are back.
func TestTooFewAreLeftAtTheApproval(t *testing.T) {
	t.Parallel()
	d := open(t, 60, fourEyes(10))
	d.split(2)
	exact, err := d.move("ann", request(lane(1), lane(2), 30))
	d.must(err)
	upTo, err := d.move("ann", quota.Request{Tier: "ga", From: lane(1), To: lane(2), UpTo: amount(30)})
	if d.must(err); upTo.Status != quota.Awaiting || upTo.Quantity != 30 {
		t.Errorf("%+v", upTo)
	}
	hold, err := d.hold(d.of(1, 0), 4)
	d.must(err)
	_, err = d.decide("bob", exact.ID, true, "")
	if d.refused(err, ledger.ErrInsufficientFree); said(err, "free") != ledger.Amount(26) || said(err, "asked") != ledger.Amount(30) {
		t.Error(err)
	}
	_, err = d.Holds.Release(context.Background(), "shop", "release", hold.ID, nil)
	d.must(err)
	granted, refused := pgtest.Rush(2, func(i int) error {
		_, err := d.decide(fmt.Sprint("second", i), exact.ID, true, "")
		return err
	})
	if granted != 1 || refused["move_decided"] != 1 || fmt.Sprint(d.free()) != "[0 60]" {
		t.Errorf("%d granted, %v, %v", granted, refused, d.free())
	}
	_, err = d.move("op", request(lane(2), lane(1), 7))
	d.must(err)
	got, err := d.decide("bob", upTo.ID, true, "")
	if d.must(err); got.Quantity != 7 || fmt.Sprint(d.free()) != "[0 60]" {
		t.Errorf("%+v %v", got, d.free())
	}
}

// Tickets that were counted for a request were sold before it was decided, and what's left
// needs no approval: only what the first lane has is moved.
func TestARequestThatNeedsNoApprovalAnyMore(t *testing.T) {
	t.Parallel()
	d := open(t, 16, fourEyes(10))
	d.split(2)
	_, err := d.Events.Allot(context.Background(), "op", "allot", d.event, buckets.AllotmentSpec{Allotment: "fans"})
	d.must(err)
	_, err = d.hold(d.of(1, 0), 5) // 3 are left here, 8 in the other lane, of which the other is to sell 2
	d.must(err)
	r, err := d.Quotas.Ask(context.Background(), d.event, "ga", "fans", 20, 6)
	if d.must(err); r.Kind != quota.KindMoved || fmt.Sprint(d.free()) != "[0 8]" || sum(d.freeOn("available:fans", "ga")) != 3 {
		t.Errorf("%s: %v %v", r.Kind, d.free(), d.freeOn("available:fans", "ga"))
	}
	r, err = d.Quotas.Ask(context.Background(), d.event, "ga", "fans", 20, 10)
	if d.must(err); r.Kind != quota.KindRequested || fmt.Sprint(d.free()) != "[0 8]" {
		t.Errorf("%s: %v", r.Kind, d.free())
	}
	_, err = d.Quotas.Ask(context.Background(), d.event, "ga", "fans", 20, 8)
	if d.refused(err, ledger.ErrInsufficientFree); said(err, "free") != ledger.Amount(0) {
		t.Error(err)
	}
}

// Approval gathers from all lanes what was asked of any, and an allotment that ended
// meanwhile gets none.
func TestAnApprovedMoveFromAnyLane(t *testing.T) {
	t.Parallel()
	d := open(t, 80, fourEyes(10))
	d.split(8)
	fans := quota.Bucket{Allotment: "fans"}
	_, err := d.Events.Allot(context.Background(), "op", "allot", d.event, buckets.AllotmentSpec{Allotment: "fans"})
	d.must(err)
	first, err := d.move("ann", request(quota.Bucket{}, fans, 10))
	d.must(err)
	second, err := d.move("ann", request(quota.Bucket{}, fans, 60))
	if d.must(err); second.Status != quota.Awaiting {
		t.Errorf("%+v", second)
	}
	_, err = d.decide("bob", second.ID, true, "")
	d.must(err)
	if got := sum(d.freeOn("available:fans", "ga")); got != 60 || sum(d.free()) != 20 {
		t.Errorf("%d, %v", got, d.free())
	}
	_, err = d.Quotas.CloseAllotment(context.Background(), "op", "close", d.event, "fans", "a test", nil)
	d.must(err)
	_, err = d.decide("bob", first.ID, true, "")
	d.refused(err, buckets.ErrAllotmentClosed)
	if sum(d.free()) != 80 {
		t.Error(d.free())
	}
	history, err := d.Quotas.History(context.Background(), d.event, quota.Filter{Cause: quota.ByOperator, Limit: 10})
	if d.must(err); len(history) != 2 || history[0].ID != second.ID || history[1].Status != quota.Awaiting {
		t.Errorf("%+v", history)
	}
}
