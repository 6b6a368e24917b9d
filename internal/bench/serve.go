package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"time"

	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/payments/sim"
)

// System names what is measured.
type System string

// The systems that a child can serve.
const (
	Product         System = "product"
	RowLock         System = "row-lock"
	SingleStatement System = "single-statement"
	SeatLock        System = "seat-lock"
	// Selling is the product with the simulated payment provider beside it.
	Selling System = "selling"
)

// principal is who places the holds of a benchmark without HTTP, and of the
// baselines.
const principal = "bench"

// Server says what a child serves.
type Server struct {
	System      System
	DatabaseURL string
	Profile     string // file for its CPU profile; "" for none
	Lanes       string // of the product, those that it prefers; see service.Config
	NATSDir     string // of publishing, a store folder that the caller has locked
	SyncAlways  bool   // of its stream
}

// Serve serves on loopback, says so on stdout, and goes on until stdin or ctx
// ends. Whoever started it holds the other end of stdin, so that it's never left
// behind.
func (s Server) Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		end()
	}()
	stop, err := startProfile(s.Profile)
	if err != nil {
		return err
	}
	defer stop()
	switch s.System {
	case Product:
		c := productConfig(s.DatabaseURL)
		c.Lanes = s.Lanes
		return serveProduct(ctx, c, stdout, func() {})
	case Publishing:
		return s.servePublishing(ctx, func(c service.Config) error { return serveProduct(ctx, c, stdout, func() {}) })
	case Selling:
		return serveSelling(ctx, productConfig(s.DatabaseURL), stdout)
	case RowLock, SingleStatement, SeatLock:
		return serveBaseline(ctx, s.System, s.DatabaseURL, stdout)
	}
	return fmt.Errorf("--system must be %s, %s, %s, %s, %s or %s",
		Product, Publishing, Selling, RowLock, SingleStatement, SeatLock)
}

// productConfig is the service as it's run in production, for callers of this
// machine only.
func productConfig(databaseURL string) service.Config {
	c := service.Default()
	c.DatabaseURL = databaseURL
	c.Listen = "127.0.0.1:0"
	c.LoopbackAdmin = true
	c.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return c
}

// serveProduct serves until ctx ends. Then last comes first.
func serveProduct(ctx context.Context, c service.Config, stdout io.Writer, last func()) error {
	s, err := service.Start(ctx, c)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, readyPrefix+s.URL())
	select {
	case err = <-s.Done():
	case <-ctx.Done():
	}
	last()
	return errors.Join(err, s.Close(context.Background())) // bounded by its own time to drain
}

// tellTimeout bounds the time in which a provider that stops tells what it still has to.
const tellTimeout = 3 * time.Second

// serveSelling serves the product with a simulated provider, whose history is in memory.
func serveSelling(ctx context.Context, c service.Config, stdout io.Writer) error {
	secrets, err := service.NewSecret()
	if err != nil {
		return err
	}
	provider, err := sim.New(sim.Options{Secrets: secrets})
	if err != nil {
		return err
	}
	c.PayWith(provider, secrets)
	return serveProduct(ctx, c, stdout, func() {
		// Before the service stops, which waits for answers that the provider holds back.
		ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
		defer cancel()
		_ = provider.Flush(ctx) // webhooks may be lost
		provider.Close()
	})
}

// drainTimeout is the service's own, for the baselines.
const drainTimeout = 15 * time.Second

func serveBaseline(ctx context.Context, system System, databaseURL string, stdout io.Writer) error {
	b, err := openBaseline(ctx, system, databaseURL)
	if err != nil {
		return err
	}
	defer b.pool.Close()
	if system == SeatLock {
		defer b.sweep(ctx)()
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h := &http.Server{Handler: b, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second}
	served := make(chan error, 1)
	go func() { served <- h.Serve(listener) }()
	fmt.Fprintln(stdout, readyPrefix+"http://"+listener.Addr().String())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	return h.Shutdown(drain)
}

// startProfile writes a CPU profile to a file until the returned function is
// called; with no file it does nothing.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}, nil
}
