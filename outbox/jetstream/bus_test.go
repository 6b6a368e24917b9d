package jetstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// single is one server, and a connection that finds the next one in its place.
type single struct {
	t      *testing.T
	dir    string
	change func(*server.Options)
	server atomic.Pointer[server.Server]
	conn   *nats.Conn
	bus    *jetstream.Bus
}

// openSingle starts a server and makes the stream; change may be nil.
func openSingle(t *testing.T, o jetstream.Options, change func(*server.Options)) *single {
	t.Helper()
	s := &single{t: t, dir: t.TempDir(), change: change}
	s.start()
	t.Cleanup(s.stop)
	s.conn, s.bus = s.connect(o)
	s.stream()
	return s
}

func (s *single) InProcessConn() (net.Conn, error) {
	if srv := s.server.Load(); srv != nil {
		return srv.InProcessConn()
	}
	return nil, nats.ErrNoServers
}

func (s *single) start() {
	s.t.Helper()
	o := &server.Options{DontListen: true, JetStream: true, StoreDir: s.dir, NoSigs: true, NoLog: true, JetStreamMaxStore: -1}
	if s.change != nil {
		s.change(o)
	}
	srv, err := server.NewServer(o)
	s.must(err)
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		s.t.Fatal("the server isn't ready")
	}
	s.server.Store(srv)
}

func (s *single) stop() {
	if srv := s.server.Swap(nil); srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}

// patient gives a busy machine time for a connection.
var patient = nats.Timeout(20 * time.Second)

// connect makes a bus on a connection of its own.
func (s *single) connect(o jetstream.Options) (*nats.Conn, *jetstream.Bus) {
	s.t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), nats.ReconnectWait(20*time.Millisecond), patient)
	s.must(err)
	s.t.Cleanup(conn.Close)
	o.Conn, o.Stream = conn, "TIERLEDGER"
	bus, err := jetstream.NewBus(o)
	s.must(err)
	return conn, bus
}

func (s *single) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// stream looks at the stream, and says that it was looked at.
func (s *single) stream() outbox.Stream {
	s.t.Helper()
	stream, err := s.bus.Stream(s.t.Context())
	s.must(err)
	s.bus.Seen(stream.Session)
	return stream
}

// made are the next n of a journal after one, with data of so many bytes.
func made(journal ledger.JournalID, after, n, size int) []outbox.Event {
	list := make([]outbox.Event, n)
	for i := range list {
		data, _ := json.Marshal(strings.Repeat("x", size))
		list[i] = outbox.Event{Journal: journal, Seq: ledger.Seq(after + i + 1), ID: uuid.New(), Kind: "test.noted", At: time.Unix(0, 0), Data: data}
	}
	return list
}

// read gives what a journal has after a place.
func (s *single) read(journal ledger.JournalID, place uint64) (list []outbox.Mark) {
	s.t.Helper()
	s.must(s.bus.Read(s.t.Context(), journal, place, func(marks []outbox.Mark) error {
		list = append(list, marks...)
		return nil
	}))
	return list
}

// A journal is read in exchanges, without others' messages and no further than it's asked to;
// nothing of the reading stays on the server.
func TestReading(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	s.stream()
	var last uint64
	for i := range 3 {
		place, err := s.bus.Publish(t.Context(), last, made(5, 800*i, 800, 10))
		s.must(err)
		last = place
		_, err = s.bus.Publish(t.Context(), 0, made(ledger.JournalID(50+i), 0, 3, 10))
		s.must(err)
	}
	list := s.read(5, 0)
	for i, m := range list {
		if m.Journal != 5 || m.Seq != ledger.Seq(i+1) || i > 0 && m.Place <= list[i-1].Place {
			t.Fatalf("message %d is %+v", i, m)
		}
	}
	if len(list) != 2400 || list[2399].Place != last {
		t.Errorf("%d messages up to %d, not %d", len(list), list[len(list)-1].Place, last)
	}
	for _, nothing := range [][]outbox.Mark{s.read(5, last), s.read(500, 0)} {
		if len(nothing) != 0 {
			t.Errorf("nothing is %+v", nothing)
		}
	}
	enough, times := errors.New("enough"), 0
	err := s.bus.Read(t.Context(), 5, 100, func(marks []outbox.Mark) error {
		times++
		if marks[0].Seq != 101 {
			t.Errorf("it begins with %+v", marks[0])
		}
		return enough
	})
	if !errors.Is(err, enough) || times != 1 {
		t.Errorf("%v after %d times", err, times)
	}
	js, err := natsjs.New(s.conn)
	s.must(err)
	stream, err := js.Stream(t.Context(), "TIERLEDGER")
	s.must(err)
	from := time.Now()
	pgtest.Until(t, "no consumer is left", func() bool { // nobody waits for long until one is removed
		info, err := stream.Info(t.Context())
		s.must(err)
		return info.State.Consumers == 0
	})
	if took := time.Since(from); took > 25*time.Second { // after 30 s the server does it by itself
		t.Errorf("consumers were left for %v", took)
	}
}

