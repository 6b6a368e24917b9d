package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/seats"
)

// second serves the same database from other stores, as a second process would. The server
// may be changed first.
func (w *world) second(change func(*httptest.Server)) *world {
	w.t.Helper()
	return w.on(pgtest.Stores(w.t, w.db, nil), change)
}

// on serves stores.
func (w *world) on(s service.Stores, change func(*httptest.Server)) *world {
	w.t.Helper()
	other := *w
	other.stores = s
	server := httptest.NewUnstartedServer(httpapi.New(httpapi.Config{
		Ledger: s.Ledger, Reader: s.Reader, Events: s.Events, Seats: s.Seats, Maps: s.Maps,
		Quotas: s.Quotas, Holds: s.Holds, Orders: s.Orders, Recon: s.Recon, LoopbackAdmin: true,
	}))
	if change != nil {
		change(server)
	}
	if server.EnableHTTP2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	w.t.Cleanup(server.Close)
	w.t.Cleanup(s.Maps.Close)
	other.url = server.URL
	return &other
}

// The limits of a request's reading and writing aren't those of a stream; silence is
// broken now and then.
func TestStreamOutlastsTheServersLimits(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	const limit = 8 * time.Second // enough to call and to be answered in
	var streams []*stream
	for _, twice := range []bool{false, true} {
		other := w.second(func(s *httptest.Server) {
			s.Config.ReadTimeout, s.Config.WriteTimeout, s.Config.IdleTimeout = limit, limit, limit
			s.EnableHTTP2 = twice
		})
		s := other.follow("e/changes?after=2")
		if got := s.proto; twice != (got == 2) {
			t.Errorf("the stream is of HTTP/%d", got)
		}
		streams = append(streams, s)
	}
	begun := time.Now()
	for told := begun; time.Since(begun) < limit+2*time.Second; told = time.Now() {
		for _, s := range streams {
			got := s.event()
			if got.id != "2" || got.changes.Event != "e" || len(got.changes.Changes) != 0 || got.changes.Changes == nil {
				t.Fatalf("in silence the stream has %+v", got)
			}
		}
		if took := time.Since(told); took > 30*time.Second {
			t.Errorf("the silence lasted %s", took)
		}
	}
	hold := w.ask("e", "h", "alice", named("A-1-1")).is(201)
	for _, s := range streams {
		if got := s.until(hold.text("version")); len(got.changes.Changes) != 1 || got.changes.Changes[0].State != seats.Held {
			t.Errorf("the stream goes on with %+v", got)
		}
	}
}

// followers waits until n follow the map.
func (w *world) followers(n int64) {
	w.t.Helper()
	pgtest.Until(w.t, fmt.Sprint(n, " follow the map"), func() bool { return w.stores.Maps.Followers() == n })
}

// Whoever goes away is forgotten.
func TestFollowersAreCounted(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	a, b := w.follow("e/changes?after=2"), w.follow("e/changes?after=2")
	a.event()
	w.followers(2)
	a.close()
	w.followers(1)
	b.close()
	w.followers(0)
	if n := w.stores.Maps.Cut(); n != 0 {
		t.Errorf("%d were cut", n)
	}
}

// narrow accepts connections that take little of what isn't read.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// A reader that doesn't read is cut off, and nobody else notices.
func TestSlowFollowerIsCut(t *testing.T) {
	w := serve(t, nil)
	w.post("/v1/events", "k", seated("e", `"seating":`+chart(part("A", "front", 10, 100)))).is(201)
	other := w.second(func(s *httptest.Server) { s.Listener = narrow{s.Listener} })
	quick := other.follow("e/changes?after=2")
	quick.event()
	var labels []string
	for r := range 10 {
		for n := range 100 {
			labels = append(labels, fmt.Sprintf("A-%d-%d", r+1, n+1))
		}
	}
	// As long as the slow one is written to in vain, the quick one gets changes. There are
	// few when the machine stands still meanwhile, but not again and again.
	begun, version, changes, slow := time.Now(), "2", 0, int64(0)
	for rounds := 0; rounds < 5; slow++ {
		conn := other.neglect("e/changes?after=" + version)
		other.followers(2)
		for rounds = 0; other.stores.Maps.Followers() > 1; rounds++ {
			verb := []string{"block", "unblock"}[changes%2]
			changes++
			version = w.post("/v1/events/e/seats/"+verb, fmt.Sprint(verb, changes), setAside("x", labels...)).is(200).text("version")
			quick.until(version)
			if time.Since(begun) > time.Minute {
				t.Fatalf("%d changes in, the reader that doesn't read is still followed", rounds)
			}
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
			t.Error("the connection of the cut reader stays open")
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("a reader was cut after %d changes, the last of %d", rounds, slow+1)
		}
	}
	if cut := other.stores.Maps.Cut(); cut > slow { // or it was the writing that took too long
		t.Errorf("%d of %d were cut", cut, slow)
	}
}

