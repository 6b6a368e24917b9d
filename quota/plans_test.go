package quota_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/quota"
)

// wasteful finds plans that read a table, or many rows for nothing; buffers tells how many
// pages a plan read.
var (
	wasteful = regexp.MustCompile(`Seq Scan|Rows Removed by [\w ]+: ([2-9]\d{2}|\d{4,})\b`)
	buffers  = regexp.MustCompile(`Buffers: shared hit=(\d+)`)
)

// maxBuffers is more than a plan needs that finds a few rows of each table by their keys.
const maxBuffers = 100

// manyMoves are 500 moves out of each of 100 lanes to the next one, which have all arrived
// but for the last of each lane.
var manyMoves = []string{
	`INSERT INTO quota_moves (journal_id, move_id, status, unit, account, from_lane, any_lane, to_journal, to_lane, to_account, quantity, up_to,
	                          cause, reason, principal, asked_at, moved_at, version)
	 SELECT journal, md5(journal || ' ' || n)::uuid, 'moved', 'ga', 'available', 1, false, journal + 1, 2, 'available', 1, true,
	        'pull', '', 'system', now(), now(), n
	 FROM generate_series(1, 100) journal, generate_series(1, 500) n`,
	`INSERT INTO quota_arrivals (journal_id, move_id, from_journal, unit, account, quantity, at, version)
	 SELECT to_journal, move_id, journal_id, unit, to_account, quantity, moved_at, version
	 FROM quota_moves
	 WHERE version < 500`,
}

// The plans of what the two ends of a move read are made when there are no moves, and kept:
// when there are many, each is still found through its key, and what's under way without a
// look at what has arrived.
func TestPlansMadeForNoMovesServeMany(t *testing.T) {
	t.Parallel()
	committed := map[string]string{
		"sqlBatchMoves": `(9, ARRAY[md5('9 7')::uuid, md5('9 8')::uuid, md5('none')::uuid])`,
		"sqlBatchSent":  `(10, '{9,9,8}', ARRAY[md5('9 7')::uuid, md5('9 500')::uuid, md5('none')::uuid])`,
	}
	read := map[string]string{
		"sqlMove":     `(9, md5('9 7')::uuid)`,
		"sqlUnderWay": `(9, 490, 1000)`,
	}
	for name, analyse := range map[string]string{
		"never analysed": ``,
		"analysed empty": `ANALYZE quota_moves, quota_arrivals`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.Tampered()
			commits, reads := session(t, pg.Options{URL: db.ServiceURL()}), session(t, pg.Options{URL: db.ServiceURL(), ReadOnly: true})
			owner := session(t, pg.Options{URL: db.URL()})
			query(t, owner, analyse)
			prepare(t, commits, committed)
			prepare(t, reads, read)
			for _, sql := range manyMoves {
				query(t, owner, sql)
			}
			wantKeyed(t, commits, committed)
			wantKeyed(t, reads, read)
		})
	}
}

// session opens one session with the settings of a pool of the service.
func session(t *testing.T, o pg.Options) *pgxpool.Conn {
	t.Helper()
	o.MaxConns = 1
	pool, err := pg.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	conn, err := pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	return conn
}

func query(t *testing.T, conn *pgxpool.Conn, sql string) string {
	t.Helper()
	rows, err := conn.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(lines, "\n")
}

// prepare makes generic plans of statements.
func prepare(t *testing.T, conn *pgxpool.Conn, statements map[string]string) {
	t.Helper()
	query(t, conn, `SET plan_cache_mode = force_generic_plan`)
	for statement, args := range statements {
		query(t, conn, `PREPARE `+statement+` AS `+quota.Statements[statement])
		query(t, conn, `EXPLAIN EXECUTE `+statement+args)
	}
}

// wantKeyed refuses plans that read more than the rows that they're about.
func wantKeyed(t *testing.T, conn *pgxpool.Conn, statements map[string]string) {
	t.Helper()
	for statement, args := range statements {
		plan := query(t, conn, `EXPLAIN (ANALYZE, BUFFERS, TIMING off) EXECUTE `+statement+args)
		pages := buffers.FindStringSubmatch(plan)
		if pages == nil || wasteful.MatchString(plan) {
			t.Errorf("the plan of %s is\n%s", statement, plan)
		} else if n, err := strconv.Atoi(pages[1]); err != nil || n > maxBuffers {
			t.Errorf("the plan of %s reads %s pages:\n%s", statement, pages[1], plan)
		}
	}
}
