package seats_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/seats"
)

var removed = regexp.MustCompile(`Rows Removed by [\w ]+: (\d+)`)

// explained runs a prepared statement in a transaction that's undone, and gives its plan.
func (h *hall) explained(execute string) string {
	h.Helper()
	h.exec(`BEGIN`)
	defer h.exec(`ROLLBACK`)
	return strings.Join(h.query(`EXPLAIN (ANALYZE, TIMING off) EXECUTE `+execute), "\n")
}

// wantKeyed refuses a plan that reads a table, or an index, to throw most of it away.
func (h *hall) wantKeyed(name, plan string) {
	h.Helper()
	for _, m := range removed.FindAllStringSubmatch(plan, -1) {
		if n, err := strconv.Atoi(m[1]); err != nil || n > 2_000 {
			h.Errorf("%s reads %s rows for nothing:\n%s", name, m[1], plan)
		}
	}
	if strings.Contains(plan, "Seq Scan") {
		h.Errorf("%s reads a table:\n%s", name, plan)
	}
}

// The plans of a batch's statements are made when an event has no seats yet, and kept: when
// it has 50,000, and others have theirs, each seat and row is still found through its key.
func TestPlansMadeForNoSeatsServeMany(t *testing.T) {
	t.Parallel()
	statements := map[string]string{
		"sqlBatchSeats": `(1, '{A-7-9,C-40-200}')`,
		"sqlBatchRows":  `(1, '{B}', '{back}', false)`,
		"sqlSections":   `(1, 4)`,
		"sqlChangeSeats": `(1, '{A-7-9,C-40-200}', '{blocked,blocked}', array_fill('00000000-0000-0000-0000-000000000000'::uuid, '{2}'),
			'{NULL,NULL}', '{"",""}', '{9,9}')`,
		"sqlSummarize": `(1, '{A-7-9,C-40-200}', '{9,9}')`,
	}
	for name, c := range map[string]struct{ prepare, rows string }{
		"never analysed": {``, "-1"}, // nothing is known of them
		"analysed empty": {`ANALYZE seats, seat_rows, seat_sections`, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t, nil)
			for i := range 3 {
				h.event(fmt.Sprint("other", i), nil)
			}
			h.exec(c.prepare)
			if got := h.query(`SELECT DISTINCT reltuples::text FROM pg_class WHERE relname IN ('seats', 'seat_rows', 'seat_sections')`); len(got) != 1 || got[0] != c.rows {
				t.Fatalf("the tables are thought to have %v rows", got)
			}
			h.exec(`SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off`) // as for all that's committed
			for statement, args := range statements {
				h.exec(`PREPARE ` + statement + ` AS ` + seats.Statements[statement])
				h.query(`EXPLAIN EXECUTE ` + statement + args) // makes the plan
			}
			for i := range 3 {
				h.loadTo(fmt.Sprint("other", i), *chart(section("A", "front", 20, 50)))
			}
			h.load(*chart(section("A", "front", 50, 200), section("B", "front", 50, 200), section("C", "back", 50, 200)))
			h.load(*chart(section("D", "front", 50, 200), section("E", "back", 50, 200)))
			for statement, args := range statements {
				h.wantKeyed(statement, h.explained(statement+args))
			}
		})
	}
}