func TestABatchIsThereWhole(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	ctx := t.Context()
	if got := s.stream(); got.Last != 0 || !strings.HasPrefix(got.ID, "TIERLEDGER ") {
		t.Errorf("a new stream is %+v", got)
	}
	var last uint64
	var seq int
	for _, n := range []int{1, 2, 1000, 1} {
		list := made(5, seq, n, 10)
		place, err := s.bus.Publish(ctx, last, list)
		if err != nil || place != last+uint64(n) {
			t.Fatalf("%d events after %d: %d, %v", n, last, place, err)
		}
		last, seq = place, seq+n
		want := outbox.Mark{Place: place, Journal: 5, Seq: ledger.Seq(seq), ID: list[n-1].ID}
		if got, err := s.bus.Last(ctx, 5); got != want || err != nil {
			t.Errorf("the last is %+v, %v, not %+v", got, err, want)
		}
		if got, err := s.bus.At(ctx, place); got != want || err != nil {
			t.Errorf("at %d is %+v, %v, not %+v", place, got, err, want)
		}
		if got := s.read(5, place-uint64(n)); len(got) != n || got[n-1] != want {
			t.Errorf("after %d come %+v, of which the last isn't %+v", place-uint64(n), got, want)
		}
	}
	for name, ask := range map[string]func() (outbox.Mark, error){
		"the last of another journal":      func() (outbox.Mark, error) { return s.bus.Last(ctx, 50) },
		"the message at a place to come":   func() (outbox.Mark, error) { return s.bus.At(ctx, last+1) },
		"the last of what begins the same": func() (outbox.Mark, error) { return s.bus.Last(ctx, 51) },
	} {
		if got, err := ask(); got != (outbox.Mark{}) || err != nil {
			t.Errorf("%s is %+v, %v", name, got, err)
		}
	}
	if got := s.stream(); got.First != 1 || got.Last != last {
		t.Errorf("the stream is %+v", got)
	}
}

// Whoever doesn't know a journal's last message is refused, with one event or many; other
// journals aren't concerned.
func TestTheFence(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	ctx := t.Context()
	last, err := s.bus.Publish(ctx, 0, made(5, 0, 3, 10))
	s.must(err)
	_, err = s.bus.Publish(ctx, 0, made(6, 0, 3, 10))
	s.must(err)
	for _, n := range []int{1, 2, 500} {
		for _, after := range []uint64{0, last - 1, last + 1, last + 3, 1 << 60} {
			if place, err := s.bus.Publish(ctx, after, made(5, 3, n, 10)); !errors.Is(err, outbox.ErrFenced) || place != 0 {
				t.Errorf("%d events after %d: %d, %v", n, after, place, err)
			}
		}
	}
	if got := s.stream(); got.Last != 6 {
		t.Errorf("the stream is %+v", got)
	}
	if _, err = s.bus.Publish(ctx, last, made(5, 3, 2, 10)); err != nil {
		t.Error(err)
	}
}

