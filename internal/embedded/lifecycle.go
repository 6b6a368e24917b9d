package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// logLimit is the size above which the log of earlier runs becomes postgres.log.1.
	logLimit = 16 << 20

	// logTail and logLines bound how much of the log an error quotes.
	logTail  = 8 << 10
	logLines = 8
)

// launch starts the server process on the cluster and waits until it accepts
// connections. After an error the process has ended.
func (p *Postgres) launch(ctx context.Context) error {
	if err := stopLeftover(ctx, p.cluster); err != nil {
		return err
	}
	if err := disownStalePID(p.cluster); err != nil {
		return err
	}
	log, offset, err := openLog(filepath.Join(p.store, logName))
	if err != nil {
		return err
	}
	defer log.Close() // the server has its own descriptor
	if err := p.openSocketFolder(); err != nil {
		return err
	}
	compression := bestWALCompression(ctx, p.bin, p.acct, p.cluster)
	cmd := command(p.acct, p.cluster, syscall.SIGINT, p.bin.path("postgres"), arguments(p.opts, p.cluster, p.socket, compression)...)
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := startProcess(cmd)
	if err != nil {
		p.closeSocketFolder()
		return fmt.Errorf("start the PostgreSQL server: %w", err)
	}
	p.proc.Store(proc)
	if err := p.waitReady(ctx, proc); err != nil {
		_ = p.end(proc, syscall.SIGQUIT)
		p.closeSocketFolder()
		return fmt.Errorf("%w; its log %s ends:\n%s", err, log.Name(), readTail(log.Name(), offset))
	}
	return nil
}

// waitReady returns when a connection succeeds; with an error when the server
// ends or ctx does. Until it is ready, the server refuses at once.
func (p *Postgres) waitReady(ctx context.Context, proc *process) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, p.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-proc.done:
			return fmt.Errorf("the PostgreSQL server ended during its start (%v)", proc.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("the PostgreSQL server wasn't ready in time: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// Stop ends the server with a fast shutdown: sessions are ended, everything is
// on disk. When ctx ends first, it goes on with an immediate shutdown and then
// SIGKILL, and says so in its error; committed data is safe all the same. A
// server that has ended is no error. The socket's folder is removed.
func (p *Postgres) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	proc := p.proc.Load()
	err := proc.signal(syscall.SIGINT)
	if err == nil && !proc.wait(ctx) {
		err = ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("stop the PostgreSQL server: it had to be killed: %w", errors.Join(err, p.end(proc, syscall.SIGQUIT)))
	}
	p.closeSocketFolder()
	return err
}

// Kill ends the server without a checkpoint, so that the next start has to
// recover: to clients and data it is a crash. It returns when all is gone.
func (p *Postgres) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end(p.proc.Load(), syscall.SIGQUIT)
}

// Restart starts the server again after Stop, Kill or a crash, on the same
// cluster and with the same URL. It fails while the server runs.
func (p *Postgres) Restart(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.proc.Load().ended() {
		return errors.New("restart the PostgreSQL server: it is running")
	}
	return p.launch(ctx)
}

// end sends a signal, waits, and kills what is left, backends too.
func (p *Postgres) end(proc *process, sig syscall.Signal) error {
	err := proc.signal(sig)
	if err == nil && proc.waitFor(p.patience) {
		return nil
	}
	if err = proc.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the PostgreSQL server: %w", err)
	}
	<-proc.done
	ctx, cancel := context.WithTimeout(context.Background(), p.patience)
	defer cancel()
	return stopLeftover(ctx, p.cluster)
}

// openSocketFolder removes what a crashed server of this store left and makes
// the folder of this one.
func (p *Postgres) openSocketFolder() error {
	if old := recordedSocketFolder(p.store); old != p.socket {
		removeSocketFolder(old)
	}
	if p.socket == "" { // the first start; later ones keep the URL
		socket, err := newSocketFolder(p.acct)
		if err != nil {
			return err
		}
		p.socket = socket
	} else if err := remakeSocketFolder(p.socket, p.acct); err != nil {
		return err
	}
	if err := recordSocketFolder(p.store, p.socket); err != nil {
		p.closeSocketFolder()
		return err
	}
	return nil
}

func (p *Postgres) closeSocketFolder() {
	removeSocketFolder(p.socket)
	_ = os.Remove(filepath.Join(p.store, socketName))
}

// openLog opens the server's log at its end and returns where that is.
func openLog(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, fmt.Errorf("rotate the server's log: %w", err)
		}
	}
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open the server's log: %w", err)
	}
	info, err := log.Stat()
	if err != nil {
		log.Close()
		return nil, 0, fmt.Errorf("open the server's log: %w", err)
	}
	return log, info.Size(), nil
}

// readTail returns the last lines of the log that were written after offset.
func readTail(path string, offset int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		offset = max(offset, info.Size()-logTail)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, offset, logTail))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), logLines)
}
