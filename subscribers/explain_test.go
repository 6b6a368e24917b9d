package subscribers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/subscribers"
)

// Why there was no answer is told by its kind, without an address of anybody; the log has
// the rest.
func TestNoAnswerIsExplained(t *testing.T) {
	t.Parallel()
	const closed = "127.0.0.1:1" // no port that a server is given, as one that was closed could be
	hangUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(hangUp.Close)
	junk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.6\r\n")
		conn.Close()
	}))
	t.Cleanup(junk.Close)
	unknown := httptest.NewUnstartedServer(http.NotFoundHandler())
	unknown.Config.ErrorLog = log.New(io.Discard, "", 0) // it minds that it isn't trusted
	unknown.StartTLS()
	t.Cleanup(unknown.Close)
	secure := func(url string) string { return strings.Replace(url, "http:", "https:", 1) }
	away := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Addr: &net.UDPAddr{IP: net.IPv4(10, 255, 255, 53), Port: 53}, Err: errors.New("down")}
	}}
	for _, c := range []struct {
		url      string
		resolver *net.Resolver
		want     string
		logged   string
	}{
		{"http://" + closed, nil, "the connection was refused", closed},
		{"http://nobody.example.com", names(t, ""), "the host's name can't be found", "nobody.example.com"},
		{"http://nobody.example.com", away, "the host's name couldn't be looked up", "10.255.255.53"},
		{hangUp.URL, nil, "the connection ended before there was an answer", "EOF"},
		{junk.URL, nil, "there was no answer that can be understood", "malformed"},
		{secure(hangUp.URL), nil, "the server doesn't speak TLS", "HTTP response to HTTPS"},
		{unknown.URL, nil, "the certificate isn't good: x509: certificate signed by unknown authority", "unknown authority"},
	} {
		d := open(t, func(o *subscribers.Options) { o.Resolver = c.resolver })
		made := d.subscribe(nil, subscribers.Spec{URL: c.url + "/hook?token=t0psecret"})
		got, err := d.Try(d.ctx, "ann", "k", made.ID)
		if err != nil || got.Delivered || got.Error != c.want {
			t.Errorf("%s: %+v %v, want %q", c.url, got, err, c.want)
		}
		if text := d.log.String(); !strings.Contains(text, c.logged) || strings.Contains(text, "t0psecret") {
			t.Errorf("%s: %q isn't in the log, or the URL is:\n%s", c.url, c.logged, text)
		}
	}
}

// A test says how long it has waited, whose caller may have little time.
func TestTrialOfOneThatHangs(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	came := make(chan time.Time, 10)
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		came <- time.Now()
		_, _ = io.Copy(io.Discard, q.Body)
		<-q.Context().Done()
	}))
	t.Cleanup(mute.Close)
	made := d.subscribe(nil, subscribers.Spec{URL: mute.URL})
	got, err := d.Try(d.ctx, "ann", "k", made.ID)
	if err != nil || got.Error != "no answer within 8s" || got.Milliseconds < 8000 {
		t.Errorf("%+v %v", got, err)
	}
	<-came
	const most = 7 // seconds, of which the call has what the preparations leave
	ctx, cancel := context.WithTimeout(d.ctx, most*time.Second)
	defer cancel()
	deadline, _ := ctx.Deadline()
	got, err = d.Try(ctx, "ann", "k", made.ID)
	var within int
	if _, wrong := fmt.Sscanf(got.Error, "no answer within %ds", &within); err != nil || wrong != nil {
		t.Fatalf("in less time: %+v %v", got, err)
	}
	if least := int(deadline.Sub(<-came).Round(time.Second).Seconds()); within < least || within > most {
		t.Errorf("it has waited %d s, not %d to %d", within, least, most)
	}
}
