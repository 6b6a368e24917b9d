package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/payments/sim"
)

// simName is the file in the store that keeps the simulated provider's history.
const simName = "sim.jsonl"

// secretName is the file in the store that keeps the secret which tickets are signed with.
const secretName = "secret"

const (
	// startTimeout bounds the start of a sandbox; a first start makes a cluster,
	// and one after a crash recovers it.
	startTimeout = 2 * time.Minute
	// firstPause and lastPause bound the wait between attempts to restart a
	// PostgreSQL that ended; each wait is twice the one before.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// sandboxOptions configure a sandbox.
type sandboxOptions struct {
	listen   string
	data     string // store folder; "": a temporary one, removed at the end
	keysFile string
	// natsListen is where NATS listens; "": nowhere.
	natsListen string
	log        *slog.Logger
	say        func(format string, args ...any) // one line for people
}

// sandbox is a tierledger with all that it needs, on this machine: a store, a
// private PostgreSQL and NATS, and the service.
type sandbox struct {
	options  sandboxOptions
	store    *embedded.Store
	postgres *embedded.Postgres
	service  *service.Service
	undo     []func() error // in the order of the start
}

// openSandbox starts everything. After an error nothing keeps running.
func openSandbox(ctx context.Context, o sandboxOptions) (*sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := &sandbox{options: o}
	for _, step := range []func(context.Context) error{s.openStore, s.startPostgres, s.startService} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// URL is where the service listens.
func (s *sandbox) URL() string { return s.service.URL() }

// databaseURL is the private database's.
func (s *sandbox) databaseURL() string { return s.postgres.URL(databaseName) }

// Close stops everything in the opposite order of the start, each within its own
// bound, and removes a temporary store.
func (s *sandbox) Close() error {
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	s.undo = nil
	return errors.Join(errs...)
}

// later remembers how to undo a step of the start.
func (s *sandbox) later(undo func() error) { s.undo = append(s.undo, undo) }

// openStore locks the store: from here on everything in it is ours alone.
func (s *sandbox) openStore(ctx context.Context) (err error) {
	if s.options.data != "" {
		if s.store, err = embedded.LockStore(s.options.data); err == nil {
			s.later(s.store.Close)
		}
		return err
	}
	if s.store, err = embedded.TempStore(ctx, os.TempDir()); err == nil {
		s.later(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
			defer cancel()
			return s.store.Remove(ctx)
		})
	}
	return err
}

// startPostgres starts the database, migrates it, tells its URL to the commands that
// come to the store, and sees that it stays up.
func (s *sandbox) startPostgres(ctx context.Context) (err error) {
	dir := s.store.Dir()
	s.options.say("starting PostgreSQL and NATS in %s", dir)
	s.postgres, err = embedded.StartPostgres(ctx, embedded.PostgresOptions{Dir: dir, Notice: s.notice})
	if err != nil {
		return err
	}
	s.later(func() error { return stopPostgres(s.postgres) })
	if err := migrations.Apply(ctx, s.databaseURL()); err != nil {
		return err
	}
	path := filepath.Join(dir, urlName)
	s.later(func() error { return os.RemoveAll(path) })
	if err := os.WriteFile(path, []byte(s.databaseURL()+"\n"), 0o600); err != nil {
		return fmt.Errorf("tell the database's URL: %w", err)
	}
	// The guard goes before the server does, or it would start it again.
	guarded, stop := context.WithCancel(context.Background())
	var guard sync.WaitGroup
	guard.Go(func() { s.guard(guarded) })
	s.later(func() error { stop(); guard.Wait(); return nil })
	return nil
}

// startService starts NATS, the simulated provider and the service. Closing the service comes first at the
// end, so that whatever it accepted is committed.
func (s *sandbox) startService(ctx context.Context) error {
	bus, err := embedded.StartNATS(ctx, embedded.NATSOptions{Dir: s.store.Dir(), Listen: s.options.natsListen, Notice: s.notice})
	if err != nil {
		return err
	}
	s.later(func() error { bus.Stop(); return nil })
	if url := bus.URL(); url != "" {
		s.options.say("NATS is at %s", url)
	}
	conn, err := bus.Connect(service.BusOptions()...)
	if err != nil {
		return err
	}
	s.later(func() error { conn.Close(); return nil })
	config := service.Default()
	if config.Secrets, err = ringOf(filepath.Join(s.store.Dir(), secretName)); err != nil {
		return err
	}
	config.DatabaseURL, config.NATS = s.databaseURL(), conn
	config.Listen, config.LoopbackAdmin, config.WebhooksAllowPrivate = s.options.listen, true, true
	config.Log, config.Version = s.options.log, version()
	if s.options.keysFile != "" {
		if config.Keys, err = httpapi.LoadKeys(s.options.keysFile); err != nil {
			return err
		}
	}
	secrets, err := service.NewSecret()
	if err != nil {
		return err
	}
	provider, err := sim.New(sim.Options{File: filepath.Join(s.store.Dir(), simName), Secrets: secrets})
	if err != nil {
		return err
	}
	config.PayWith(provider, secrets)
	if s.service, err = service.Start(ctx, config); err != nil {
		return errors.Join(explainListen(err, config.Listen), provider.Close())
	}
	s.later(func() error { return s.service.Close(context.Background()) })
	s.later(provider.Close) // first: the service waits for answers that the provider holds back
	s.options.say("calls from this machine without a key are admin")
	return nil
}

// ringOf gives the ring of the secret in a file, which is made if it isn't there.
func ringOf(path string) (keyring.Ring, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		text = []byte(keyring.New() + "\n")
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("the store's secret: %w", err)
	}
	ring, err := keyring.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ring, nil
}

// guard starts PostgreSQL again whenever it ends before ctx. Until it's back, the
// service answers that the database is unavailable.
func (s *sandbox) guard(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.postgres.Done():
		}
		s.options.say("PostgreSQL ended; starting it again")
		for pause := firstPause; ; pause = min(2*pause, lastPause) {
			err := s.postgres.Restart(ctx)
			if err == nil {
				s.options.say("PostgreSQL is back")
				break
			}
			s.options.say("%v", err)
			if !wait.For(ctx, pause) {
				return
			}
		}
	}
}

// notice passes on what the private servers have to say.
func (s *sandbox) notice(line string) { s.options.say("%s", line) }

// explainListen says what to do about an address that is taken.
func explainListen(err error, listen string) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken by another program; choose another address with --listen, or port 0 for any free one", listen)
	}
	return err
}
