package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/keyring"
)

func TestServeRefusesBusSettings(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, _ := adminKey(t)
	away := "nats://127.0.0.1:1"
	for name, c := range map[string]struct {
		args string
		env  string
		says string
	}{
		"URL and folder":        {"--nats-url " + away + " --nats-dir /nowhere", "", "nats-url, nats-dir: one of them"},
		"not a URL":             {"--nats-url nats.example:4222", "", "nats-url: not a NATS URL"},
		"no host":               {"--nats-url nats://", "", "nats-url: not a NATS URL"},
		"one of two":            {"--nats-url " + away + ",nats://u:hunter2@host:port", "", "nats-url: not a NATS URL"},
		"one of two is missing": {"--nats-url " + away + ",", "", "nats-url: not a NATS URL"},
		"of another kind":       {"--nats-url http://u:hunter2@127.0.0.1:4222", "", "nats-url: not a NATS URL"},
		"URL in environment":    {"", "TIERLEDGER_NATS_URL=nats://u:hunter2@host:port", "nats-url: not a NATS URL"},
		"name of the stream":    {"--stream a.b --nats-url " + away, "", "stream: must be 1 to 32"},
		"age":                   {"--stream-max-age 1s", "", "stream-max-age: must be 1m or more"},
		"size":                  {"--stream-max-bytes 5", "", "stream-max-bytes: must be 1048576"},
		"replicas":              {"--stream-replicas 2", "", "stream-replicas: must be 1, 3 or 5"},
		"secret":                {"--secret-keys hunter2", "", "secret-keys: secret 1: must be tlk_"},
		"short secret":          {"--secret-keys tlk_hunter2", "", "secret-keys: secret 1: must be tlk_"},
		"second secret":         {"--secret-keys " + keyring.New() + ",tlk_hunter2", "", "secret-keys: secret 2: must be tlk_"},
		"secret in environment": {"", "TIERLEDGER_SECRET_KEYS=tlk_hunter2", "secret-keys: secret 1: must be tlk_"},
		"half quoted secret":    {"", `TIERLEDGER_SECRET_KEYS=tlk_"hunter2`, "secret-keys: secret 1: must be tlk_"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"serve", "--listen", "127.0.0.1:0", "--database-url", db.URL(), "--keys-file", keys}, strings.Fields(c.args)...)
			code, stdout, stderr := invocation{env: strings.Split(c.env, "\n"), args: args}.execute(t)
			if code != exitUsage || !strings.Contains(stderr, c.says) || stdout != "" {
				t.Errorf("exit code %d, want %d and %q: %s%s", code, exitUsage, c.says, stdout, stderr)
			}
			if strings.Contains(stderr, "hunter2") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("want one line without secrets: %s", stderr)
			}
		})
	}
}

