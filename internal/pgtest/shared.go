package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/migrations"
)

// template is the migrated database that is cloned. Nobody may connect to it
// once it is made, as a session there would make clones fail.
const template = "template_tierledger"

const (
	// memoryNeeded must be free for servers to be kept in memory. Clones create
	// and delete hundreds of small files each, at which ext4 is many times slower
	// (measured: 280 and 11 ms).
	memoryNeeded = 2 << 30

	// walLimit keeps the servers small there.
	walLimit = "256MB"
)

// shared is the test binary's server. It is the one package variable, because a
// TestMain can't hand anything to its tests.
var shared server

// server is a private server with a template.
type server struct {
	inMain atomic.Bool // Main runs: somebody will stop what is started
	once   sync.Once
	err    error // why it couldn't be started
	store  *embedded.Store
	pg     *embedded.Postgres
	admin  *pgxpool.Pool // creates and drops databases
	count  atomic.Int64  // of databases so far
}

// Main runs a package's tests and exits with their code. The server that they
// may have started is stopped and removed.
func Main(m *testing.M) {
	shared.inMain.Store(true)
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// New returns a migrated database of the test's own on the test binary's
// server. At the test's end, the checks are run and it is dropped. Tests with
// databases may run in parallel.
func New(t testing.TB) *DB {
	t.Helper()
	if !shared.inMain.Load() {
		t.Fatal("pgtest.New needs func TestMain(m *testing.M) { pgtest.Main(m) }")
	}
	shared.once.Do(func() { shared.err = shared.start() })
	if shared.err != nil {
		t.Fatalf("start the test server: %v", shared.err)
	}
	db := newDB(shared.pg, fmt.Sprintf("test_%d", shared.count.Add(1)))
	if err := shared.clone(db.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.runChecks(t)
		if err := shared.drop(db.name); err != nil {
			t.Error(err)
		}
	})
	return db
}

// start starts the server and migrates the template.
func (s *server) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var err error
	if s.store, err = embedded.TempStore(ctx, embedded.MemoryFolder(memoryNeeded)); err != nil {
		return err
	}
	s.pg, err = embedded.StartPostgres(ctx, embedded.PostgresOptions{
		Dir:    s.store.Dir(),
		Unsafe: true,
		Settings: map[string]string{
			"max_connections": "300", // parallel tests, each with a pool or two
			"max_wal_size":    walLimit,
		},
	})
	if err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(s.pg.URL("postgres"))
	if err != nil {
		return err
	}
	config.MaxConns = 4
	if s.admin, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	if err := createMigrated(ctx, s.pg, template); err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, "ALTER DATABASE "+template+" WITH ALLOW_CONNECTIONS false"); err != nil {
		return fmt.Errorf("close the template: %w", err)
	}
	return nil
}

// stop ends and removes whatever start made.
func (s *server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	var err error
	if s.admin != nil {
		s.admin.Close()
	}
	if s.pg != nil {
		err = s.pg.Stop(ctx)
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Remove(ctx))
	}
	return err
}

// clone makes a database from the template. Without fsync, file_copy takes half
// as long as wal_log for one of our size (7 and 13 ms).
func (s *server) clone(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if _, err := s.admin.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template+" STRATEGY file_copy"); err != nil {
		return fmt.Errorf("clone the template: %w", err)
	}
	return nil
}

// drop drops a database, whoever is still connected.
func (s *server) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if _, err := s.admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop the test's database: %w", err)
	}
	return nil
}

// createMigrated creates a database and migrates it. It waits for no standby,
// as the server may be set to wait for one that isn't there yet.
func createMigrated(ctx context.Context, pg *embedded.Postgres, name string) error {
	const local = "&synchronous_commit=local"
	conn, err := pgx.Connect(ctx, pg.URL("postgres")+local)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return migrations.Apply(ctx, pg.URL(name)+local)
}
