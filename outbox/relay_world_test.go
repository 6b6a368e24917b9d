package outbox_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// quick is the pause before a connection is tried again.
const quick = 20 * time.Millisecond

// relaying is a world whose bus keeps its connection when the server is another one, as
// that to a server at an address does.
type relaying struct {
	*world
	door    door
	letters sync.WaitGroup // that are under way
}

// door leads to the server that runs now.
type door struct {
	server atomic.Pointer[nats.InProcessConnProvider]
}

func (d *door) InProcessConn() (net.Conn, error) {
	server := d.server.Load()
	if server == nil {
		return nil, nats.ErrNoServers
	}
	return (*server).InProcessConn()
}

// openRelaying opens a world; o.Conn and an empty name are filled in.
func openRelaying(t *testing.T, o jetstream.Options) *relaying {
	t.Helper()
	w := &relaying{world: open(t)}
	w.conn.Close()
	w.passThrough()
	w.conn, w.bus = w.busTo(o)
	return w
}

// openTampered opens a world whose journals the test makes up, or takes from another.
func openTampered(t *testing.T) *relaying {
	t.Helper()
	w := openRelaying(t, jetstream.Options{})
	w.db.Tampered()
	return w
}

// passThrough leads the door to the server that runs now.
func (w *relaying) passThrough() {
	w.t.Helper()
	conn, err := w.nats.Connect(patient)
	w.must(err)
	defer conn.Close()
	w.door.server.Store(&conn.Opts.InProcessServer)
}

// busTo makes a bus on a connection of its own, as another process has it.
func (w *relaying) busTo(o jetstream.Options) (*nats.Conn, *jetstream.Bus) {
	w.t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(&w.door), nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1), nats.ReconnectWait(quick), nats.ReconnectJitter(quick, quick), patient)
	w.must(err)
	w.t.Cleanup(conn.Close)
	o.Conn = conn
	if o.Stream == "" {
		o.Stream = "TIERLEDGER"
	}
	bus, err := jetstream.NewBus(o)
	w.must(err)
	return conn, bus
}

// endNATS ends the server; connections wait for another one.
func (w *relaying) endNATS() {
	w.door.server.Store(nil)
	w.nats.Stop()
}

// beginNATS starts a server on the folder as it is.
func (w *relaying) beginNATS() {
	w.t.Helper()
	w.startNATS()
	w.passThrough()
}

// store is the server's folder.
func (w *relaying) store() string { return filepath.Join(w.dir, "nats") }

// keep copies the store of a server that has ended, and returns what puts it back, in
// another folder.
func (w *relaying) keep() (putBack func()) {
	w.t.Helper()
	kept := w.t.TempDir()
	w.must(os.CopyFS(kept, os.DirFS(w.store())))
	return func() {
		w.t.Helper()
		w.dir = w.t.TempDir()
		w.must(os.CopyFS(w.store(), os.DirFS(kept)))
	}
}

// stream is the administrator's view of the stream.
func (w *relaying) stream() natsjs.Stream {
	w.t.Helper()
	stream, err := w.jetstream().Stream(w.t.Context(), w.bus.Options.Stream)
	w.must(err)
	return stream
}

// anotherPool is the pool of another process.
func (w *relaying) anotherPool() *pgxpool.Pool {
	w.t.Helper()
	pool, err := pg.Open(w.t.Context(), pg.Options{URL: w.db.URL(), Name: "another", Role: migrations.ServiceRole, MaxConns: 8})
	w.must(err)
	w.t.Cleanup(pool.Close)
	return pool
}

