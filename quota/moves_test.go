package quota_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

func amount(n ledger.Amount) *ledger.Amount { return &n }

// request asks for a quantity of ga from one bucket for another.
func request(from, to quota.Bucket, n ledger.Amount) quota.Request {
	return quota.Request{Tier: "ga", From: from, To: to, Quantity: &n}
}

func lane(n int) quota.Bucket { return quota.Bucket{Lane: n} }

// Two operators want the same tickets: one gets them, or both as many as there are.
func TestTwoOperatorsMoveTheSameTickets(t *testing.T) {
	t.Parallel()
	d := open(t, 20)
	d.split(2)
	for round := range 10 {
		granted, refused := pgtest.Rush(2, func(i int) error {
			_, err := d.move(fmt.Sprint("op", i), request(lane(1), lane(2), 7))
			return err
		})
		if granted != 1 || refused["insufficient_free"] != 1 || fmt.Sprint(d.free()) != "[3 17]" {
			t.Fatalf("round %d: %d granted, %v, %v", round, granted, refused, d.free())
		}
		_, err := d.move("op", request(lane(2), lane(1), 7))
		d.must(err)
		moved := make([]ledger.Amount, 2)
		if granted, refused = pgtest.Rush(2, func(i int) error {
			m, err := d.move(fmt.Sprint("op", i), quota.Request{Tier: "ga", From: lane(1), To: lane(2), UpTo: amount(7)})
			moved[i] = m.Quantity
			return err
		}); granted != 2 || sum(moved) != 10 || fmt.Sprint(d.free()) != "[0 20]" {
			t.Fatalf("round %d: %v, %v, %v", round, moved, refused, d.free())
		}
		_, err = d.move("op", request(lane(2), lane(1), 10))
		d.must(err)
	}
}

func TestWhatCantBeMoved(t *testing.T) {
	t.Parallel()
	d := open(t, 40)
	d.split(4)
	d.split(2)
	d.allot(buckets.AllotmentSpec{Allotment: "fans"}, 5)
	d.allot(buckets.AllotmentSpec{Allotment: "press"}, 5)
	_, err := d.Quotas.CloseAllotment(context.Background(), "op", "close", d.event, "press", "a test", nil)
	d.must(err)
	d.balance()
	before, free := d.entries(), fmt.Sprint(d.free())
	fans, press, none := quota.Bucket{Allotment: "fans"}, quota.Bucket{Allotment: "press"}, quota.Bucket{Allotment: "none"}
	for name, c := range map[string]struct {
		request quota.Request
		want    *fault.Def
		field   string
		value   any
	}{
		"to itself":            {request(lane(1), lane(1), 1), fault.ErrInvalidRequest, "field", "to"},
		"to wherever it is":    {request(lane(2), lane(0), 1), fault.ErrInvalidRequest, "field", "to"},
		"from anywhere to 1":   {request(lane(0), lane(1), 1), fault.ErrInvalidRequest, "field", "to"},
		"allotment to itself":  {request(fans, fans, 1), fault.ErrInvalidRequest, "field", "to"},
		"none":                 {request(lane(1), lane(2), 0), fault.ErrInvalidRequest, "field", "quantity"},
		"fewer than none":      {request(lane(1), lane(2), -1), fault.ErrInvalidRequest, "field", "quantity"},
		"more than any":        {request(lane(1), lane(2), 10_000_001), fault.ErrInvalidRequest, "field", "quantity"},
		"up to none":           {quota.Request{Tier: "ga", From: lane(1), To: lane(2), UpTo: amount(0)}, fault.ErrInvalidRequest, "field", "up_to"},
		"no quantity":          {quota.Request{Tier: "ga", From: lane(1), To: lane(2)}, fault.ErrInvalidRequest, "field", "quantity"},
		"both":                 {quota.Request{Tier: "ga", From: lane(1), To: lane(2), Quantity: amount(1), UpTo: amount(1)}, fault.ErrInvalidRequest, "field", "quantity"},
		"from lane -1":         {request(lane(-1), lane(2), 1), fault.ErrInvalidRequest, "field", "from.lane"},
		"to lane -1":           {request(lane(1), lane(-1), 1), fault.ErrInvalidRequest, "field", "to.lane"},
		"more than free":       {request(lane(2), lane(1), 1000), ledger.ErrInsufficientFree, "asked", ledger.Amount(1000)},
		"more than all lanes":  {request(lane(0), lane(2), 36), ledger.ErrInsufficientFree, "free", ledger.Amount(35)},
		"an empty one":         {quota.Request{Tier: "ga", From: quota.Bucket{Lane: 2, Allotment: "fans"}, To: lane(2), UpTo: amount(1)}, ledger.ErrInsufficientFree, "free", ledger.Amount(0)},
		"from no lane":         {request(lane(5), lane(1), 1), buckets.ErrLaneNotFound, "lane", 5},
		"to no lane":           {request(lane(1), lane(5), 1), buckets.ErrLaneNotFound, "lane", 5},
		"to one not in use":    {request(lane(1), lane(3), 1), buckets.ErrLaneNotFound, "lane", 3},
		"no tier":              {quota.Request{Tier: "vip", From: lane(1), To: lane(2), Quantity: amount(1)}, buckets.ErrTierNotFound, "tier", ledger.Unit("vip")},
		"uses of codes":        {quota.Request{Tier: ledger.Uses, From: lane(1), To: lane(2), Quantity: amount(1)}, buckets.ErrTierNotFound, "tier", ledger.Uses},
		"money":                {quota.Request{Tier: "USD", From: lane(1), To: lane(2), Quantity: amount(1)}, buckets.ErrTierNotFound, "tier", ledger.Unit("USD")},
		"to no allotment":      {request(lane(1), none, 1), buckets.ErrAllotmentNotFound, "allotment", "none"},
		"from no allotment":    {request(none, lane(1), 1), buckets.ErrAllotmentNotFound, "allotment", "none"},
		"to a closed one":      {request(lane(1), press, 1), buckets.ErrAllotmentClosed, "allotment", "press"},
		"from a closed one":    {request(press, lane(2), 1), buckets.ErrAllotmentClosed, "allotment", "press"},
		"all that closed gave": {request(fans, lane(0), 6), ledger.ErrInsufficientFree, "free", ledger.Amount(5)},
	} {
		if m, err := d.move("op", c.request); !errors.Is(err, c.want) || said(err, c.field) != c.value {
			t.Errorf("%s: %+v %v", name, m, err)
		}
		r := c.request
		r.Reason = "a test"
		if _, err := d.Quotas.Move(context.Background(), "op", uuid.NewString(), d.event, r, nil, true); !errors.Is(err, c.want) {
			t.Errorf("%s, a dry run: %v", name, err)
		}
	}
	_, err = d.Quotas.Move(context.Background(), "op", "k", "no", request(lane(1), lane(2), 1), nil, false)
	d.refused(err, buckets.ErrEventNotFound)
	_, err = d.Quotas.Move(context.Background(), "op", "k", d.event, request(lane(1), lane(2), 1), nil, false)
	if d.refused(err, fault.ErrInvalidRequest); said(err, "field") != "reason" {
		t.Error(err)
	}
	if after := fmt.Sprint(d.free()); after != free || sum(d.free()) != 35 {
		t.Errorf("%s became %s", free, after)
	}
	// The refusal for want of tickets in all lanes may have gathered those that there are.
	if collected := d.count(`SELECT count(*) FROM quota_moves WHERE cause = 'collect'`); d.entries() != before+2*collected {
		t.Errorf("%d entries became %d, with %d moves", before, d.entries(), collected)
	}
}

