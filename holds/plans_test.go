package holds_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
)

// wasteful finds plans that read a table, or thousands of rows for nothing.
var wasteful = regexp.MustCompile(`Seq Scan|Rows Removed by [\w ]+: ([2-9]\d{3}|\d{5,})\b`)

// manySeats are 50,000 seats of the first event and 10,000 of another, and as many holds of
// one seat each as there are seats, of which a twentieth has run out.
var manySeats = []string{
	`INSERT INTO seats (journal_id, seat, row_number, place, tier, state, allotment, version)
	 SELECT CASE WHEN i % 6 = 0 THEN 2 ELSE 1 END, 'A-1-' || i, i / 100, i % 100, 'front', 'available', '', 1
	 FROM generate_series(1, 60000) i`,
	`INSERT INTO holds (journal_id, hold_id, customer, status, created_at, expires_at, items, total, version)
	 SELECT CASE WHEN i % 6 = 0 THEN 2 ELSE 1 END, md5(i::text)::uuid, 'alice', CASE WHEN i % 20 = 1 THEN 'held' ELSE 'released' END,
	        now() - interval '2 days', now() - interval '1 day' + i * interval '1 ms',
	        json_build_array(json_build_object('seats', json_build_array('A-1-' || i))), 0, i
	 FROM generate_series(1, 60000) i`,
}

// The plans of what reads the seats of holds are made when there are none of either, and
// kept: when there are many, each hold and each seat is still found through its key.
func TestPlansMadeForNoHoldsServeMany(t *testing.T) {
	t.Parallel()
	statements := map[string]string{
		"sqlDueSeats":     `(1, 3, '-infinity')`,
		"sqlSeatsOfHolds": `(1, ARRAY[md5('1')::uuid, md5('20')::uuid, md5('59999')::uuid])`,
	}
	for name, prepare := range map[string]string{"never analysed": ``, "analysed empty": `ANALYZE seats, holds`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, buckets.Spec{HoldSeconds: day, Tiers: []buckets.TierSpec{tier("ga", 1)}})
			b.db.Tampered()
			query := func(sql string) string {
				t.Helper()
				rows, err := b.owner.Query(context.Background(), sql)
				if err != nil {
					t.Fatal(err)
				}
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil {
					t.Fatal(err)
				}
				return strings.Join(lines, "\n")
			}
			query(prepare)
			query(`SET plan_cache_mode = force_generic_plan`)
			query(`SET enable_seqscan = off`) // as for all that's committed
			for statement, args := range statements {
				query(`PREPARE ` + statement + ` AS ` + holds.Statements[statement])
				query(`EXPLAIN EXECUTE ` + statement + args) // makes the plan
			}
			for _, sql := range manySeats {
				query(sql)
			}
			for statement, args := range statements {
				plan := query(`EXPLAIN (ANALYZE, TIMING off) EXECUTE ` + statement + args)
				if wasteful.MatchString(plan) || !strings.Contains(plan, "seats_pkey") {
					t.Errorf("the plan of %s is\n%s", statement, plan)
				}
			}
		})
	}
}
