package pgtest

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/migrations"
)

// Proxy stands between the service and the server, and can cut a connection at
// the two points where it matters for a commit.
type Proxy struct {
	socket   string
	listener net.Listener

	mu    sync.Mutex
	armed cut
	hit   chan struct{} // closed when the armed cut has been made
	away  bool          // new connections are refused
	conns map[net.Conn]struct{}
	hang  *hang // of the connections that there are
	done  sync.WaitGroup
}

// cut is a point at which a connection is cut, once.
type cut int

const (
	cutNothing cut = iota
	cutWrite       // what the client sends after it has read: the server never gets it
	cutAnswer      // the answer of COMMIT: the client never gets it
)

// The server's CommandComplete messages for BEGIN and COMMIT.
var (
	beginDone  = []byte("C\x00\x00\x00\x0aBEGIN\x00")
	commitDone = []byte("C\x00\x00\x00\x0bCOMMIT\x00")
)

// NewProxy puts a proxy in front of a test's database, on a loopback port.
func NewProxy(t testing.TB, db *DB) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{socket: db.server.SocketPath(), listener: listener, conns: make(map[net.Conn]struct{}), hang: newHang()}
	p.done.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// ServiceURL connects through the proxy, as the service does.
func (p *Proxy) ServiceURL(t testing.TB, db *DB) string {
	t.Helper()
	config, err := pgx.ParseConfig(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	port := p.listener.Addr().(*net.TCPAddr).Port
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=%s sslmode=disable role=%s", port, config.User, config.Database,
		migrations.ServiceRole)
}

// LoseNextWrite cuts the next connection that has read inside a transaction and
// now writes: the server sees the connection end and nothing of the write. The
// channel is closed when that has happened.
func (p *Proxy) LoseNextWrite() <-chan struct{} { return p.arm(cutWrite) }

// LoseNextAnswer cuts the next connection whose COMMIT the server has answered,
// before the client gets the answer. The channel is closed when that has happened.
func (p *Proxy) LoseNextAnswer() <-chan struct{} { return p.arm(cutAnswer) }

func (p *Proxy) arm(c cut) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.hit = c, make(chan struct{})
	return p.hit
}

// Refuse refuses new connections, or takes them again, as a server that is down.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = refuse
}

// Hang has the connections that there are carry nothing any more, as those to a machine that's
// gone, until end cuts them. New ones are as any.
func (p *Proxy) Hang() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.hang
	close(h.begun)
	p.hang = newHang()
	return sync.OnceFunc(func() { close(h.ended) })
}

// hang is the time in which connections carry nothing.
type hang struct{ begun, ended chan struct{} }

func newHang() *hang { return &hang{make(chan struct{}), make(chan struct{})} }

// fire tells whether the armed cut is c, and disarms it.
func (p *Proxy) fire(c cut) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed != c {
		return false
	}
	p.armed = cutNothing
	close(p.hit)
	return true
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		away := p.away
		p.mu.Unlock()
		server, err := net.Dial("unix", p.socket)
		if err != nil || away {
			client.Close() // the server is down, and so the client sees it
			if err == nil {
				server.Close()
			}
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		l := &link{proxy: p, client: client, server: server, hang: p.hang}
		p.mu.Unlock()
		p.done.Go(l.up)
		p.done.Go(l.down)
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	hang           *hang

	mu     sync.Mutex
	inside bool // the server has answered BEGIN and not yet COMMIT
}

// hangs waits for the end if the connection hangs.
func (l *link) hangs() bool {
	select {
	case <-l.hang.begun:
		<-l.hang.ended
		return true
	default:
		return false
	}
}

func (l *link) cut() {
	l.client.Close()
	l.server.Close()
}

// up carries what the client sends.
func (l *link) up() {
	defer l.cut()
	buf := make([]byte, 1<<16)
	for {
		n, err := l.client.Read(buf)
		if n > 0 {
			l.mu.Lock()
			inside := l.inside
			l.mu.Unlock()
			if l.hangs() {
				return
			}
			if inside && l.proxy.fire(cutWrite) {
				return
			}
			if _, err := l.server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// down carries what the server answers. A message may come in two reads, so the
// end of the last one is looked at again.
func (l *link) down() {
	defer l.cut()
	const tail = 16
	buf := make([]byte, tail+1<<16)
	kept := 0
	for {
		n, err := l.server.Read(buf[kept : kept+1<<16])
		if n > 0 {
			seen := buf[:kept+n]
			commit := bytes.Contains(seen, commitDone)
			if l.hangs() || commit && l.proxy.fire(cutAnswer) {
				return
			}
			l.mu.Lock()
			l.inside = !commit && (l.inside || bytes.Contains(seen, beginDone))
			l.mu.Unlock()
			if _, err := l.client.Write(buf[kept : kept+n]); err != nil {
				return
			}
			if commit { // what was seen of this transaction mustn't be seen again
				kept = 0
			} else {
				kept = copy(buf, seen[max(0, len(seen)-tail):])
			}
		}
		if err != nil {
			return
		}
	}
}
