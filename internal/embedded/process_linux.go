package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// childAttr makes the kernel signal the child when the thread that forked it
// ends, which also covers a SIGKILL of ours.
func childAttr(onOurDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: onOurDeath}
}

// serverProcesses returns the ids of all PostgreSQL processes of a cluster, the
// postmaster and its backends: each has the cluster as its working folder.
func serverProcesses(cluster string) []int {
	want, err := os.Stat(cluster)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		proc := filepath.Join("/proc", entry.Name())
		cwd, err := os.Stat(filepath.Join(proc, "cwd"))
		if err != nil || !os.SameFile(cwd, want) {
			continue
		}
		// A shell in the folder isn't a server. An ending process has lost its exe
		// before it has detached the shared memory, so it still counts.
		exe, err := os.Readlink(filepath.Join(proc, "exe"))
		if err != nil || isServerName(filepath.Base(exe)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isServerName also knows a binary that was upgraded meanwhile.
func isServerName(exe string) bool {
	return exe == "postgres" || exe == "postgres (deleted)"
}
