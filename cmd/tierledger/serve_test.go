package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pgtest"
)

// adminKey makes a keys file with one key, and returns both.
func adminKey(t *testing.T) (path, key string) {
	t.Helper()
	key, line, err := httpapi.NewKey("tester", "admin")
	if err != nil {
		t.Fatal(err)
	}
	return writeTemp(t, "keys", line+"\n"), key
}

func writeTemp(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServeRefusesToStart(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, _ := adminKey(t)
	empty := db.Server().URL("postgres")
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no database":    {[]string{"--keys-file", keys}, exitUsage, "database-url: required"},
		"bad URL":        {[]string{"--keys-file", keys, "--database-url", "postgres://u:hunter2@:bad:/"}, exitUsage, "database-url: not a PostgreSQL URL"},
		"no server":      {[]string{"--keys-file", keys, "--database-url", "postgres://u:hunter2@127.0.0.1:1/x"}, exitFailed, "connect"},
		"no keys":        {[]string{"--database-url", db.URL()}, exitUsage, "keys-file: required"},
		"missing keys":   {[]string{"--database-url", db.URL(), "--keys-file", "/nowhere"}, exitFailed, "/nowhere"},
		"no schema":      {[]string{"--keys-file", keys, "--database-url", empty}, exitFailed, "tierledger migrate"},
		"bad NATS":       {[]string{"--keys-file", keys, "--database-url", db.URL(), "--nats-url", "nats://u:hunter2@host:port"}, exitUsage, "nats-url: not a NATS URL"},
		"half TLS":       {[]string{"--keys-file", keys, "--database-url", db.URL(), "--tls-cert", keys}, exitUsage, "tls-cert, tls-key"},
		"zero conns":     {[]string{"--keys-file", keys, "--database-url", db.URL(), "--commit-conns", "0"}, exitUsage, "commit-conns"},
		"loopback admin": {[]string{"--loopback-admin"}, exitUsage, "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := execute(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.says) || stdout != "" {
				t.Errorf("exit code %d, want %d and %q: %s%s", code, c.code, c.says, stdout, stderr)
			}
			if strings.Contains(stderr, "hunter2") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("want one line without secrets: %s", stderr)
			}
		})
	}
	code, _, stderr := execute(t, "migrate", "--check", "--database-url", empty)
	if code != exitFailed || !strings.Contains(stderr, "migrations pending") {
		t.Errorf("migrate --check of an empty database: exit code %d, %s", code, stderr)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, key := adminKey(t)
	config := writeTemp(t, "env", "# production\nTIERLEDGER_DATABASE_URL='"+db.URL()+"'\nTIERLEDGER_LISTEN=127.0.0.1:0\n")
	s := start(t, "serve", "--config", config, "--keys-file", keys)
	want(t, http.StatusUnauthorized, "", "GET", s.url+"/v1/events", "", "")
	createEvent(t, key, s.url, "e", 300, 10)

	// SIGHUP changes the keys; a wrong file changes nothing.
	second, line, err := httpapi.NewKey("second", "auditor")
	if err != nil {
		t.Fatal(err)
	}
	replace(t, keys, line+"\n")
	hangUp(t, s, "keys were reloaded")
	want(t, http.StatusUnauthorized, key, "GET", s.url+"/v1/events", "", "")
	want(t, http.StatusOK, second, "GET", s.url+"/v1/events", "", "")
	replace(t, keys, "nonsense\n")
	hangUp(t, s, "keys weren't reloaded")
	want(t, http.StatusOK, second, "GET", s.url+"/v1/events", "", "")

	if code := s.end(syscall.SIGTERM); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
}

func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func hangUp(t *testing.T, s *child, says string) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.await(says)
}

func TestServeTLS(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, key := adminKey(t)
	pair := httptest.NewTLSServer(nil)
	defer pair.Close()
	private, err := x509.MarshalPKCS8PrivateKey(pair.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(name, kind string, der []byte) string {
		return writeTemp(t, name, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
	}
	s := start(t, "serve", "--listen", "127.0.0.1:0", "--database-url", db.URL(), "--keys-file", keys,
		"--tls-cert", encode("cert", "CERTIFICATE", pair.Certificate().Raw), "--tls-key", encode("key", "PRIVATE KEY", private))
	roots := x509.NewCertPool()
	roots.AddCert(pair.Certificate())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(s.url, "https://") {
		t.Errorf("%s: %s", s.url, answer.Status)
	}
}
