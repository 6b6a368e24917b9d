package verify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/internal/verify"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/quota"
	"github.com/tierledger/tierledger/seats"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// sell makes a small sale: holds that stand, that were released and that expired, seats in
// all states, the orders of trade, and an event that's split.
func sell(t *testing.T, db *pgtest.DB) {
	t.Helper()
	ctx := context.Background()
	stores, provider := pgtest.Selling(t, db, time.Second, nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := stores.Events.Create(ctx, "t", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD", Tiers: []buckets.TierSpec{
		{Tier: "ga", Quantity: 50, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}})
	must(err)
	var ids []uuid.UUID
	for _, c := range []string{"ann", "bob", "cid"} {
		_, err = stores.Holds.Place(ctx, "t", c, "gig", holds.Request{Customer: c, Items: []holds.Line{{Tier: "ga", Quantity: 2}}})
		must(err)
		ids = append(ids, ledger.NewID(1, "t", c))
	}
	_, err = stores.Holds.Release(ctx, "t", "release", ids[1], nil)
	must(err)
	exec(t, db, `UPDATE holds SET expires_at = clock_timestamp() WHERE customer = 'cid'`)
	_, err = stores.Holds.Sweep(ctx)
	must(err)
	sellSeats(t, stores)
	trade(t, stores, provider)
	tour(t, stores)
}

