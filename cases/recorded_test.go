package cases_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tierledger/tierledger/cases"
)

// Of what an entry records of a case, nothing can be changed beside it: each act of
// sabotage changes one column alone, as if the schema allowed it.
func TestEveryColumnIsCompared(t *testing.T) {
	t.Parallel()
	b := openCabinet(t)
	b.file(t, "late", "gig", cases.LatePayment, nil)
	conn, err := pgx.Connect(t.Context(), b.db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	for _, change := range []string{
		`reason = 'chargeback'`, `status = 'resolving'`, `suspended = 1`, `order_id = gen_random_uuid()`,
		`operation_id = gen_random_uuid()`, `opened_at = opened_at - interval '1 second'`, `owner = 'somebody'`,
		`last_fact = 'all is well'`, `due_at = now()`, `resolution = 'refund'`, `proposed_by = 'fay'`, `decided_by = 'gus'`,
		`resolved_at = now()`,
	} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `ALTER TABLE cases DROP CONSTRAINT cases_resolved, DROP CONSTRAINT cases_four_eyes;
			UPDATE cases SET `+change); err != nil {
			t.Fatal(err)
		}
		if found := violations(t, tx); found["cases_recorded"] == 0 {
			t.Errorf("%s wasn't found: %v", change, found)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The schema refuses states and resolutions that there aren't, even from its owner.
func TestTheSchemaRefuses(t *testing.T) {
	t.Parallel()
	b := openCabinet(t)
	b.file(t, "late", "gig", cases.LatePayment, nil)
	conn, err := pgx.Connect(t.Context(), b.db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	for change, want := range map[string]string{
		`status = 'lost', resolution = 'refund'`: "cases_status",
		`resolution = 'shrug'`:                   "cases_resolution",
		`suspended = amount + 1`:                 "cases_suspended",
		`suspended = -1`:                         "cases_suspended",
		`resolved_at = now()`:                    "cases_resolved",
	} {
		_, err := conn.Exec(t.Context(), `UPDATE cases SET `+change)
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.ConstraintName != want {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
}
