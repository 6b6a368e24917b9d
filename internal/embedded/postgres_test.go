package embedded

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestStartStopRestart(t *testing.T) {
	t.Parallel()
	store := tempStore(t)
	p := start(t, PostgresOptions{Dir: store.Dir()})
	url := p.URL("postgres")
	query(t, p, "CREATE TABLE kept AS SELECT 'one' AS v")

	if running, ok := RunningURL(store.Dir(), "postgres"); !ok || running != url {
		t.Errorf("RunningURL says %s, %v", running, ok)
	}
	if info, err := os.Stat(filepath.Dir(p.SocketPath())); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder isn't private: %v %v", info, err)
	}
	if len(p.SocketPath()) > 100 {
		t.Errorf("the socket's path is too long: %s", p.SocketPath())
	}
	if err := p.Restart(bounded(t)); err == nil {
		t.Error("restarted while it runs")
	}

	done := p.Done()
	stop(t, p)
	select {
	case <-done:
	default:
		t.Error("stopped, but not done")
	}
	if exists(filepath.Dir(p.SocketPath())) {
		t.Error("the socket's folder wasn't removed")
	}
	if _, ok := RunningURL(store.Dir(), "postgres"); ok {
		t.Error("RunningURL finds a stopped server")
	}
	stop(t, p)

	if err := p.Restart(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if p.URL("postgres") != url {
		t.Error("another URL after the restart")
	}
	if got := query(t, p, "SELECT v FROM kept"); got != "one" {
		t.Errorf("read %q", got)
	}
	stop(t, p)

	again := start(t, PostgresOptions{Dir: store.Dir()})
	if got := query(t, again, "SELECT v FROM kept"); got != "one" {
		t.Errorf("read %q in a new server", got)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	p, err := StartPostgres(bounded(t), PostgresOptions{Dir: tempStore(t).Dir(), Settings: map[string]string{
		"work_mem": "5MB", "listen_addresses": "*", "port": "1", "unix_socket_directories": "/tmp",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, p) })
	for name, want := range map[string]string{
		"work_mem": "5MB", "listen_addresses": "", "port": "5432", "unix_socket_permissions": "0700",
		"unix_socket_directories": filepath.Dir(p.SocketPath()),
		"fsync":                   "on", "synchronous_commit": "on", "full_page_writes": "on",
		"shared_buffers": "256MB", "max_wal_size": "4GB", "jit": "off", "TimeZone": "UTC",
		"server_encoding": "UTF8", "lc_collate": "C",
	} {
		if got := query(t, p, "SELECT current_setting('"+name+"')"); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := query(t, p, "SELECT current_setting('wal_compression')"); got != "lz4" && got != "pglz" {
		t.Errorf("wal_compression is %s", got)
	}
	if got := query(t, p, "SELECT current_user || ' ' || rolsuper FROM pg_roles WHERE rolname = current_user"); got != "tierledger true" {
		t.Errorf("connected as %s", got)
	}
	if pgid, err := syscall.Getpgid(postmasterPID(p.Dir())); err != nil || pgid == syscall.Getpgrp() {
		t.Errorf("the server is in our process group: %v", err)
	}
}

// Every way to die must leave a cluster that starts again with what was committed.
func TestCrashes(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(*testing.T, *Postgres){
		"Kill": func(t *testing.T, p *Postgres) {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
		},
		"SIGKILL of the postmaster": func(t *testing.T, p *Postgres) {
			if err := p.proc.Load().signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
		"SIGKILL with a backend that goes on": func(t *testing.T, p *Postgres) {
			// Not the test's context, which ends before the cleanup below.
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			conn, err := pgx.Connect(ctx, p.URL("postgres"))
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := conn.Exec(ctx, "SELECT count(*) FROM generate_series(1, 1000000000000) WHERE 1 = ALL (SELECT 1)")
				ended <- err
			}()
			eventually(t, "the backend is busy", func() bool {
				return query(t, p, "SELECT count(*)::text FROM pg_stat_activity WHERE query LIKE 'SELECT count(*) FROM generate%' AND state = 'active'") == "1"
			})
			t.Cleanup(func() {
				if err := <-ended; err == nil || ctx.Err() != nil {
					t.Errorf("the backend wasn't ended: %v", err)
				}
				cancel()
			})
			if err := p.proc.Load().signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			eventually(t, "only the busy backend is left", func() bool { return len(serverProcesses(p.Dir())) == 1 })
		},
		"SIGKILL with a process id that lives": func(t *testing.T, p *Postgres) {
			if err := p.proc.Load().signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			// A bystander of the server's user: PostgreSQL would take it for itself.
			bystander, err := startProcess(command(p.acct, "/", syscall.SIGKILL, "/bin/sleep", "60"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = bystander.signal(syscall.SIGKILL); <-bystander.done })
			path := filepath.Join(p.Dir(), "postmaster.pid")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(text), "\n")
			if err := os.WriteFile(path, []byte(pidLine(bystander)+rest), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, PostgresOptions{Dir: tempStore(t).Dir()})
			query(t, p, "CREATE TABLE kept AS SELECT 'one' AS v")
			query(t, p, "INSERT INTO kept VALUES ('two')")
			crash(t, p)
			<-p.Done()
			if err := p.Restart(bounded(t)); err != nil {
				t.Fatal(err)
			}
			if got := query(t, p, "SELECT v FROM kept ORDER BY v"); got != "one two" {
				t.Errorf("read %q", got)
			}
		})
	}
}