// sellSeats adds a row of seats: A-1-1 and A-1-2 are held by sam, A-1-3 was sold to sue,
// A-1-4 is blocked, A-1-5 came back, A-1-6 was never touched.
func sellSeats(t *testing.T, stores service.Stores) {
	t.Helper()
	ctx := context.Background()
	must := func(_ ledger.Receipt, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(stores.Events.AddTier(ctx, "t", "stalls", "gig",
		buckets.TierSpec{Tier: "stalls", Seated: true, Price: buckets.Money{Amount: 7000, Currency: "USD"}}))
	row := seats.Row{Row: "1"}
	for n := range 6 {
		row.Seats = append(row.Seats, seats.Seat{Seat: fmt.Sprint(n + 1)})
	}
	must(stores.Seats.Load(ctx, "t", "chart", "gig",
		seats.Chart{Sections: []seats.Section{{Section: "A", Tier: "stalls", Rows: []seats.Row{row}}}}))
	for customer, labels := range map[string][]string{"sam": {"A-1-1", "A-1-2"}, "sue": {"A-1-3"}, "sid": {"A-1-5"}} {
		must(stores.Holds.Place(ctx, "t", customer, "gig", holds.Request{Customer: customer, Items: []holds.Line{{Seats: labels}}}))
	}
	must(stores.Holds.Release(ctx, "t", "release seats", ledger.NewID(1, "t", "sid"), nil))
	must(stores.Seats.Block(ctx, "t", "block", "gig", seats.BlockRequest{Seats: []string{"A-1-4"}, Reason: "camera"}, false))
	if _, err := stores.Orders.Checkout(ctx, "t", "pay sue", ledger.NewID(1, "t", "sue"), orders.CheckoutRequest{PaymentMethod: "sim_ok"}); err != nil {
		t.Fatal(err)
	}
	stores.Orders.Idle()
	order, err := stores.Orders.Get(ctx, orders.OrderID(1, ledger.NewID(1, "t", "sue")))
	if err != nil {
		t.Fatal(err)
	}
	captured(t, stores, order)
}

func exec(t *testing.T, db *pgtest.DB, sql string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

func TestASoundLedgerPasses(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	sell(t, db)
	reported := 0
	for _, event := range []string{"", "gig", "tour"} {
		summary, err := verify.Run(context.Background(), db.URL(), verify.Options{Event: event, Report: func(verify.Result) { reported++ }})
		if err != nil || !summary.OK || len(summary.Checks) == 0 {
			t.Errorf("%+v %v", summary, err)
		}
	}
	if reported == 0 {
		t.Error("nobody heard of it")
	}
	_, err := verify.Run(context.Background(), db.URL(), verify.Options{Event: "nope"})
	if !errors.Is(err, buckets.ErrEventNotFound) {
		t.Errorf("an event that isn't there: %v", err)
	}
}

// Every check finds what it's for: each row is one act of sabotage, and the check
// that must name it (others may, too).
func TestEveryCheckFindsItsSabotage(t *testing.T) {
	t.Parallel()
	acts := map[string]string{
		"entries_balanced":  `UPDATE postings SET amount = amount - 1 WHERE account = 'held:ann'`,
		"balances_chained":  `UPDATE postings SET balance = balance + 1 WHERE account = 'available' AND seq = 2`,
		"balances_posted":   `UPDATE accounts SET balance = balance + 1 WHERE code = 'held:ann'`,
		"control_accounts":  `UPDATE accounts SET balance = balance + 1 WHERE code = 'held'`,
		"sequence_gapless":  `DELETE FROM entries WHERE seq = 3 AND journal_id = 1`,
		"time_forward":      `UPDATE entries SET at = at + interval '1 hour' WHERE seq = 2 AND journal_id = 1`,
		"ids_once":          `UPDATE entries SET id = gen_random_uuid() WHERE seq = 1 AND journal_id = 1`,
		"postings_owned":    `DELETE FROM entries WHERE seq = 4 AND journal_id = 1`,
		"tickets_conserved": `UPDATE accounts SET balance = balance - 1 WHERE code = 'capacity'`,
		"tickets_have_tier": `INSERT INTO tiers VALUES (1, 'ghost', 9, 'Ghost', 1, NULL, 1)`,
		"prices_in_force":   `UPDATE tiers SET price_version = 2`,
		"events_listed":     `UPDATE event_journals SET event = 'other' WHERE lane = 2`,
		"events_recorded":   `UPDATE events SET sale_opens_at = now() - interval '1 day'`,
		"tiers_recorded":    `UPDATE tiers SET limit_per_customer = 10000000`,
		"held_by_holds":     `UPDATE holds SET items = '[{"tier":"ga","quantity":3,"price_version":1}]' WHERE customer = 'ann'`,
		"holds_placed":      `DELETE FROM holds WHERE customer = 'ann'`,
		"holds_recorded":    `UPDATE holds SET expires_at = expires_at + interval '10 years' WHERE customer = 'ann'`,
		"holds_ended_once":  `UPDATE holds SET status = 'held' WHERE customer = 'bob'`,
		"expired_when_due":  `UPDATE holds SET expires_at = now() + interval '1 day' WHERE customer = 'cid'`,
		"hold_prices":       `UPDATE holds SET total = total - 1 WHERE customer = 'ann'`,
		"cases_recorded":    `UPDATE cases SET owner = 'somebody'`,
		"suspense_by_cases": `UPDATE cases SET suspended = 1`,

		"orders_recorded":               `UPDATE orders SET payment_status = 'voided' WHERE customer = 'dan'`,
		"operations_recorded":           `UPDATE operations SET reference = 'x' WHERE kind = 'capture'`,
		"sold_by_orders":                `UPDATE orders SET items = '[{"tier":"ga","quantity":3}]' WHERE customer = 'dan'`,
		"orders_of_holds":               `UPDATE orders SET customer = 'zoe' WHERE customer = 'eve'`,
		"capture_pending_by_orders":     `UPDATE orders SET status = 'cancelled' WHERE customer = 'eve'`,
		"authorizations_open":           `UPDATE operations SET authorized = 0 WHERE authorized > 0`,
		"refunds_pending_by_operations": `UPDATE operations SET status = 'declined' WHERE kind = 'refund' AND status <> 'succeeded'`,
		"refunded_by_operations":        `UPDATE operations SET face = 0 WHERE kind = 'refund'`,
		"paid_once":                     `UPDATE operations SET status = 'declined' WHERE kind = 'capture' AND status = 'succeeded'`,
		"checkouts_counted":             `UPDATE checkouts SET pending = 7`,
		"webhooks_recorded":             `UPDATE webhooks SET version = 1`,

		"relays_behind_journals": `INSERT INTO relays (journal_id, seq) VALUES (1, 1000000)`,
		"inbox_behind_journals":  `INSERT INTO inbox (consumer, journal_id, seq) VALUES ('tickets', 1, 1000000)`,

		"seats_charted":         `UPDATE seats SET place = 9 WHERE seat = 'A-1-6'`,
		"seats_balanced":        `UPDATE seats SET state = 'blocked' WHERE seat = 'A-1-6'`,
		"seats_summarized":      `UPDATE seat_rows SET states = 'hhsbba'`,
		"seats_recorded":        `UPDATE seats SET hold_id = NULL WHERE seat = 'A-1-5'`,
		"seats_changed_legally": `UPDATE seat_changes SET hold_id = gen_random_uuid() WHERE state = 'sold'`,
		"seats_posted":          `UPDATE seat_changes SET seats = seats || '{A-1-6}' WHERE state = 'blocked'`,
		"seats_loaded":          `UPDATE seat_sections SET rows = replace(rows::text, '"x":0', '"x":1')::json`,
		"seats_set_aside":       `UPDATE seats SET allotment = 'friends' WHERE state = 'blocked'`,
		"seats_entered":         `INSERT INTO seat_changes VALUES (1, 99, 0, 'blocked', NULL, '{A-1-6}')`,
		"seats_of_holds":        `UPDATE seats SET until = until + interval '1 hour' WHERE seat = 'A-1-2'`,
		"seats_counted":         `UPDATE holds SET items = replace(items::text, '["A-1-1","A-1-2"]', '["A-1-1"]')::json WHERE customer = 'sam'`,
		"seats_of_orders":       `UPDATE seats SET hold_id = gen_random_uuid() WHERE seat = 'A-1-3'`,

		"lanes_recorded": `UPDATE lanes SET counts = '{2,1}' WHERE lane = 2`,
		"customers_in_one_lane": `INSERT INTO accounts (journal_id, code, unit, type, control, balance, version)
			SELECT 5 - journal_id, code, unit, type, control, balance, version FROM accounts WHERE code LIKE 'held:ida%'`,
		"allotments_recorded": `UPDATE allotments SET code_required = false`,
		"codes_counted":       `UPDATE accounts SET balance = balance + 1 WHERE code = 'code:EARLY' AND journal_id = 2`,
		"codes_redeemed":      `UPDATE holds SET code = NULL WHERE customer LIKE 'joe%'`,
		"moves_recorded":      `UPDATE quota_moves SET principal = 'nobody'`,
		"moves_posted":        `UPDATE postings SET account = 'blocked' WHERE account = 'transit'`,
		"moves_arrived":       `UPDATE quota_arrivals SET account = 'available:fans' WHERE account = 'available'`,
		"transit_moved":       `UPDATE accounts SET balance = balance + 1 WHERE code = 'transit' AND journal_id = 3`,
		"lanes_conserved":     `UPDATE accounts SET balance = balance + 1 WHERE code = 'available' AND journal_id = 3`,

		"hash_chain": `UPDATE entries SET principal = 'somebody else' WHERE seq = 2 AND journal_id = 1`,
	}
	var known []string
	for _, c := range slices.Concat(ledger.Checks(), buckets.Checks(), seats.Checks(), quota.Checks(), holds.Checks(),
		cases.Checks(), orders.Checks()) { // those of recon and of what follows it have sabotage of their own there
		known = append(known, c.Name)
	}
	known = append(known, "relays_behind_journals", "inbox_behind_journals")
	for _, name := range append(known, "hash_chain") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			act, ok := acts[name]
			if !ok {
				t.Fatal("no act of sabotage shows that this check works")
			}
			wantFound(t, sell, act, name)
		})
	}
}

