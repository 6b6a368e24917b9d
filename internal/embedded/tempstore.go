package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	tempPattern = "tierledger-store-*"

	// abandonedAfter is how old an unlocked temporary store must be before it
	// counts as left behind: longer than the moment between its creation and
	// its lock.
	abandonedAfter = 10 * time.Minute
)

// TempStore makes and locks a new temporary store below parent, or below the
// default temporary folder if parent is ""; Remove it at the end. Unlike a plain
// temporary folder it can be reached by the user that PostgreSQL runs as when we
// are root. Temporary stores that killed processes of this user left in parent
// are removed first, so that crashes don't fill the disk.
func TempStore(ctx context.Context, parent string) (*Store, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	removeAbandoned(ctx, parent, time.Now().Add(-abandonedAfter))
	dir, err := os.MkdirTemp(parent, tempPattern)
	if err != nil {
		return nil, fmt.Errorf("create a temporary store: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create a temporary store: %w", err)
	}
	return LockStore(dir)
}

// removeAbandoned removes this user's unlocked temporary stores below parent
// that were last locked before a time. What can't be removed stays.
func removeAbandoned(ctx context.Context, parent string, before time.Time) {
	dirs, _ := filepath.Glob(filepath.Join(parent, tempPattern))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || ownerOf(info) != os.Getuid() {
			continue
		}
		if lock, err := os.Stat(filepath.Join(dir, lockName)); err == nil {
			info = lock
		}
		if info.ModTime().After(before) {
			continue
		}
		store, err := LockStore(dir)
		if err != nil {
			continue // in use, however old
		}
		if store.Remove(ctx) != nil {
			store.Close()
		}
	}
}

func ownerOf(info os.FileInfo) int {
	return int(info.Sys().(*syscall.Stat_t).Uid)
}
