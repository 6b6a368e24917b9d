package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds everything that a test waits for.
const patience = 3 * time.Minute

// givesUp is how long the service waits at least before it refuses what its database, or the
// machine, was too slow for.
const givesUp = 2 * time.Second

// program is the binary under test; a TestMain can't hand it over in another way.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tierledger-test-*")
	if err == nil {
		defer os.RemoveAll(dir)
		// Temporary stores go there too, where PostgreSQL's user must get to them.
		err = errors.Join(os.Chmod(dir, 0o755), os.Setenv("TMPDIR", dir))
	}
	if err == nil {
		program = filepath.Join(dir, "tierledger")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the program:", err)
		return 1
	}
	return m.Run()
}

// invocation is a command line of the program with its environment.
type invocation struct {
	env  []string
	args []string
}

func (i invocation) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, i.args...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, envPrefix) || strings.HasPrefix(pair, "TIERLEDGER_PG_BIN=") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, i.env...)
	return cmd
}

// execute runs the program to its end.
func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return invocation{args: args}.execute(t)
}

func (i invocation) execute(t *testing.T) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := i.command(ctx)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// child is a program that serves.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	stdout tail
	stderr tail
	ended  chan struct{}
}

// start starts the program and waits until it says that it's ready.
func start(t *testing.T, args ...string) *child {
	t.Helper()
	c := &child{t: t, cmd: invocation{args: args}.command(context.Background()), ended: make(chan struct{})}
	c.stdout.init()
	c.stderr.init()
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // the exit code tells
		close(c.ended)
	}()
	t.Cleanup(func() { c.end(syscall.SIGTERM) })
	c.awaitIn(&c.stdout, "ready http")
	lines := bufio.NewScanner(strings.NewReader(c.stdout.String()))
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			c.url = url
		}
	}
	return c
}

// await waits until the child has written a text to standard error.
func (c *child) await(text string) {
	c.t.Helper()
	c.awaitIn(&c.stderr, text)
}

func (c *child) awaitIn(tail *tail, text string) {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		changed := tail.next()
		if strings.Contains(tail.String(), text) {
			return
		}
		select {
		case <-changed:
		case <-c.ended:
			if !strings.Contains(tail.String(), text) {
				c.t.Fatalf("%v ended without %q: %s", c.cmd.Args[1:], text, c.stderr.String())
			}
		case <-deadline:
			c.t.Fatalf("%v didn't write %q in time: %s", c.cmd.Args[1:], text, c.stderr.String())
		}
	}
}

// end sends a signal and waits until the child has ended; it returns the exit
// code, -1 after a signal.
func (c *child) end(sig syscall.Signal) int {
	c.t.Helper()
	_ = c.cmd.Process.Signal(sig) // one that has ended is all right
	select {
	case <-c.ended:
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		c.t.Fatalf("%v didn't end after %v: %s", c.cmd.Args[1:], sig, c.stderr.String())
	}
	return c.cmd.ProcessState.ExitCode()
}

// tail is what a child wrote, and tells of more.
type tail struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (w *tail) init() { w.changed = make(chan struct{}) }

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
	return w.text.Write(p)
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// next is closed at the next write.
func (w *tail) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	body   string
}

// call calls the API; credential "" for none.
func call(ctx context.Context, credential, method, url, key, body string) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
		request.Header.Set("Content-Type", "application/json")
	}
	if credential != "" {
		request.Header.Set("Authorization", "Bearer "+credential)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, string(text)}, err
}

// want calls the API and wants a status. Whom the service has kept waiting, and then told to
// come again, comes again: the machine stood still.
func want(t *testing.T, status int, credential, method, url, key, body string) reply {
	t.Helper()
	return wantUnless(t, func(r reply, took time.Duration) bool {
		return r.status == http.StatusServiceUnavailable && took >= givesUp
	}, status, credential, method, url, key, body)
}

// wantSoon is want, for a service whose database has just come back: 503 says that
// a repeat is in order.
func wantSoon(t *testing.T, status int, credential, method, url, key, body string) reply {
	t.Helper()
	return wantUnless(t, func(r reply, _ time.Duration) bool { return r.saysUnavailable() },
		status, credential, method, url, key, body)
}

// wantUnless calls the API, and again after an answer that's excused, and wants a status.
func wantUnless(t *testing.T, excused func(r reply, took time.Duration) bool, status int, credential, method, url, key, body string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		began := time.Now()
		r, err := call(ctx, credential, method, url, key, body)
		switch {
		case err != nil:
			t.Fatal(err)
		case r.status == status:
			return r
		case !excused(r, time.Since(began)):
			t.Fatalf("%s %s: got %d, want %d: %s", method, url, r.status, status, r.body)
		}
	}
}

// createEvent creates an event with one tier, ga.
func createEvent(t *testing.T, credential, url, event string, holdSeconds, quantity int) {
	t.Helper()
	want(t, http.StatusCreated, credential, "POST", url+"/v1/events", "create-"+event, fmt.Sprintf(
		`{"event":%q,"name":"Test","currency":"USD","hold_seconds":%d,
		  "tiers":[{"tier":"ga","quantity":%d,"price":{"amount":5000,"currency":"USD"}}]}`, event, holdSeconds, quantity))
}

// storeFolder is a folder that PostgreSQL's user can reach, unlike t.TempDir.
func storeFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "store-*")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "store")
}
