package pgtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/internal/verify"
	"github.com/tierledger/tierledger/migrations"
)

const (
	// startTimeout bounds starting a server and migrating a database.
	startTimeout = 2 * time.Minute

	// endTimeout bounds each step at a test's end: all checks, the drop, the stop.
	endTimeout = 5 * time.Minute
)

// DB is one test's database.
type DB struct {
	server *embedded.Postgres
	name   string
	checks []func(ctx context.Context, url string) error
	except []string // invariants that the test breaks
}

// newDB is a database that ends with the full check of every invariant.
func newDB(server *embedded.Postgres, name string) *DB {
	db := &DB{server: server, name: name}
	db.Check(db.verified)
	return db
}

// verified is the whole-state check: what `tierledger verify` does.
func (d *DB) verified(ctx context.Context, url string) error {
	summary, err := verify.Run(ctx, url, verify.Options{})
	if err != nil {
		return err
	}
	for _, c := range summary.Checks {
		if c.Count > 0 && !slices.Contains(d.except, c.Check) {
			err = errors.Join(err, fmt.Errorf("%s: %d violations: %q", c.Check, c.Count, c.Violations))
		}
	}
	return err
}

// Except leaves named invariants out of the check at the test's end: those that the
// test breaks where it stands in for something else, as when it moves deadlines as
// time would.
func (d *DB) Except(checks ...string) { d.except = append(d.except, checks...) }

// Tampered says that the test breaks invariants on purpose: none is checked.
func (d *DB) Tampered() { d.checks = nil }

// URL returns the connection URL of the owner, a superuser.
func (d *DB) URL() string { return d.server.URL(d.name) }

// ServiceURL returns the URL with which the service connects: every session has
// the service's role, and so its rights.
func (d *DB) ServiceURL() string { return d.URL() + "&role=" + migrations.ServiceRole }

// Server returns the server that keeps the database. Only a test with a Private
// one may stop it or change its settings.
func (d *DB) Server() *embedded.Postgres { return d.server }

// Check adds checks of the whole database, which run with the owner's URL at
// the test's end, after the cleanups that the test registered after New or
// Private. Each failure fails the test. Call it from the test's goroutine.
func (d *DB) Check(fns ...func(ctx context.Context, url string) error) {
	d.checks = append(d.checks, fns...)
}

// runChecks runs every check, whether the test or another check failed or not.
func (d *DB) runChecks(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	for _, check := range d.checks {
		if err := check(ctx, d.URL()); err != nil {
			t.Errorf("at the end of the test: %v", err)
		}
	}
}
