package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// Watching outlives a service that's away, and ends with Ctrl-C, which is no failure.
func TestQuotaWatch(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	var calls atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := calls.Add(1)
		switch n {
		case 2:
			w.WriteHeader(http.StatusBadGateway)
			return
		case 4:
			interrupt()
			<-r.Context().Done()
		}
		fmt.Fprintf(w, `{"event":"hall","look":%d}`, n)
	}))
	defer service.Close()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"quota", "show", "hall", "--json", "--watch", "--every", "1ms", "--url", service.URL}, &out, &errs)
	if code != exitOK || out.String() != `{"event":"hall","look":1}`+"\n"+`{"event":"hall","look":3}`+"\n" || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	if code, _, stderr := runHere(t, "quota", "show", "hall", "--watch", "--url", gone.URL); code != exitFailed || !strings.Contains(stderr, "404") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// The longest names and the largest numbers fit in a window.
func TestQuotaTables(t *testing.T) {
	t.Parallel()
	long := func(c string) string { return strings.Repeat(c, 64) }
	tier, at := ledger.Unit(long("t")), time.Date(2027, 3, 28, 1, 0, 0, 5000, time.UTC)
	v := quota.View{
		Event: long("e"), AsOf: at,
		Lanes: buckets.LanesView{Lanes: 64, Generation: 1 << 40, Counts: []int{2, 64}, Version: 1 << 50, Journals: make([]ledger.JournalID, 65)},
		Tiers: []buckets.TierAvailability{{Tier: tier, Capacity: 10_000_000, Blocked: 1, Void: 2, InTransit: 3}},
		Allotments: []*buckets.Allotment{
			{Allotment: long("a"), OpensAt: &at, ReleasesAt: &at, CodeRequired: true, Version: 1 << 35},
			{Allotment: "b", ClosedAt: &at}, {Allotment: "c", OpensAt: new(at.Add(1))}, {Allotment: "d", OpensAt: &at},
		},
	}
	for lane := 1; lane < 65; lane++ {
		v.ByLane = append(v.ByLane, quota.LaneView{Tier: tier, Lane: lane, Held: 9_999_999, Sold: 9_999_999, InTransit: -9_999_999})
		v.Buckets = append(v.Buckets, quota.BucketView{Tier: tier, Lane: lane, Free: 9_999_999, Version: 1 << 35},
			quota.BucketView{Tier: tier, Lane: lane, Allotment: long("a"), Free: 1_000_000, Version: 1 << 35})
	}
	text := string(quotaTables(v))
	fits(t, text)
	for _, says := range []string{
		": capacity 10,000,000, blocked\n  1, void 2, in transit 3\n",
		"64       yes    9,999,999    1,000,000    9,999,999    9,999,999   -9,999,999 34359738368\n",
		"65        no            0            0            0            0            0\n",
		"all           639,999,936   64,000,000  639,999,936  639,999,936 -639,999,936\n",
		long("a") + "\n                              released  2027-03-28T01:00:00Z 2027-03-28T01:00:00Z yes",
		"b                             closed    with the sale        never                no",
		"c                             not open", "d                             live",
	} {
		if !strings.Contains(text, says) {
			t.Errorf("the tables don't say %q: %s", says, text)
		}
	}
	fits(t, movesList(movesPage{Data: []quota.Move{{
		ID: uuid.Max, Tier: tier, From: quota.Bucket{Lane: 64, Allotment: long("a")}, To: quota.Bucket{Lane: 63, Allotment: long("b")},
		Quantity: 10_000_000, UpTo: true, Status: quota.Awaiting, Cause: quota.ByOperator, Reason: strings.Repeat("ü", 250), AskedBy: long("p"), AskedAt: at,
	}, {ID: uuid.Max, Tier: tier, Status: quota.Moved, Cause: quota.Rebalance, DecidedBy: long("p")}}}, ""))
}

// A bucket's name reads back as the bucket.
func TestBucketNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2": "lane 2", "lane 2": "lane 2", "lane2": "lane 2", "2/fans": "lane 2/fans", "lane 2/fans": "lane 2/fans", "/2": "any lane/2",
		"any": "any lane", "any lane": "any lane", "any/fans": "any lane/fans", "any lane/fans": "any lane/fans",
	} {
		b, err := parseBucket("from", text)
		if name := bucketName(b, false); err != nil || name != want {
			t.Errorf("%q reads as %q, want %q (%v)", text, name, want, err)
		}
	}
}

// Lines break between words where they can, and elsewhere where they must.
func TestWrap(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	for text, want := range map[string]string{
		"":                  "\n",
		x(100):              x(100) + "\n",
		x(50) + " " + x(49): x(50) + " " + x(49) + "\n",
		x(50) + " " + x(50): x(50) + "\n  " + x(50) + "\n",
		x(101):              x(100) + "\n  x\n",
		"a " + x(300):       "a " + x(98) + "\n  " + x(98) + "\n  " + x(98) + "\n  " + x(6) + "\n",
		"  b " + x(98):      "  b\n  " + x(98) + "\n",
	} {
		if got := wrap(text, "  "); got != want {
			t.Errorf("%q wraps to %q, want %q", text, got, want)
		}
	}
}
