package jetstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// clusterStream is the stream of the tests.
const clusterStream = "TIERLEDGER"

// cluster is three NATS servers, of which one may be down.
type cluster struct {
	t       *testing.T
	options [3]*server.Options
	servers [3]*server.Server
	conn    *nats.Conn
}

// openCluster starts three servers and connects to them.
func openCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var routes []*url.URL
	for i := range c.options {
		route, client := freePort(t), freePort(t)
		c.options[i] = &server.Options{
			ServerName: fmt.Sprintf("n%d", i+1), Host: "127.0.0.1", Port: client, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: -1, JetStreamMaxMemory: 64 << 20,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: route},
		}
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", route)})
	}
	var urls []string
	for i, o := range c.options {
		o.Routes = routes
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", o.Port))
		c.start(i)
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			s.Shutdown()
			s.WaitForShutdown()
		}
	})
	var err error
	c.conn, err = nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.conn.Close)
	return c
}

// freePort gives a port that nobody has: the servers must know each other's before they
// start.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *cluster) start(i int) {
	c.t.Helper()
	s, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		c.t.Fatal(err)
	}
	s.Start()
	c.servers[i] = s
}

// bus makes a bus whose stream is on all three servers, and looks at the stream.
func (c *cluster) bus() *jetstream.Bus {
	c.t.Helper()
	b, err := jetstream.NewBus(jetstream.Options{Conn: c.conn, Stream: clusterStream, Replicas: 3})
	if err != nil {
		c.t.Fatal(err)
	}
	c.look(b)
	return b
}

// look looks at the stream until the cluster answers.
func (c *cluster) look(b *jetstream.Bus) (s outbox.Stream) {
	c.t.Helper()
	var err error
	pgtest.Until(c.t, "the cluster has a leader", func() bool {
		s, err = b.Stream(c.t.Context())
		return err == nil
	})
	b.Seen(s.Session)
	return s
}

// stream asks for the stream as others see it.
func (c *cluster) stream() natsjs.Stream {
	c.t.Helper()
	js, err := natsjs.New(c.conn)
	var s natsjs.Stream
	pgtest.Until(c.t, "the stream is there", func() bool {
		if err == nil {
			s, err = js.Stream(c.t.Context(), clusterStream)
		}
		return err == nil
	})
	return s
}

// leader is the server that leads the stream.
func (c *cluster) leader() (i int) {
	c.t.Helper()
	stream := c.stream()
	pgtest.Until(c.t, "the stream has a leader", func() bool {
		info, err := stream.Info(c.t.Context())
		if err != nil || info.Cluster == nil || len(info.Cluster.Replicas) != 2 {
			return false
		}
		for n, o := range c.options {
			if o.ServerName == info.Cluster.Leader {
				i = n
				return true
			}
		}
		return false
	})
	return i
}

// events makes events of a journal from a seq on; what they say is who has made them.
func events(journal ledger.JournalID, from, n int, who string) []outbox.Event {
	list := make([]outbox.Event, n)
	for i := range list {
		text := fmt.Sprintf(`{"who":%q}`, who)
		list[i] = outbox.Event{Journal: journal, Seq: ledger.Seq(from + i), Kind: fmt.Sprintf("test.k%d", i%3), Data: json.RawMessage(text),
			ID: ledger.NewID(journal, "tester", who, fmt.Sprint(from+i)), At: time.Unix(1, 0)}
	}
	return list
}

// read reads the whole stream: the events of each journal, in its order.
func (c *cluster) read() map[ledger.JournalID][]outbox.Event {
	c.t.Helper()
	ctx := c.t.Context()
	consumer, err := c.stream().OrderedConsumer(ctx, natsjs.OrderedConsumerConfig{})
	if err != nil {
		c.t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		c.t.Fatal(err)
	}
	defer messages.Stop()
	read := make(map[ledger.JournalID][]outbox.Event)
	for {
		msg, err := messages.Next(natsjs.NextContext(ctx))
		if err != nil {
			c.t.Fatal(err)
		}
		var e outbox.Event
		if err := json.Unmarshal(msg.Data(), &e); err != nil || msg.Subject() != e.Subject() {
			c.t.Fatalf("on %s: %v: %s", msg.Subject(), err, msg.Data())
		}
		read[e.Journal] = append(read[e.Journal], e)
		if meta, err := msg.Metadata(); err != nil || meta.NumPending == 0 {
			return read
		}
	}
}

