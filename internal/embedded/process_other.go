//go:build !linux

package embedded

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// childAttr has no parent-death signal here: a server that outlives us is
// stopped by the next StartPostgres on its cluster.
func childAttr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{}
}

// serverProcesses returns the id of the cluster's postmaster, if one runs. Its
// backends can't be told from others here; they end with it.
func serverProcesses(cluster string) []int {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		pid, command, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.Contains(command, "postgres -D "+cluster+" ") {
			continue
		}
		if n, err := strconv.Atoi(pid); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}
