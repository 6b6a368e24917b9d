package buckets_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
)

// wasteful finds plans that read a table, or many rows for nothing; buffers tells how many
// pages a plan read.
var (
	wasteful = regexp.MustCompile(`Seq Scan|Rows Removed by [\w ]+: ([2-9]\d{2}|\d{4,})\b`)
	buffers  = regexp.MustCompile(`Buffers: shared hit=(\d+)`)
)

// maxBuffers is more than a plan needs that finds a few rows of each table by their keys.
const maxBuffers = 150

// manyLanes are 2,000 events of 8 lanes with tickets in each, 10
// allotments and as many codes; 400 customers have something in each of the first 100.
var manyLanes = []string{
	`INSERT INTO events (journal_id, event, name, currency, hold_seconds, grace_seconds, organiser, late_payment_policy, created_at, version)
	 SELECT 8 * i + 1, 'e' || i, 'E', 'USD', 300, 300, 'house', 'review', now(), 1
	 FROM generate_series(0, 1999) i`,
	`INSERT INTO event_journals (journal_id, event, event_journal_id, lane)
	 SELECT 0, 'e' || i, 8 * i + lane, lane
	 FROM generate_series(0, 1999) i, generate_series(1, 8) lane`,
	`INSERT INTO lanes (journal_id, home, lane, generation, counts, journals, version)
	 SELECT 8 * i + lane, 8 * i + 1, lane, 1, '{1,8}', ARRAY(SELECT 8 * i + n FROM generate_series(1, 8) n), 2
	 FROM generate_series(0, 1999) i, generate_series(1, 8) lane`,
	`INSERT INTO tiers (journal_id, tier, position, name, price_version, version)
	 SELECT 8 * i + 1, 'ga', 0, 'GA', 2, 1
	 FROM generate_series(0, 1999) i`,
	`INSERT INTO prices (journal_id, tier, price_version, amount, fee, tax_rate)
	 SELECT 8 * i + 1, 'ga', price, 5000, 0, 0
	 FROM generate_series(0, 1999) i, generate_series(1, 2) price`,
	`INSERT INTO allotments (journal_id, allotment, name, code_required, created_at, closed_at, version)
	 SELECT 8 * i + 1, 'a' || n, 'A', true, now(), CASE WHEN i % 100 = 0 THEN now() END, 3
	 FROM generate_series(0, 1999) i, generate_series(1, 10) n`,
	`INSERT INTO access_codes (journal_id, code, allotment, max_uses, version)
	 SELECT 8 * i + 1, 'C' || n, 'a' || n, 3, 3
	 FROM generate_series(0, 1999) i, generate_series(1, 10) n`,
	`INSERT INTO accounts (journal_id, code, unit, type, balance, version)
	 SELECT journal, code, 'ga', 'inventory', 0, 4
	 FROM generate_series(1, 16000) journal, unnest('{available,available:a1,transit,held,sold}'::text[]) code`,
	`INSERT INTO accounts (journal_id, code, unit, type, control, balance, version)
	 SELECT journal, 'held:c' || n, 'ga', 'inventory', 'held', 1, 5
	 FROM generate_series(1, 100) journal, generate_series(1, 400) n`,
	`INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
	 SELECT journal, seq, md5(journal || ' ' || seq)::uuid, 'x', now(), 'p', sha256('x'), '{}', sha256('x')
	 FROM generate_series(1, 100) journal, generate_series(1, 200) seq`,
}

// The plans of what a lane's batches read of the event, and of what tells where free tickets
// are, are made when there are none of either, and kept: when there are many, each row is
// still found through its key.
func TestPlansMadeForNoLanesServeMany(t *testing.T) {
	t.Parallel()
	committed := map[string]string{
		"sqlBatchEvent":      `(12)`,
		"sqlBatchTiers":      `(12)`,
		"sqlBatchAllotments": `(12)`,
		"sqlBatchCodes":      `(12, '{C1,C7}')`,
		"sqlElsewhere":       `(12, '{9,10,16}', '{c1,c2,c3}', ARRAY[md5('9 7')::uuid, md5('10 9')::uuid, md5('none')::uuid])`,
		"sqlTakenNames":      `(0, '{e1,e1999}', '{8,9}')`,
	}
	read := map[string]string{ // by every request that a lane sends elsewhere, or has too few for
		"sqlFree":      `(0, 'e1', 'available', 'transit', 'ga')`,
		"sqlLayout":    `(12)`,
		"sqlFindLanes": `(0, 'e1')`,
	}
	for name, analyse := range map[string]string{
		"never analysed": ``,
		"analysed empty": `ANALYZE events, event_journals, lanes, tiers, prices, allotments, access_codes, accounts, entries`,
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
			for _, sql := range manyLanes {
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
		query(t, conn, `PREPARE `+statement+` AS `+buckets.Statements[statement])
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
