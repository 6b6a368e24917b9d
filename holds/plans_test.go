package holds_test

import (
	"testing"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
)

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

// The plans of what reads holds and their seats are made when there are none of either, and
// kept: when there are many, each hold and each seat is still found through its key.
func TestPlansMadeForNoHoldsServeMany(t *testing.T) {
	t.Parallel()
	ids := `ARRAY[md5('1')::uuid, md5('20')::uuid, md5('59999')::uuid]`
	pgtest.Plans{
		Statements: holds.Statements, Tables: `seats, holds`, Many: manySeats, MaxPages: 100,
		Commits: map[string]string{
			"sqlDueSeats":     `(1, 3, '-infinity')`,
			"sqlSeatsOfHolds": `(1, ` + ids + `)`,
			"sqlBatchHolds":   `(1, ` + ids + `)`,
		},
		Reads: map[string]string{"sqlHold": `(1, md5('1')::uuid)`},
	}.Check(t)
}
