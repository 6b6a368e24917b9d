package jetstream_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
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
	c.conn, err = nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.ReconnectWait(50*time.Millisecond), patient)
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
	if err != nil {
		c.t.Fatal(err)
	}
	var s natsjs.Stream
	pgtest.Until(c.t, "the stream is there", func() bool {
		s, err = js.Stream(c.t.Context(), clusterStream)
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

// read reads the whole stream, as its leader has it: the events of each journal, in its
// order. The consumer may be at another server, which comes to the end later.
func (c *cluster) read() map[ledger.JournalID][]outbox.Event {
	c.t.Helper()
	ctx := c.t.Context()
	stream := c.stream()
	last := stream.CachedInfo().State.LastSeq
	var consumer natsjs.Consumer
	pgtest.Until(c.t, "the cluster has a consumer", func() bool {
		var err error
		consumer, err = stream.OrderedConsumer(ctx, natsjs.OrderedConsumerConfig{})
		return err == nil
	})
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
		meta, err := msg.Metadata()
		if err != nil {
			c.t.Fatal(err)
		}
		if meta.Sequence.Stream >= last {
			return read
		}
	}
}
