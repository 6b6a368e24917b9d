package pgtest

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
)

// Plans are statements whose plans are made while there are no rows, and kept, and must
// still serve when there are many.
type Plans struct {
	Statements map[string]string // their SQL, by name
	Commits    map[string]string // arguments of those that batches run, by name
	Reads      map[string]string // arguments of those that read beside them
	Tables     string            // that they read, with commas
	Many       []string          // SQL that makes many rows
	MaxPages   int               // more than a plan reads that finds its rows by their keys
}

// wasteful finds plans that read a table, or many rows for nothing; buffers tells how many
// pages a plan read.
var (
	wasteful = regexp.MustCompile(`Seq Scan|Rows Removed by [\w ]+: ([2-9]\d{2}|\d{4,})\b`)
	buffers  = regexp.MustCompile(`Buffers: shared hit=(\d+)`)
)

// Check makes generic plans on tables that were never analysed, and on tables analysed
// empty, in sessions like those of the service's pools; then fills the tables, and refuses
// plans that read more than the rows that they're about.
func (p Plans) Check(t *testing.T) {
	t.Helper()
	for name, analyse := range map[string]string{
		"never analysed": ``,
		"analysed empty": `ANALYZE ` + p.Tables,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := New(t)
			db.Tampered()
			commits, reads := session(t, pg.Options{URL: db.ServiceURL()}), session(t, pg.Options{URL: db.ServiceURL(), ReadOnly: true})
			owner := session(t, pg.Options{URL: db.URL()})
			lines(t, owner, analyse)
			p.prepare(t, commits, p.Commits)
			p.prepare(t, reads, p.Reads)
			for _, sql := range p.Many {
				lines(t, owner, sql)
			}
			p.wantKeyed(t, commits, p.Commits)
			p.wantKeyed(t, reads, p.Reads)
		})
	}
}

// prepare makes generic plans of statements.
func (p Plans) prepare(t *testing.T, conn *pgxpool.Conn, arguments map[string]string) {
	t.Helper()
	lines(t, conn, `SET plan_cache_mode = force_generic_plan`)
	for statement, args := range arguments {
		lines(t, conn, `PREPARE `+statement+` AS `+p.Statements[statement])
		lines(t, conn, `EXPLAIN EXECUTE `+statement+args)
	}
}

func (p Plans) wantKeyed(t *testing.T, conn *pgxpool.Conn, arguments map[string]string) {
	t.Helper()
	for statement, args := range arguments {
		plan := lines(t, conn, `EXPLAIN (ANALYZE, BUFFERS, TIMING off) EXECUTE `+statement+args)
		pages := buffers.FindStringSubmatch(plan)
		if pages == nil || wasteful.MatchString(plan) {
			t.Errorf("the plan of %s is\n%s", statement, plan)
		} else if n, err := strconv.Atoi(pages[1]); err != nil || n > p.MaxPages {
			t.Errorf("the plan of %s reads %s pages:\n%s", statement, pages[1], plan)
		}
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

// lines runs SQL and gives its rows of text.
func lines(t *testing.T, conn *pgxpool.Conn, sql string) string {
	t.Helper()
	rows, err := conn.Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(list, "\n")
}
