package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const (
	// startPatience is how long a child may take until it serves.
	startPatience = 30 * time.Second
	// endPatience is how long it may take to drain; the service's own limit is less.
	endPatience = 20 * time.Second
)

// EnvDatabaseURL gives a child the database; a command line would show it, and
// perhaps a password, to everyone on the machine.
const EnvDatabaseURL = "TIERLEDGER_DATABASE_URL"

// readyPrefix begins the line with which a server says where it serves.
const readyPrefix = "ready "

// child is a server in a process of its own. It ends with its standard input,
// and that ends with us.
type child struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
	ended bool
}

// startChild starts a server and returns when it serves.
func startChild(ctx context.Context, command []string, databaseURL string, stderr io.Writer) (*child, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), EnvDatabaseURL+"="+databaseURL)
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, stdin: stdin}
	ready := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		ready <- strings.TrimSpace(line)
	}()
	select {
	case line := <-ready:
		url, ok := strings.CutPrefix(line, readyPrefix)
		if ok {
			c.url = url
			return c, nil
		}
		err = errors.New("it ended before it served")
	case <-time.After(startPatience):
		err = fmt.Errorf("it didn't serve within %s", startPatience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, c.close())
}

// close asks the child to end, and sees that it does.
func (c *child) close() error {
	if c.ended {
		return nil
	}
	c.ended = true
	c.stdin.Close()
	kill := time.AfterFunc(endPatience, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("the server under load: %w", err)
	}
	return nil
}

func (c *child) peakMB() float64 { return peakMB(strconv.Itoa(c.cmd.Process.Pid)) }

// peakMB reads the most memory that a process has had, as Linux tells it; 0
// elsewhere.
func peakMB(process string) float64 {
	text, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kilobytes, _ := strconv.ParseFloat(fields[1], 64)
			return round(kilobytes/1024, 1)
		}
	}
	return 0
}
