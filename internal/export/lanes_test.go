package export_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/export"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// lanes makes an event that's split into three lanes, among which tickets have moved, with
// an allotment and its codes, and holds and money in each.
func lanes(t *testing.T) *pgtest.DB {
	t.Helper()
	ctx := context.Background()
	db := pgtest.New(t)
	s := pgtest.Stores(t, db, nil)
	must := func(_ ledger.Receipt, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Events.Create(ctx, "t", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD", HoldSeconds: 3600,
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 100, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}}))
	hold := func(r holds.Request) {
		t.Helper()
		must(s.Holds.Place(ctx, "t", r.Customer+r.Code, "gig", r))
	}
	hold(holds.Request{Customer: "c0", Items: []holds.Line{{Tier: "ga", Quantity: 1}}})
	must(s.Quotas.Split(ctx, "t", "split", "gig", 3, "a rush", nil, false))
	_, moves, err := s.Quotas.Allot(ctx, "t", "allot", "gig", quota.AllotRequest{Reason: "fans", AllotmentSpec: buckets.AllotmentSpec{
		Allotment: "fans", Codes: []buckets.CodeSpec{{Code: "EARLY", MaxUses: 20}}}, Tiers: []quota.TierQuantity{{Tier: "ga", Quantity: 20}}})
	if err != nil || len(moves) == 0 {
		t.Fatal(moves, err)
	}
	for n := range 30 {
		r := holds.Request{Customer: fmt.Sprint("c", n), Items: []holds.Line{{Tier: "ga", Quantity: 2}}}
		if n%3 == 0 {
			r.Code, r.Items[0].Quantity = "EARLY", 1
		}
		hold(r)
	}
	journals, err := s.Events.Lanes(ctx, "gig")
	if err != nil || len(journals) != 3 {
		t.Fatal(journals, err)
	}
	for i, j := range journals {
		post := &ledger.Post{Description: "d", Units: buckets.Unpostable, Legs: []ledger.Leg{
			{Account: "bank:b", Unit: "USD", Amount: ledger.Amount(i + 1)}, {Account: "equity", Unit: "USD", Amount: -ledger.Amount(i + 1)}}}
		c, err := ledger.NewCommand(j, "t", "post", ledger.KindPosted, post.Legs, post)
		if err != nil {
			t.Fatal(err)
		}
		must(s.Ledger.Do(ctx, j, c))
	}
	return db
}

