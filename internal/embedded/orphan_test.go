package embedded

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func pidLine(p *process) string { return strconv.Itoa(p.cmd.Process.Pid) + "\n" }

// A killed program takes its server with it, and gives the store free.
func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child that its parent died")
	}
	store := tempStore(t)
	if err := store.Close(); err != nil { // the program below locks it
		t.Fatal(err)
	}
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), holdStore+"="+store.Dir())
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready <nil>\n" {
		t.Fatalf("the program says %q, %v", line, err)
	}
	cluster := filepath.Join(store.Dir(), clusterName)
	if len(serverProcesses(cluster)) == 0 {
		t.Fatal("no server runs")
	}
	_, err = LockStore(store.Dir())
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != program.Process.Pid {
		t.Errorf("locked by the program, but got %v", err)
	}
	abandoned := recordedSocketFolder(store.Dir())

	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	eventually(t, "the server ended", func() bool { return len(serverProcesses(cluster)) == 0 })
	again, err := LockStore(store.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	start(t, PostgresOptions{Dir: store.Dir()})
	if exists(abandoned) {
		t.Error("the socket's folder of the killed program is still there")
	}
}

// Where the kernel doesn't tell the server, the next start stops it.
func TestOrphanIsStopped(t *testing.T) {
	t.Parallel()
	store := tempStore(t)
	p := start(t, PostgresOptions{Dir: store.Dir()})
	query(t, p, "CREATE TABLE kept AS SELECT 'one' AS v")
	stop(t, p)

	socket, err := newSocketFolder(p.acct)
	if err != nil {
		t.Fatal(err)
	}
	if err := recordSocketFolder(store.Dir(), socket); err != nil {
		t.Fatal(err)
	}
	orphan, err := startProcess(command(p.acct, p.Dir(), syscall.SIGKILL, p.bin.path("postgres"), arguments(p.opts, p.Dir(), socket, "pglz")...))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the orphan listens", func() bool { _, ok := RunningURL(store.Dir(), "postgres"); return ok })

	next := start(t, PostgresOptions{Dir: store.Dir()})
	if !orphan.ended() || !orphan.cmd.ProcessState.Success() {
		t.Errorf("the orphan wasn't shut down in order: %v", orphan.cmd.ProcessState)
	}
	if exists(socket) {
		t.Error("the orphan's socket folder is still there")
	}
	if got := query(t, next, "SELECT v FROM kept"); got != "one" {
		t.Errorf("read %q", got)
	}
}

// As root, a store that the server's user can't reach keeps its cluster
// elsewhere, in one place for the store's life and in a new one after it.
func TestUnreachableStore(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root changes the user")
	}
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "store")
	store, err := LockStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	target := fallbackCluster(dir)
	t.Cleanup(func() {
		old, _ := filepath.Glob(target + "*")
		for _, path := range old {
			os.RemoveAll(path)
		}
		_ = os.Remove(fallbackRoot) // if it was made for this
	})

	var said notices
	p := start(t, PostgresOptions{Dir: dir, Notice: said.add})
	if p.Dir() != target {
		t.Errorf("the cluster is at %s, want %s", p.Dir(), target)
	}
	if info, err := os.Stat(parent); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the user's folder was opened: %v %v", info.Mode(), err)
	}
	want := "the store folder " + dir + " can't be reached by user " + p.acct.name + "; using " + target
	if lines := said.all(); len(lines) != 1 || lines[0] != want {
		t.Errorf("said  %q\nwant %q", lines, want)
	}
	query(t, p, "CREATE TABLE kept AS SELECT 'one' AS v")
	stop(t, p)

	p = start(t, PostgresOptions{Dir: dir})
	if got := query(t, p, "SELECT v FROM kept"); got != "one" {
		t.Errorf("read %q after a restart", got)
	}
	stop(t, p)

	// The user deletes the store by hand and begins anew.
	if err := errors.Join(store.Close(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	if store, err = LockStore(dir); err != nil {
		t.Fatal(err)
	}
	said = notices{}
	p = start(t, PostgresOptions{Dir: dir, Notice: said.add})
	if got := query(t, p, "SELECT count(*)::text FROM pg_class WHERE relname = 'kept'"); got != "0" {
		t.Error("the new store has the deleted one's data")
	}
	if lines := said.all(); len(lines) != 2 || !strings.Contains(lines[0], "set aside") {
		t.Errorf("said %q", lines)
	}
	stop(t, p)
	if err := store.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if exists(target) || exists(dir) {
		t.Error("the store wasn't removed")
	}
}

// A cluster that the user's folders hide is an error, not an empty new one.
func TestHiddenClusterIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root changes the user")
	}
	store := tempStore(t)
	p := start(t, PostgresOptions{Dir: store.Dir()})
	stop(t, p)
	if err := os.Chmod(store.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := StartPostgres(bounded(t), PostgresOptions{Dir: store.Dir()})
	oneLine(t, err, p.Dir(), "can't be reached by user "+p.acct.name)
}
