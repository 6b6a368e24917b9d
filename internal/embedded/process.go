package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a running child whose life ends with ours (see childAttr).
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it ended
	err  error         // how; read after done
}

// startProcess starts a command that was made by command.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// Linux sends the parent-death signal when the thread that forked ends,
		// not the process: so this goroutine keeps its thread until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, <-started
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends a signal; a process that has ended isn't an error.
func (p *process) signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// wait reports whether the process ended before ctx.
func (p *process) wait(ctx context.Context) bool {
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
		return p.ended()
	}
}

// waitFor is wait with a duration instead of a context.
func (p *process) waitFor(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return p.wait(ctx)
}

// command prepares a child that runs as the account in a process group of its
// own, so that a Ctrl-C at the terminal reaches us alone. It gets the signal
// when we die. Its environment holds nothing of ours: no PG variables that
// change the server, no locale, no secrets.
func command(acct *account, dir string, onOurDeath syscall.Signal, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = childAttr(onOurDeath)
	cmd.SysProcAttr.Credential = acct.credential()
	cmd.SysProcAttr.Setpgid = true
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return cmd
}

// killPatience is how long a short program may take to end when asked to.
const killPatience = 2 * time.Second

// run runs a short program to its end and returns its standard output. When ctx
// ends, it is ended with its children: politely first, as a killed initdb leaves
// shared memory behind. The error is one line with the last line that the
// program wrote to standard error.
func run(ctx context.Context, acct *account, dir, program string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := command(acct, dir, syscall.SIGTERM, program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second // for a grandchild that keeps the pipes open
	p, err := startProcess(cmd)
	if err == nil {
		if !p.wait(ctx) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
			if !p.waitFor(killPatience) {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				<-p.done
			}
			return "", fmt.Errorf("%s: %w", filepath.Base(program), ctx.Err())
		}
		err = p.err
	}
	if err != nil {
		if last := lastLines(stderr.String(), 1); last != "" {
			return "", fmt.Errorf("%s: %w: %s", program, err, last)
		}
		return "", fmt.Errorf("%s: %w", program, err)
	}
	return stdout.String(), nil
}

// lastLines returns the last n lines of a text, without trailing space.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
