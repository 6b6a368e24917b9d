// Package service is the program put together: pools, ledger, stores, sweeper, janitor,
// publisher, consumers and HTTP server, started and stopped in order. dev, demo, serve,
// the benchmark and the tests all start it, so there's one way in which the parts fit.
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/quota"
)

// Limits of the HTTP server.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second // a body is 64 KiB at most, but a report's or a chart's: 32 MiB, from nearby
	writeTimeout      = 60 * time.Second // a report's read may take that long
	idleTimeout       = 2 * time.Minute  // shoppers come back within it
	maxHeaderBytes    = 16 << 10
)

// goodbyeTimeout is how long a stop waits for the database to let go of its connections.
const goodbyeTimeout = 5 * time.Second

// Service is a running service. Its stores are for use beside HTTP, by tests and
// the benchmark.
type Service struct {
	Stores

	config   Config
	commits  *pgxpool.Pool
	reads    *pgxpool.Pool
	effects  effects
	metrics  *httpapi.Metrics
	server   *http.Server
	listener net.Listener
	stop     context.CancelFunc // of the sweeper and the janitor
	workers  sync.WaitGroup
	done     chan error
}

// Start starts a service: when it returns, requests are served. The database
// needn't be up. ctx bounds the start, not the service's life.
func Start(ctx context.Context, c Config) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Service{config: c, done: make(chan error, 1), metrics: httpapi.NewMetrics()}
	if err := s.listen(ctx); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		s.listener.Close()
		s.closePools()
		return nil, err
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.workers.Go(func() { s.sweep(background) })
	s.workers.Go(func() { s.work(background) })
	s.workers.Go(func() { s.balance(background) })
	s.startEffects(background)
	go s.serve()
	return s, nil
}

// open makes the pools and what stands on them, and the handler. It doesn't connect.
func (s *Service) open(ctx context.Context) (err error) {
	c := s.config
	s.commits, err = pg.Open(ctx, pg.Options{
		URL: c.DatabaseURL, Name: "tierledger commits", Role: migrations.ServiceRole, MaxConns: int32(c.CommitConns)})
	if err != nil {
		return err
	}
	s.reads, err = pg.Open(ctx, pg.Options{
		URL: c.DatabaseURL, Name: "tierledger reads", Role: migrations.ServiceRole, MaxConns: int32(c.ReadConns),
		ReadOnly: true})
	if err != nil {
		return err
	}
	if err := s.effects.openPool(ctx, c.DatabaseURL); err != nil {
		return err
	}
	var providers []payments.Provider
	if c.Providers != nil {
		if providers, err = c.Providers(s.URL()); err != nil {
			return err
		}
	}
	prefers, err := quota.ParseLanes(c.Lanes)
	if err != nil {
		return err
	}
	s.Stores = Fit(Parts{Commits: s.commits, Reads: s.reads, Observe: s.observe, Providers: providers,
		Operations: s.metrics.ObserveOperation, Prefers: prefers, Moves: s.metrics.ObserveMove,
		Effects: s.effects.pool, Secrets: c.Secrets, WebhooksAllowPrivate: c.WebhooksAllowPrivate,
		Sent: s.metrics.ObserveSent, Log: c.Log})
	if err := s.fitEffects(); err != nil {
		return err
	}
	s.metrics.SetQueueDepth(s.Ledger.Waiting)
	s.metrics.SetFollowers(s.Maps.Followers, s.Maps.Cut)
	s.server.RegisterOnShutdown(s.Maps.Close) // who follows would keep it waiting
	s.server.Handler = besideSim(c.Sim, httpapi.New(httpapi.Config{
		Ledger: s.Ledger, Reader: s.Reader, Events: s.Events, Seats: s.Seats, Maps: s.Maps,
		Quotas: s.Quotas, Holds: s.Holds, Orders: s.Orders, Recon: s.Recon,
		Tickets: s.Tickets, Subscribers: s.Subscribers, Letters: s.Letters,
		Keys: c.Keys, LoopbackAdmin: c.LoopbackAdmin, Ready: s.checks(),
		Metrics: s.metrics, Log: c.Log, Version: c.Version,
	}))
	return nil
}

// observe counts a batch, and reports what failed in it without failing anyone.
func (s *Service) observe(b ledger.Batch) {
	s.metrics.ObserveBatch(b)
	if b.Entries > 0 && s.effects.relay != nil {
		s.effects.relay.Hint(b.Journal)
	}
	if b.Err != nil {
		s.config.Log.Error("a due command failed", slog.Int64("journal", int64(b.Journal)), slog.Any("error", b.Err))
	}
}

