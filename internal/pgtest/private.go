package pgtest

import (
	"context"
	"testing"

	"github.com/tierledger/tierledger/internal/embedded"
)

// Private returns a migrated database on a server of the test's own, which the
// test may kill, restart and reconfigure; change, if not nil, alters the
// server's options first. fsync is off, but synchronous_commit is on: what was
// committed outlives every crash of the server, though not of the machine. At
// the test's end, the checks are run, for which a server that the test stopped
// is started again, and everything is removed. It works without Main.
func Private(t testing.TB, change func(*embedded.PostgresOptions)) *DB {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	store, err := embedded.TempStore(ctx, embedded.MemoryFolder(memoryNeeded))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, store.Remove) })
	options := embedded.PostgresOptions{
		Dir:      store.Dir(),
		Unsafe:   true,
		Settings: map[string]string{"synchronous_commit": "on", "max_wal_size": walLimit},
		Notice:   func(line string) { t.Log(line) },
	}
	if change != nil {
		change(&options)
	}
	pg, err := embedded.StartPostgres(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, pg.Stop) })
	db := newDB(pg, "tierledger")
	if err := createMigrated(ctx, pg, db.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if len(db.checks) > 0 {
			end(t, db.revive)
			db.runChecks(t)
		}
	})
	return db
}

// revive starts a server that has ended.
func (d *DB) revive(ctx context.Context) error {
	select {
	case <-d.server.Done():
		return d.server.Restart(ctx)
	default:
		return nil
	}
}

// end runs one step of a cleanup.
func end(t testing.TB, step func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := step(ctx); err != nil {
		t.Error(err)
	}
}
