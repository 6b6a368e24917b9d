package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/payments"
)

// serveOptions are the settings of serve.
type serveOptions struct {
	config   service.Config
	provider payments.Options
	secrets  []string
	ring     []string
	natsURL  string
	natsDir  string
	keysFile string
	level    slog.LevelVar
}

// serveCommand makes the serve command.
func serveCommand() *cobra.Command {
	o := &serveOptions{config: service.Default()}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API in production",
		Long: `serve runs the service on a database of yours. Any number of processes may serve one
database. It starts only with a complete configuration, an up-to-date schema and API
keys; "ready URL" on standard output says that it serves.

Every setting is a flag, an environment variable or a line of the --config file, in
this order of precedence: --commit-conns 8, TIERLEDGER_COMMIT_CONNS=8, and the same as a
line. Give secrets in the environment or the file; they're never shown.

SIGTERM or Ctrl-C: takes no more requests, finishes those under way, stops.
SIGHUP: reads the keys file again; a wrong one leaves the old keys in force.

Exit codes: 0 stopped by a signal, 1 it couldn't start or broke, 2 wrong usage or setting.`,
		Example: `  TIERLEDGER_DATABASE_URL=postgres://tierledger@db/tickets tierledger serve --keys-file keys --listen :8080
  tierledger serve --config /etc/tierledger.env`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := settle(c.Flags()); err != nil {
				return err
			}
			return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	o.flags(c)
	return c
}

// flags declares every setting; settingNames says which of them may also come from
// the environment or a file.
func (o *serveOptions) flags(c *cobra.Command) {
	flags, config := c.Flags(), &o.config
	flags.StringVar(&config.DatabaseURL, "database-url", "", "PostgreSQL `URL` (required)")
	flags.StringVar(&o.natsURL, "nats-url", "", "NATS `URL`, of a cluster several with a comma, that entries are published to (default: none, and nothing is published)")
	flags.StringVar(&o.natsDir, "nats-dir", "", "publish to a NATS in this process that keeps its files in `DIR`: for one process on one machine")
	flags.StringVar(&config.Stream.Stream, "stream", config.Stream.Stream, "`NAME` of the stream; another name is another stream, published anew (the old one must have gone, or given up its subjects)")
	flags.DurationVar(&config.Stream.MaxAge, "stream-max-age", config.Stream.MaxAge, "how long the stream keeps events; 0 for as long as it has room")
	flags.Int64Var(&config.Stream.MaxBytes, "stream-max-bytes", config.Stream.MaxBytes, "how much the stream keeps, `BYTES`; when it's full, the journals wait (default: what the server has)")
	flags.IntVar(&config.Stream.Replicas, "stream-replicas", config.Stream.Replicas, "`N` copies of the stream in a cluster: 1, 3 or 5")
	flags.BoolVar(&config.WebhooksAllowPrivate, "webhooks-allow-private", false, "let webhooks to subscribers go to private addresses, and over http")
	flags.StringArrayVar(&o.ring, "secret-keys", nil, "tlk_… that tickets are signed and secrets sealed with, see `tierledger keys secret`; several with a comma while it's changed, of which the first signs (default: none, and no ticket is issued)")
	flags.StringVar(&config.Listen, "listen", config.Listen, "`ADDRESS` to serve on; port 0 takes a free one")
	flags.StringVar(&o.keysFile, "keys-file", "", "`FILE` of API keys, see `tierledger help keys` (required)")
	flags.StringVar(&config.TLSCert, "tls-cert", "", "PEM `FILE` of the certificate; with --tls-key serves HTTPS")
	flags.StringVar(&config.TLSKey, "tls-key", "", "PEM `FILE` of the certificate's key")
	flags.IntVar(&config.CommitConns, "commit-conns", config.CommitConns, "database connections for commits: `N` events can be busy at once")
	flags.IntVar(&config.ReadConns, "read-conns", config.ReadConns, "`N` database connections for reads")
	flags.StringVar(&config.Lanes, "lanes", config.Lanes, `lanes of split events to look after first: "1,4", or "2/3" for the second of three processes`)
	flags.DurationVar(&config.SweepEvery, "sweep-every", config.SweepEvery, "how often overdue holds of idle events are looked for")
	flags.DurationVar(&config.WorkEvery, "work-every", config.WorkEvery, "how often operations with the payment provider are looked at that are due")
	flags.StringVar(&o.provider.Name, "provider-name", "sim", "the payment provider's `NAME` in accounts and webhook paths")
	flags.StringVar(&o.provider.URL, "provider-url", "", "the payment provider's `URL` (default: none, and nothing can be bought)")
	flags.DurationVar(&o.provider.Timeout, "provider-timeout", 10*time.Second, "deadline of a call to the payment provider; beyond it the outcome is unknown")
	flags.StringArrayVar(&o.secrets, "provider-secrets", nil, "whsec_… that the provider signs its webhooks with; two, with a comma, while it's changed")
	flags.DurationVar(&config.DrainTimeout, "drain-timeout", config.DrainTimeout, "how long a stop waits for requests under way")
	configFlag(c)
	logFlag(c, &o.level, slog.LevelInfo)
}