// listen takes the address and makes the server.
func (s *Service) listen(ctx context.Context) error {
	c := s.config
	s.server = &http.Server{
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
	}
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return fmt.Errorf("tls-cert, tls-key: %w", err)
		}
		s.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.listener = listener
	return nil
}

// simPrefix is where the simulated provider's paths begin.
const simPrefix = "/sim"

// besideSim serves the simulated provider below /sim, and the API elsewhere.
func besideSim(sim, api http.Handler) http.Handler {
	if sim == nil {
		return api
	}
	sim = http.StripPrefix(simPrefix, sim)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, simPrefix+"/") {
			sim.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// checks are what /readyz looks at. Anybody may ask it, any number of times: the
// commits' connections aren't for that.
func (s *Service) checks() []httpapi.Check {
	checks := []httpapi.Check{{Name: "database", Probe: s.reads.Ping}}
	if s.effects.relay != nil {
		checks = append(checks, s.effects.check())
	}
	return checks
}

func (s *Service) serve() {
	var err error
	if s.config.TLSCert != "" {
		err = s.server.ServeTLS(s.listener, "", "")
	} else {
		err = s.server.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	s.done <- err
	close(s.done)
}

// sweep finishes what was left half done and expires what is due, again and
// again, until ctx ends.
func (s *Service) sweep(ctx context.Context) {
	ticker := time.NewTicker(s.config.SweepEvery)
	defer ticker.Stop()
	for {
		if err := s.Events.OpenCreated(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.Warn("opening created events failed", slog.Any("error", err))
		}
		if err := s.Events.FollowLanes(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.Warn("changing lanes failed", slog.Any("error", err))
		}
		if err := s.Quotas.Resume(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.Warn("finishing quota moves failed", slog.Any("error", err))
		}
		if err := s.Quotas.Release(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.Warn("releasing allotments failed", slog.Any("error", err))
		}
		oldest, err := s.Holds.Sweep(ctx)
		if err != nil && ctx.Err() == nil {
			s.config.Log.Warn("sweep failed", slog.Any("error", err))
		}
		if err == nil || oldest > 0 { // an error alone says nothing about the holds
			s.metrics.SetOverdue(oldest)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// balance moves tickets between the lanes of events ahead of demand, again and again,
// until ctx ends.
func (s *Service) balance(ctx context.Context) {
	ticker := time.NewTicker(quota.BalanceEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.Quotas.Balance(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.Warn("rebalancing failed", slog.Any("error", err))
			wait.For(ctx, s.config.SweepEvery) // as the other workers do, and say so no more often
		}
	}
}

// work does what is due with the payment providers, again and again, until ctx ends.
func (s *Service) work(ctx context.Context) {
	ticker := time.NewTicker(s.config.WorkEvery)
	defer ticker.Stop()
	for {
		backlog, err := s.Orders.Work(ctx)
		if err != nil && ctx.Err() == nil {
			s.config.Log.Warn("janitor failed", slog.Any("error", err))
		}
		if err == nil || backlog.Due > 0 { // an error alone says nothing about the operations
			s.metrics.SetBacklog(backlog)
		}
		if open, err := s.Cases.CountOpen(ctx); err == nil { // else the database is away, and all say so
			s.metrics.SetOpenCases(open)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// URL is where the service serves, with the real port.
func (s *Service) URL() string {
	scheme := "http"
	if s.config.TLSCert != "" {
		scheme = "https"
	}
	return scheme + "://" + s.listener.Addr().String()
}

// Done gets the error that ended serving, nil after Close.
func (s *Service) Done() <-chan error { return s.done }

// Close stops taking requests, finishes those under way within DrainTimeout, and
// stops the rest in order: sweeper and janitor, calls to providers, maps, ledger, pools.
// Everything that was accepted is answered or, past the timeout, can be learned by a
// repeat under its key; what a provider didn't answer in time is unknown, and left to
// another process's janitor.
func (s *Service) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.DrainTimeout)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if err != nil {
		s.server.Close()
		err = fmt.Errorf("drain: %w", err)
	}
	s.stop()
	s.Orders.Close(ctx)
	s.workers.Wait()
	s.Maps.Close() // Shutdown has only begun it
	s.Quotas.Close()
	s.Ledger.Close()
	s.closePools()
	return err
}

// closePools says goodbye to the database. Nothing is under way any more, so one that
// doesn't answer isn't waited for.
func (s *Service) closePools() {
	var closing sync.WaitGroup
	for _, pool := range []*pgxpool.Pool{s.commits, s.reads, s.effects.pool} {
		if pool != nil {
			closing.Go(pool.Close)
		}
	}
	closed := make(chan struct{})
	go func() { closing.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(goodbyeTimeout):
		s.config.Log.Warn("the database didn't answer the goodbye; its sessions end by themselves")
	}
}
