package migrations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/migrations"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

// Where the service's role exists, an owner needs no right to create roles.
func TestApplyAsAnOwnerWithoutCreaterole(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil) // its migration made the role
	admin := connect(t, db.URL())
	for _, sql := range []string{`CREATE ROLE tl_owner LOGIN`, `CREATE DATABASE tickets OWNER tl_owner`} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	url := strings.Replace(db.Server().URL("tickets"), "tierledger@", "tl_owner@", 1)
	if err := migrations.Apply(t.Context(), url); err != nil {
		t.Error(err)
	}
}

// The service may change what moves with new entries, and nothing else.
func TestTheServiceMayNotEdit(t *testing.T) {
	t.Parallel()
	service := connect(t, pgtest.New(t).ServiceURL())
	for _, sql := range []string{
		`SELECT FROM journals FOR UPDATE`,
		`UPDATE journals SET seq = seq, at = at, hash = hash`,
		`UPDATE accounts SET balance = balance, version = version`,
		`UPDATE tiers SET name = name, price_version = price_version, limit_per_customer = 1, version = version`,
		`UPDATE holds SET status = status, version = version`,
		`UPDATE report_lines SET operation_id = operation_id, result = result, version = version`,
		`UPDATE seats SET state = state, hold_id = hold_id, until = until, allotment = allotment, version = version`,
		`UPDATE seat_rows SET states = states, version = version`,
		`UPDATE lanes SET generation = generation, counts = counts, journals = journals, version = version`,
		`UPDATE allotments SET closed_at = closed_at, version = version`,
		`UPDATE quota_moves SET status = status, quantity = quantity, reason = reason, decided_by = decided_by, moved_at = moved_at, version = version`,
	} {
		if _, err := service.Exec(t.Context(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, column := range []string{
		"journals.journal_id", "entries.data", "postings.amount", "accounts.code", "accounts.unit", "accounts.type",
		"accounts.control", "event_journals.event_journal_id", "events.sale_opens_at", "tiers.tier", "tiers.position", "tiers.seated",
		"prices.amount", "holds.hold_id", "holds.customer", "holds.created_at", "holds.expires_at", "holds.items", "holds.total",
		"report_lines.line_id", "report_lines.gross", "report_lines.fee", "report_lines.created_at",
		"seats.seat", "seats.row_number", "seats.place", "seats.tier", "seat_rows.row_number", "seat_rows.section", "seat_rows.tier",
		"seat_sections.section", "seat_sections.tier", "seat_sections.rows", "seat_sections.version",
		"seat_changes.seq", "seat_changes.state", "seat_changes.hold_id", "seat_changes.seats",
		"event_journals.lane", "events.approve_moves_from", "holds.code", "lanes.journal_id", "lanes.home", "lanes.lane",
		"allotments.allotment", "allotments.name", "allotments.opens_at", "allotments.releases_at", "allotments.code_required",
		"allotments.created_at", "access_codes.code", "access_codes.allotment", "access_codes.max_uses", "access_codes.version",
		"quota_moves.move_id", "quota_moves.unit", "quota_moves.account", "quota_moves.from_lane", "quota_moves.any_lane",
		"quota_moves.to_journal", "quota_moves.to_lane", "quota_moves.to_account", "quota_moves.up_to", "quota_moves.cause",
		"quota_moves.principal", "quota_moves.asked_at", "quota_arrivals.move_id", "quota_arrivals.from_journal", "quota_arrivals.unit",
		"quota_arrivals.account", "quota_arrivals.quantity", "quota_arrivals.at", "quota_arrivals.version",
	} {
		table, name, _ := strings.Cut(column, ".")
		refused(t, service, `UPDATE `+table+` SET `+name+` = `+name)
	}
	for _, table := range []string{"journals", "entries", "postings", "accounts", "event_journals", "events", "tiers", "prices", "holds",
		"report_lines", "seats", "seat_rows", "seat_sections", "seat_changes", "lanes", "allotments", "access_codes", "quota_moves",
		"quota_arrivals"} {
		refused(t, service, `DELETE FROM `+table)
		refused(t, service, `TRUNCATE `+table)
	}
}

// Of what follows the journals it may change the columns that its statements do, row by row,
// and none other; what's immutable has none. Nothing is removed but the log of webhooks.
func TestTheServiceMayNotEditWhatFollows(t *testing.T) {
	t.Parallel()
	service := connect(t, pgtest.New(t).ServiceURL())
	for table, may := range map[string][]string{
		"relays":          {"seq", "stream", "stream_seq", "reached", "suspect", "holder", "held_until", "problem"},
		"inbox":           {"seq", "attempts", "retry_at", "reason"},
		"replays":         {"status", "decided_by", "changed_at", "note", "letters", "money", "done", "failed", "freed", "due_at"},
		"replay_steps":    {},
		"dead_letters":    {"reason", "attempts", "died_at", "status", "taken", "replay_id", "ended_at"},
		"ticketed_orders": {"seq"},
		"tickets":         {"revoked_seq"},
		"subscriptions": {"url", "kinds", "event", "description", "status", "reason", "secret", "old_secret", "old_until", "active_since",
			"changed_by", "changed_at"},
		"subscription_changes": {"answer"},
		"deliveries":           {"status", "attempts", "spent", "due_at", "ended_at"},
		"delivery_attempts":    {},
	} {
		rows, err := service.Query(t.Context(), `SELECT attname::text FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0`, table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(columns) <= len(may) {
			t.Fatalf("%s has the columns %v, %v", table, columns, err)
		}
		for _, column := range may {
			if _, err := service.Exec(t.Context(), `UPDATE `+table+` SET `+column+` = `+column); err != nil {
				t.Errorf("%s.%s: %v", table, column, err)
			}
		}
		for _, column := range columns {
			if !slices.Contains(may, column) {
				refused(t, service, `UPDATE `+table+` SET `+column+` = `+column)
			}
		}
		if slices.Contains([]string{"deliveries", "delivery_attempts"}, table) {
			if _, err := service.Exec(t.Context(), `DELETE FROM `+table); err != nil {
				t.Errorf("%s: %v", table, err)
			}
		} else {
			refused(t, service, `DELETE FROM `+table)
		}
		refused(t, service, `TRUNCATE `+table)
	}
}

func refused(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Errorf("%s: %v, want insufficient privilege", sql, err)
	}
}