// running starts a relay; it's stopped by the function, or at the end.
func (w *relaying) running(o outbox.RelayOptions) (r *outbox.Relay, stop func()) {
	w.t.Helper()
	if o.Pool == nil {
		o.Pool = w.pool
	}
	if o.Bus == nil {
		o.Bus = w.bus
	}
	o.Log = w.log.logger()
	r = outbox.NewRelay(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	w.t.Cleanup(stop)
	return r, stop
}

// relayed has everything published by a relay that has ended then.
func (w *relaying) relayed() {
	w.t.Helper()
	r, stop := w.running(outbox.RelayOptions{})
	w.published(r)
	stop()
}

// full waits until the stream has as many messages as the journals have entries. What it
// has is compared by complete.
func (w *relaying) full() {
	w.t.Helper()
	var entries uint64
	w.must(w.owner.QueryRow(w.t.Context(), `SELECT coalesce(sum(seq), 0) FROM journals`).Scan(&entries))
	w.holding(entries)
}

// holding waits until the stream has so many messages.
func (w *relaying) holding(n uint64) {
	w.t.Helper()
	pgtest.Until(w.t, "the stream has what it should", func() bool {
		return w.messages() == n
	})
}

// messages counts what the stream has; 0 when it can't be asked.
func (w *relaying) messages() uint64 {
	js, err := natsjs.New(w.conn)
	w.must(err)
	stream, err := js.Stream(w.t.Context(), w.bus.Options.Stream)
	if err != nil {
		return 0
	}
	return stream.CachedInfo().State.Msgs
}

// logged waits for a line of the log.
func (w *relaying) logged(text string) {
	w.t.Helper()
	pgtest.Until(w.t, "the log has "+text, func() bool { return w.log.has(text) })
}

// troubled waits until the backlog tells of a trouble.
func (w *relaying) troubled(r *outbox.Relay, text string) {
	w.t.Helper()
	pgtest.Until(w.t, "the backlog tells of "+text, func() bool {
		b, err := r.Backlog(w.t.Context())
		return err == nil && strings.Contains(b.Trouble, text)
	})
}

// tamper runs SQL as the database's owner.
func (w *relaying) tamper(sql string, args ...any) {
	w.t.Helper()
	_, err := w.owner.Exec(w.t.Context(), sql, args...)
	w.must(err)
}

// invent makes journals up, each with entries 1 to n.
func (w *relaying) invent(from, to ledger.JournalID, n int) {
	w.t.Helper()
	w.tamper(`INSERT INTO journals (journal_id, seq) SELECT j, $3 FROM generate_series($1::bigint, $2::bigint) j`, int64(from), int64(to), n)
	w.tamper(`INSERT INTO entries SELECT j, i, gen_random_uuid(), 'test.noted', clock_timestamp(), 'tester', sha256('a'),
		json_build_object('Text', 'note ' || i), sha256('b') FROM generate_series($1::bigint, $2::bigint) j, generate_series(1, $3::bigint) i`,
		int64(from), int64(to), n)
}

// cursor is a journal's row.
type cursor struct {
	Seq    ledger.Seq
	Stream string
	Place  int64
}

func (w *relaying) cursor(journal ledger.JournalID) (c cursor) {
	w.t.Helper()
	w.must(w.owner.QueryRow(w.t.Context(), `SELECT seq, stream, stream_seq FROM relays WHERE journal_id = $1`, int64(journal)).
		Scan(&c.Seq, &c.Stream, &c.Place))
	return c
}

// tally counts what relays tell of. Its methods are safe for concurrent use.
type tally struct {
	mu    sync.Mutex
	sizes []int
	sum   map[ledger.JournalID]outbox.Published
}

func (c *tally) add(p outbox.Published) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sum == nil {
		c.sum = make(map[ledger.JournalID]outbox.Published)
	}
	s := c.sum[p.Journal]
	s.Events += p.Events
	s.Again += p.Again
	s.Lags = append(slices.Clip(s.Lags), p.Lags...)
	c.sum[p.Journal] = s
	c.sizes = append(c.sizes, p.Events)
}

func (c *tally) of(journal ledger.JournalID) outbox.Published {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum[journal]
}

