package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// quitPatience is how long an immediate shutdown may take; the postmaster itself
// kills its backends after 5 s.
const quitPatience = 10 * time.Second

// PostgresOptions configures a private PostgreSQL.
type PostgresOptions struct {
	// Dir is the store folder, which the caller has locked. It is created if
	// missing. The cluster goes to Dir/postgres.
	Dir string

	// Unsafe flushes nothing to disk and acknowledges commits before they are
	// written. For tests only: it may lose the cluster when the machine crashes,
	// and the last commits when the server does.
	Unsafe bool

	// Settings are further server settings by name; they override ours, except
	// those that keep the server private. A wrong one fails the start.
	Settings map[string]string

	// Notice gets one-line messages for people; nil discards them.
	Notice func(string)
}

// Postgres is a private PostgreSQL server. Stop, Kill and Restart wait for each
// other; everything else may be called at any time.
type Postgres struct {
	opts    PostgresOptions
	store   string // absolute store folder
	cluster string // absolute, without links
	socket  string // folder of the socket
	bin     binaries
	acct    *account // nil: our own user

	patience time.Duration // for an immediate shutdown, before SIGKILL

	mu   sync.Mutex // one start or stop at a time
	proc atomic.Pointer[process]
}

// StartPostgres makes the store's cluster if there is none, starts a server on
// it and returns when that accepts connections. It stops servers that a killed
// parent left on the cluster, so the caller must hold the store's lock. The
// server ends with this process, on Linux even if that is killed. When there is
// an error, nothing keeps running; ctx bounds the start, not the server's life.
func StartPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	store, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("locate the store: %w", err)
	}
	p := &Postgres{opts: o, store: store, patience: quitPatience}
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	if err := p.launch(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// prepare finds the user, the cluster and the binaries, and makes the cluster.
func (p *Postgres) prepare(ctx context.Context) error {
	err := makeFolder(p.store)
	if err != nil {
		return fmt.Errorf("create the store: %w", err)
	}
	if p.acct, err = serverAccount(filepath.Join(p.store, clusterName)); err != nil {
		return err
	}
	// The binaries before the cluster's place: without any, nothing is touched.
	if _, err := findBinaries(ctx, defaultPlaces(), p.acct, 0); err != nil {
		return err
	}
	if p.cluster, err = locateCluster(p.store, p.acct, p.opts.Notice); err != nil {
		return err
	}
	major, err := clusterMajor(p.cluster)
	if err != nil {
		return err
	}
	if p.bin, err = findBinaries(ctx, defaultPlaces(), p.acct, major); err != nil {
		return err
	}
	if major == 0 {
		if err := createCluster(ctx, p.bin, p.acct, p.cluster, p.opts.Unsafe); err != nil {
			return err
		}
	}
	return checkOwner(p.cluster, p.acct)
}

// URL returns the superuser's connection URL for a database, over the unix
// socket. It stays the same over a Restart.
func (p *Postgres) URL(database string) string { return connURL(p.socket, database) }

// SocketPath returns the path of the unix socket.
func (p *Postgres) SocketPath() string { return filepath.Join(p.socket, socketFile) }

// Dir returns the folder where the cluster really is.
func (p *Postgres) Dir() string { return p.cluster }

// BinDir returns the folder of the server's programs.
func (p *Postgres) BinDir() string { return p.bin.dir }

// Done returns a channel that is closed when the server process ended, asked to
// or not. A Restart makes a new one.
func (p *Postgres) Done() <-chan struct{} { return p.proc.Load().done }
