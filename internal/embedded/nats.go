package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// natsMemory bounds streams kept in memory; ours are kept in files.
	natsMemory = 64 << 20

	// natsSync is how often JetStream flushes its files, its own default. A
	// crash of the machine may lose what was published since; a crash of the
	// process doesn't. Either is harmless: the journal is the truth, and the
	// relay publishes again whatever the stream lacks.
	natsSync = 2 * time.Minute
)

// NATSOptions configures the in-process NATS server.
type NATSOptions struct {
	// Dir is the store folder, which the caller has locked; JetStream's files go to Dir/nats.
	Dir string

	// Listen is an address for clients of other processes, host:port; "" for none. Whoever
	// reaches it may do anything with the streams: it's for this machine alone.
	Listen string

	// SyncAlways flushes every message to the disk before it's acknowledged, instead of
	// every two minutes: what a crash of the machine would lose needn't be published again.
	SyncAlways bool

	// Notice gets the server's errors as one-line messages; nil discards them.
	Notice func(string)
}

// NATS is an in-process NATS server with JetStream. Unless it was told to listen, only
// this process reaches it, through Connect.
type NATS struct {
	srv  *server.Server
	stop sync.Once
}

// StartNATS starts the server and returns when it takes connections. When there
// is an error, nothing keeps running; ctx bounds the start, not the server's life.
func StartNATS(ctx context.Context, o NATSOptions) (*NATS, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("locate the store: %w", err)
	}
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("create the store: %w", err)
	}
	host, port, err := listenOn(o.Listen)
	if err != nil {
		return nil, err
	}
	srv, err := server.NewServer(&server.Options{
		ServerName:         "tierledger",
		DontListen:         o.Listen == "",
		Host:               host,
		Port:               port,
		JetStream:          true,
		JetStreamMaxMemory: natsMemory,
		JetStreamMaxStore:  -1, // what the disk has
		StoreDir:           filepath.Join(dir, natsName),
		SyncInterval:       natsSync,
		SyncAlways:         o.SyncAlways,
		NoSigs:             true, // signals are the program's
	})
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	log := &natsLog{notice: o.Notice}
	srv.SetLogger(log, false, false)
	n := &NATS{srv: srv}
	srv.Start() // returns; tells failures only to its log
	if err := n.waitReady(ctx, log); err != nil {
		n.Stop()
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	return n, nil
}

// listenOn reads an address to listen on. Port 0 takes a free one.
func listenOn(address string) (host string, port int, err error) {
	if address == "" {
		return "", 0, nil
	}
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		return "", 0, fmt.Errorf("NATS can't listen on %q: not host:port", address)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// URL is where other processes reach it; "" when it doesn't listen.
func (n *NATS) URL() string {
	if n.srv.Addr() == nil {
		return ""
	}
	return n.srv.ClientURL()
}

// waitReady returns when the server and JetStream are up.
func (n *NATS) waitReady(ctx context.Context, log *natsLog) error {
	for !n.srv.ReadyForConnections(pollInterval) {
		if err := log.fatal(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("it wasn't ready in time: %w", err)
		}
	}
	if !n.srv.JetStreamEnabled() {
		return errors.New("JetStream isn't enabled")
	}
	return nil
}

// Connect opens an in-process connection; the caller closes it.
func (n *NATS) Connect(opts ...nats.Option) (*nats.Conn, error) {
	// The URL isn't dialled: the in-process option replaces the dialler.
	conn, err := nats.Connect("", append(opts, nats.InProcessServer(n.srv))...)
	if err != nil {
		return nil, fmt.Errorf("connect to the private NATS: %w", err)
	}
	return conn, nil
}

// InProcessConn opens a plain connection, as nats.InProcessServer asks for.
func (n *NATS) InProcessConn() (net.Conn, error) { return n.srv.InProcessConn() }

// Stop shuts the server down and returns when its files are closed. It is
// idempotent.
func (n *NATS) Stop() {
	n.stop.Do(n.srv.Shutdown)
	n.srv.WaitForShutdown()
}

// natsLog passes errors on and keeps the last fatal one; the rest is noise.
type natsLog struct {
	notice func(string)
	mu     sync.Mutex
	last   error
}

func (l *natsLog) Errorf(format string, args ...any) {
	if l.notice != nil {
		l.notice("nats: " + fmt.Sprintf(format, args...))
	}
}

func (l *natsLog) Fatalf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Errorf(format, args...)
}

func (l *natsLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *natsLog) Noticef(string, ...any) {}
func (l *natsLog) Warnf(string, ...any)   {}
func (l *natsLog) Debugf(string, ...any)  {}
func (l *natsLog) Tracef(string, ...any)  {}