// Of many who publish after the same message, at one time, one wins.
func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	const rivals = 8
	s := openSingle(t, jetstream.Options{}, nil)
	var last uint64
	for round := range 20 {
		var all sync.WaitGroup
		var mu sync.Mutex
		var won []uint64
		for i := range rivals {
			all.Go(func() {
				place, err := s.bus.Publish(t.Context(), last, made(5, 0, 1+(i+round)%3, 10))
				if err == nil {
					mu.Lock()
					won = append(won, place)
					mu.Unlock()
				} else if !errors.Is(err, outbox.ErrFenced) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(won) != 1 || won[0] != s.stream().Last {
			t.Fatalf("%d won, at %v; the stream is %+v", len(won), won, s.stream())
		}
		last = won[0]
	}
}

// A batch whose sender has died before its end leaves nothing, and is in nobody's way.
func TestHalfABatchLeavesNothing(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if _, err := s.bus.Publish(ctx, 0, made(5, 0, 3, 10)); err == nil || errors.Is(err, outbox.ErrFenced) {
			t.Fatalf("a batch that nobody waits for: %v", err)
		}
		for i := range 2 { // of three
			msg := nats.NewMsg("tierledger.journal.5.test.noted")
			msg.Header.Set("Nats-Batch-Id", "half")
			msg.Header.Set("Nats-Batch-Sequence", fmt.Sprint(i+1))
			s.must(s.conn.PublishMsg(msg))
		}
	}
	mark, err := s.bus.Last(t.Context(), 5)
	s.must(err)
	place, err := s.bus.Publish(t.Context(), mark.Place, made(5, 0, 3, 10))
	if err != nil || place != mark.Place+3 {
		t.Errorf("after %+v: %d, %v", mark, place, err)
	}
}

// After another connection nothing is published before somebody has looked what's lost.
func TestNothingIsPublishedUnseen(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	last, err := s.bus.Publish(t.Context(), 0, made(5, 0, 1, 10))
	s.must(err)
	before := s.stream()
	s.stop()
	if _, err := s.bus.Publish(t.Context(), last, made(5, 1, 1, 10)); err == nil {
		t.Error("something was published to nobody")
	}
	s.start()
	pgtest.Until(t, "the connection is there again", s.conn.IsConnected)
	stream, err := s.bus.Stream(t.Context())
	s.must(err)
	if stream.ID != before.ID || stream.Last != last || stream.Session == before.Session {
		t.Errorf("the stream was %+v, and is %+v", before, stream)
	}
	for range 2 {
		if _, err := s.bus.Publish(t.Context(), last, made(5, 1, 1, 10)); err == nil || errors.Is(err, outbox.ErrFenced) {
			t.Errorf("it's published unseen: %v", err)
		}
		if _, err := s.bus.Last(t.Context(), 5); err != nil {
			t.Error(err)
		}
	}
	s.bus.Seen(stream.Session)
	if _, err := s.bus.Publish(t.Context(), last, made(5, 1, 1, 10)); err != nil {
		t.Error(err)
	}
}

// What limits refuse is told from what's fenced. Nothing of it is there when the limit is
// the stream's; when it's the server's the beginning of a batch may be, in order.
func TestWhatIsFull(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options jetstream.Options
		change  func(*server.Options)
		partly  uint64 // so many events of a batch may be there
	}{
		"the stream": {options: jetstream.Options{MaxBytes: 100 << 10}},
		"the server": {change: func(o *server.Options) { o.JetStreamMaxStore = 100 << 10 }, partly: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSingle(t, c.options, c.change)
			var last uint64
			var err error
			for seq := 0; err == nil; seq += 4 {
				var place uint64
				if place, err = s.bus.Publish(t.Context(), last, made(5, seq, 4, 4000)); err == nil {
					last = place
				}
			}
			if !errors.Is(err, outbox.ErrFull) || errors.Is(err, outbox.ErrFenced) {
				t.Errorf("a full one says %v", err)
			}
			got := s.stream()
			if got.Last < last || got.Last > last+c.partly || last < 12 {
				t.Errorf("after %d places the stream is %+v", last, got)
			}
			for place := uint64(1); place <= got.Last; place++ {
				if mark, err := s.bus.At(t.Context(), place); err != nil || uint64(mark.Seq) != place {
					t.Errorf("at %d is %+v, %v", place, mark, err)
				}
			}
			if mark, err := s.bus.Last(t.Context(), 5); err != nil || mark.Place != got.Last {
				t.Errorf("the last is %+v, %v", mark, err)
			}
		})
	}
}

