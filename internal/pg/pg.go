// Package pg is the mechanism below the schema: pools with the session settings
// that the ledger relies on, pipelined exchanges, and one place that turns what
// PostgreSQL and the network say into what a caller can act on. It knows no table.
package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options say how a pool connects.
type Options struct {
	URL      string // a PostgreSQL URL or keyword string
	Name     string // application_name, seen in pg_stat_activity
	Role     string // role to work as, "" for the login's own
	MaxConns int32  // at most this many connections
	ReadOnly bool   // reports and reads: read-only, with a statement timeout
	Scans    bool   // whole tables may be read, as reports do
}

const (
	// A process that hangs between two exchanges of a transaction would hold a
	// journal's lock: the server ends its session after this long, and the lock is free.
	idleInTransactionTimeout = "10s"
	// A read that takes longer has lost its reader.
	readStatementTimeout = "60s"
	connectTimeout       = 3 * time.Second
)

// Open makes a pool. It doesn't connect: a database that is down when the
// service starts is the same fault as one that goes down later.
func Open(ctx context.Context, o Options) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	config.MaxConns = o.MaxConns
	config.MinIdleConns = min(2, o.MaxConns)
	conn := config.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	conn.OnNotice = keepWarning
	params := conn.RuntimeParams
	params["application_name"] = o.Name
	params["timezone"] = "UTC"
	params["jit"] = "off" // every statement is short
	params["idle_in_transaction_session_timeout"] = idleInTransactionTimeout
	// That one doesn't run while the server waits for the rest of a pipeline. A
	// machine that is gone is noticed after 10 s of silence and three probes.
	params["tcp_keepalives_idle"] = "10"
	params["tcp_keepalives_interval"] = "5"
	params["tcp_keepalives_count"] = "3"
	if o.Role != "" {
		params["role"] = o.Role
	}
	if o.ReadOnly {
		params["default_transaction_read_only"] = "on"
		params["statement_timeout"] = readStatementTimeout
	}
	if !o.Scans {
		// Every statement of the service names its rows by key: a plan that reads a whole
		// table is wrong, however small the table was when the plan was made.
		params["enable_seqscan"] = "off"
		// They're also of one shape whatever their arguments: to plan them anew for each
		// takes longer than some of them run.
		params["plan_cache_mode"] = "force_generic_plan"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("database pool: %w", err)
	}
	return pool, nil
}

// Exchange sends every queued statement in one round trip and runs their result
// callbacks in order. The first error ends it.
func Exchange(ctx context.Context, conn *pgx.Conn, q *pgx.Batch) error {
	return conn.SendBatch(ctx, q).Close()
}

// warned marks a connection whose server has sent a WARNING.
const warned = "tierledger.warned"

func keepWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warned] = true
	}
}

// TakeWarning tells whether the server has warned on this connection since the
// last call. A COMMIT that succeeds with a warning may have stopped waiting for
// the synchronous standby: committed here, perhaps not there.
func TakeWarning(conn *pgx.Conn) bool {
	data := conn.PgConn().CustomData()
	_, ok := data[warned]
	delete(data, warned)
	return ok
}