// A cluster refuses whoever doesn't know a journal's last message, of whatever kind that is,
// and takes nothing of what it refuses; other journals are in nobody's way.
func TestClusterFencesStaleWriters(t *testing.T) {
	t.Parallel()
	c := openCluster(t)
	ctx := t.Context()
	first, second := c.bus(), c.bus()
	publish := func(b *jetstream.Bus, after uint64, list []outbox.Event) (uint64, error) {
		t.Helper()
		return b.Publish(ctx, after, list)
	}
	place, err := publish(first, 0, events(1, 1, 5, "first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := publish(first, 0, events(2, 1, 4, "first")); err != nil { // after place, on other subjects
		t.Fatal(err)
	}
	for name, stale := range map[string]struct {
		after uint64
		list  []outbox.Event
	}{
		"a batch of who knows of nothing":   {0, events(1, 1, 5, "stale")},
		"an event of who knows of nothing":  {0, events(1, 1, 1, "stale")},
		"a batch after the last but one":    {place - 1, events(1, 5, 3, "stale")},
		"an event after the last but one":   {place - 1, events(1, 5, 1, "stale")},
		"a batch after another's journal's": {place + 4, events(1, 6, 2, "stale")},
		"a batch after what's to come":      {place + 5, events(1, 6, 2, "stale")},
	} {
		if at, err := publish(second, stale.after, stale.list); !errors.Is(err, outbox.ErrFenced) {
			t.Errorf("%s: place %d, %v", name, at, err)
		}
	}
	if place, err = publish(second, place, events(1, 6, 1, "second")); err != nil {
		t.Fatal(err)
	}
	if _, err := publish(first, place-1, events(1, 6, 2, "first")); !errors.Is(err, outbox.ErrFenced) {
		t.Errorf("who was overtaken: %v", err)
	}
	mark, err := second.Last(ctx, 1)
	if err != nil || mark.Place != place || mark.Seq != 6 || mark.Journal != 1 {
		t.Errorf("the last is %+v at %d: %v", mark, place, err)
	}

	// The next leader knows the same.
	led := c.leader()
	c.servers[led].Shutdown()
	c.servers[led].WaitForShutdown()
	c.look(first)
	c.look(second)
	if _, err := publish(first, place-1, events(1, 6, 2, "stale")); !errors.Is(err, outbox.ErrFenced) {
		t.Errorf("stale, at the next leader: %v", err)
	}
	if _, err = publish(second, place, events(1, 7, 2, "second")); err != nil {
		t.Error(err)
	}
	c.start(led)
	wantOrder(t, c.read(), map[ledger.JournalID]int{1: 8, 2: 4})
}

// wantOrder wants journals' events in their order, once, and none of who was refused.
func wantOrder(t *testing.T, read map[ledger.JournalID][]outbox.Event, want map[ledger.JournalID]int) {
	t.Helper()
	for journal, n := range want {
		list := read[journal]
		if len(list) != n {
			t.Errorf("journal %d has %d events, want %d", journal, len(list), n)
		}
		for i, e := range list {
			if e.Seq != ledger.Seq(i+1) || strings.Contains(string(e.Data), "stale") {
				t.Fatalf("journal %d: event %d is %d: %s", journal, i+1, e.Seq, e.Data)
			}
		}
	}
	if len(read) != len(want) {
		t.Errorf("%d journals, want %d", len(read), len(want))
	}
}

// Of many who publish after the same message at one time, one is taken, whole.
func TestClusterTakesOneOfMany(t *testing.T) {
	t.Parallel()
	const writers, rounds, size = 8, 40, 3
	c := openCluster(t)
	buses := make([]*jetstream.Bus, writers)
	for i := range buses {
		buses[i] = c.bus()
	}
	var place uint64
	for round := range rounds {
		type result struct {
			place uint64
			err   error
		}
		results := make([]result, writers)
		var all sync.WaitGroup
		for i, b := range buses {
			all.Go(func() {
				list := events(7, round*size+1, size, fmt.Sprintf("%d of round %d", i, round))
				results[i].place, results[i].err = b.Publish(t.Context(), place, list)
			})
		}
		all.Wait()
		taken := 0
		for i, r := range results {
			switch {
			case r.err == nil:
				taken++
				place = r.place
			case !errors.Is(r.err, outbox.ErrFenced):
				t.Errorf("round %d, writer %d: %v", round, i, r.err)
			}
		}
		if taken != 1 {
			t.Fatalf("round %d: %d were taken", round, taken)
		}
	}
	read := c.read()
	wantOrder(t, read, map[ledger.JournalID]int{7: rounds * size})
	for i := 0; i < len(read[7]); i += size {
		for _, e := range read[7][i : i+size] {
			if string(e.Data) != string(read[7][i].Data) {
				t.Fatalf("a batch has %s and %s", read[7][i].Data, e.Data)
			}
		}
	}
}

// Who publishes event by event isn't taken for somebody else who'd be in the way. A cluster
// acknowledges an event a moment before it takes the next one of the journal: whoever is that
// fast is refused, nothing has changed then, and the next attempt is taken.
func TestClusterTakesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const n = 500
	c := openCluster(t)
	b := c.bus()
	var place uint64
	refused := 0
	for i := range n {
		list := events(3, i+1, 1, "the only one")
		at, err := b.Publish(t.Context(), place, list)
		if errors.Is(err, outbox.ErrFenced) {
			refused++
			if mark, err := b.Last(t.Context(), 3); err != nil || mark.Place != place {
				t.Fatalf("event %d: the last is %+v, not at %d: %v", i+1, mark, place, err)
			}
			at, err = b.Publish(t.Context(), place, list)
		}
		if err != nil {
			t.Fatalf("event %d: %v", i+1, err)
		}
		place = at
	}
	if refused > n/100 {
		t.Errorf("%d of %d were refused", refused, n)
	}
	wantOrder(t, c.read(), map[ledger.JournalID]int{3: n})
}

