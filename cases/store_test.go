package cases_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestStatementsFitTheSchema(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), cases.Statements, "sql.go")
}

// file is a command that opens a case, and nothing else.
type file struct{ c cases.Case }

func (f *file) Accounts() []string { return nil }

func (f *file) Decide(s *ledger.State) (ledger.Decision, error) {
	c := cases.OpenedNow(s, f.c, 0)
	data, err := json.Marshal(map[string]any{"cases": []cases.Case{c}})
	return ledger.Decision{Kind: "case.opened", Rows: []ledger.Row{cases.Row(c)}, Data: data}, err
}

// cabinet is two events with cases, and cases of none.
type cabinet struct {
	service.Stores
	db  *pgtest.DB
	ids map[string]uuid.UUID
}

func openCabinet(t *testing.T) *cabinet {
	t.Helper()
	b := &cabinet{db: pgtest.New(t), ids: map[string]uuid.UUID{}}
	b.Stores = pgtest.Stores(t, b.db, nil)
	for _, event := range []string{"gig", "gala"} {
		if _, err := b.Events.Create(t.Context(), "tester", event, buckets.Spec{Event: event, Name: event, Currency: "USD",
			Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 1, Price: buckets.Money{Amount: 1, Currency: "USD"}}}}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// file opens a case of an event, or of none, under a name.
func (b *cabinet) file(t *testing.T, name, event string, reason cases.Reason, due *time.Time) {
	t.Helper()
	journal := ledger.System
	if event != "" {
		var err error
		if journal, err = b.Events.Journal(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	operation, order := uuid.New(), ledger.NewID(journal, "order", name)
	c := cases.Case{Reason: reason, OperationID: &operation, OrderID: &order, LastFact: name, NextAttemptAt: due,
		Amount: buckets.Money{Amount: 5, Currency: "USD"}}
	if _, err := b.Ledger.Do(t.Context(), journal, ledger.Command{ID: ledger.NewID(journal, name), Principal: "tester",
		Body: &file{c}}); err != nil {
		t.Fatal(err)
	}
	b.ids[name] = cases.ID(journal, reason, operation, 0)
}

// Cases are found by event, status, reason and age, in pages.
func TestList(t *testing.T) {
	t.Parallel()
	b := openCabinet(t)
	for i := range 3 {
		b.file(t, fmt.Sprint("late", i), "gig", cases.LatePayment, nil)
	}
	b.file(t, "unknown", "gig", cases.OutcomeUnknown, nil)
	b.file(t, "other", "gala", cases.LatePayment, nil)
	b.file(t, "none", "", cases.Unidentified, nil)
	for name, c := range map[string]struct {
		f    cases.Filter
		want int
	}{
		"all":              {cases.Filter{}, 6},
		"of an event":      {cases.Filter{Event: "gig"}, 4},
		"of a reason":      {cases.Filter{Reason: cases.LatePayment}, 4},
		"of both":          {cases.Filter{Event: "gala", Reason: cases.LatePayment}, 1},
		"open":             {cases.Filter{Status: cases.Open}, 6},
		"resolved":         {cases.Filter{Status: cases.Resolved}, 0},
		"older than a day": {cases.Filter{MinAge: 24 * time.Hour}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[uuid.UUID]bool{}
			c.f.Limit = 2
			for {
				page, err := b.Cases.List(t.Context(), c.f)
				if err != nil {
					t.Fatal(err)
				}
				for _, found := range page {
					if seen[found.ID] {
						t.Errorf("%s came twice", found.ID)
					}
					seen[found.ID] = true
					if one, err := b.Cases.Get(t.Context(), found.ID); err != nil || one.LastFact != found.LastFact || one.Event != found.Event {
						t.Errorf("listed %+v, read %+v: %v", found, one, err)
					}
					c.f.After = found.ID
				}
				if len(page) < 2 {
					break
				}
			}
			if len(seen) != c.want {
				t.Errorf("%d cases, want %d", len(seen), c.want)
			}
		})
	}
	if _, err := b.Cases.List(t.Context(), cases.Filter{Event: "nothing", Limit: 1}); !errors.Is(err, buckets.ErrEventNotFound) {
		t.Error(err)
	}
	counts, err := b.Cases.CountOpen(t.Context())
	if err != nil || counts[cases.LatePayment] != 4 || counts[cases.OutcomeUnknown] != 1 || counts[cases.Unidentified] != 1 || len(counts) != 3 {
		t.Errorf("%v %v", counts, err)
	}
	c, err := b.Cases.Get(t.Context(), b.ids["none"])
	if err != nil || c.Event != "" {
		t.Errorf("%+v %v", c, err)
	}
	for _, id := range []uuid.UUID{uuid.New(), ledger.NewID(ledger.System, "x"), ledger.NewID(4711, "x")} {
		if _, err := b.Cases.Get(t.Context(), id); !errors.Is(err, cases.ErrCaseNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// What the program must act on is due; what a person must isn't.
func TestDue(t *testing.T) {
	t.Parallel()
	b := openCabinet(t)
	hour := time.Now().UTC().Truncate(time.Hour) // rows keep microseconds
	past, future := hour.Add(-time.Hour), hour.Add(2*time.Hour)
	b.file(t, "by a person", "gig", cases.LatePayment, nil)
	b.file(t, "later", "gig", cases.LatePayment, &future)
	b.file(t, "now", "gala", cases.LatePayment, &past)
	due, err := b.Cases.Due(t.Context(), 10)
	if err != nil || len(due) != 1 || due[0].ID != b.ids["now"] {
		t.Errorf("%+v %v", due, err)
	}
	for name, owner := range map[string]string{"by a person": cases.OwnerFinance, "now": cases.OwnerSystem} {
		if c, err := b.Cases.Get(t.Context(), b.ids[name]); err != nil || c.Owner != owner {
			t.Errorf("%s: %+v %v", name, c, err)
		}
	}
}

// The checks find what a wrong program or person could do to the rows.
func TestChecksFindSabotage(t *testing.T) {
	t.Parallel()
	b := openCabinet(t)
	b.file(t, "late", "gig", cases.LatePayment, nil)
	conn, err := pgx.Connect(t.Context(), b.db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	for i, c := range []struct{ check, sql string }{
		{"cases_recorded", `UPDATE cases SET status = 'awaiting_approval', resolution = 'refund', proposed_by = 'fay'`},
		{"cases_recorded", `UPDATE cases SET owner = 'system'`},
		{"cases_recorded", `UPDATE cases SET last_fact = 'all is well'`},
		{"cases_recorded", `UPDATE cases SET version = version - 1`},
		{"suspense_by_cases", `UPDATE cases SET suspended = 5`},
	} {
		t.Run(strconv.Itoa(i)+" "+c.check, func(t *testing.T) {
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(context.Background())
			if found := violations(t, tx); len(found) != 0 {
				t.Fatal(found)
			}
			if _, err := tx.Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			if found := violations(t, tx); found[c.check] == 0 {
				t.Errorf("it found %v", found)
			}
		})
	}
}

// violations counts what the package's checks find.
func violations(t *testing.T, tx pgx.Tx) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, c := range cases.Checks() {
		rows, err := tx.Query(t.Context(), c.SQL, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			found[c.Name] = len(list)
		}
	}
	return found
}