// None of these touches an entry, so the hash chain holds; a row says what its
// entry doesn't.
func TestRowsThatNoEntryRecordsAreFound(t *testing.T) {
	t.Parallel()
	for act, check := range map[string]string{
		`UPDATE holds SET customer = 'mallory' WHERE customer = 'bob'`: "holds_recorded",
		`UPDATE holds SET items = '[{"tier":"ga","quantity":1,"price_version":1}]', total = 5000
		 WHERE customer = 'bob'`: "holds_recorded",
		`UPDATE holds SET version = 99 WHERE customer = 'ann'`: "holds_recorded",
		`UPDATE postings SET leg = leg + 5 WHERE seq = 2`:      "postings_owned",
		`INSERT INTO prices VALUES (1, 'ga', 2, 1, 0, 0);
		 UPDATE tiers SET price_version = 2`: "tiers_recorded",
		`UPDATE prices SET fee = 1`:                     "tiers_recorded",
		`UPDATE events SET currency = 'JPY'`:            "events_recorded",
		`UPDATE events SET version = 2`:                 "events_recorded",
		`INSERT INTO event_journals VALUES (0, 'x', 9)`: "events_listed",
		`DELETE FROM event_journals`:                    "events_listed",
		`INSERT INTO journals VALUES (77)`:              "events_listed",
		`UPDATE tiers SET seated = NOT seated`:          "tiers_recorded",
	} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			wantFound(t, sell, act, check)
		})
	}
}