// A dry run says what would be done, over all lanes, and writes nothing.
func TestADryRunOfAMove(t *testing.T) {
	t.Parallel()
	d := open(t, 80)
	d.split(8)
	d.allot(buckets.AllotmentSpec{Allotment: "fans"}, 1)
	before := d.entries()
	dry := func(n ledger.Amount) (quota.Move, error) {
		r := request(quota.Bucket{}, quota.Bucket{Allotment: "fans"}, n)
		r.Reason = "a test"
		receipt, err := d.Quotas.Move(context.Background(), "op", "k", d.event, r, nil, true)
		if err != nil {
			return quota.Move{}, err
		}
		return decoded[quota.Move](d, receipt), nil
	}
	m, err := dry(79)
	if d.must(err); m.Quantity != 79 || m.Status != quota.Moved || !m.AnyLane {
		t.Errorf("%+v", m)
	}
	if _, err = dry(80); said(d.refused(err, ledger.ErrInsufficientFree), "free") != ledger.Amount(79) {
		t.Error(err)
	}
	if n := d.entries(); n != before {
		t.Errorf("%d entries became %d", before, n)
	}
	_, err = d.moveUnder("op", "k", request(quota.Bucket{}, quota.Bucket{Allotment: "fans"}, 79))
	d.must(err)
	if sum(d.free()) != 0 || d.freeOn("available:fans", "ga")[0] != 80 {
		t.Errorf("%v, %v", d.free(), d.freeOn("available:fans", "ga"))
	}
}

func TestAMoveOfAVersion(t *testing.T) {
	t.Parallel()
	d := open(t, 40)
	d.split(2)
	view, err := d.Quotas.View(context.Background(), d.event)
	d.must(err)
	var version ledger.Seq
	for _, b := range view.Buckets {
		if b.Lane == 2 {
			version = b.Version
		}
	}
	r := request(lane(2), lane(1), 5)
	r.Reason = "a test"
	for i, want := range []*fault.Def{nil, buckets.ErrVersionConflict} {
		_, err := d.Quotas.Move(context.Background(), "op", fmt.Sprint(i), d.event, r, &version, false)
		if want == nil {
			d.must(err)
		} else if said(d.refused(err, want), "version") == version {
			t.Error(err)
		}
	}
	if got := fmt.Sprint(d.free()); got != "[25 15]" {
		t.Error(got)
	}
}

func TestAMovesKey(t *testing.T) {
	t.Parallel()
	d := open(t, 40)
	d.split(2)
	d.allot(buckets.AllotmentSpec{Allotment: "fans"}, 2)
	for i, r := range []quota.Request{request(lane(1), lane(2), 5), request(lane(0), quota.Bucket{Allotment: "fans"}, 30)} {
		name := fmt.Sprint("move ", i)
		first, err := d.moveUnder("op", name, r)
		d.must(err)
		free := fmt.Sprint(d.free(), d.freeOn("available:fans", "ga"))
		again, err := d.moveUnder("op", name, r)
		if d.must(err); again.ID != first.ID || again.Version != first.Version {
			t.Errorf("%s: %+v and %+v", name, first, again)
		}
		if after := fmt.Sprint(d.free(), d.freeOn("available:fans", "ga")); after != free {
			t.Errorf("%s: %s became %s", name, free, after)
		}
		r.Quantity = amount(*r.Quantity + 1)
		_, err = d.moveUnder("op", name, r)
		d.refused(err, ledger.ErrIdempotencyMismatch)
		_, err = d.moveUnder("op", name, request(lane(2), lane(1), 1)) // it would be decided in another lane
		d.refused(err, ledger.ErrIdempotencyMismatch)
	}
}
