package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/migrations"
)

// database is the database that a run works on.
type database struct {
	url     string
	pool    *pgxpool.Pool
	private *embedded.Postgres // nil: somebody else's
	store   *embedded.Store    // of the private one
}

// openDatabase connects to a database and migrates it; to one of a private server
// in a temporary store when url is empty.
func openDatabase(ctx context.Context, url string) (db *database, err error) {
	db = &database{url: url}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close(context.WithoutCancel(ctx)))
		}
	}()
	if url == "" {
		if db.store, err = embedded.TempStore(ctx, ""); err != nil {
			return db, err
		}
		if db.private, err = embedded.StartPostgres(ctx, embedded.PostgresOptions{Dir: db.store.Dir()}); err != nil {
			return db, err
		}
		db.url = db.private.URL("postgres")
	}
	if err = migrations.Apply(ctx, db.url); err != nil {
		return db, err
	}
	if db.pool, err = pg.Open(ctx, pg.Options{URL: db.url, Name: "tierledger bench", MaxConns: 2}); err != nil {
		return db, err
	}
	return db, db.refuseOthers(ctx)
}

// refuseOthers saves a database that somebody sells from: the load would be in its
// books for good.
func (db *database) refuseOthers(ctx context.Context) error {
	var event string
	err := db.pool.QueryRow(ctx, sqlOtherEvent, eventPrefix+"%").Scan(&event)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for events: %w", err)
	}
	return fmt.Errorf("the database has event %q, which no benchmark made: give a database for benchmarks only", event)
}

// close removes a private server with its store, and the clones from somebody
// else's database.
func (db *database) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	var err error
	if db.pool != nil {
		if db.private == nil {
			_, err = db.pool.Exec(ctx, sqlDropSchema)
		}
		db.pool.Close()
	}
	if db.private != nil {
		err = errors.Join(err, db.private.Kill()) // nothing needs to be written back
	}
	if db.store != nil {
		err = errors.Join(err, db.store.Remove(ctx))
	}
	return err
}

// about tells the server's version, and whether commits are flushed.
func (db *database) about(ctx context.Context) (version, fsync string, err error) {
	err = db.pool.QueryRow(ctx, sqlAbout).Scan(&version, &fsync)
	version, _, _ = strings.Cut(version, " ") // a distribution's own number follows
	return version, fsync, err
}

// checkpoint writes dirty pages, so that each measurement begins without. Who may
// not do that on a server of others goes on without it.
func (db *database) checkpoint(ctx context.Context) error {
	_, err := db.pool.Exec(ctx, `CHECKPOINT`)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == insufficientPrivilege {
		return nil
	}
	return err
}

const insufficientPrivilege = "42501"

// vacuum does what the server would do by itself within a minute.
func (db *database) vacuum(ctx context.Context) error {
	_, err := db.pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

// position is the end of the write-ahead log, in bytes.
func (db *database) position(ctx context.Context) (at int64, err error) {
	err = db.pool.QueryRow(ctx, sqlPosition).Scan(&at)
	return at, err
}

// writtenSince counts the bytes of the log since a position. On a private server
// the server's own notes of checkpoints and running transactions, which it makes
// whether or not anyone asks anything, don't count.
func (db *database) writtenSince(ctx context.Context, from int64) (int64, error) {
	to, err := db.position(ctx)
	if err != nil || db.private == nil || to == from {
		return to - from, err
	}
	if _, err := db.pool.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS pg_walinspect`); err != nil {
		return to - from, nil // contrib isn't installed
	}
	var bytes int64
	err = db.pool.QueryRow(ctx, sqlLogOfOthers, from, to).Scan(&bytes)
	return bytes, err
}

// head is the seq of an event's last entry.
func (db *database) head(ctx context.Context, event string) (seq int64, err error) {
	err = db.pool.QueryRow(ctx, sqlHead, event).Scan(&seq)
	return seq, err
}

// batchMean is how many entries of an event, after a seq, a batch has. A batch
// reads the clock once, so its entries have one time.
func (db *database) batchMean(ctx context.Context, event string, after int64) (float64, error) {
	var entries, batches int64
	err := db.pool.QueryRow(ctx, sqlBatches, event, after).Scan(&entries, &batches)
	return round(per(float64(entries), batches), 1), err
}

// webhooks counts those that were stored about an event's orders.
func (db *database) webhooks(ctx context.Context, event string) (n int64, err error) {
	err = db.pool.QueryRow(ctx, sqlWebhooks, event).Scan(&n)
	return n, err
}

// doubleHolds counts the seats that more than one hold claims.
func (db *database) doubleHolds(ctx context.Context) (n int64, err error) {
	err = db.pool.QueryRow(ctx, sqlDoubleHolds).Scan(&n)
	return n, err
}

// rowsWritten counts the rows of the ledger's tables that were ever inserted or
// updated. A session's may be missing until it has ended, so it waits for the
// service's to end.
func (db *database) rowsWritten(ctx context.Context) (rows int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for sessions := 1; sessions > 0; {
		<-tick.C // ctx bounds the queries, and so the loop
		if err := db.pool.QueryRow(ctx, sqlServiceSessions).Scan(&sessions); err != nil {
			return 0, fmt.Errorf("wait for the service's sessions to end: %w", err)
		}
	}
	err = db.pool.QueryRow(ctx, sqlRowsWritten).Scan(&rows)
	return rows, err
}

// clone makes the tables of the systems that the product is compared with: empty
// but for one event, as it was opened. Further tables are cloned with them.
func (db *database) clone(ctx context.Context, event string, further ...string) error {
	var journal int64
	if err := db.pool.QueryRow(ctx, sqlJournal, event).Scan(&journal); err != nil {
		return fmt.Errorf("find event %s: %w", event, err)
	}
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		for _, sql := range []string{sqlDropSchema, sqlCreateSchema} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		for _, table := range slices.Concat(clonedTables, further) {
			if err := cloneTable(ctx, tx, table, journal); err != nil {
				return fmt.Errorf("clone table %s: %w", table, err)
			}
		}
		return nil
	})
}

// cloneTable copies a table's definition, its storage options too, which LIKE
// leaves out, and one journal's rows.
func cloneTable(ctx context.Context, tx pgx.Tx, table string, journal int64) error {
	var options string
	if err := tx.QueryRow(ctx, sqlTableOptions, table).Scan(&options); err != nil {
		return err
	}
	clone := schema + "." + table
	sql := []string{fmt.Sprintf(`CREATE TABLE %s (LIKE public.%s INCLUDING ALL)`, clone, table)}
	if options != "" {
		sql = append(sql, fmt.Sprintf(`ALTER TABLE %s SET (%s)`, clone, options))
	}
	sql = append(sql, fmt.Sprintf(`INSERT INTO %s SELECT * FROM public.%s WHERE journal_id = %d`, clone, table, journal))
	for _, s := range sql {
		if _, err := tx.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