func TestStopEscalates(t *testing.T) {
	t.Parallel()
	p := start(t, PostgresOptions{Dir: tempStore(t).Dir()})
	p.patience = time.Second
	if err := p.proc.Load().signal(syscall.SIGSTOP); err != nil { // deaf to all but SIGKILL
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err := p.Stop(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	oneLine(t, err, "had to be killed")
	if pids := serverProcesses(p.Dir()); len(pids) > 0 {
		t.Errorf("left running: %v", pids)
	}
	p.patience = quitPatience
	if err := p.Restart(bounded(t)); err != nil {
		t.Error(err)
	}
}

func TestEarlyEndQuotesTheLog(t *testing.T) {
	t.Parallel()
	store := tempStore(t)
	_, err := StartPostgres(bounded(t), PostgresOptions{Dir: store.Dir(), Unsafe: true, Settings: map[string]string{"work_mem": "plenty"}})
	if err == nil {
		t.Fatal("it started")
	}
	for _, part := range []string{"ended during its start", `invalid value for parameter "work_mem": "plenty"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q isn't in: %v", part, err)
		}
	}
	start(t, PostgresOptions{Dir: store.Dir()}) // and nothing is in the way
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	store := tempStore(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // in initdb
	defer cancel()
	_, err := StartPostgres(ctx, PostgresOptions{Dir: store.Dir(), Unsafe: true})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	p := start(t, PostgresOptions{Dir: store.Dir()})
	if left, _ := filepath.Glob(p.Dir() + ".init-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestInterruptedInitdb(t *testing.T) {
	t.Parallel()
	store := tempStore(t)
	half := filepath.Join(store.Dir(), clusterName+".init-123")
	if err := errors.Join(os.MkdirAll(filepath.Join(half, "base"), 0o700), os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	start(t, PostgresOptions{Dir: store.Dir()})
	if exists(half) {
		t.Error("the half cluster wasn't removed")
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	t.Parallel()
	store := tempStore(t)
	mine := filepath.Join(store.Dir(), clusterName, "thesis.txt")
	if err := errors.Join(os.Mkdir(filepath.Dir(mine), 0o755), os.WriteFile(mine, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	_, err := StartPostgres(bounded(t), PostgresOptions{Dir: store.Dir(), Unsafe: true})
	oneLine(t, err, "isn't a PostgreSQL cluster")
	if !exists(mine) {
		t.Error("somebody's file was removed")
	}
}

func TestSocketFolderOfSomebodyElse(t *testing.T) {
	t.Parallel()
	p := start(t, PostgresOptions{Dir: tempStore(t).Dir()})
	stop(t, p)
	folder := filepath.Dir(p.SocketPath())
	if err := os.Symlink(t.TempDir(), folder); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(folder)
	oneLine(t, p.Restart(bounded(t)), "somebody else's")
	if _, err := net.Dial("unix", p.SocketPath()); err == nil {
		t.Error("it listens in somebody else's folder")
	}
}

func TestEmptySocketFoldersAreRemoved(t *testing.T) {
	t.Parallel()
	p := start(t, PostgresOptions{Dir: tempStore(t).Dir()})
	used := filepath.Dir(p.SocketPath())
	empty, err := newSocketFolder(p.acct)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(empty)
	old := time.Now().Add(-2 * abandonedAfter)
	for _, dir := range []string{empty, used} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	recent, err := newSocketFolder(p.acct)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(recent)
	if exists(empty) {
		t.Error("an old empty folder wasn't removed")
	}
	if !exists(p.SocketPath()) || !exists(recent) {
		t.Error("a folder was removed that is in use or recent")
	}
}
