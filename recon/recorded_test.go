package recon_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/recon"
)

// Of what an entry records of a report's line, nothing can be changed beside it: each
// act of sabotage changes one column alone, as if the schema allowed it.
func TestEveryColumnIsCompared(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.sell("a", 10600, "USD")
	s.imports(s.report(""))
	checks := recon.Checks()
	recorded := checks[slices.IndexFunc(checks, func(c ledger.Check) bool { return c.Name == "report_lines_recorded" })]
	for _, change := range []string{
		`type = 'charge'`, `payment = 'other'`, `operation_id = gen_random_uuid()`, `created_at = created_at - interval '1 second'`,
		`gross = gross + 1`, `fee = fee + 1`, `net = net + 1`, `currency = 'EUR'`, `result = 'unsettled'`, `version = version - 1`,
	} {
		tx, err := s.owner.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `ALTER TABLE report_lines DROP CONSTRAINT report_lines_net; UPDATE report_lines SET `+change); err != nil {
			t.Fatal(err)
		}
		rows, err := tx.Query(t.Context(), recorded.SQL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(found) == 0 {
			t.Errorf("%s wasn't found: %v", change, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Fees that were posted and have no line are found, and lines whose fees weren't posted.
func TestFeesAreComparedBothWays(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.sell("a", 10600, "USD")
	s.imports(s.report(""))
	checks := recon.Checks()
	booked := checks[slices.IndexFunc(checks, func(c ledger.Check) bool { return c.Name == "report_fees_booked" })]
	for _, act := range []string{
		`DELETE FROM report_lines`,
		`INSERT INTO report_lines SELECT journal_id, provider, 'invented', type, payment, operation_id, created_at, gross, fee, net, 'EUR', result, version
		 FROM report_lines`,
	} {
		tx, err := s.owner.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), act); err != nil {
			t.Fatal(err)
		}
		rows, err := tx.Query(t.Context(), booked.SQL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(found) == 0 {
			t.Errorf("%s wasn't found: %v", act, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The schema refuses lines that can't be, even from its owner.
func TestTheSchemaRefusesLines(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.sell("a", 10600, "USD")
	s.imports(s.report(""))
	for change, want := range map[string]string{
		`type = 'gift'`:         "report_lines_type",
		`type = 'refund'`:       "report_lines_type", // they have another sign
		`type = 'fee'`:          "report_lines_type",
		`gross = 0, net = -fee`: "report_lines_type",
		`net = net + 1`:         "report_lines_net",
		`result = 'lost'`:       "report_lines_result",
		`operation_id = NULL`:   "report_lines_operation",
	} {
		_, err := s.owner.Exec(t.Context(), `UPDATE report_lines SET `+change)
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.ConstraintName != want {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
}
