package outbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// A full stream drops nothing: the journals wait, it's said why, and when there's room
// they go on in order.
func TestAFullStream(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	_, w.bus = w.busTo(jetstream.Options{MaxBytes: 256 << 10})
	w.invent(901, 902, 800) // some 400 bytes each
	r, _ := w.running(outbox.RelayOptions{})
	w.troubled(r, "the stream is full")
	had := w.streamed()
	first := had[901]
	if len(first) == 0 {
		first = had[902]
	}
	if len(first) == 0 || len(had[901])+len(had[902]) >= 1600 {
		t.Fatalf("the full stream has %d and %d events", len(had[901]), len(had[902]))
	}
	// Room for a few, then for all.
	for _, most := range []int64{288 << 10, 4 << 20} {
		config := w.stream().CachedInfo().Config
		config.MaxBytes = most
		_, err := w.jetstream().UpdateStream(t.Context(), config)
		w.must(err)
		was := uint64(len(had[901]) + len(had[902]))
		pgtest.Until(t, "it goes on", func() bool { return w.messages() > was })
	}
	w.full()
	w.complete()
	w.calm(r)
}

// A batch that the whole stream has no room for goes in parts.
func TestABatchLargerThanTheStream(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	_, w.bus = w.busTo(jetstream.Options{MaxBytes: 64 << 10, MaxAge: shortest})
	w.invent(901, 901, 500)
	var seen tally
	r, _ := w.running(outbox.RelayOptions{Observe: seen.add})
	w.published(r)
	if p := seen.of(901); p.Events != 500 || p.Again != 0 {
		t.Errorf("%d events were published, %d of them again", p.Events, p.Again)
	}
	w.calm(r)
}

// The server's own limit is reached, in the middle of a batch: the server keeps its
// beginning. With more room the rest follows.
func TestAFullServer(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	w.endNATS()
	begin := func(most int64) (end func()) {
		srv, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: w.store(), NoSigs: true, NoLog: true,
			JetStreamMaxStore: most})
		w.must(err)
		srv.Start()
		if !srv.ReadyForConnections(time.Minute) {
			t.Fatal("the server isn't ready")
		}
		var provider nats.InProcessConnProvider = srv
		w.door.server.Store(&provider)
		end = func() { w.door.server.Store(nil); srv.Shutdown(); srv.WaitForShutdown() }
		t.Cleanup(end)
		return end
	}
	end := begin(200 << 10)
	w.invent(901, 901, 800) // some 400 bytes each
	r, _ := w.running(outbox.RelayOptions{})
	w.troubled(r, "the stream is full")
	if n := len(w.streamed()[901]); n == 0 || n == 800 {
		t.Errorf("the full server has %d events", n)
	}
	end()
	begin(8 << 20)
	w.full()
	w.complete()
	w.calm(r)
}

// The disk of the bus's store is full. The server gives up; on a larger disk it begins
// again, with what it had, and the rest follows.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	w := openTampered(t)
	w.endNATS()
	small := filepath.Join(w.t.TempDir(), "small")
	w.must(os.MkdirAll(small, 0o700))
	err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=4m")
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("a small file system can be mounted by root alone")
	}
	w.must(err)
	w.t.Cleanup(func() { w.nats.Stop(); _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	w.dir = small
	w.beginNATS()
	w.invent(901, 902, 400)
	w.tamper(`UPDATE entries SET data = to_json(repeat('x', 10000))`) // 8 MB
	r, _ := w.running(outbox.RelayOptions{})
	pgtest.Until(t, "the backlog tells of a trouble", func() bool {
		b, err := r.Backlog(t.Context())
		w.must(err)
		return b.Trouble != "" && b.Entries > 0
	})
	w.endNATS()
	had := os.DirFS(w.store())
	w.dir = t.TempDir()
	w.must(os.CopyFS(w.store(), had))
	w.beginNATS()
	w.full()
	w.complete()
	w.calm(r)
}

// The server is away for a while, again and again.
func TestTheServerIsAway(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	r, _ := w.running(outbox.RelayOptions{})
	for range 3 {
		w.write(901, 20)
		r.Hint(901)
		w.endNATS()
		w.write(901, 20)
		r.Hint(901)
		w.troubled(r, "look at the stream")
		w.beginNATS()
		w.full()
		w.complete()
	}
	w.calm(r)
	w.logged("publishing goes on")
}

// The connections to the database lead nowhere, as after it has moved to another machine: it's
// told, and with new ones all is published. (Slow: the answers have their time.)
func TestTheDatabaseHangs(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	proxy := pgtest.NewProxy(t, w.db)
	pool, err := pg.Open(t.Context(), pg.Options{URL: proxy.ServiceURL(t, w.db), Name: "far", MaxConns: 8})
	w.must(err)
	t.Cleanup(pool.Close)
	w.write(901, 3)
	// They hang while the relay looks at the stream: then it's a look that meets that, and not
	// the patrol, for whose connection there'd be another.
	var hold atomic.Bool
	held, goOn := make(chan struct{}), make(chan struct{})
	r, _ := w.running(outbox.RelayOptions{Pool: pool, Bus: &hooked{Bus: w.bus,
		onStream: func(ctx context.Context, stream func(context.Context) (outbox.Stream, error)) (outbox.Stream, error) {
			if hold.CompareAndSwap(true, false) {
				close(held)
				<-goOn
			}
			return stream(ctx)
		}}})
	w.full()
	w.published(r)
	hold.Store(true)
	<-held
	t.Cleanup(proxy.Hang())
	close(goOn)
	w.write(901, 1)
	w.logged("nothing is published")
	w.full()
	w.complete()
}
