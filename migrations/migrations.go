// Package migrations keeps the database schema: numbered SQL files, applied in
// order, forward only, each written so that the release before it still runs on
// the schema after it (expand first, contract a release later). schema.sql is
// the outcome as pg_dump prints it, committed so that a review sees it.
package migrations

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed 0*.sql
var files embed.FS

// ServiceRole is the role that owns nothing and may not edit history; the
// service works as it whatever login it connects with.
const ServiceRole = "tierledger_service"

// A starter that finds another one migrating looks again every second, for as long
// as a large migration may take.
const (
	lockRetrySeconds = 1
	lockRetries      = 600
)

// Apply brings the database behind url up to the newest schema. The login needs
// CREATEROLE, or the role tierledger_service must exist. Several starters may
// call it at once: one works, the others wait. Each file is a transaction of its
// own, so an interrupted run goes on where it stopped.
func Apply(ctx context.Context, url string) error {
	return with(url, func(p *goose.Provider) error {
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		return nil
	})
}

// Pending counts the migrations that the database behind url still lacks.
func Pending(ctx context.Context, url string) (pending int, err error) {
	err = with(url, func(p *goose.Provider) error {
		status, err := p.Status(ctx)
		if err != nil {
			return fmt.Errorf("read schema version: %w", err)
		}
		for _, s := range status {
			if s.State == goose.StatePending {
				pending++
			}
		}
		return nil
	})
	return pending, err
}

// with runs fn on a provider of its own connection, which it closes.
func with(url string, fn func(*goose.Provider) error) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("database url: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockRetrySeconds, lockRetries))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return fn(p)
}
