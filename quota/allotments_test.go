package quota_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// from asks for tickets of an allotment, perhaps with a code.
func (d *desk) from(customer, allotment, code string, n ledger.Amount) (holds.Hold, error) {
	return d.place(uuid.NewString(), holds.Request{Customer: customer, Allotment: allotment, Code: code,
		Items: []holds.Line{{Tier: "ga", Quantity: n}}})
}

func instant(at time.Time) *buckets.Instant { return &buckets.Instant{Time: at} }

// T11: a code with 3 uses, 10 holds at once over 4 lanes. What's released, or runs out,
// gives its use back, to whichever lane wants it.
func TestT11ACodeIsUsedAsOftenAsItMayBe(t *testing.T) {
	t.Parallel()
	d := open(t, 100)
	d.split(4)
	d.allot(buckets.AllotmentSpec{Allotment: "fans", Codes: []buckets.CodeSpec{{Code: "Early", MaxUses: 3}}}, 40)
	got := make([]holds.Hold, 10)
	granted, refused := pgtest.Rush(10, func(i int) (err error) {
		code := []string{"early", "EARLY"}[i%2]
		got[i], err = d.from(d.of(i%4+1, i/4), "", code, 1)
		return err
	})
	if granted != 3 || refused["code_used_up"] != 7 {
		t.Fatalf("%d granted, %v", granted, refused)
	}
	buyer := 3
	next := func(lanes ...int) { // a buyer of the first gets it
		t.Helper()
		for i, lane := range lanes {
			if _, err := d.from(d.of(lane, buyer), "fans", "early", 1); i == 0 {
				d.must(err)
			} else if d.refused(err, holds.ErrCodeUsedUp); said(err, "access_code") != "EARLY" {
				t.Error(err)
			}
		}
		buyer++
	}
	for _, h := range got {
		if h.ID != uuid.Nil {
			_, err := d.Holds.Release(context.Background(), "shop", h.Customer, h.ID, nil)
			d.must(err)
			next(1, 2, 3, 4)
		}
	}
	d.db.Except("holds_recorded")
	d.exec(`UPDATE holds SET expires_at = clock_timestamp() WHERE hold_id =
		(SELECT hold_id FROM holds WHERE status = 'held' ORDER BY hold_id LIMIT 1)`)
	next(4, 3, 2, 1) // of another lane, and nobody has swept
	if uses := sum(d.freeOn(ledger.FreeUses("EARLY"), ledger.Uses)); uses != 0 || sum(d.freeOn("available:fans", "ga")) != 37 {
		t.Errorf("%d uses, %v tickets", uses, d.freeOn("available:fans", "ga"))
	}
}

// T20: the first two holds of a bucket that nothing ever touched, in a lane where nothing
// of it ever was.
func TestT20TheFirstTwoHoldsOfABucket(t *testing.T) {
	t.Parallel()
	d := open(t, 100)
	layout := d.split(4)
	d.allot(buckets.AllotmentSpec{Allotment: "fans", Codes: []buckets.CodeSpec{{Code: "EARLY", MaxUses: 2}}}, 40)
	for name, ask := range map[string]func(i int) error{
		"everybody's": func(i int) error { _, err := d.hold(d.of(2, i), 1); return err },
		"allotment":   func(i int) error { _, err := d.from(d.of(3, i), "fans", "EARLY", 1); return err },
	} {
		if granted, refused := pgtest.Rush(2, ask); granted != 2 {
			t.Errorf("%s: %v", name, refused)
		}
	}
	rows := func(lane int, account string) int {
		return d.count(`SELECT count(*) FROM accounts WHERE journal_id = $1 AND code = $2`, layout.Journals[lane-1], account)
	}
	for _, n := range []int{rows(2, "available"), rows(2, "held"), rows(3, "available:fans"), rows(3, "held"), rows(3, "code:EARLY")} {
		if n != 1 {
			t.Errorf("%d rows of one bucket", n)
		}
	}
	if ga := d.tier(); ga.Available != 58 || ga.Held != 4 || ga.Allotments["fans"] != 38 {
		t.Errorf("%+v", ga)
	}
}

