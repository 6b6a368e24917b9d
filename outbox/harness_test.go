package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a ledger with a few journals, and a bus.
type world struct {
	service.Stores
	t     *testing.T
	db    *pgtest.DB
	pool  *pgxpool.Pool // of the outbox
	owner *pgx.Conn
	log   *lines

	dir  string // of the bus's store
	nats *embedded.NATS
	conn *nats.Conn
	bus  *jetstream.Bus
}

func open(t *testing.T) *world {
	t.Helper()
	db := pgtest.New(t)
	db.Except("events_listed") // the journals are made without an event
	return openOn(t, db)
}

func openOn(t *testing.T, db *pgtest.DB) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{t: t, db: db, Stores: pgtest.Stores(t, db, nil), dir: t.TempDir(), log: &lines{}}
	var err error
	w.pool, err = pg.Open(ctx, pg.Options{URL: db.URL(), Name: "outbox", Role: migrations.ServiceRole, MaxConns: 8})
	w.must(err)
	t.Cleanup(w.pool.Close)
	w.owner, err = pgx.Connect(ctx, db.URL())
	w.must(err)
	t.Cleanup(func() { w.owner.Close(context.Background()) })
	w.startBus(jetstream.Options{})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// startBus starts the bus on the world's folder; o.Conn and an empty name are filled in.
func (w *world) startBus(o jetstream.Options) {
	w.t.Helper()
	w.startNATS()
	w.connect(o)
}

func (w *world) startNATS() {
	w.t.Helper()
	var err error
	w.nats, err = embedded.StartNATS(w.t.Context(), embedded.NATSOptions{Dir: w.dir, SyncAlways: os.Getenv("SYNC") != ""})
	w.must(err)
	w.t.Cleanup(w.nats.Stop)
}

// patient gives a busy machine time for a connection.
var patient = nats.Timeout(20 * time.Second)

func (w *world) connect(o jetstream.Options) {
	w.t.Helper()
	var err error
	w.conn, err = w.nats.Connect(nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), patient)
	w.must(err)
	w.t.Cleanup(w.conn.Close)
	o.Conn = w.conn
	if o.Stream == "" {
		o.Stream = "TIERLEDGER"
	}
	w.bus, err = jetstream.NewBus(o)
	w.must(err)
}

// note is a command that records something and moves nothing.
type note struct{ Text string }

func (n note) Accounts() []string { return nil }
func (n note) Decide(*ledger.State) (ledger.Decision, error) {
	data, err := json.Marshal(n)
	return ledger.Decision{Kind: "test.noted", Data: data}, err
}

// write adds n entries to a journal, which it makes.
func (w *world) write(journal ledger.JournalID, n int) {
	w.t.Helper()
	ctx := w.t.Context()
	w.must(w.Ledger.Create(ctx, journal))
	head, err := w.Reader.Head(ctx, journal)
	w.must(err)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			text := fmt.Sprintf("note %d of journal %d", int(head)+i+1, journal)
			c, err := ledger.NewCommand(journal, "tester", text, "note", text, note{text})
			if err == nil {
				_, err = w.Ledger.Do(ctx, journal, c)
			}
			if err != nil {
				w.t.Error(err)
			}
		})
	}
	all.Wait()
}

// relay starts a relay on the world's bus; it's stopped by the function, or at the end.
func (w *world) relay(observe func(outbox.Published)) (r *outbox.Relay, stop func()) {
	w.t.Helper()
	r = outbox.NewRelay(outbox.RelayOptions{Pool: w.pool, Bus: w.bus, Observe: observe, Log: w.log.logger()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	w.t.Cleanup(stop)
	return r, stop
}

// published waits until nothing is left to be published.
func (w *world) published(r *outbox.Relay) {
	w.t.Helper()
	pgtest.Until(w.t, "everything is published", func() bool {
		b, err := r.Backlog(w.t.Context())
		return err == nil && b.Entries == 0 && b.Troubled == 0
	})
}

// streamed reads the whole stream: the events of each journal, in the stream's order.
func (w *world) streamed() map[ledger.JournalID][]outbox.Event {
	w.t.Helper()
	ctx := w.t.Context()
	js, err := natsjs.New(w.conn, natsjs.WithDefaultTimeout(time.Minute))
	w.must(err)
	stream, err := js.Stream(ctx, w.bus.Options.Stream)
	w.must(err)
	info, err := stream.Info(ctx)
	w.must(err)
	events := make(map[ledger.JournalID][]outbox.Event)
	if info.State.Msgs == 0 {
		return events
	}
	consumer, err := stream.OrderedConsumer(ctx, natsjs.OrderedConsumerConfig{})
	w.must(err)
	messages, err := consumer.Messages()
	w.must(err)
	defer messages.Stop()
	for {
		msg, err := messages.Next(natsjs.NextContext(ctx))
		w.must(err)
		var e outbox.Event
		w.must(json.Unmarshal(msg.Data(), &e))
		if msg.Subject() != e.Subject() {
			w.t.Errorf("%s is on %s", e.Subject(), msg.Subject())
		}
		events[e.Journal] = append(events[e.Journal], e)
		meta, err := msg.Metadata()
		w.must(err)
		if meta.NumPending == 0 {
			return events
		}
	}
}

// complete checks that the stream has every entry of every journal once, in order.
func (w *world) complete() {
	w.t.Helper()
	ctx := w.t.Context()
	events := w.streamed()
	rows, err := w.owner.Query(ctx, `SELECT journal_id, seq, id, kind, at, data FROM entries ORDER BY journal_id, seq`)
	w.must(err)
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[outbox.Event])
	w.must(err)
	of := make(map[ledger.JournalID][]outbox.Event)
	for _, e := range entries {
		of[e.Journal] = append(of[e.Journal], e)
	}
	for journal, want := range of {
		got := events[journal]
		if len(got) != len(want) {
			w.t.Errorf("journal %d: %d events of %d entries", journal, len(got), len(want))
		}
		for i := range min(len(got), len(want)) {
			if g, e := got[i], want[i]; g.Seq != e.Seq || g.ID != e.ID || g.Kind != e.Kind || !g.At.Equal(e.At) || !bytes.Equal(g.Data, e.Data) {
				w.t.Fatalf("journal %d, place %d: event %+v of entry %+v", journal, i, g, e)
			}
		}
	}
	for journal := range events {
		if of[journal] == nil {
			w.t.Errorf("the stream has a journal %d", journal)
		}
	}
}

// lines keeps a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