// note is a command that records something and moves nothing.
type note struct{ Text string }

func (n note) Accounts() []string { return nil }
func (n note) Decide(*ledger.State) (ledger.Decision, error) {
	data, err := json.Marshal(n)
	return ledger.Decision{Kind: "test.noted", Data: data}, err
}

// write adds n entries to a journal, some at a time.
func write(t *testing.T, s service.Stores, journal ledger.JournalID, n int) {
	t.Helper()
	ctx := t.Context()
	if err := s.Ledger.Create(ctx, journal); err != nil {
		t.Error(err)
		return
	}
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := w; i < n; i += 8 {
				text := fmt.Sprintf("note %d of %d", i, journal)
				c, err := ledger.NewCommand(journal, "tester", text, "note", text, note{text})
				if err == nil {
					_, err = s.Ledger.Do(ctx, journal, c)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}

// The stream's leader ends in the midst of publishing, and comes back, and then the next one:
// publishing goes on with what's left, and the stream has every entry once, in order.
func TestClusterOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	const journals, entries = 3, 2000
	c := openCluster(t)
	ctx := t.Context()
	db := pgtest.New(t)
	db.Except("events_listed") // the journals are made without an event
	stores := pgtest.Stores(t, db, nil)
	pool, err := pg.Open(ctx, pg.Options{URL: db.URL(), Name: "outbox", Role: migrations.ServiceRole, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	seen, told := &progress{}, &bytes.Buffer{}
	r := outbox.NewRelay(outbox.RelayOptions{Pool: pool, Bus: c.bus(), Observe: seen.add, Log: slog.New(slog.NewTextHandler(told, nil))})
	running, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	end := func() { stop(); work.Wait() }
	defer end()
	work.Go(func() { r.Run(running) })
	var writers sync.WaitGroup
	for j := range journals {
		writers.Go(func() { write(t, stores, ledger.JournalID(j+1), entries) })
	}
	for range 2 {
		seen.awaitMore(t, 500)
		led := c.leader()
		c.servers[led].Shutdown()
		c.servers[led].WaitForShutdown()
		seen.awaitMore(t, 300) // without it
		c.start(led)
	}
	defer func() {
		if end(); t.Failed() {
			t.Log(told.String())
		}
	}()
	writers.Wait()
	pgtest.Until(t, "everything is published", func() bool {
		b, err := r.Backlog(ctx)
		return err == nil && b.Entries == 0
	})
	want := make(map[ledger.JournalID]int)
	for j := range journals {
		want[ledger.JournalID(j+1)] = entries
	}
	wantOrder(t, c.read(), want)
	end()
	if strings.Contains(told.String(), "lost") {
		t.Errorf("nothing was lost: %s", told.String())
	}
}

// progress counts what's published.
type progress struct {
	mu     sync.Mutex
	events int
}

func (p *progress) add(batch outbox.Published) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events += batch.Events
}

func (p *progress) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events
}

// awaitMore waits until so many more are published.
func (p *progress) awaitMore(t *testing.T, more int) {
	t.Helper()
	from := p.count()
	pgtest.Until(t, fmt.Sprintf("%d more entries are published", more), func() bool { return p.count() >= from+more })
}
