package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// holdStore in the environment turns the test binary into a program that runs a
// server on that store until it is killed.
const holdStore = "EMBEDDED_TEST_HOLD_STORE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdStore); dir != "" {
		hold(dir)
	}
	os.Exit(m.Run())
}

func hold(dir string) {
	_, err := LockStore(dir)
	if err == nil {
		_, err = StartPostgres(context.Background(), PostgresOptions{Dir: dir, Unsafe: true})
	}
	fmt.Println("ready", err)
	select {}
}

// patience bounds what a test waits for: machines may be busy.
const patience = 3 * time.Minute

// bounded returns the context of one test.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// tempStore returns a store that is removed at the end.
func tempStore(t *testing.T) *Store {
	t.Helper()
	store, err := TempStore(bounded(t), MemoryFolder(2<<30))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return store
}

// start runs a server on a store with fsync off, but waiting for each commit to
// be written, which is what outlives a crash of the server.
func start(t *testing.T, o PostgresOptions) *Postgres {
	t.Helper()
	o.Unsafe = true
	o.Settings = map[string]string{"synchronous_commit": "on"}
	p, err := StartPostgres(bounded(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, p) })
	return p
}

func stop(t *testing.T, p *Postgres) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// query runs one statement on a connection of its own and returns its one value, or "".
func query(t *testing.T, p *Postgres, sql string) string {
	t.Helper()
	ctx := bounded(t)
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(values, " ")
}

// eventually waits until a condition holds that nothing announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := bounded(t)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// notices collects one-line messages.
type notices struct {
	mu   sync.Mutex
	text []string
}

func (n *notices) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = append(n.text, line)
}

func (n *notices) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text
}

// oneLine fails unless the error is one line that contains all parts.
func oneLine(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q isn't in: %v", part, err)
		}
	}
}

// fakeServer makes a folder with a postgres that only tells its version.
func fakeServer(t *testing.T, dir, version string) string {
	t.Helper()
	if err := makeFolder(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + " (Debian)'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
