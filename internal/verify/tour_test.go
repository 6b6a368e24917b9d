package verify_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// tour sells an event that's split: journal 2 is its home, journal 3 its second lane. It has
// an allotment with an access code that ida used in the first lane and joe in the second,
// moves of an operator within and between lanes, and one that awaits approval.
func tour(t *testing.T, stores service.Stores) {
	t.Helper()
	ctx := context.Background()
	must := func(_ ledger.Receipt, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(stores.Events.Create(ctx, "t", "tour", buckets.Spec{Event: "tour", Name: "Tour", Currency: "USD",
		ApproveMovesFrom: new(int64(30)), Tiers: []buckets.TierSpec{
			{Tier: "ga", Quantity: 100, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}}))
	must(stores.Quotas.Split(ctx, "t", "split", "tour", 2, "a test", nil, false))
	made, _, err := stores.Quotas.Allot(ctx, "t", "allot", "tour", quota.AllotRequest{
		AllotmentSpec: buckets.AllotmentSpec{Allotment: "fans", Codes: []buckets.CodeSpec{{Code: "EARLY", MaxUses: 3}}},
		Tiers:         []quota.TierQuantity{{Tier: "ga", Quantity: 10}}, Reason: "a test",
	})
	must(made, err)
	for i, n := range []ledger.Amount{5, 30} {
		must(stores.Quotas.Move(ctx, "t", fmt.Sprint("move ", i), "tour", quota.Request{Tier: "ga",
			From: quota.Bucket{Lane: 1}, To: quota.Bucket{Lane: 2}, Quantity: &n, Reason: "a test"}, nil, false))
	}
	layout, err := stores.Events.Look(ctx, "tour")
	must(ledger.Receipt{}, err)
	for name, lane := range map[string]int{"ida": 1, "joe": 2} {
		for i := 0; ; i++ {
			if customer := fmt.Sprint(name, i); layout.LaneOf(customer) == lane {
				must(stores.Holds.Place(ctx, "t", name, "tour", holds.Request{Customer: customer, Code: "EARLY",
					Items: []holds.Line{{Tier: "ga", Quantity: 2}}}))
				break
			}
		}
	}
}

// sellTour makes the sale of an event that's split, and nothing else: journal 1 is an
// event without buyers.
func sellTour(t *testing.T, db *pgtest.DB) {
	t.Helper()
	stores := pgtest.Stores(t, db, nil)
	_, err := stores.Events.Create(context.Background(), "t", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD",
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 50, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}})
	if err != nil {
		t.Fatal(err)
	}
	tour(t, stores)
}

// What an event's lanes say of each other, and moves of themselves, is what entries say.
func TestSabotageOfASplitEventIsFound(t *testing.T) {
	t.Parallel()
	for act, check := range map[string]string{
		`UPDATE event_journals SET lane = 3 WHERE lane = 2`:           "events_listed",
		`DELETE FROM event_journals WHERE lane = 2`:                   "events_listed",
		`DELETE FROM lanes WHERE lane = 1`:                            "lanes_recorded",
		`UPDATE lanes SET generation = generation + 1`:                "lanes_recorded",
		`UPDATE lanes SET generation = 0 WHERE lane = 1`:              "lanes_recorded",
		`UPDATE allotments SET closed_at = now()`:                     "allotments_recorded",
		`UPDATE access_codes SET max_uses = 4`:                        "allotments_recorded",
		`DELETE FROM access_codes`:                                    "allotments_recorded",
		`UPDATE access_codes SET max_uses = 2`:                        "codes_counted",
		`UPDATE accounts SET balance = 3 WHERE code LIKE 'redeemed%'`: "codes_redeemed",
		`DELETE FROM quota_moves WHERE cause = 'operator'`:            "moves_posted",
		`UPDATE quota_moves SET status = 'moved', moved_at = asked_at
		 WHERE status = 'awaiting_approval'`: "moves_recorded",
		`UPDATE quota_moves SET quantity = 29 WHERE status = 'awaiting_approval'`:                 "moves_recorded",
		`UPDATE quota_moves SET account = 'available:fans' WHERE status = 'awaiting_approval'`:    "moves_recorded",
		`UPDATE quota_moves SET to_account = 'available:fans' WHERE status = 'awaiting_approval'`: "moves_recorded",
		`UPDATE quota_moves SET to_journal = 1 WHERE status = 'awaiting_approval'`:                "moves_recorded",
		`UPDATE quota_moves SET to_account = 'blocked' WHERE to_account = 'available:fans'`:       "moves_posted",
		`UPDATE quota_arrivals SET quantity = quantity + 1`:                                       "moves_arrived",
		`DELETE FROM quota_arrivals`: "transit_moved",
		`INSERT INTO quota_arrivals SELECT 2, gen_random_uuid(), 3, unit, account, quantity, at, version
		 FROM quota_arrivals LIMIT 1`: "moves_arrived",
		`UPDATE accounts SET balance = -7 WHERE code = 'transit' AND journal_id = 2`: "lanes_conserved",
		`INSERT INTO accounts (journal_id, code, unit, type, balance, version)
		 VALUES (3, 'capacity', 'ga', 'inventory', 0, 1)`: "lanes_conserved",
	} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			wantFound(t, sellTour, act, check)
		})
	}
}