func exported(t *testing.T, db *pgtest.DB, format string) string {
	t.Helper()
	var out bytes.Buffer
	if err := export.Write(context.Background(), &out, db.URL(), "gig", format); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// rows reads what the database has under two names.
func rows(t *testing.T, db *pgtest.DB, sql string) map[string]int64 {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	list, err := conn.Query(ctx, sql)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]int64)
	var name, unit string
	var n int64
	if _, err := pgx.ForEachRow(list, []any{&name, &unit, &n}, func() error { found[name+" "+unit] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

// balances gives what hledger adds the books up to, but for zeros, in minor units.
func balances(t *testing.T, text string, args ...string) map[string]int64 {
	t.Helper()
	out, err := hledger(t, text, append([]string{"bal", "--flat", "-N", "--layout=bare", "-O", "csv"}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	records, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]int64)
	for _, r := range records[1:] {
		n, err := strconv.ParseInt(strings.Replace(r[2], ".", "", 1), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if n != 0 {
			found[r[0]+" "+r[1]] = n
		}
	}
	return found
}

// Hledger accepts the books of all lanes, comes to the lanes' balances and, one level up,
// to the event's; and no posting of any lane can be changed.
func TestHledgerAcceptsTheBooksOfAllLanes(t *testing.T) {
	t.Parallel()
	db := lanes(t)
	text := exported(t, db, "hledger")
	if out, err := hledger(t, text, "check", "-s"); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, text)
	}
	const leaves = ` FROM accounts a JOIN event_journals d ON d.event_journal_id = a.journal_id
WHERE balance <> 0 AND code NOT IN ('held', 'sold')`
	want := rows(t, db, `SELECT format('%s:lane/%s', code, lane), unit, balance`+leaves)
	for _, account := range []string{"transit:lane/1 ga", "transit:lane/3 ga", "available:fans:lane/1 ga", "capacity:lane/1 ga", "bank:b:lane/3 USD"} {
		if want[account] == 0 {
			t.Errorf("there's nothing on %s to show anything with", account)
		}
	}
	if got := balances(t, text); !maps.Equal(got, want) {
		t.Errorf("the books have\n%v, want\n%v", got, want)
	}
	want = rows(t, db, `SELECT split_part(code, ':', 1), unit, sum(balance)::bigint`+leaves+` GROUP BY 1, 2 HAVING sum(balance) <> 0`)
	got := balances(t, text, "--depth", "1")
	if !maps.Equal(got, want) || got["held ga"] != 1+20*2+10 || got["redeemed _uses"] != 10 || got["transit ga"] != 0 {
		t.Errorf("the event has\n%v, want\n%v", got, want)
	}

	lines := strings.Split(text, "\n")
	posting := regexp.MustCompile(`^(    \S+:lane/(\d)  )(-?[0-9.]+)( .*)$`)
	changed := make(map[string]int)
	for i, line := range lines {
		m := posting.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if changed[m[2]]++; changed[m[2]]%8 != 1 { // hledger takes a while
			continue
		}
		tampered := append([]string{}, lines...)
		tampered[i] = m[1] + plusOne(t, m[3]) + m[4]
		if out, err := hledger(t, strings.Join(tampered, "\n"), "check", "-s"); err == nil {
			t.Errorf("accepted with line %d as %q: %s", i+1, tampered[i], out)
		}
	}
	if len(changed) != 3 {
		t.Errorf("postings by lane: %v", changed)
	}
}

// What has left a lane and not come to the other is on transit.
func TestTicketsUnderWayAreInTheBooks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := pgtest.New(t)
	s := pgtest.Stores(t, db, nil)
	if _, err := s.Events.Create(ctx, "t", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD",
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 100, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Quotas.Split(ctx, "t", "split", "gig", 3, "a rush", nil, false); err != nil {
		t.Fatal(err)
	}
	before := balances(t, exported(t, db, "hledger"))
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	locked, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locked.Exec(ctx, `SELECT FROM journals j JOIN event_journals d ON d.event_journal_id = j.journal_id WHERE lane = 3 FOR UPDATE OF j`); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error)
	go func() {
		_, err := s.Quotas.Move(ctx, "t", "move", "gig", quota.Request{Tier: "ga", From: quota.Bucket{Lane: 1}, To: quota.Bucket{Lane: 3},
			Quantity: new(ledger.Amount(5)), Reason: "for a test"}, nil, false)
		moved <- err
	}()
	sent := `SELECT 'sent', '', count(*) FROM quota_moves WHERE cause = 'operator'`
	pgtest.Until(t, "the tickets leave", func() bool { return rows(t, db, sent)["sent "] == 1 })
	text := exported(t, db, "hledger")
	if out, err := hledger(t, text, "check", "-s"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	now, all := balances(t, text), balances(t, text, "--depth", "1")
	if gone := before["available:lane/1 ga"] - now["available:lane/1 ga"]; gone != 5 || all["transit ga"] != 5 || all["available ga"] != 95 ||
		now["available:lane/3 ga"] != before["available:lane/3 ga"] {
		t.Errorf("before\n%v, now\n%v, together\n%v", before, now, all)
	}
	if err := locked.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	for range 2 { // had it waited for too long, a sweeper would bring them
		if err := s.Quotas.Resume(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if all := balances(t, exported(t, db, "hledger"), "--depth", "1"); all["transit ga"] != 0 || all["available ga"] != 100 {
		t.Errorf("in the end %v", all)
	}
}

// Every lane's chain can be recomputed, and is there in full.
func TestTheChainsOfAllLanesCanBeRecomputed(t *testing.T) {
	t.Parallel()
	db := lanes(t)
	got := make(map[string]int64)
	for of, n := range recompute(t, exported(t, db, "ndjson")) {
		got[fmt.Sprintf("%d %d", of[0], of[1])] = int64(n)
	}
	want := rows(t, db, `SELECT event_journal_id::text, lane::text, seq FROM event_journals d JOIN journals j ON j.journal_id = d.event_journal_id`)
	if !maps.Equal(got, want) || len(got) != 3 {
		t.Errorf("exported %v, want %v", got, want)
	}
}
