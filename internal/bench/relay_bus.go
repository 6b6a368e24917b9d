package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// relayBus is a JetStream server in this process on a temporary store. Between its times a
// child may have one on the same folder.
type relayBus struct {
	store *embedded.Store
	sync  bool
	nats  *embedded.NATS // nil while it doesn't run
	conn  *nats.Conn
}

func newRelayBus(ctx context.Context, sync bool) (*relayBus, error) {
	store, err := embedded.TempStore(ctx, "")
	if err != nil {
		return nil, err
	}
	return &relayBus{store: store, sync: sync}, nil
}

// natsTimeout bounds a start of the server, which looks through what it has.
const natsTimeout = time.Minute

// serve starts the server; it listens on an address, or on none.
func (b *relayBus) serve(ctx context.Context, address string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	b.nats, err = embedded.StartNATS(ctx, embedded.NATSOptions{Dir: b.store.Dir(), SyncAlways: b.sync, Listen: address})
	return err
}

// start starts the server, and connects within this process as the service does.
func (b *relayBus) start(ctx context.Context) error {
	if err := b.serve(ctx, ""); err != nil {
		return err
	}
	var err error
	b.conn, err = b.nats.Connect(service.BusOptions()...)
	return err
}

// startRemote starts the server, and connects by URL, so that the connection outlives it.
func (b *relayBus) startRemote(ctx context.Context) error {
	if err := b.serve(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	var err error
	b.conn, err = nats.Connect(b.nats.URL(), service.BusOptions()...)
	return err
}

// wipe takes the server's folder away, and starts it anew on the same address. The
// connection is left to find it.
func (b *relayBus) wipe(ctx context.Context) error {
	_, address, _ := strings.Cut(b.nats.URL(), "://")
	b.nats.Stop()
	if err := b.clear(); err != nil {
		return err
	}
	return b.serve(ctx, address)
}

// clear removes what the server has kept.
func (b *relayBus) clear() error { return os.RemoveAll(filepath.Join(b.store.Dir(), "nats")) }

// stop stops the server. Its files stay.
func (b *relayBus) stop() {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.nats != nil {
		b.nats.Stop()
	}
	b.conn, b.nats = nil, nil
}

// remove stops the server and removes its store.
func (b *relayBus) remove(ctx context.Context) error {
	b.stop()
	return b.store.Remove(ctx)
}

// stream is the product's, on the present connection.
func (b *relayBus) stream() (*jetstream.Bus, error) {
	o := service.Default().Stream
	o.Conn = b.conn
	return jetstream.NewBus(o)
}

// Publishing is the product with publisher and consumers, and NATS in its process.
const Publishing System = "publishing"

// servePublishing serves the product with everything that follows the journals.
func (s Server) servePublishing(ctx context.Context, serve func(service.Config) error) error {
	if s.NATSDir == "" {
		return errors.New("--system publishing needs --nats-dir")
	}
	bus := &relayBus{sync: s.SyncAlways}
	var err error
	bus.nats, err = embedded.StartNATS(ctx, embedded.NATSOptions{Dir: s.NATSDir, SyncAlways: s.SyncAlways})
	if err != nil {
		return err
	}
	defer bus.stop()
	if bus.conn, err = bus.nats.Connect(service.BusOptions()...); err != nil {
		return err
	}
	c := productConfig(s.DatabaseURL)
	c.NATS = bus.conn
	if c.Secrets, err = keyring.Parse(keyring.New()); err != nil {
		return fmt.Errorf("make a secret: %w", err)
	}
	return serve(c)
}
