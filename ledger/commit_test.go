package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// books is the one journal that needs no event.
const books = ledger.System

// database and private are test databases on which journal 1 is no event's.
func database(t testing.TB) *pgtest.DB { return notAnEvent(pgtest.New(t)) }
func private(t testing.TB) *pgtest.DB  { return notAnEvent(pgtest.Private(t, nil)) }

func notAnEvent(db *pgtest.DB) *pgtest.DB {
	db.Except("events_listed")
	return db
}

// open makes a ledger on a database, with a journal for money.
func open(t testing.TB, url string, observe func(ledger.Batch)) (*ledger.Ledger, *ledger.Reader) {
	t.Helper()
	pool := openPool(t, url)
	// However slow the test is, what became of a commit is found out before it's told.
	l := ledger.New(ledger.Options{Pool: pool, Observe: observe, Patience: time.Minute})
	t.Cleanup(l.Close)
	if err := l.Create(context.Background(), books); err != nil {
		t.Fatal(err)
	}
	return l, ledger.NewReader(pool)
}

func openPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(context.Background(), pg.Options{URL: url, Name: t.Name(), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// transfer is a command that moves minor units from equity to a bank.
func transfer(t testing.TB, key string, n ledger.Amount, conditions ...ledger.Condition) ledger.Command {
	t.Helper()
	post := &ledger.Post{
		ID: ledger.NewID(books, "tester", key), Description: "transfer",
		Legs:       []ledger.Leg{{Account: "bank:b", Unit: "USD", Amount: n}, {Account: "equity", Unit: "USD", Amount: -n}},
		Conditions: conditions,
		Units:      func(*ledger.State, ledger.Unit) string { return "" },
	}
	if err := post.Validate(); err != nil {
		t.Fatal(err)
	}
	c, err := ledger.NewCommand(books, "tester", key, ledger.KindPosted, post.Legs, post)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func bank(t testing.TB, r *ledger.Reader, at ledger.Point) ledger.AccountView {
	t.Helper()
	list, err := r.Account(context.Background(), books, "bank:b", "USD", at)
	if errors.Is(err, ledger.ErrAccountNotFound) {
		return ledger.AccountView{}
	}
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func TestManyWritersOfOneJournal(t *testing.T) {
	t.Parallel()
	db := database(t)
	// Two ledgers are two processes: only the database serialises them.
	var observed atomic.Int64
	count := func(b ledger.Batch) { observed.Add(int64(b.Entries)) }
	one, reader := open(t, db.ServiceURL(), count)
	two, _ := open(t, db.ServiceURL(), count)
	const writers, each = 16, 25
	var wg sync.WaitGroup
	for w := range writers {
		l := []*ledger.Ledger{one, two}[w%2]
		wg.Go(func() {
			for i := range each {
				// Every command is sent twice, by two writers: one entry.
				c := transfer(t, fmt.Sprint(w/2, "-", i), 1)
				if _, err := l.Do(context.Background(), books, c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	const want = writers / 2 * each
	a := bank(t, reader, ledger.Point{})
	if a.Balance != want || a.Version != want || observed.Load() != want {
		t.Errorf("balance %d at version %d after %d entries, want %d", a.Balance, a.Version, observed.Load(), want)
	}
}

func TestConditionsHoldOrNothingIsPosted(t *testing.T) {
	t.Parallel()
	db := database(t)
	l, reader := open(t, db.ServiceURL(), nil)
	ctx := context.Background()
	if _, err := l.Do(ctx, books, transfer(t, "first", 100)); err != nil {
		t.Fatal(err)
	}
	version := func(v ledger.Seq) ledger.Condition {
		return ledger.Condition{Account: "bank:b", Unit: "USD", Version: &v}
	}
	after := func(b ledger.Balance) ledger.Condition {
		return ledger.Condition{Account: "bank:b", Unit: "USD", Balance: b}
	}
	for name, c := range map[string]struct {
		condition ledger.Condition
		ok        bool
	}{
		"the version it has":        {version(1), true},
		"a version it had":          {version(0), false},
		"a version to come":         {version(2), false},
		"at least what it would be": {after(ledger.Balance{GTE: new(ledger.Amount(60))}), true},
		"more than it would be":     {after(ledger.Balance{GTE: new(ledger.Amount(61))}), false},
		"at most":                   {after(ledger.Balance{LTE: new(ledger.Amount(59))}), false},
		"exactly":                   {after(ledger.Balance{EQ: new(ledger.Amount(60))}), true},
	} {
		t.Run(name, func(t *testing.T) {
			c1 := transfer(t, name, -40, c.condition)
			c1.DryRun = true
			_, err := l.Do(ctx, books, c1)
			if ok := err == nil; ok != c.ok {
				t.Fatalf("got %v", err)
			}
			if f := fault.As(err); f != nil {
				if !errors.Is(err, ledger.ErrConditionFailed) || len(f.Fields) != 4 || f.Fields[2].Value != ledger.Seq(1) ||
					f.Fields[3].Value != ledger.Amount(100) {
					t.Errorf("the refusal doesn't tell what was observed: %+v", f)
				}
			}
		})
	}
	if a := bank(t, reader, ledger.Point{}); a.Balance != 100 || a.Version != 1 {
		t.Errorf("a dry run changed the account: %+v", a)
	}
}

// The failure table of a commit: what the database had done when the connection
// went, and what the caller learns. In all of them the command is done once.
func TestCutConnections(t *testing.T) {
	for name, arm := range map[string]func(*pgtest.Proxy) <-chan struct{}{
		"before the write":                 (*pgtest.Proxy).LoseNextWrite,
		"between the write and its answer": (*pgtest.Proxy).LoseNextAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := database(t)
			proxy := pgtest.NewProxy(t, db)
			l, reader := open(t, proxy.ServiceURL(t, db), nil)
			ctx := context.Background()
			if _, err := l.Do(ctx, books, transfer(t, "warm up", 1)); err != nil {
				t.Fatal(err)
			}
			const rounds = 5
			for round := range rounds {
				cut := arm(proxy)
				var wg sync.WaitGroup
				for i := range 8 {
					wg.Go(func() {
						c := transfer(t, fmt.Sprint(round, "-", i), 1)
						first, err := l.Do(ctx, books, c)
						if err != nil {
							t.Errorf("round %d: %v", round, err)
							return
						}
						again, err := l.Do(ctx, books, c)
						if err != nil || !again.Replayed || again.Seq != first.Seq || string(again.Data) != string(first.Data) {
							t.Errorf("round %d: the repeat got %+v %v, the first %+v", round, again, err, first)
						}
					})
				}
				wg.Wait()
				<-cut
			}
			if a := bank(t, reader, ledger.Point{}); a.Balance != 1+8*rounds {
				t.Errorf("balance %d, want %d: each command once", a.Balance, 1+8*rounds)
			}
		})
	}
}

// poison is a command whose entry the database refuses, for a reason that its
// decision couldn't see.
type poison struct{}

func (poison) Accounts() []string { return nil }
func (poison) Decide(*ledger.State) (ledger.Decision, error) {
	return ledger.Decision{Kind: "test.poison", Data: json.RawMessage(`{"unfinished":`)}, nil
}

func TestABadCommandFailsAlone(t *testing.T) {
	t.Parallel()
	db := database(t)
	gate := make(chan struct{})
	l, reader := open(t, db.ServiceURL(), func(ledger.Batch) { <-gate })
	ctx := context.Background()
	// The first batch waits at the gate after its answer, so that the rest is taken
	// together.
	if _, err := l.Do(ctx, books, transfer(t, "first", 1)); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 9)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			c := transfer(t, fmt.Sprint(i), 1)
			if i == 4 {
				c = ledger.Command{ID: ledger.NewID(books, "poison"), Principal: "tester", Body: poison{}}
			}
			_, errs[i] = l.Do(ctx, books, c)
		})
	}
	for l.Waiting() < len(errs) {
		time.Sleep(time.Millisecond) // until all are queued: Waiting is the signal
	}
	close(gate)
	wg.Wait()
	for i, err := range errs {
		if bad := i == 4; bad != errors.Is(err, fault.ErrInternal) || !bad && err != nil {
			t.Errorf("command %d: %v", i, err)
		}
	}
	if a := bank(t, reader, ledger.Point{}); a.Balance != 9 {
		t.Errorf("balance %d, want 9", a.Balance)
	}
}

func TestADeadDatabaseIsSaidSoAndComesBack(t *testing.T) {
	t.Parallel()
	db := private(t)
	l, reader := open(t, db.ServiceURL(), nil)
	ctx := context.Background()
	if _, err := l.Do(ctx, books, transfer(t, "before", 1)); err != nil {
		t.Fatal(err)
	}
	if err := db.Server().Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Do(ctx, books, transfer(t, "during", 1))
	if f := fault.As(err); f == nil || !errors.Is(err, pg.ErrUnavailable) || f.RetryAfter == 0 {
		t.Errorf("while it's dead: %v", err)
	}
	if err := db.Server().Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if r, err := l.Do(ctx, books, transfer(t, "before", 1)); err != nil || !r.Replayed {
		t.Errorf("what was committed before: %+v %v", r, err)
	}
	if r, err := l.Do(ctx, books, transfer(t, "during", 1)); err != nil || r.Replayed {
		t.Errorf("what was refused meanwhile: %+v %v", r, err)
	}
	if a := bank(t, reader, ledger.Point{}); a.Balance != 2 {
		t.Errorf("balance %d, want 2", a.Balance)
	}
}

// While the database stays away nobody knows what became of a commit, and the
// callers are told just that; a repeat under the same key finds out.
func TestAnOutcomeThatStaysUnknown(t *testing.T) {
	t.Parallel()
	db := database(t)
	proxy := pgtest.NewProxy(t, db)
	pool := openPool(t, proxy.ServiceURL(t, db))
	l := ledger.New(ledger.Options{Pool: pool, Patience: time.Nanosecond})
	t.Cleanup(l.Close)
	ctx := context.Background()
	if err := l.Create(ctx, books); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Do(ctx, books, transfer(t, "before", 1)); err != nil {
		t.Fatal(err)
	}
	proxy.LoseNextAnswer()
	proxy.Refuse(true)
	_, err := l.Do(ctx, books, transfer(t, "k", 1))
	if f := fault.As(err); !errors.Is(err, ledger.ErrOutcomeUnknown) || f.RetryAfter == 0 {
		t.Errorf("while it's away: %v", err)
	}
	proxy.Refuse(false)
	if r, err := l.Do(ctx, books, transfer(t, "k", 1)); err != nil || !r.Replayed {
		t.Errorf("the repeat: %+v %v", r, err)
	}
}

// The server's clock may be set back; a journal's time doesn't follow it.
func TestTimeNeverGoesBack(t *testing.T) {
	t.Parallel()
	db := database(t)
	behind := make(chan time.Duration, 1)
	l, _ := open(t, db.ServiceURL(), func(b ledger.Batch) { behind <- b.ClockBehind })
	ctx := context.Background()
	owner := openPool(t, db.URL())
	var ahead time.Time
	err := owner.QueryRow(ctx, `UPDATE journals SET at = now() + interval '1 hour' WHERE journal_id = 0 RETURNING at`).Scan(&ahead)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := l.Do(ctx, books, transfer(t, "k", 1)); err != nil || r.At.Before(ahead) {
		t.Errorf("%v is before %v: %v", r.At, ahead, err)
	}
	if d := <-behind; d < 59*time.Minute || d > time.Hour {
		t.Errorf("the observer is told of %v", d)
	}
}

func TestThePastReadsAsItWas(t *testing.T) {
	t.Parallel()
	db := database(t)
	l, reader := open(t, db.ServiceURL(), nil)
	ctx := context.Background()
	var receipts []ledger.Receipt
	for i := range 20 {
		r, err := l.Do(ctx, books, transfer(t, fmt.Sprint(i), ledger.Amount(i+1)))
		if err != nil {
			t.Fatal(err)
		}
		receipts = append(receipts, r)
	}
	var sum ledger.Amount
	for i, r := range receipts {
		sum += ledger.Amount(i + 1)
		for _, at := range []ledger.Point{{Seq: r.Seq}, {At: r.At}} {
			if a := bank(t, reader, at); a.Balance != sum || a.Version != r.Seq {
				t.Errorf("at %+v: %+v, want %d at %d", at, a, sum, r.Seq)
			}
			trial, err := reader.TrialBalance(ctx, books, at)
			if err != nil || trial.Seq != r.Seq || len(trial.Totals) != 1 || trial.Totals[0].Debit != sum || trial.Totals[0].Credit != sum {
				t.Errorf("trial balance at %+v: %+v %v", at, trial, err)
			}
		}
	}
	if a := bank(t, reader, ledger.Point{At: receipts[0].At.Add(-time.Microsecond)}); a.Balance != 0 {
		t.Errorf("before the first entry: %+v", a)
	}
	lines, err := reader.Postings(ctx, books, "bank:b", "", receipts[9].Seq, 5)
	if err != nil || len(lines) != 5 || lines[0].Seq != receipts[10].Seq || lines[0].Amount != 11 {
		t.Errorf("statement: %+v %v", lines, err)
	}
}

func TestHistoryCantBeEdited(t *testing.T) {
	t.Parallel()
	db := database(t)
	l, _ := open(t, db.ServiceURL(), nil)
	ctx := context.Background()
	if _, err := l.Do(ctx, books, transfer(t, "k", 1)); err != nil {
		t.Fatal(err)
	}
	service := openPool(t, db.ServiceURL())
	for _, sql := range []string{
		`UPDATE entries SET kind = 'x'`, `DELETE FROM entries`, `TRUNCATE entries`,
		`UPDATE postings SET amount = amount`, `DELETE FROM postings`, `TRUNCATE postings`,
		`UPDATE accounts SET type = 'memo'`, `DELETE FROM accounts`, `DELETE FROM journals`, `DELETE FROM holds`, `DROP TABLE postings`,
	} {
		if _, err := service.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v, want insufficient privilege", sql, err)
		}
	}
	owner := openPool(t, db.URL())
	for _, sql := range []string{
		`INSERT INTO accounts VALUES (0, 'available', 'ga', 'inventory', NULL, -1, 1)`,
		`INSERT INTO entries SELECT journal_id, seq + 1, id, kind, at, principal, digest, data, hash FROM entries`,
		`INSERT INTO entries SELECT journal_id, seq, gen_random_uuid(), kind, at, principal, digest, data, hash FROM entries`,
		`INSERT INTO postings SELECT journal_id, seq, leg + 7, account, unit, amount, balance FROM postings`,
	} {
		if _, err := owner.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "SQLSTATE 23") {
			t.Errorf("%s: %v, want a constraint to refuse it", sql, err)
		}
	}
}

func TestAFullQueueRefusesAndForgets(t *testing.T) {
	t.Parallel()
	db := database(t)
	gate := make(chan struct{})
	l, reader := open(t, db.ServiceURL(), func(ledger.Batch) { <-gate })
	if _, err := l.Do(context.Background(), books, transfer(t, "first", 1)); err != nil {
		t.Fatal(err)
	}
	// A caller that leaves while its command waits: the command isn't done.
	ctx, leave := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := l.Do(ctx, books, transfer(t, "gone", 1))
		gone <- err
	}()
	for l.Waiting() < 1 {
		time.Sleep(time.Millisecond) // Waiting is the signal
	}
	leave()
	if err := <-gone; !errors.Is(err, ledger.ErrOverloaded) {
		t.Errorf("left while waiting: %v", err)
	}
	close(gate)
	l.Close()
	if _, err := l.Do(context.Background(), books, transfer(t, "late", 1)); !errors.Is(err, ledger.ErrClosing) {
		t.Errorf("after Close: %v", err)
	}
	if a := bank(t, reader, ledger.Point{}); a.Balance != 1 {
		t.Errorf("balance %d, want 1", a.Balance)
	}
}

func TestStatementsFitTheSchema(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, database(t), ledger.Statements, "sql.go", "sql_read.go")
}
