package holds_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
)

// pages lists the holds of a filter, two at a time if it doesn't say.
func (b *box) pages(t *testing.T, f holds.Filter) (ids []uuid.UUID) {
	t.Helper()
	f.Limit = cmp.Or(f.Limit, 2)
	for {
		list, err := b.List(context.Background(), "gig", f)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range list {
			if f.Status != "" && h.Status != f.Status {
				t.Errorf("a hold that is %s among those that are %s", h.Status, f.Status)
			}
			ids = append(ids, h.ID)
		}
		if len(list) < f.Limit {
			return ids
		}
		f.After = list[len(list)-1].ID
	}
}

func TestListsOfHoldsByStatus(t *testing.T) {
	t.Parallel()
	b := open(t, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 20)}})
	place := func(n int) (ids []uuid.UUID) {
		for range n {
			id, err := b.take("alice", holds.Line{Tier: "ga", Quantity: 1})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		return ids
	}
	due, released := place(3), place(2)
	for _, id := range released {
		if _, err := b.Release(context.Background(), "tester", id.String(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	open := place(5)
	// They run out, and nobody writes it.
	b.db.Except("holds_recorded") // their entries have the deadlines that they were given
	if _, err := b.owner.Exec(context.Background(),
		`UPDATE holds SET expires_at = created_at + interval '1 microsecond' WHERE hold_id = ANY ($1)`, due); err != nil {
		t.Fatal(err)
	}
	for status, want := range map[holds.Status][]uuid.UUID{
		holds.Held: open, holds.Released: released, holds.Expired: due, "": slices.Concat(due, released, open),
	} {
		slices.SortFunc(want, func(x, y uuid.UUID) int { return strings.Compare(x.String(), y.String()) })
		for _, customer := range []string{"", "alice"} {
			if got := b.pages(t, holds.Filter{Status: status, Customer: customer}); !slices.Equal(got, want) {
				t.Errorf("%q of %q: %v, want %v", status, customer, got, want)
			}
		}
		if got := b.pages(t, holds.Filter{Status: status, Customer: "bob"}); len(got) > 0 {
			t.Errorf("%q of bob: %v", status, got)
		}
	}
}

// The open holds of a journal are found without a look at those that have ended.
func TestOpenHoldsAreFoundThroughTheirIndex(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	b := openOn(t, db, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 20)}})
	db.Tampered()
	ctx := context.Background()
	for _, sql := range []string{
		`INSERT INTO holds (journal_id, hold_id, customer, status, created_at, expires_at, items, total, version)
		 SELECT 1, gen_random_uuid(), 'alice', CASE WHEN i % 20 = 0 THEN 'held' ELSE 'released' END,
		        now(), now() + interval '1 day', '[]', 0, i
		 FROM generate_series(1, 20000) i`,
		`ANALYZE holds`,
		`SET plan_cache_mode = force_generic_plan`,
		`PREPARE page AS ` + holds.Statements["sqlOpenHolds"],
	} {
		if _, err := b.owner.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := b.owner.Query(ctx, `EXPLAIN (ANALYZE, TIMING off) EXECUTE page (1, '00000000-0000-0000-0000-000000000000', 10)`)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(plan, "\n")
	if !strings.Contains(text, "holds_due") || strings.Contains(text, "Rows Removed") {
		t.Errorf("the plan is\n%s", text)
	}
	if got := b.pages(t, holds.Filter{Status: holds.Held, Limit: 300}); len(got) != 1000 {
		t.Errorf("%d are open, want 1000", len(got))
	}
}
