package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// natsServer is a NATS in the test's process. Its address and its store stay over restarts.
type natsServer struct {
	t      *testing.T
	dir    string
	listen string
	nats   *embedded.NATS
}

// openNATS starts one.
func openNATS(t *testing.T) *natsServer {
	t.Helper()
	n := &natsServer{t: t, dir: t.TempDir(), listen: reserve(t)}
	n.start()
	n.listen = strings.TrimPrefix(n.url(), "nats://")
	return n
}

// reserve gives an address that nobody else on the machine comes to have while its server is
// away: a socket that doesn't listen keeps it. Only Linux lets it be shared with the server's.
func reserve(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return "127.0.0.1:0"
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", name.(*syscall.SockaddrInet4).Port)
}

func (n *natsServer) url() string { return n.nats.URL() }

func (n *natsServer) start() {
	n.t.Helper()
	var err error
	n.nats, err = embedded.StartNATS(n.t.Context(), embedded.NATSOptions{Dir: n.dir, Listen: n.listen})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(n.nats.Stop)
}

func (n *natsServer) stop() { n.nats.Stop() }

// wipe gives a server that's stopped an empty store.
func (n *natsServer) wipe() { n.dir = n.t.TempDir() }

// streamed is streamOf of it.
func (n *natsServer) streamed() (map[ledger.JournalID][]outbox.Event, jetstream.StreamInfo) {
	n.t.Helper()
	conn, err := n.nats.Connect(nats.Timeout(patience))
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	return streamOf(n.t, conn)
}

// streamOf reads the whole stream: the events of each journal, in its order.
func streamOf(t *testing.T, conn *nats.Conn) (map[ledger.JournalID][]outbox.Event, jetstream.StreamInfo) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	js, err := jetstream.New(conn)
	var stream jetstream.Stream
	if err == nil {
		stream, err = js.Stream(ctx, "TIERLEDGER")
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	events := make(map[ledger.JournalID][]outbox.Event)
	if info.State.Msgs == 0 {
		return events, *info
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		var e outbox.Event
		if err := json.Unmarshal(msg.Data(), &e); err != nil || msg.Subject() != e.Subject() {
			t.Fatalf("%s: %v: %s", msg.Subject(), err, msg.Data())
		}
		events[e.Journal] = append(events[e.Journal], e)
		if meta, err := msg.Metadata(); err != nil || meta.NumPending == 0 {
			return events, *info
		}
	}
}

// wantStream wants the events to be the entries of all journals: each once, in order, without
// a gap. It gives their number.
func wantStream(t *testing.T, db *pgtest.DB, got map[ledger.JournalID][]outbox.Event) (n int) {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(ctx, `SELECT journal_id, seq, id, kind, at, data FROM entries ORDER BY journal_id, seq`)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[outbox.Event])
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[ledger.JournalID][]outbox.Event)
	for _, e := range entries {
		want[e.Journal] = append(want[e.Journal], e)
	}
	for journal, list := range want {
		if len(got[journal]) != len(list) {
			t.Errorf("journal %d: %d events of %d entries", journal, len(got[journal]), len(list))
		}
		for i := range min(len(got[journal]), len(list)) {
			g, e := got[journal][i], list[i]
			if g.Seq != e.Seq || g.ID != e.ID || g.Kind != e.Kind || !g.At.Equal(e.At) || !bytes.Equal(g.Data, e.Data) {
				t.Errorf("journal %d, event %d is entry %d, a %s: %s\nwant %d, a %s: %s", journal, i+1, g.Seq, g.Kind, g.Data, e.Seq, e.Kind, e.Data)
				break
			}
		}
	}
	for journal := range got {
		if want[journal] == nil {
			t.Errorf("the stream has a journal %d", journal)
		}
	}
	return len(entries)
}

// unpublished counts the entries that the stream hasn't acknowledged, as the database has it.
func unpublished(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT coalesce(sum(j.seq - coalesce(r.seq, 0)), 0) FROM journals j LEFT JOIN relays r USING (journal_id)`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// metric reads one of a service's metrics; NaN isn't one: 0 when it doesn't have it yet.
func metric(t *testing.T, url, name string) float64 {
	t.Helper()
	text := want(t, http.StatusOK, "", "GET", url+"/metrics", "", "").body
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(line)
			}
			return v
		}
	}
	return 0
}

// ready gives what /readyz, which calls for requests, says of a check.
func ready(t *testing.T, url, check string) bool {
	t.Helper()
	r := want(t, http.StatusOK, "", "GET", url+"/readyz", "", "")
	var view struct {
		Ready  bool
		Checks []struct {
			Name  string
			Ready bool
		}
	}
	if err := json.Unmarshal([]byte(r.body), &view); err != nil || !view.Ready {
		t.Fatalf("%v: %s", err, r.body)
	}
	for _, c := range view.Checks {
		if c.Name == check {
			return c.Ready
		}
	}
	t.Fatalf("there's no check %s: %s", check, r.body)
	return false
}

// holdOne holds a ticket of an event under a key.
func holdOne(t *testing.T, credential, url, event, key string) {
	t.Helper()
	want(t, http.StatusCreated, credential, "POST", url+"/v1/events/"+event+"/holds", key,
		fmt.Sprintf(`{"customer":%q,"items":[{"tier":"ga","quantity":1}]}`, key))
}