// NATS is away at the start, and away again later: the sale doesn't notice, the service stays
// ready and says what's wrong, and everything is published when it's there.
func TestServeWithoutItsNATS(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, key := adminKey(t)
	bus := openNATS(t)
	url := "nats://127.0.0.1:1,nats://" + bus.listen // the first of the servers never comes
	bus.stop()
	s := start(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db.URL(), "--keys-file", keys, "--nats-url", url)
	conn, err := pgx.Connect(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	createEvent(t, key, s.url, "e", 300, 100)
	for round := range 2 {
		for i := range 5 {
			holdOne(t, key, s.url, "e", fmt.Sprintf("hold-%d-%d", round, i))
		}
		pgtest.Until(t, "the service says that NATS is away", func() bool { return !ready(t, s.url, "publisher") })
		if !ready(t, s.url, "database") {
			t.Error("NATS is away, and /readyz says that the database is")
		}
		pgtest.Until(t, "the metrics tell what isn't published", func() bool {
			n := metric(t, s.url, "tierledger_unpublished_entries")
			return n >= 5 && int(n) == unpublished(t, conn)
		})
		bus.start()
		pgtest.Until(t, "everything is published", func() bool { return unpublished(t, conn) == 0 })
		events, _ := bus.streamed()
		wantStream(t, db, events)
		pgtest.Until(t, "the service says so", func() bool {
			return ready(t, s.url, "publisher") && metric(t, s.url, "tierledger_unpublished_entries") == 0
		})
		bus.stop()
	}
	s.await("nothing is published")
	s.await("publishing goes on")
	if code := s.end(syscall.SIGTERM); code != exitOK { // while NATS is away
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
}

// A NATS of the process's own keeps the stream over a kill and over a stop, and the folder is
// for one process.
func TestServeWithNATSOfItsOwn(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, key := adminKey(t)
	dir := t.TempDir()
	args := []string{"serve", "--listen", "127.0.0.1:0", "--database-url", db.URL(), "--keys-file", keys, "--nats-dir", dir}
	conn, err := pgx.Connect(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	published := func() {
		t.Helper()
		pgtest.Until(t, "everything is published", func() bool { return unpublished(t, conn) == 0 })
	}
	s := start(t, args...)
	createEvent(t, key, s.url, "e", 300, 100)
	published()
	pgtest.Until(t, "the service says so", func() bool { return ready(t, s.url, "publisher") })
	code, _, stderr := execute(t, args...)
	if code != exitFailed || !strings.Contains(stderr, "in use by process") {
		t.Errorf("a second process on the folder: exit code %d, %s", code, stderr)
	}
	var born time.Time
	for n, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		holdOne(t, key, s.url, "e", fmt.Sprint("hold-", n))
		published()
		s.end(sig)
		bus, err := embedded.StartNATS(t.Context(), embedded.NATSOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		stream := &natsServer{t: t, nats: bus}
		events, info := stream.streamed()
		bus.Stop()
		wantStream(t, db, events)
		if n > 0 && !info.Created.Equal(born) {
			t.Errorf("the stream is of %v, and was of %v", info.Created, born)
		}
		born = info.Created
		s = start(t, args...)
	}
	if n := metric(t, s.url, "tierledger_published_again_total"); n != 0 {
		t.Errorf("%v entries were published again", n)
	}
}

// A hold that runs out is expired when its alarm rings, long before the sweep comes, though
// nobody else does anything to its event.
func TestServeWakesJournals(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, key := adminKey(t)
	bus := openNATS(t)
	s := start(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db.URL(), "--keys-file", keys, "--nats-url", bus.url(),
		"--sweep-every", "1h")
	conn, err := pgx.Connect(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	createEvent(t, key, s.url, "e", 1, 100)
	for n := range 2 {
		was, last := 0, time.Time{}
		pgtest.Until(t, "a hold is expired", func() bool {
			again := time.Since(last) > 5*time.Second // an alarm is a hint, and one that's set while NATS comes back may be lost
			if again {
				holdOne(t, key, s.url, "e", fmt.Sprint("hold-", n, "-", time.Now().UnixNano()))
				last = time.Now()
			}
			var expired int
			if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM entries WHERE kind = 'hold.expired'`).Scan(&expired); err != nil {
				t.Fatal(err)
			}
			if again { // what ran out before may have been expired by this hold
				was = expired
			}
			return expired > was
		})
		bus.stop() // what's kept for alarms is gone with it
		bus.start()
		pgtest.Until(t, "the service is connected again", func() bool { return ready(t, s.url, "publisher") })
	}
}

// cloudEvent is what a reader outside knows of an event: the attributes of CloudEvents 1.0,
// and ours.
type cloudEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string
	Source          string
	Type            string
	Time            time.Time
	DataContentType string `json:"datacontenttype"`
	Journal         string
	Seq             string
	Kind            string
	Data            struct {
		Customer string
	}
}

// Others on the machine read the events of a dev that listens for them.
func TestDevNATS(t *testing.T) {
	t.Parallel()
	dev := start(t, "dev", "--ephemeral", "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	dev.await("NATS is at nats://127.0.0.1:")
	_, rest, _ := strings.Cut(dev.stderr.String(), "NATS is at ")
	at, _, _ := strings.Cut(rest, "\n")
	createEvent(t, "", dev.url, "e", 300, 10)
	holdOne(t, "", dev.url, "e", "ann")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := nats.Connect(at, nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	var consumer jetstream.Consumer
	pgtest.Until(t, "the stream is there", func() bool {
		consumer, err = js.OrderedConsumer(ctx, "TIERLEDGER", jetstream.OrderedConsumerConfig{
			FilterSubjects: []string{"tierledger.journal.*.hold.placed"}})
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
		return err == nil
	})
	msg, err := consumer.Next(jetstream.FetchContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	var e cloudEvent
	if err := json.Unmarshal(msg.Data(), &e); err != nil {
		t.Fatal(err)
	}
	if e.SpecVersion != "1.0" || e.ID == "" || e.Source != "/journals/"+e.Journal || e.Type != "tierledger.hold.placed.v1" ||
		time.Since(e.Time).Abs() > time.Hour || e.DataContentType != "application/json" || e.Seq == "" || e.Kind != "hold.placed" ||
		e.Data.Customer != "ann" || msg.Headers().Get("Content-Type") != "application/cloudevents+json" {
		t.Errorf("%v: %s", msg.Headers(), msg.Data())
	}
	if code := dev.end(syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d: %s", code, dev.stderr.String())
	}
}

// An address that NATS can't have ends dev, and leaves nothing running.
func TestDevNATSCannotListen(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, says := range map[string]string{
		"nonsense":            "not host:port",
		taken.Addr().String(): taken.Addr().String(),
	} {
		code, stdout, stderr := execute(t, "dev", "--ephemeral", "--listen", "127.0.0.1:0", "--nats-listen", address)
		if code == exitOK || !strings.Contains(stderr, says) || stdout != "" {
			t.Errorf("%s: exit code %d, want %q: %s%s", address, code, says, stdout, stderr)
		}
	}
}