// Whoever takes nothing of what waits is cut off when that's too much, and counted.
func TestWhatWaitsIsBounded(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	idle, err := w.stores.Maps.Follow(t.Context(), "e", 2)
	if err != nil {
		t.Fatal(err)
	}
	quick := w.follow("e/changes?after=2")
	quick.event()
	begun, rounds := time.Now(), 0
	for ; w.stores.Maps.Cut() == 0; rounds++ {
		verb := []string{"block", "unblock"}[rounds%2]
		quick.until(w.post("/v1/events/e/seats/"+verb, fmt.Sprint(verb, rounds), setAside("x", "A-1-1")).is(200).text("version"))
		if time.Since(begun) > time.Minute {
			t.Fatalf("%d changes in, nobody is cut off", rounds)
		}
	}
	waited := 0
	for range idle.Batches {
		waited++
	}
	if rounds < 5 || waited < 5 {
		t.Errorf("after %d changes it was cut off, %d batches waited", rounds, waited)
	}
	w.followers(1)
	if cut := w.stores.Maps.Cut(); cut != 1 {
		t.Errorf("%d were cut", cut)
	}
}

// neglect opens a stream of changes, takes little of it, and doesn't read.
func (w *world) neglect(path string) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		w.t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /v1/events/%s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", path)
	return conn
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// A service that stops ends the streams at once, and needn't be waited for.
func TestShutdownEndsStreams(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := service.Default()
	c.DatabaseURL, c.Listen, c.LoopbackAdmin, c.DrainTimeout = db.ServiceURL(), "127.0.0.1:0", true, 2*time.Minute
	s, err := service.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, url: s.URL()}
	w.house("e")
	var streams []*stream
	for range 3 {
		streams = append(streams, w.follow("e/changes?after=2"))
	}
	for _, f := range streams {
		f.event()
	}
	metrics := string(w.get("/metrics").is(200).body)
	for _, line := range []string{"tierledger_map_followers 3", "tierledger_map_followers_cut_total 0"} {
		if !strings.Contains(metrics, "\n"+line+"\n") {
			t.Errorf("the metrics don't have %s", line)
		}
	}
	begun := time.Now()
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("the service took %s to stop", took)
	}
	for _, f := range streams {
		for h, more := f.next(); more; h, more = f.next() {
			if h.id != "2" {
				t.Errorf("the stream goes on with %+v", h)
			}
		}
		if err := f.lines.Err(); err != nil {
			t.Errorf("the stream was torn: %v", err)
		}
	}
}

// The database is away: the map is served as it was last, streams stay open, and nothing
// is sold.
func TestMapWithoutTheDatabase(t *testing.T) {
	w := serve(t, nil)
	w.house("e")
	w.post("/v1/events", "other", seated("other")).is(201)
	proxy, name := pgtest.NewProxy(t, w.db), t.Name()+" behind"
	pool, err := pg.Open(t.Context(), pg.Options{URL: proxy.ServiceURL(t, w.db), Name: name, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	stores := service.Fit(service.Parts{Commits: pool, Reads: pool})
	t.Cleanup(stores.Ledger.Close)
	behind := w.on(stores, nil)
	behind.get("/v1/events/other").is(200)
	before := behind.get("/v1/events/e/seatmap").is(200)
	s := behind.follow("e/changes?after=2")
	s.event()

	owner, err := pgx.Connect(t.Context(), w.db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	proxy.Refuse(true)
	const cut = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`
	if _, err := owner.Exec(t.Context(), cut, name); err != nil {
		t.Fatal(err)
	}
	behind.ask("e", "h", "alice", named("A-1-1")).refused(503, "database_unavailable")
	behind.get("/v1/events/other/seatmap").refused(503, "database_unavailable")
	behind.get("/v1/events/e/seats/A-1-1").refused(503, "database_unavailable")
	w.ask("e", "h", "alice", named("A-1-1")).is(201)
	pgtest.Until(t, "changes aren't told without the database", func() bool {
		return behind.get("/v1/events/e/changes?after=2").status == 503
	})
	var after reply
	for begun := time.Now(); time.Since(begun) < 2*time.Second; { // longer than it's kept anyway
		after = behind.get("/v1/events/e/seatmap").is(200).has("version", 2, "as_of", before.text("as_of"), "total.available", 14)
	}
	behind.get("/v1/events/e/seatmap", "If-None-Match", after.header.Get("ETag")).is(304)
	behind.get("/v1/events/e/changes?after=2").refused(503, "database_unavailable")
	if n := stores.Maps.Followers(); n != 1 {
		t.Errorf("%d follow the map, want 1", n)
	}

	proxy.Refuse(false)
	if got := s.until("3"); len(got.changes.Changes) != 1 || len(got.changes.Changes[0].Seats) != 1 {
		t.Errorf("the stream goes on with %+v", got)
	}
	behind.mapped("e", "3").has("total.available", 13, "total.held", 1)
	if now := behind.get("/v1/events/e/seatmap").text("as_of"); now <= before.text("as_of") {
		t.Error("the map's time didn't go on")
	}
}
