package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Names inside a store folder.
const (
	lockName    = "lock"
	clusterName = "postgres"
	logName     = "postgres.log"
	socketName  = "postgres.socket"
	natsName    = "nats"
)

// InUseError says that another process, or another part of this one, has the
// store locked.
type InUseError struct {
	Dir string // absolute store folder
	PID int    // holder; 0 when it hasn't written its id yet
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("the store %s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("the store %s is in use by process %d", e.Dir, e.PID)
}

// Store is a locked store folder. At most one exists per folder and machine.
type Store struct {
	dir  string
	once sync.Once
	lock *os.File // nil once closed
}

// LockStore creates the store folder if it is missing and locks it. The lock
// ends with Close or with the process, however that dies. A store that is in
// use is an *InUseError.
func LockStore(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("locate the store: %w", err)
	}
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("create the store: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the store: %w", err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		defer lock.Close()
		return nil, &InUseError{Dir: dir, PID: readPID(lock)}
	}
	if err == nil {
		err = writePID(lock)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock the store %s: %w", dir, err)
	}
	return &Store{dir: dir, lock: lock}, nil
}

// Dir returns the absolute path of the store folder.
func (s *Store) Dir() string { return s.dir }

// Close releases the lock; the folder and the lock file stay (removing the
// file would let two processes lock two files of one name). It is idempotent.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() {
		// Emptied first, so that a refused process never reads a stale id.
		err = errors.Join(s.lock.Truncate(0), s.lock.Close())
	})
	return err
}

// Remove deletes the store with all it holds, wherever the cluster really is,
// and releases the lock. The servers must have been stopped; a PostgreSQL that
// still runs on it is stopped first.
func (s *Store) Remove(ctx context.Context) error {
	cluster := filepath.Join(s.dir, clusterName)
	target, err := os.Readlink(cluster)
	linked := err == nil && filepath.Dir(target) == fallbackRoot
	if linked {
		cluster = target
	}
	if err := stopLeftover(ctx, cluster); err != nil {
		return err
	}
	err = nil
	if linked {
		err = os.RemoveAll(target)
	}
	removeSocketFolder(recordedSocketFolder(s.dir))
	return errors.Join(err, os.RemoveAll(s.dir), s.Close())
}

// makeFolder creates a folder and its missing parents, and lets other users
// pass through what it created, whatever the umask: the server may have to run
// as another user. Folders that exist keep their modes.
func makeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
		return nil
	}
	if err := makeFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	}
	return os.Chmod(dir, 0o755)
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(f *os.File) int {
	text := make([]byte, 20)
	n, _ := f.ReadAt(text, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return 0
	}
	return pid
}
