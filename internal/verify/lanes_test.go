package verify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/verify"
	"github.com/tierledger/tierledger/ledger"
)

// sellInLanes makes an event that's split into three lanes, journals 1, 3 and 4, with holds
// in each; and another, journal 2.
func sellInLanes(t *testing.T, db *pgtest.DB) {
	t.Helper()
	ctx := context.Background()
	s := pgtest.Stores(t, db, nil)
	must := func(_ ledger.Receipt, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, event := range []string{"gig", "gala"} {
		must(s.Events.Create(ctx, "t", event, buckets.Spec{Event: event, Name: event, Currency: "USD", HoldSeconds: 3600,
			Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 100, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}}))
	}
	must(s.Quotas.Split(ctx, "t", "split", "gig", 3, "a rush", nil, false))
	for n := range 30 {
		customer := fmt.Sprint("c", n)
		must(s.Holds.Place(ctx, "t", customer, "gig", holds.Request{Customer: customer, Items: []holds.Line{{Tier: "ga", Quantity: 2}}}))
	}
	must(s.Holds.Place(ctx, "t", "ann", "gala", holds.Request{Customer: "ann", Items: []holds.Line{{Tier: "ga", Quantity: 2}}}))
}

// An event is verified in all its lanes, and another event's lanes aren't its business.
func TestAnEventIsVerifiedInAllLanes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, act, check, says string }{
		{"sound", ``, "", ""},
		{"the home", `UPDATE postings SET amount = amount + 1 WHERE journal_id = 1 AND seq = 1 AND account = 'available'`,
			"entries_balanced", "journal 1 entry 1"},
		{"another lane", `UPDATE postings SET amount = amount + 1
			WHERE journal_id = 3 AND seq = (SELECT min(seq) FROM postings WHERE journal_id = 3) AND account = 'available'`,
			"entries_balanced", "journal 3 entry"},
		{"a chain", `UPDATE entries SET principal = 'mallory' WHERE journal_id = 4 AND seq = 1`, "hash_chain", "journal 4"},
		{"a hold", `DELETE FROM holds WHERE hold_id = (SELECT max(hold_id::text)::uuid FROM holds WHERE journal_id = 4)`,
			"holds_placed", "journal 4 hold"},
		{"the event as a whole", `UPDATE accounts SET balance = balance + 1 WHERE journal_id = 3 AND code = 'available'`,
			"lanes_conserved", "event gig tier ga: 101 tickets"},
		{"a customer's lanes", `INSERT INTO accounts (journal_id, code, unit, type, control, balance, version)
			SELECT j, 'held:c1', 'ga', 'inventory', 'held', 1, 1 FROM unnest(ARRAY[1, 3, 4]) AS j ON CONFLICT DO NOTHING`,
			"customers_in_one_lane", "event gig customer c1"},
		{"another event", `UPDATE accounts SET balance = balance + 1 WHERE journal_id = 2 AND code = 'available'`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			sellInLanes(t, db)
			if c.act != "" {
				db.Tampered()
				exec(t, db, c.act)
			}
			summary, err := verify.Run(t.Context(), db.URL(), verify.Options{Event: "gig"})
			if err != nil || summary.Journal != 1 || !slices.Equal(summary.Journals, []ledger.JournalID{1, 3, 4}) {
				t.Fatalf("%+v %v", summary, err)
			}
			whole, err := verify.Run(t.Context(), db.URL(), verify.Options{})
			if err != nil || whole.Journals != nil || len(whole.Checks) != len(summary.Checks) {
				t.Fatalf("%+v %v", whole, err)
			}
			if summary.OK != (c.check == "") {
				t.Errorf("%+v", summary)
			}
			for i, r := range summary.Checks {
				if all := whole.Checks[i]; c.name != "another event" && (r.Check != all.Check || r.Count != all.Count) {
					t.Errorf("%s: %d of the event, %d of all: %q %q", r.Check, r.Count, all.Count, r.Violations, all.Violations)
				}
				if r.Check == c.check && (r.Count != 1 || !strings.HasPrefix(r.Violations[0], c.says)) {
					t.Errorf("%s: %d %q, want one of %q", r.Check, r.Count, r.Violations, c.says)
				}
			}
		})
	}
}
