package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"
)

const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 30 * time.Second // far above any latency worth measuring
	bufferSize    = 4 << 10          // holds a usual request or answer whole
)

// Client sends requests over one HTTP/1.1 connection, one after the other. It
// connects when the first request needs it, and again after a failure. It's for
// one goroutine at a time.
type Client struct {
	host   string // host:port
	conn   net.Conn
	reader *bufio.Reader
	out    []byte // the request, built here
	buf    []byte // the last answer, header and body
}

// NewClient makes a client of a server on loopback, such as http://127.0.0.1:8080.
func NewClient(serverURL string) (*Client, error) {
	u, err := url.Parse(serverURL)
	if err != nil {
		return nil, fmt.Errorf("server's URL: %w", err)
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "http" || u.Port() == "" || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("server's URL %q: load goes to http://, a loopback address and a port only", serverURL)
	}
	return &Client{host: u.Host}, nil
}

// Do sends a request and reads the whole answer, whatever its status. The key
// goes into Idempotency-Key, "" for none; a nil body is none. An error means that
// there's no answer: the request may have been carried out or not.
func (c *Client) Do(ctx context.Context, method, path, key string, body []byte) (Answer, error) {
	a, err := c.exchange(ctx, method, path, key, body)
	if err != nil {
		c.Close()
		return Answer{}, fmt.Errorf("%s %s: %w", method, path, errors.Join(ctx.Err(), err))
	}
	return a, nil
}

func (c *Client) exchange(ctx context.Context, method, path, key string, body []byte) (Answer, error) {
	if c.conn == nil {
		dialer := net.Dialer{Timeout: dialTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", c.host)
		if err != nil {
			return Answer{}, err
		}
		c.conn, c.reader = conn, bufio.NewReaderSize(conn, bufferSize)
	}
	conn := c.conn
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return Answer{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c.format(method, path, key, body)
	if _, err := conn.Write(c.out); err != nil {
		return Answer{}, err
	}
	a, keep, err := readAnswer(c.reader, method, &c.buf)
	if err == nil && !keep {
		c.Close()
	}
	return a, err
}

// format builds the request in out.
func (c *Client) format(method, path, key string, body []byte) {
	b := append(c.out[:0], method...)
	b = append(b, ' ')
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, c.host...)
	if key != "" {
		b = append(b, "\r\nIdempotency-Key: "...)
		b = append(b, key...)
	}
	if body != nil {
		b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
	}
	b = append(b, "\r\n\r\n"...)
	c.out = append(b, body...)
}

// Close ends the connection, if there is one. The next request makes a new one.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close() // nothing is left to be sent
		c.conn = nil
	}
}