// T31: what a hold of an allotment claimed returns there, and to everybody when the
// allotment has ended meanwhile.
func TestT31WhatAHoldOfAnAllotmentClaimedReturns(t *testing.T) {
	t.Parallel()
	release := func(d *desk, h holds.Hold) {
		_, err := d.Holds.Release(context.Background(), "shop", "release", h.ID, nil)
		d.must(err)
	}
	expire := func(d *desk, _ holds.Hold) {
		d.runOut()
		_, err := d.Holds.Sweep(context.Background())
		d.must(err)
	}
	closed := func(d *desk) {
		_, err := d.Quotas.CloseAllotment(context.Background(), "op", "close", d.event, "fans", "a test", nil)
		d.must(err)
	}
	released := func(d *desk) {
		d.db.Except("allotments_recorded")
		d.exec(`UPDATE allotments SET releases_at = clock_timestamp()`)
		d.must(d.patiently(func() error { return d.Quotas.Release(context.Background()) }))
	}
	for name, c := range map[string]struct {
		ends    func(*desk)
		returns func(*desk, holds.Hold)
		want    string
	}{
		"released":                      {func(*desk) {}, release, "90 fans 10"},
		"expired":                       {func(*desk) {}, expire, "90 fans 10"},
		"released when it was closed":   {closed, release, "100 fans 0"},
		"expired when it was closed":    {closed, expire, "100 fans 0"},
		"released when its time is up":  {released, release, "100 fans 0"},
		"expired when its time is over": {released, expire, "100 fans 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, 100)
			layout := d.split(4)
			d.allot(buckets.AllotmentSpec{Allotment: "fans", ReleasesAt: instant(time.Now().Add(time.Hour))}, 10)
			hold, err := d.from(d.of(3, 0), "fans", "", 4)
			if d.must(err); hold.Items[0].Allotment != "fans" {
				t.Errorf("%+v", hold)
			}
			if journal, _ := ledger.JournalOf(hold.ID); layout.Of(journal) != 3 {
				t.Errorf("it's in lane %d", layout.Of(journal))
			}
			c.ends(d)
			c.returns(d, hold)
			d.must(d.patiently(func() error { return d.Quotas.Release(context.Background()) })) // what came back later, in a lane that nobody asks
			if got := fmt.Sprint(sum(d.free()), " fans ", sum(d.freeOn("available:fans", "ga"))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if c.want == "100 fans 0" {
				_, err = d.from("bob", "fans", "", 1)
				d.refused(err, buckets.ErrAllotmentClosed)
			}
		})
	}
}

// T56: of the code, the allotment and the tier, the one that has no more is named.
func TestT56TheBlockingLimitIsNamed(t *testing.T) {
	t.Parallel()
	d := open(t, 20, func(s *buckets.Spec) { s.LimitPerCustomer = new(int64(8)) })
	d.split(4)
	d.allot(buckets.AllotmentSpec{Allotment: "fans", Codes: []buckets.CodeSpec{{Code: "ONE", MaxUses: 1}, {Code: "MANY", MaxUses: 50}}}, 5)
	d.allot(buckets.AllotmentSpec{Allotment: "press"}, 2)
	for name, c := range map[string]struct {
		customer, allotment, code string
		n                         ledger.Amount
		want                      *fault.Def
		fields                    string
	}{
		"customer": {"ann", "", "MANY", 9, holds.ErrLimitExceeded, "limit=8"},
		"fans":     {"ann", "", "MANY", 6, holds.ErrSoldOut, "tier=ga available=5 allotment=fans"},
		"press":    {"ann", "press", "", 3, holds.ErrSoldOut, "tier=ga available=2 allotment=press"},
		"no code":  {"ann", "fans", "", 1, holds.ErrCodeRequired, "allotment=fans"},
		"bad code": {"ann", "", "NONE", 1, holds.ErrInvalidCode, "field=code"},
		"no fan":   {"ann", "press", "MANY", 1, holds.ErrInvalidCode, "field=code"},
		"none":     {"ann", "none", "", 1, buckets.ErrAllotmentNotFound, "allotment=none"},
	} {
		_, err := d.from(c.customer, c.allotment, c.code, c.n)
		d.refused(err, c.want)
		for field := range strings.FieldsSeq(c.fields) {
			if key, want, _ := strings.Cut(field, "="); fmt.Sprint(said(err, key)) != want {
				t.Errorf("%s: %s is %v, want %s: %v", name, key, said(err, key), want, err)
			}
		}
	}
	_, err := d.from(d.of(2, 0), "", "ONE", 1)
	d.must(err)
	_, err = d.from(d.of(3, 0), "", "ONE", 1) // fans has 4
	if d.refused(err, holds.ErrCodeUsedUp); said(err, "access_code") != "ONE" || said(err, "tier") != nil {
		t.Error(err)
	}
	_, err = d.from(d.of(3, 0), "", "ONE", 5) // nor that many
	d.refused(err, holds.ErrCodeUsedUp)
	_, err = d.from(d.of(4, 0), "", "MANY", 4)
	d.must(err)
	_, err = d.from(d.of(1, 0), "", "MANY", 1)
	if d.refused(err, holds.ErrTemporarilyHeld); said(err, "allotment") != "fans" || said(err, "available") != ledger.Amount(0) {
		t.Error(err)
	}
	for i := range 2 { // 13 are everybody's
		_, err = d.hold(fmt.Sprint("eve", i), ledger.Amount(8-3*i))
		d.must(err)
	}
	_, err = d.hold("last", 1)
	if d.refused(err, holds.ErrTemporarilyHeld); said(err, "tier") != ledger.Unit("ga") || said(err, "allotment") != nil {
		t.Error(err)
	}
}

