package embedded

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// pollInterval is how often we look for what nothing announces.
const pollInterval = 10 * time.Millisecond

// stopLeftover ends every server process on a cluster and returns when none is
// left: with a fast shutdown, if that takes too long an immediate one, and in
// the end SIGKILL, none of which loses a commit. Backends without a postmaster
// would corrupt the cluster under a new server, so they count too.
func stopLeftover(ctx context.Context, cluster string) error {
	steps := []struct {
		sig      syscall.Signal
		patience time.Duration
	}{
		{syscall.SIGINT, 20 * time.Second},
		{syscall.SIGQUIT, 10 * time.Second}, // a postmaster gives its backends 5 s
		{syscall.SIGKILL, 5 * time.Second},
	}
	for _, step := range steps {
		pids := serverProcesses(cluster)
		if len(pids) == 0 {
			return nil
		}
		switch postmaster := postmasterPID(cluster); {
		case step.sig != syscall.SIGKILL && slices.Contains(pids, postmaster):
			pids = []int{postmaster}
		case step.sig == syscall.SIGINT:
			continue // no postmaster: to a backend SIGINT is only a cancelled statement
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, step.sig)
		}
		if err := waitGone(ctx, cluster, step.patience); err != nil {
			return err
		}
	}
	if pids := serverProcesses(cluster); len(pids) > 0 {
		return fmt.Errorf("a PostgreSQL server still runs on %s (process %d) and can't be stopped", cluster, pids[0])
	}
	return nil
}

// waitGone returns when no server process is left or the patience is over; its
// error is only ctx's.
func waitGone(ctx context.Context, cluster string, patience time.Duration) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	deadline := time.After(patience)
	for len(serverProcesses(cluster)) > 0 {
		select {
		case <-tick.C:
		case <-deadline:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("stop the PostgreSQL server left on %s: %w", cluster, ctx.Err())
		}
	}
	return nil
}

// postmasterPID reads the process id in the cluster's postmaster.pid; 0 if none.
func postmasterPID(cluster string) int {
	text, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	pid, err := strconv.Atoi(string(bytes.TrimSpace(first)))
	if err != nil {
		return 0
	}
	return max(pid, -pid) // negative: a single-user server
}

// disownStalePID helps when postmaster.pid names a process that has nothing to
// do with the cluster, as after a reboot or in a container, where ids repeat:
// PostgreSQL would take it for a running server and refuse. It ignores its
// parent's id, so we write ours there. The file stays, as PostgreSQL also reads
// from it which shared memory must be unused. Call it after stopLeftover.
func disownStalePID(cluster string) error {
	pid := postmasterPID(cluster)
	if pid == 0 || syscall.Kill(pid, 0) != nil {
		return nil
	}
	path := filepath.Join(cluster, "postmaster.pid")
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read a stale process id: %w", err)
	}
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	text = append([]byte(strconv.Itoa(os.Getpid())+"\n"), rest...)
	// The file keeps its owner and mode: PostgreSQL must be able to remove it.
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("replace a stale process id: %w", err)
	}
	return nil
}
