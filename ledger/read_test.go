package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

// A read that waits for a second connection while it keeps one would, in company,
// wait for itself.
func TestAReadTakesOneConnection(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	l, _ := open(t, db.ServiceURL(), nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	posted, err := l.Do(ctx, books, transfer(t, "k", 5))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pg.Open(ctx, pg.Options{URL: db.ServiceURL(), Name: t.Name(), MaxConns: 1, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	reader := ledger.NewReader(pool)
	for _, at := range []ledger.Point{{}, {Seq: posted.Seq}, {At: posted.At}} {
		trial, err := reader.TrialBalance(ctx, books, at)
		if err != nil || trial.Seq != posted.Seq || trial.Totals[0].Debit != 5 {
			t.Errorf("trial balance at %+v: %+v %v", at, trial, err)
		}
		if a := bank(t, reader, at); a.Balance != 5 {
			t.Errorf("at %+v: %+v", at, a)
		}
	}
	if list, err := reader.Entries(ctx, books, 0, 10); err != nil || len(list) != 1 || len(list[0].Postings) != 2 {
		t.Errorf("entries: %+v %v", list, err)
	}
}

func TestAPointStillToComeIsNow(t *testing.T) {
	t.Parallel()
	l, reader := open(t, pgtest.New(t).ServiceURL(), nil)
	ctx := context.Background()
	posted, err := l.Do(ctx, books, transfer(t, "k", 5))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []ledger.Point{{Seq: posted.Seq + 99}, {At: posted.At.Add(time.Hour)}} {
		trial, err := reader.TrialBalance(ctx, books, at)
		if err != nil || trial.Seq != posted.Seq {
			t.Errorf("at %+v it's %+v %v", at, trial, err)
		}
		if a := bank(t, reader, at); a.Balance != 5 || a.Version != posted.Seq {
			t.Errorf("at %+v: %+v", at, a)
		}
	}
}

// However deep a page of a statement in one unit is, nothing is read and thrown away.
func TestADeepPageOfAStatementIsBoundedByTheIndex(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Tampered()
	_, reader := open(t, db.ServiceURL(), nil)
	ctx := context.Background()
	owner, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	const none = `decode(repeat('00', 32), 'hex')`
	for _, sql := range []string{
		`INSERT INTO entries (journal_id, seq, id, kind, at, principal, digest, data, hash)
		 SELECT $1, i, gen_random_uuid(), 'test', now(), 'tester', ` + none + `, '{}', ` + none + ` FROM generate_series(1, 20000) i`,
		`INSERT INTO postings (journal_id, seq, leg, account, unit, amount, balance)
		 SELECT $1, i, 0, 'bank:b', CASE WHEN i % 2 = 0 THEN 'USD' ELSE 'EUR' END, 1, i FROM generate_series(1, 20000) i`,
	} {
		if _, err := owner.Exec(ctx, sql, int64(books)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := owner.Exec(ctx, `ANALYZE; SET plan_cache_mode = force_generic_plan;
		PREPARE page AS `+ledger.Statements["sqlUnitStatement"]); err != nil {
		t.Fatal(err)
	}
	rows, err := owner.Query(ctx, fmt.Sprintf(`EXPLAIN (ANALYZE, TIMING off) EXECUTE page (%d, 'bank:b', 'USD', 15000, 10)`, books))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(plan, "\n")
	if !strings.Contains(text, "postings_account_key") || strings.Contains(text, "Rows Removed") || strings.Contains(text, " Sort ") {
		t.Errorf("the plan is\n%s", text)
	}
	lines, err := reader.Postings(ctx, books, "bank:b", "USD", 15000, 10)
	if err != nil || len(lines) != 10 || lines[0].Seq != 15002 || lines[9].Seq != 15020 {
		t.Errorf("the page is %+v %v", lines, err)
	}
}
