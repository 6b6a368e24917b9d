package embedded

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// superuser is the bootstrap role of every private cluster.
	superuser = "tierledger"

	// A socket's path may have about 100 bytes (107 on Linux, 103 on macOS), so
	// its folder is a short one, not in the store.
	socketParent = "/tmp"
	socketPrefix = "tierledger-pg-"
	socketFile   = ".s.PGSQL.5432"
)

// newSocketFolder makes the private folder of a server's socket. Those that
// servers left whose store was deleted under them are removed.
func newSocketFolder(acct *account) (string, error) {
	removeEmptySocketFolders(acct, time.Now().Add(-abandonedAfter))
	dir, err := os.MkdirTemp(socketParent, socketPrefix+"*")
	if err == nil {
		err = acct.own(dir)
	}
	if err != nil {
		return "", fmt.Errorf("create the socket's folder: %w", err)
	}
	return dir, nil
}

// remakeSocketFolder makes the folder of an earlier start again, or empties
// what a crash left of it. One that somebody else made in the meantime, in the
// shared /tmp, is refused.
func remakeSocketFolder(dir string, acct *account) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = acct.own(dir)
	} else if errors.Is(err, os.ErrExist) {
		info, lerr := os.Lstat(dir)
		if lerr != nil || !info.IsDir() || ownerOf(info) != acct.id() {
			return fmt.Errorf("the socket's folder %s is somebody else's", dir)
		}
		emptySocketFolder(dir)
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the socket's folder: %w", err)
	}
	return nil
}

// removeEmptySocketFolders removes the user's socket folders that are empty, so
// that no server listens there, and weren't touched since a time.
func removeEmptySocketFolders(acct *account, before time.Time) {
	dirs, _ := filepath.Glob(filepath.Join(socketParent, socketPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && ownerOf(info) == acct.id() && info.ModTime().Before(before) {
			_ = syscall.Rmdir(dir) // refuses one with files
		}
	}
}

// removeSocketFolder removes the folder of a server that has ended. It touches
// nothing but a server's own files in a folder of the right name.
func removeSocketFolder(dir string) {
	if filepath.Dir(dir) != socketParent || !strings.HasPrefix(filepath.Base(dir), socketPrefix) {
		return
	}
	emptySocketFolder(dir)
	_ = os.Remove(dir)
}

func emptySocketFolder(dir string) {
	_ = os.Remove(filepath.Join(dir, socketFile))
	_ = os.Remove(filepath.Join(dir, socketFile+".lock"))
}

// recordSocketFolder notes in the store where its server listens, for
// RunningURL, and for the next start to clean up after a crash.
func recordSocketFolder(store, dir string) error {
	if err := os.WriteFile(filepath.Join(store, socketName), []byte(dir+"\n"), 0o644); err != nil {
		return fmt.Errorf("record the socket's folder: %w", err)
	}
	return nil
}

func recordedSocketFolder(store string) string {
	text, _ := os.ReadFile(filepath.Join(store, socketName))
	return strings.TrimSpace(string(text))
}

// RunningURL returns the superuser URL of a database on the server that another
// process runs on a store; false when none listens.
func RunningURL(store, database string) (string, bool) {
	dir := recordedSocketFolder(store)
	if dir == "" {
		return "", false
	}
	conn, err := net.DialTimeout("unix", filepath.Join(dir, socketFile), time.Second)
	if err != nil {
		return "", false
	}
	conn.Close()
	return connURL(dir, database), true
}

// connURL is understood by pgx and by libpq.
func connURL(socketFolder, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {socketFolder}, "port": {"5432"}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}
