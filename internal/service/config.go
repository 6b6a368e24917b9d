package service

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/outbox/jetstream"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/quota"
)

// Config is everything a service is told. Validate refuses what can't work.
type Config struct {
	// DatabaseURL is a PostgreSQL URL or keyword string. A wrong one: /readyz
	// says so, and every change is refused with 503.
	DatabaseURL string
	// Listen is the address to serve on, host:port; port 0 takes a free one.
	Listen string
	// TLSCert and TLSKey are PEM files; both or neither. Without them the service
	// speaks plain HTTP and belongs behind something that doesn't.
	TLSCert, TLSKey string
	// Keys are who may call; see httpapi.LoadKeys. None: nobody may, unless
	// LoopbackAdmin.
	Keys *httpapi.Keys
	// LoopbackAdmin lets calls from this machine in without a key, as admin. For
	// a developer's own store only: whoever can run a program here can do anything.
	LoopbackAdmin bool
	// Sim is the simulated payment provider, served below /sim; nil for none. For
	// development: nobody needs a key for it.
	Sim http.Handler
	// Providers makes the payment providers, new payments being made with the first. It's
	// told where the service serves: the simulated provider is below that. nil: there are
	// none, and nothing that costs money can be bought.
	Providers func(self string) ([]payments.Provider, error)
	// NATS is where entries are published, connected with BusOptions; nil for nowhere. One
	// that goes away is no fault of ours: the journals wait for it, and /readyz says so.
	NATS *nats.Conn
	// Stream is what's published to; its Conn is NATS.
	Stream jetstream.Options
	// Secrets sign tickets, and seal what must not be read. Without them no ticket is issued
	// and nobody can be told of entries by webhook.
	Secrets keyring.Ring
	// WebhooksAllowPrivate lets webhooks go to addresses of private networks and of this
	// machine, and over http: whoever may make subscriptions reaches what this machine can.
	WebhooksAllowPrivate bool
	// CommitConns are database connections for commits, one per journal that is
	// busy at one time. Too few: events wait for each other.
	CommitConns int
	// ReadConns are database connections for reads and reports. Too few: slow
	// reads; too many take memory from the server.
	ReadConns int
	// SweepEvery is how often idle journals are looked at for overdue holds. Long:
	// availability shows held tickets as held for longer; no buyer is refused by it.
	SweepEvery time.Duration
	// Lanes are the lanes of split events that this process looks after first: numbers as in
	// "1,4", or "i/n" for the i-th of n processes; "" for all. Another process's lanes are
	// looked after too, later: every lane is served by every process.
	Lanes string
	// WorkEvery is how often the janitor looks for operations with the provider that are
	// due. Long: what a webhook doesn't tell is learned later.
	WorkEvery time.Duration
	// DrainTimeout bounds the wait for requests that are under way at a stop.
	// Too short: callers lose answers, and must repeat under the same key.
	DrainTimeout time.Duration
	// Log gets what happened; nil discards it.
	Log *slog.Logger
	// Version is the program's, for /version.
	Version string
}

// Default gives a Config with every default filled in.
func Default() Config {
	return Config{
		Listen:       "127.0.0.1:8080",
		Stream:       jetstream.Options{Stream: "TIERLEDGER", MaxAge: 3 * 24 * time.Hour, Replicas: 1},
		CommitConns:  8,
		ReadConns:    8,
		SweepEvery:   time.Second,
		WorkEvery:    time.Second,
		DrainTimeout: 15 * time.Second,
		Log:          slog.New(slog.DiscardHandler),
	}
}

// Validate refuses a configuration that can't work, naming the field.
func (c *Config) Validate() error {
	if c.DatabaseURL == "" {
		return errors.New("database-url: required")
	}
	if _, err := pgx.ParseConfig(c.DatabaseURL); err != nil {
		return errors.New("database-url: not a PostgreSQL URL or keyword string") // the error may quote a password
	}
	if _, err := quota.ParseLanes(c.Lanes); err != nil {
		return fmt.Errorf("lanes: %w", err)
	}
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("tls-cert, tls-key: both or neither")
	case c.CommitConns < 1 || c.CommitConns > maxConns:
		return fmt.Errorf("commit-conns: must be 1 to %d", maxConns)
	case c.ReadConns < 1 || c.ReadConns > maxConns:
		return fmt.Errorf("read-conns: must be 1 to %d", maxConns)
	case !streamName.MatchString(c.Stream.Stream):
		return errors.New("stream: must be 1 to 32 letters, digits, - or _")
	case c.Stream.MaxAge < 0 || c.Stream.MaxAge > 0 && c.Stream.MaxAge < time.Minute:
		return errors.New("stream-max-age: must be 1m or more, or 0 for no limit")
	case c.Stream.MaxBytes < 0 || c.Stream.MaxBytes > 0 && c.Stream.MaxBytes < 1<<20:
		return errors.New("stream-max-bytes: must be 1048576 (1 MiB) or more, or 0 for no limit")
	case c.Stream.Replicas != 1 && c.Stream.Replicas != 3 && c.Stream.Replicas != 5:
		return errors.New("stream-replicas: must be 1, 3 or 5")
	case c.SweepEvery < 10*time.Millisecond || c.SweepEvery > time.Hour:
		return errors.New("sweep-every: must be 10ms to 1h")
	case c.WorkEvery < 10*time.Millisecond || c.WorkEvery > time.Hour:
		return errors.New("work-every: must be 10ms to 1h")
	case c.DrainTimeout < time.Second || c.DrainTimeout > 10*time.Minute:
		return errors.New("drain-timeout: must be 1s to 10m")
	}
	return nil
}

// streamName is what NATS takes as a stream's name, and what's readable.
var streamName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// maxConns bounds a pool: beyond some dozens PostgreSQL only gets slower.
const maxConns = 500