// hooked is a bus some of whose calls are the test's.
type hooked struct {
	outbox.Bus
	onPublish func(ctx context.Context, after uint64, events []outbox.Event, publish publishing) (uint64, error)
	onStream  func(ctx context.Context, stream func(context.Context) (outbox.Stream, error)) (outbox.Stream, error)
	onLast    func(ctx context.Context, journal ledger.JournalID) error
	onAt      func()
	onReading func(ctx context.Context, journal ledger.JournalID) error
	onRead    func(journal ledger.JournalID, marks []outbox.Mark) error
	shows     uint64 // no message of a reading after this place; 0: all
	onSeen    func(session uint64)
	looks     atomic.Int64 // at single messages
}

type publishing = func(ctx context.Context, after uint64, events []outbox.Event) (uint64, error)

func (b *hooked) Publish(ctx context.Context, after uint64, events []outbox.Event) (uint64, error) {
	if b.onPublish == nil {
		return b.Bus.Publish(ctx, after, events)
	}
	return b.onPublish(ctx, after, events, b.Bus.Publish)
}

func (b *hooked) Stream(ctx context.Context) (outbox.Stream, error) {
	if b.onStream == nil {
		return b.Bus.Stream(ctx)
	}
	return b.onStream(ctx, b.Bus.Stream)
}

func (b *hooked) Seen(session uint64) {
	if b.onSeen != nil {
		b.onSeen(session)
	}
	b.Bus.Seen(session)
}

func (b *hooked) Last(ctx context.Context, journal ledger.JournalID) (outbox.Mark, error) {
	if b.onLast != nil {
		if err := b.onLast(ctx, journal); err != nil {
			return outbox.Mark{}, err
		}
	}
	return b.Bus.Last(ctx, journal)
}

func (b *hooked) At(ctx context.Context, place uint64) (outbox.Mark, error) {
	b.looks.Add(1)
	if b.onAt != nil {
		b.onAt()
	}
	return b.Bus.At(ctx, place)
}

func (b *hooked) Read(ctx context.Context, journal ledger.JournalID, place uint64, each func([]outbox.Mark) error) error {
	if b.onReading != nil {
		if err := b.onReading(ctx, journal); err != nil {
			return err
		}
	}
	return b.Bus.Read(ctx, journal, place, func(marks []outbox.Mark) error {
		if b.onRead != nil {
			if err := b.onRead(journal, marks); err != nil {
				return err
			}
		}
		if b.shows > 0 {
			marks = slices.DeleteFunc(marks, func(m outbox.Mark) bool { return m.Place > b.shows })
		}
		if len(marks) == 0 {
			return nil
		}
		return each(marks)
	})
}

// shortest is the shortest age that messages can have.
const shortest = 200 * time.Millisecond

// jetstream is the administrator's view of the server, who has time.
func (w *relaying) jetstream() natsjs.JetStream {
	w.t.Helper()
	js, err := natsjs.New(w.conn, natsjs.WithDefaultTimeout(time.Minute))
	w.must(err)
	return js
}

// deleteStream does what an administrator may.
func (w *relaying) deleteStream() {
	w.t.Helper()
	w.must(w.jetstream().DeleteStream(w.t.Context(), w.bus.Options.Stream))
}

// append makes up a journal's next entry.
func (w *relaying) append(journal ledger.JournalID) {
	w.t.Helper()
	w.tamper(`WITH j AS (UPDATE journals SET seq = seq + 1 WHERE journal_id = $1 RETURNING seq)
		INSERT INTO entries SELECT $1, seq, gen_random_uuid(), 'test.noted', clock_timestamp(), 'tester', sha256('a'), '{}', sha256('b') FROM j`, int64(journal))
}

// calm checks that a relay has nothing more to do, and nothing to tell.
func (w *relaying) calm(r *outbox.Relay) {
	w.t.Helper()
	pgtest.Until(w.t, "the backlog is empty and nothing is suspected", func() bool {
		b, err := r.Backlog(w.t.Context())
		w.must(err)
		var suspects int
		w.must(w.owner.QueryRow(w.t.Context(), `SELECT count(*) FROM relays WHERE suspect`).Scan(&suspects))
		return b == outbox.Backlog{} && suspects == 0
	})
}

func (l *lines) has(text string) bool { return strings.Contains(l.String(), text) }