// Tiers are recorded by three kinds of entry, and an event that was created and
// not opened yet has no row: none of that is a violation.
func TestWhatIsRecordedPasses(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t) // verifies at the end
	ctx := context.Background()
	sell(t, db)
	events := pgtest.Stores(t, db, nil).Events
	price := buckets.Money{Amount: 7000, Currency: "USD"}
	rate := &buckets.Rate{Decimal: decimal.RequireFromString("0.070")}
	if _, err := events.AddTier(ctx, "t", "add", "gig", buckets.TierSpec{Tier: "vip", Name: `"V" & <P>`, Quantity: 5, Price: price}); err != nil {
		t.Fatal(err)
	}
	for i, change := range []buckets.TierChange{{Price: &price, TaxRate: rate}, {LimitPerCustomer: new(int64(4))}, {Quantity: new(ledger.Amount(60))}} {
		if _, err := events.ChangeTier(ctx, "t", fmt.Sprint("change", i), "gig", "ga", change, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := events.Create(ctx, "t", "next", buckets.Spec{Event: "next", Name: "Next", Currency: "USD", Tiers: []buckets.TierSpec{
		{Tier: "ga", Quantity: 1, Price: price}}}); err != nil {
		t.Fatal(err)
	}
	// As if the process had died before it opened the second event.
	for _, table := range []string{"events", "tiers", "prices", "accounts", "postings", "entries", "journals"} {
		exec(t, db, `DELETE FROM `+table+` WHERE journal_id = 4`)
	}
}

// wantFound verifies a sale after an act of sabotage: the check must name it.
func wantFound(t *testing.T, sell func(*testing.T, *pgtest.DB), act, check string) {
	t.Helper()
	db := pgtest.New(t)
	db.Tampered()
	sell(t, db)
	exec(t, db, act)
	summary, err := verify.Run(context.Background(), db.URL(), verify.Options{})
	if err != nil || summary.OK {
		t.Fatalf("ok is %v, %v", summary.OK, err)
	}
	i := slices.IndexFunc(summary.Checks, func(r verify.Result) bool { return r.Check == check })
	switch {
	case i < 0:
		t.Error("the check wasn't run")
	case summary.Checks[i].Count == 0 || len(summary.Checks[i].Violations) == 0:
		t.Errorf("it found nothing; the summary is %+v", summary)
	}
}

// A head that was moved along with its entries is still found: nothing chains to it.
func TestTheHeadBelongsToTheChain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Tampered()
	sell(t, db)
	exec(t, db, `UPDATE journals SET hash = sha256('x') WHERE journal_id = 1`)
	summary, err := verify.Run(context.Background(), db.URL(), verify.Options{})
	if err != nil || summary.OK || summary.Checks[len(summary.Checks)-1].Count != 1 {
		t.Errorf("%+v %v", summary, err)
	}
}
