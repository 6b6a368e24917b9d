package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestDevEphemeral(t *testing.T) {
	t.Parallel()
	dev := start(t, "dev", "--ephemeral", "--listen", "127.0.0.1:0")
	dev.await("starting PostgreSQL and NATS in ")
	dev.await("calls from this machine without a key are admin\n")
	_, rest, _ := strings.Cut(dev.stderr.String(), "NATS in ")
	dir, _, _ := strings.Cut(rest, "\n")
	if _, err := os.Stat(filepath.Join(dir, "url")); err != nil {
		t.Fatal(err)
	}
	want(t, http.StatusOK, "", "GET", dev.url+"/readyz", "", "")
	want(t, http.StatusOK, "", "GET", dev.url+"/sim/report?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z", "", "")

	code, _, stderr := execute(t, "dev", "--ephemeral", "--listen", strings.TrimPrefix(dev.url, "http://"))
	if code != exitFailed || !strings.Contains(stderr, "is taken by another program") {
		t.Errorf("a second dev on the same address: exit code %d, %s", code, stderr)
	}

	if code := dev.end(syscall.SIGTERM); code != exitOK {
		t.Errorf("dev ended with %d: %s", code, dev.stderr.String())
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the temporary store is still there (%v)", err)
	}
	if lines := strings.Split(strings.TrimSpace(dev.stdout.String()), "\n"); len(lines) != 1 {
		t.Errorf("standard output is for the ready line: %q", lines)
	}
}

func TestDevStore(t *testing.T) {
	t.Parallel()
	dir := storeFolder(t)
	dev := start(t, "dev", "--data", dir, "--listen", "127.0.0.1:0")
	createEvent(t, "", dev.url, "e", 300, 10)
	want(t, http.StatusCreated, "", "POST", dev.url+"/v1/events/e/holds", "k", `{"customer":"c","items":[{"tier":"ga","quantity":4}]}`)

	code, _, stderr := execute(t, "dev", "--data", dir, "--listen", "127.0.0.1:0")
	if code != exitFailed || !strings.Contains(stderr, "in use by process") {
		t.Errorf("a second dev on the store: exit code %d, %s", code, stderr)
	}
	storeCommands(t, dir)

	// Killed, it leaves a store that the next dev and every command take over.
	dev.end(syscall.SIGKILL)
	storeCommands(t, dir)
	dev = start(t, "dev", "--data", dir, "--listen", "127.0.0.1:0")
	r := want(t, http.StatusOK, "", "GET", dev.url+"/v1/events/e/availability", "", "")
	if !strings.Contains(r.body, `"available":6,"held":4`) {
		t.Errorf("after the kill: %s", r.body)
	}
	if code := dev.end(syscall.SIGINT); code != exitOK {
		t.Errorf("dev ended with %d: %s", code, dev.stderr.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "url")); !os.IsNotExist(err) {
		t.Errorf("the URL's file outlives dev (%v)", err)
	}
	storeCommands(t, dir)
}

// storeCommands runs the commands that find a store by --data.
func storeCommands(t *testing.T, dir string) {
	t.Helper()
	for _, c := range []struct{ args, says string }{
		{"verify --data DIR", "checks hold"},
		{"verify --data DIR --event e --json", `"ok":true`},
		{"migrate --data DIR", "up to date"},
		{"migrate --check --data DIR", "up to date"},
		{"export --event e --format hledger --data DIR", "hold.placed"},
		{"export --event e --format ndjson --data DIR", `"hold.placed"`},
	} {
		code, stdout, stderr := execute(t, strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)
		if code != exitOK || !strings.Contains(stdout, c.says) {
			t.Errorf("%s: exit code %d, %s%s", c.args, code, stdout, stderr)
		}
	}
}

func TestDevRestartsPostgres(t *testing.T) {
	t.Parallel()
	dir := storeFolder(t)
	dev := start(t, "dev", "--data", dir, "--listen", "127.0.0.1:0")
	createEvent(t, "", dev.url, "e", 300, 10)
	if err := syscall.Kill(postmaster(t, dir), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	dev.await("PostgreSQL ended")
	dev.await("PostgreSQL is back")
	hold := `{"customer":"c","items":[{"tier":"ga","quantity":1}]}`
	wantSoon(t, http.StatusCreated, "", "POST", dev.url+"/v1/events/e/holds", "k", hold)
	if code := dev.end(syscall.SIGTERM); code != exitOK {
		t.Errorf("dev ended with %d: %s", code, dev.stderr.String())
	}
	storeCommands(t, dir)
}

// A second signal doesn't wait for what the first one began.
func TestDevSecondSignal(t *testing.T) {
	t.Parallel()
	dir := storeFolder(t)
	dev := start(t, "dev", "--data", dir, "--listen", "127.0.0.1:0")
	// A request that never ends keeps the drain waiting.
	conn, err := net.Dial("tcp", strings.TrimPrefix(dev.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\n"+
		"Idempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // 100 Continue: the handler reads
		t.Fatal(err)
	}
	if err := dev.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	dev.await("stopping")
	select {
	case <-dev.ended:
		t.Fatal("dev ended while a request was under way")
	default:
	}
	// What a dead dev leaves outside of its store; the next dev on the store would remove it.
	socket, err := os.ReadFile(filepath.Join(dir, "postgres.socket"))
	if err != nil {
		t.Fatal(err)
	}
	if code := dev.end(syscall.SIGINT); code != -1 {
		t.Errorf("the second signal: exit code %d, want death by signal", code)
	}
	if err := os.RemoveAll(strings.TrimSpace(string(socket))); err != nil {
		t.Error(err)
	}
}

// postmaster is the process id of a store's server.
func postmaster(t *testing.T, dir string) (pid int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, clusterName, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range strings.SplitN(string(text), "\n", 2)[0] {
		pid = pid*10 + int(c-'0')
	}
	return pid
}