// An event as large as the limit says is taken by every server, also one with a small limit
// of its own.
func TestTheLimit(t *testing.T) {
	t.Parallel()
	for _, most := range []int32{0, 64 << 10, 8 << 20} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			s := openSingle(t, jetstream.Options{}, func(o *server.Options) { o.MaxPayload = most })
			limit := s.bus.Limit()
			if most > 0 && limit > int(most) || limit > 1<<20 || limit < 50<<10 {
				t.Errorf("the limit is %d", limit)
			}
			list := made(5, 0, 2, limit-1024-2)
			if place, err := s.bus.Publish(t.Context(), 0, list); err != nil || place != 2 {
				t.Errorf("events of the limit: %d, %v", place, err)
			}
		})
	}
}

// A stream of another birth is another stream.
func TestAStreamMadeAnewIsAnother(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{MaxAge: time.Hour}, nil)
	_, err := s.bus.Publish(t.Context(), 0, made(5, 0, 3, 10))
	s.must(err)
	before := s.stream()
	js, err := natsjs.New(s.conn)
	s.must(err)
	stream, err := js.Stream(t.Context(), "TIERLEDGER")
	s.must(err)
	config := stream.CachedInfo().Config
	if config.Discard != natsjs.DiscardNew || config.MaxAge != time.Hour || !config.AllowAtomicPublish || config.AllowDirect || config.MaxMsgs != -1 {
		t.Errorf("the stream is %+v", config)
	}
	s.must(js.DeleteStream(t.Context(), "TIERLEDGER"))
	pgtest.Until(t, "it's made anew", func() bool {
		_, err := s.bus.Stream(t.Context())
		return err == nil
	})
	if after := s.stream(); after.ID == before.ID || after.Last != 0 {
		t.Errorf("the stream was %+v, and is %+v", before, after)
	}
	if mark, err := s.bus.Last(t.Context(), 5); mark != (outbox.Mark{}) || err != nil {
		t.Errorf("the last is %+v, %v", mark, err)
	}
}

// What somebody else has published is told as a place without an entry.
func TestStrangersMessages(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	list := made(5, 0, 1, 10)
	last, err := s.bus.Publish(t.Context(), 0, list)
	s.must(err)
	js, err := natsjs.New(s.conn)
	s.must(err)
	for _, header := range []nats.Header{{}, {"Tierledger-Seq": {"7"}}, {"Tierledger-Id": {uuid.NewString()}},
		{"Tierledger-Seq": {"0"}, "Tierledger-Id": {uuid.NewString()}}, {"Tierledger-Seq": {"7"}, "Tierledger-Id": {"x"}},
		{"Status": {"100"}}, {"Status": {"404"}}, {"Status": {"408"}}, {"Status": {"409"}, "Description": {"x"}}, {"Status": {"503"}}, {"Nats-Pin-Id": {"x"}}} {
		ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "tierledger.journal.5.test.noted", Header: header})
		s.must(err)
		want := outbox.Mark{Place: ack.Sequence}
		for name, ask := range map[string]func() (outbox.Mark, error){
			"last": func() (outbox.Mark, error) { return s.bus.Last(t.Context(), 5) },
			"at":   func() (outbox.Mark, error) { return s.bus.At(t.Context(), ack.Sequence) },
			"next": func() (outbox.Mark, error) { return s.read(5, ack.Sequence-1)[0], nil },
		} {
			if got, err := ask(); got != want || err != nil {
				t.Errorf("%s of a message with %v is %+v, %v", name, header, got, err)
			}
		}
	}
	if got := s.read(5, 0); len(got) != 12 || got[0].Place != last || got[0].ID != list[0].ID {
		t.Errorf("the journal has %+v", got)
	}
}
