package bench

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	wireDialTimeout   = 10 * time.Second
	wireAnswerTimeout = 30 * time.Second
	wireBuffer        = 4 << 10
)

// noDeadline is that of a stream, which ends when somebody ends it.
var noDeadline time.Time

// wire is one keep-alive connection for reads with headers of their own. It connects when
// it's needed. It's for one goroutine at a time.
type wire struct {
	host   string // host:port
	conn   net.Conn
	reader *bufio.Reader
	out    []byte
}

func newWire(serverURL string) *wire { return &wire{host: strings.TrimPrefix(serverURL, "http://")} }

// get sends a request, whose header lines end in CRLF each, and reads the answer up to
// its body, which is the caller's to read whole. A ctx that ends closes the connection.
func (w *wire) get(ctx context.Context, path, headers string) (*http.Response, error) {
	if w.conn == nil {
		conn, err := net.DialTimeout("tcp", w.host, wireDialTimeout)
		if err != nil {
			return nil, err
		}
		w.conn, w.reader = conn, bufio.NewReaderSize(conn, wireBuffer)
	}
	defer w.closeWith(ctx)()
	if err := w.conn.SetDeadline(time.Now().Add(wireAnswerTimeout)); err != nil {
		return nil, err
	}
	w.out = append(w.out[:0], "GET "+path+" HTTP/1.1\r\nHost: "+w.host+"\r\n"...)
	w.out = append(w.out, headers...)
	w.out = append(w.out, "\r\n"...)
	if _, err := w.conn.Write(w.out); err != nil {
		return nil, err
	}
	return http.ReadResponse(w.reader, nil)
}

// closeWith closes the connection when ctx ends, until the returned function is called.
func (w *wire) closeWith(ctx context.Context) (stop func() bool) {
	conn := w.conn
	return context.AfterFunc(ctx, func() { conn.Close() })
}

// close ends the connection, if there is one. The next request makes a new one.
func (w *wire) close() {
	if w.conn != nil {
		w.conn.Close() // nothing is left to be sent
		w.conn = nil
	}
}
