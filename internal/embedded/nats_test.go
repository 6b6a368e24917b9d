package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func startNATS(t *testing.T, o NATSOptions) (*NATS, jetstream.JetStream) {
	t.Helper()
	n, err := StartNATS(bounded(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	conn, err := n.Connect(nats.Name("test"), nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return n, js
}

func TestNATSKeepsMessages(t *testing.T) {
	t.Parallel()
	ctx, dir := bounded(t), t.TempDir()
	var said notices
	n, js := startNATS(t, NATSOptions{Dir: dir, Notice: said.add})
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "s.one", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	if n.srv.Addr() != nil {
		t.Errorf("it listens on %v", n.srv.Addr())
	}
	n.Stop()
	n.Stop()

	_, js = startNATS(t, NATSOptions{Dir: dir, Notice: said.add})
	stream, err := js.Stream(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := stream.GetMsg(ctx, 1)
	if err != nil || string(msg.Data) != "kept" || msg.Subject != "s.one" {
		t.Errorf("got %+v, %v", msg, err)
	}
	if lines := said.all(); len(lines) > 0 {
		t.Errorf("it isn't quiet: %q", lines)
	}
}

func TestNATSTwoSideBySide(t *testing.T) {
	t.Parallel()
	startNATS(t, NATSOptions{Dir: t.TempDir()})
	startNATS(t, NATSOptions{Dir: t.TempDir()})
}

func TestNATSSaysWhyItCantStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, natsName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := StartNATS(bounded(t), NATSOptions{Dir: dir})
	oneLine(t, err, "start NATS", "JetStream", "not a directory")
}
