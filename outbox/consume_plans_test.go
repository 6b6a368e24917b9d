package outbox_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/outbox"
)

func TestInboxStatementsAreRight(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), outbox.InboxStatements, "inbox_sql.go")
}

// manyPositions are those of 10 consumers in 3,000 journals, of which one has 20,000
// entries, few of them of one kind. The consumer c3 is behind in all of them.
var manyPositions = []string{
	`INSERT INTO journals (journal_id, seq) SELECT n, CASE n WHEN 1500 THEN 20000 ELSE 7 END FROM generate_series(1, 3000) n`,
	`INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
	 SELECT 1500, n, gen_random_uuid(), CASE WHEN n % 5000 = 0 THEN 'test.filed' ELSE 'test.noted' END, now(), '', sha256(''), '{}', sha256('')
	 FROM generate_series(1, 20000) n`,
	`INSERT INTO inbox (consumer, journal_id, seq)
	 SELECT 'c' || c, n, CASE WHEN c = 3 THEN 3 ELSE 7 END FROM generate_series(1, 10) c, generate_series(1, 3000) n`,
}

// A step finds its rows by their keys, whatever plan was made before there were any.
func TestPlansMadeForNoPositionsServeMany(t *testing.T) {
	t.Parallel()
	pgtest.Plans{
		Statements: outbox.InboxStatements, Tables: `journals, entries, inbox`, Many: manyPositions, MaxPages: 40,
		Commits: map[string]string{
			"sqlOpenInbox":    `('c3', 1500)`,
			"sqlLockInbox":    `('c3', 1500)`,
			"sqlInboxEntries": `(1500, 19000, 20000, '{test.noted}', 200)`,
			"sqlMoveInbox":    `('c3', 1500, 9)`,
			"sqlFailInbox":    `('c3', 1501, 9, 0, '1 s', 'why')`,
		},
	}.Check(t)
}

// A sweep, and the count of what's left, read each journal and the consumer's position in
// it once, and no others' positions, whatever plan was made before there were any.
func TestPlansOfSweepsReadEachJournalOnce(t *testing.T) {
	t.Parallel()
	for name, analyse := range map[string]string{"never analysed": ``, "analysed empty": `ANALYZE journals, inbox`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			db.Tampered()
			w := openOn(t, db)
			w.exec(analyse)
			session, err := w.process(db.URL()).Acquire(t.Context())
			w.must(err)
			defer session.Release()
			arguments := map[string]string{"sqlInboxBehind": `('c3', 256, 1000)`, "sqlInboxLag": `('c3')`}
			for statement := range arguments {
				_, err := session.Exec(t.Context(), `PREPARE `+statement+` AS `+outbox.InboxStatements[statement])
				w.must(err)
				_, err = session.Exec(t.Context(), `EXPLAIN EXECUTE `+statement+arguments[statement])
				w.must(err)
			}
			for _, sql := range manyPositions {
				w.exec(sql)
			}
			for statement := range arguments {
				rows, err := session.Query(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, TIMING off) EXECUTE `+statement+arguments[statement])
				w.must(err)
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				w.must(err)
				plan := strings.Join(lines, "\n")
				pages := regexp.MustCompile(`Buffers: shared hit=(\d+)`).FindStringSubmatch(plan)
				// Each of 3,000 journals has a page of its own, and three of its position's way.
				if n, err := strconv.Atoi(pages[1]); err != nil || n > 4*3000+100 || strings.Contains(plan, "Rows Removed by Join Filter") {
					t.Errorf("the plan of %s is\n%s", statement, plan)
				}
			}
		})
	}
}

// A pause doubles up to its bound, and a random part of up to half of it is taken off.
func TestPauseOfRetries(t *testing.T) {
	t.Parallel()
	for failures, want := range []time.Duration{
		200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond,
		6400 * time.Millisecond, 12800 * time.Millisecond,
	} {
		if got := outbox.Retry(failures); got < want/2 || got > want {
			t.Errorf("after %d failures the pause is %s, not up to %s", failures, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Minute)).Draw(t, "first"))
		last := time.Duration(rapid.Int64Range(int64(first), int64(15*time.Minute)).Draw(t, "last"))
		failures := rapid.IntRange(0, 1<<30).Draw(t, "failures")
		whole := last
		for n, pause := 0, first; pause < last; n, pause = n+1, 2*pause {
			if n == failures {
				whole = pause
				break
			}
		}
		if got := outbox.Backoff(failures, first, last); got < whole/2 || got > whole {
			t.Fatalf("%s after %d failures, %s to %s", got, failures, first, last)
		}
	})
	spread := make(map[time.Duration]bool)
	for range 100 {
		spread[outbox.Retry(5)] = true
	}
	if len(spread) < 90 {
		t.Errorf("of 100 pauses, only %d differ", len(spread))
	}
}