// run serves until ctx ends, then finishes what was accepted. Nothing is served
// before every setting, the keys and the schema are right.
func (o *serveOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	log := newLog(stderr, &o.level)
	closeBus, err := o.prepare(ctx, log)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	defer closeBus()
	s, err := service.Start(ctx, o.config)
	if err != nil {
		return explainListen(err, o.config.Listen)
	}
	// Listening for the signal before saying ready: from then on it may come.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	fmt.Fprintf(stdout, "ready %s\n", s.URL())
	log.Info("served", slog.String("url", s.URL()), slog.String("version", o.config.Version))
	for {
		select {
		case <-hangup:
			o.reloadKeys(log)
		case err := <-s.Done():
			return errors.Join(fmt.Errorf("serving ended: %w", err), s.Close(context.Background()))
		case <-ctx.Done():
			log.Info("stopping was asked for")
			err := s.Close(context.Background())
			log.Info("stopped")
			return err
		}
	}
}

// prepare checks the settings and the schema, and gets ready what the service
// stands on.
func (o *serveOptions) prepare(ctx context.Context, log *slog.Logger) (closeBus func(), err error) {
	config := &o.config
	config.Log, config.Version = log, version()
	if err := config.Validate(); err != nil {
		return nil, usageError{err}
	}
	if o.keysFile == "" {
		return nil, usagef("keys-file: required; `tierledger keys new` makes a key")
	}
	if config.Keys, err = httpapi.LoadKeys(o.keysFile); err != nil {
		return nil, err
	}
	if config.Secrets, err = keyring.Parse(listed(o.ring)...); err != nil {
		return nil, usagef("secret-keys: %w", err)
	}
	if err := o.prepareProvider(); err != nil {
		return nil, err
	}
	if err := checkSchema(ctx, config.DatabaseURL); err != nil {
		return nil, err
	}
	return o.connectBus(ctx, log)
}

// prepareProvider makes the payment provider, if there's one.
func (o *serveOptions) prepareProvider() (err error) {
	if o.provider.URL == "" {
		return nil
	}
	if len(o.secrets) == 0 {
		return usagef("provider-secrets: required with provider-url, or no webhook could be verified")
	}
	if o.provider.Secrets, err = payments.ParseSecrets(listed(o.secrets)...); err != nil {
		return usagef("provider-secrets: %w", err)
	}
	client, err := payments.NewClient(o.provider)
	if err != nil {
		return usageError{err}
	}
	o.config.Providers = func(string) ([]payments.Provider, error) { return []payments.Provider{client}, nil }
	return nil
}

// listed splits secrets that are given with commas between them. A flag that does it itself
// shows what it can't read.
func listed(texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	return strings.Split(strings.Join(texts, ","), ",")
}

// reloadKeys takes the keys file as it is now. A wrong one must not lock anybody out.
func (o *serveOptions) reloadKeys(log *slog.Logger) {
	if err := o.config.Keys.Reload(); err != nil {
		log.Error("keys weren't reloaded, the old ones stay in force", slog.Any("error", err))
		return
	}
	log.Info("keys were reloaded")
}
