package load

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func newClient(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	c, err := NewClient(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		server.Close()
	})
	return c
}

func TestClientSendsWhatItIsGiven(t *testing.T) {
	peers := make(map[string]bool)
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		peers[r.RemoteAddr] = true
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Saw", r.Method+" "+r.URL.Path+" "+r.Header.Get("Idempotency-Key")+" "+r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	})
	for _, x := range []struct{ method, path, key, body, saw string }{
		{"POST", "/a", "k-1", `{"n":1}`, "POST /a k-1 application/json"},
		{"POST", "/a", "k-2", strings.Repeat("x", 3*bufferSize), "POST /a k-2 application/json"}, // answered in chunks
		{"GET", "/b", "", "", "GET /b"},
	} {
		var body []byte
		if x.body != "" {
			body = []byte(x.body)
		}
		a, err := c.Do(t.Context(), x.method, x.path, x.key, body)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != 201 || a.Header("X-Saw") != x.saw || string(a.Body) != x.body {
			t.Errorf("%s %s: %d, %q, %d bytes", x.method, x.path, a.Status, a.Header("X-Saw"), len(a.Body))
		}
	}
	if len(peers) != 1 {
		t.Errorf("%d connections, want 1 kept alive", len(peers))
	}
}

func TestAnswerTellsWhatMatters(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.Header().Set("Idempotency-Replayed", "true")
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = io.WriteString(w, `{"code":"sold_out","available":0}`)
	})
	for path, code := range map[string]string{"/no": "sold_out", "/yes": ""} {
		a, err := c.Do(t.Context(), "POST", path, "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		if a.Code() != code || a.RetryAfter() != 3*time.Second || !a.Replayed() {
			t.Errorf("%s: code %q, retry after %s, replayed %t", path, a.Code(), a.RetryAfter(), a.Replayed())
		}
	}
}

func TestClientConnectsAgain(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/close":
			w.Header().Set("Connection", "close")
		case "/break":
			panic(http.ErrAbortHandler)
		}
	})
	for _, x := range []struct {
		path string
		fail bool
	}{{"/", false}, {"/close", false}, {"/", false}, {"/break", true}, {"/", false}} {
		if _, err := c.Do(t.Context(), "POST", x.path, "k", nil); (err != nil) != x.fail {
			t.Errorf("%s: %v", x.path, err)
		}
	}
}

func TestContextEndsARequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := newClient(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done() // until the client has gone
	})
	if _, err := c.Do(ctx, "GET", "/", "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestClientStaysOnLoopback(t *testing.T) {
	for _, url := range []string{"http://192.0.2.1:80", "http://example.org:80", "https://127.0.0.1:80", "http://127.0.0.1", "://"} {
		if _, err := NewClient(url); err == nil {
			t.Errorf("%s was accepted", url)
		}
	}
	for _, url := range []string{"http://127.0.0.1:80", "http://[::1]:80"} {
		if _, err := NewClient(url); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkDo tells what the client itself costs, beside a server that answers
// the same to anything.
func BenchmarkDo(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		const head = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nEtag: \"7\"\r\nX-Request-Id: 0199\r\n" +
			"Date: Mon, 02 Mar 2026 10:00:00 GMT\r\nContent-Length: 400\r\n\r\n"
		answer := []byte(head + strings.Repeat("x", 400))
		buf := make([]byte, bufferSize)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	}()
	c, err := NewClient("http://" + listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	body := []byte(`{"customer":"c-1","items":[{"tier":"ga","quantity":1}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Do(b.Context(), "POST", "/v1/events/e/holds", "key", body); err != nil {
			b.Fatal(err)
		}
	}
}
