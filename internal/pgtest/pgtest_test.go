package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/migrations"
)

func TestMain(m *testing.M) { Main(m) }

// recorder is a test within a test: it keeps what would have failed it.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Log(...any)        {}
func (r *recorder) Cleanup(fn func()) { r.cleanups = append(r.cleanups, fn) }
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(f, args...))
}

// end runs the cleanups as the testing package does: the last one first.
func (r *recorder) end() {
	for len(r.cleanups) > 0 {
		last := len(r.cleanups) - 1
		fn := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		fn()
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func text(t *testing.T, url, sql string) (value string) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestNewIsMigratedAndAlone(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			db := New(t)
			if pending, err := migrations.Pending(t.Context(), db.URL()); err != nil || pending != 0 {
				t.Errorf("%d migrations pending, %v", pending, err)
			}
			exec(t, db.URL(), "CREATE TABLE mine ()") // fails in a database that was used
		})
	}
}

func TestServiceURL(t *testing.T) {
	t.Parallel()
	db := New(t)
	if got := text(t, db.ServiceURL(), "SELECT current_user::text"); got != migrations.ServiceRole {
		t.Errorf("the service is %s", got)
	}
	if got := text(t, db.URL(), "SELECT current_user || ' ' || current_setting('is_superuser')"); got != "tierledger on" {
		t.Errorf("the owner is %s", got)
	}
}

func TestEndOfTest(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	db := New(r)
	var ran []string
	db.Check(func(ctx context.Context, url string) error {
		ran = append(ran, "first")
		return errors.New("doesn't balance")
	})
	db.Check(func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		ran = append(ran, "second")
		return conn.Close(ctx)
	})
	r.Cleanup(func() { ran = append(ran, "the test's own") })
	connect(t, db.URL()) // left open: the drop must not wait for it
	r.end()
	if got := strings.Join(ran, ", "); got != "the test's own, first, second" {
		t.Errorf("ran %s", got)
	}
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "doesn't balance") {
		t.Errorf("errors: %q", r.errors)
	}
	if got := text(t, db.Server().URL("postgres"), "SELECT count(*)::text FROM pg_database WHERE datname = '"+db.name+"'"); got != "0" {
		t.Error("the database wasn't dropped")
	}
}

func TestAnInvariantThatIsBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say  func(*DB)
		told int
	}{
		"is told":            {func(*DB) {}, 1},
		"unless excepted":    {func(db *DB) { db.Except("events_listed") }, 0},
		"by its own name":    {func(db *DB) { db.Except("time_forward") }, 1},
		"or all is tampered": {(*DB).Tampered, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			db := New(r)
			exec(t, db.URL(), "INSERT INTO journals VALUES (77)")
			c.say(db)
			r.end()
			if len(r.errors) != c.told {
				t.Errorf("errors: %q", r.errors)
			}
		})
	}
}

func TestPrivateSurvivesKill(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	db := Private(r, nil)
	checked := false
	db.Check(func(ctx context.Context, url string) error {
		checked = true
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		return errors.Join(conn.QueryRow(ctx, "SELECT v FROM kept").Scan(new(int)), conn.Close(ctx))
	})
	exec(t, db.URL(), "CREATE TABLE kept AS SELECT 1 AS v")
	if err := db.Server().Kill(); err != nil {
		t.Fatal(err)
	}
	r.end() // must start it again for the check
	if !checked || len(r.errors) > 0 {
		t.Errorf("checked: %v, errors: %q", checked, r.errors)
	}
	select {
	case <-db.Server().Done():
	default:
		t.Error("the server still runs")
	}
	if _, err := os.Stat(db.Server().Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cluster is still there: %v", err)
	}
}

// A server that waits for a standby from the start must still be migrated.
func TestPrivateWithAnAbsentStandby(t *testing.T) {
	t.Parallel()
	db := Private(t, func(o *embedded.PostgresOptions) {
		o.Settings["synchronous_standby_names"] = "absent"
	})
	if pending, err := migrations.Pending(t.Context(), db.URL()); err != nil || pending != 0 {
		t.Errorf("%d migrations pending, %v", pending, err)
	}
	conn := connect(t, db.URL())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := conn.Exec(ctx, "CREATE TABLE waits ()"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit didn't wait for the standby: %v", err)
	}
}

func BenchmarkNew(b *testing.B) {
	New(b) // the server's start isn't what is measured
	for b.Loop() {
		r := &recorder{TB: b}
		New(r)
		r.end()
		if len(r.errors) > 0 {
			b.Fatal(r.errors)
		}
	}
}
