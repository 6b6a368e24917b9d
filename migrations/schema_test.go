package migrations_test

import (
	"bytes"
	"context"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/migrations"
)

var update = flag.Bool("update", false, "rewrite schema.sql")

const schemaFile = "schema.sql"

// schemaHead begins the file.
const schemaHead = `-- The schema after all migrations, as pg_dump prints it. Don't edit it: change the
-- schema by a new migration, then run ` + "`go test ./migrations -update`" + `.

`

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestSchemaFileIsWhatMigrationsMake(t *testing.T) {
	t.Parallel()
	got := dump(t, pgtest.New(t))
	if *update {
		if err := os.WriteFile(schemaFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s isn't what the migrations make: run `go test ./migrations -update` and review the change\n%s",
			schemaFile, difference(want, got))
	}
}

// dump is the schema as pg_dump prints it, without what differs from run to run
// and from version to version.
func dump(t *testing.T, db *pgtest.DB) []byte {
	t.Helper()
	program := filepath.Join(db.Server().BinDir(), "pg_dump")
	cmd := exec.CommandContext(t.Context(), program, "--schema-only", "--no-owner", db.URL())
	var problems bytes.Buffer
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v\n%s", err, problems.String())
	}
	noise := regexp.MustCompile(`(?m)^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)\n`)
	text = noise.ReplaceAll(text, nil)
	text = regexp.MustCompile(`\n{3,}`).ReplaceAll(text, []byte("\n\n"))
	return append([]byte(schemaHead), append(bytes.TrimSpace(text), '\n')...)
}

// difference is the first place where two texts differ, a line of each.
func difference(want, got []byte) string {
	a, b := bytes.SplitAfter(want, []byte("\n")), bytes.SplitAfter(got, []byte("\n"))
	i := 0
	for i < len(a) && i < len(b) && bytes.Equal(a[i], b[i]) {
		i++
	}
	at := func(lines [][]byte) string {
		if i < len(lines) {
			return string(lines[i])
		}
		return "\n"
	}
	return "- " + at(a) + "+ " + at(b)
}

func TestApplyAgainChangesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	before := dump(t, db)
	if err := migrations.Apply(t.Context(), db.URL()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, dump(t, db)) {
		t.Error("the second Apply changed the schema")
	}
}

func TestConcurrentApply(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	fresh := createEmpty(t, db)
	pending := func() int {
		t.Helper()
		n, err := migrations.Pending(t.Context(), fresh)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if pending() == 0 {
		t.Error("an empty database lacks no migration")
	}
	var starters sync.WaitGroup
	for range 2 {
		starters.Go(func() {
			if err := migrations.Apply(t.Context(), fresh); err != nil {
				t.Error(err)
			}
		})
	}
	starters.Wait()
	if n := pending(); n != 0 {
		t.Errorf("%d migrations are pending after Apply", n)
	}
}

// createEmpty makes a second database beside a test's own, not migrated, and drops
// it at the end.
func createEmpty(t *testing.T, db *pgtest.DB) (connURL string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	name := conn.Config().Database + "_empty"
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}