// An allotment opens before the event's sale, to those who have its code.
func TestPresale(t *testing.T) {
	t.Parallel()
	opens := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Microsecond)
	d := open(t, 40, func(s *buckets.Spec) { s.SaleOpensAt = instant(opens) })
	d.split(4)
	d.allot(buckets.AllotmentSpec{Allotment: "fans", OpensAt: instant(time.Now().Add(-time.Hour)),
		Codes: []buckets.CodeSpec{{Code: "EARLY", MaxUses: 9}}}, 10)
	d.allot(buckets.AllotmentSpec{Allotment: "press"}, 10)
	d.allot(buckets.AllotmentSpec{Allotment: "late", OpensAt: instant(opens.Add(time.Hour))}, 10)
	for i := range 4 {
		_, err := d.from(d.of(i+1, 0), "", "early", 2)
		d.must(err)
	}
	for allotment, at := range map[string]time.Time{"": opens, "press": opens, "late": opens.Add(time.Hour)} {
		_, err := d.from(d.of(2, 1), allotment, "", 1)
		if got, _ := said(d.refused(err, holds.ErrNotOnSale), "sale_opens_at").(time.Time); !got.Equal(at) {
			t.Errorf("%q opens at %v: %v", allotment, got, err)
		}
	}
	d.db.Except("events_recorded")
	d.exec(`UPDATE events SET sale_opens_at = clock_timestamp()`)
	for allotment, want := range map[string]*fault.Def{"": nil, "press": nil, "late": holds.ErrNotOnSale} {
		if _, err := d.from(d.of(3, 1), allotment, "", 1); want == nil {
			d.must(err)
		} else {
			d.refused(err, want)
		}
	}
}

// The hour that a clock change repeats: an allotment may open in the first and be released
// in the second; an offset that the zone hasn't then is refused.
func TestAnAllotmentsTimesAroundAClockChange(t *testing.T) {
	t.Parallel()
	d := open(t, 40)
	d.split(2)
	const first, second = "2035-10-28T02:30:00+02:00[Europe/Berlin]", "2035-10-28T02:30:00+01:00[Europe/Berlin]"
	allot := func(name, opens, releases string) error {
		var r quota.AllotRequest
		d.must(json.Unmarshal(fmt.Appendf(nil, `{"allotment": %q, "opens_at": %q, "releases_at": %q, "reason": "a test",
			"tiers": [{"tier": "ga", "quantity": 1}]}`, name, opens, releases), &r))
		_, _, err := d.Quotas.Allot(context.Background(), "op", name, d.event, r)
		return err
	}
	d.must(allot("night", first, second))
	for name, c := range map[string][3]string{
		"backwards": {second, first, "releases_at"},
		"no-time":   {second, second, "releases_at"},
		"summers":   {"2035-03-25T02:30:00+01:00[Europe/Berlin]", second, "opens_at"}, // it's 03:30+02:00
		"no-offset": {"2035-03-25T02:30:00[Europe/Berlin]", second, "opens_at"},
		"winters":   {first, "2035-10-28T03:30:00+02:00[Europe/Berlin]", "releases_at"},
		"nowhere":   {first, "2035-10-28T02:30:00+01:00[Europe/Nowhere]", "releases_at"},
	} {
		if err := allot(name, c[0], c[1]); said(d.refused(err, fault.ErrInvalidRequest), "field") != c[2] {
			t.Errorf("%s: %v", name, err)
		}
	}
	made, err := d.Events.Allotments(context.Background(), d.event)
	if d.must(err); len(made) != 1 || made[0].OpensAt.Format(time.RFC3339) != "2035-10-28T00:30:00Z" ||
		made[0].ReleasesAt.Sub(*made[0].OpensAt) != time.Hour {
		t.Errorf("%+v", made[0])
	}
	_, err = d.from(d.of(2, 0), "night", "", 1)
	if at, _ := said(d.refused(err, holds.ErrNotOnSale), "sale_closes_at").(time.Time); at.Format(time.RFC3339) != "2035-10-28T01:30:00Z" {
		t.Error(at, err)
	}
}
