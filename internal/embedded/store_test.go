package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLockStoreRefusesASecond(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "store")
	first, err := LockStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockStore(dir)
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() || inUse.Dir != dir {
		t.Fatalf("got %v", err)
	}
	if want := fmt.Sprintf("the store %s is in use by process %d", dir, os.Getpid()); err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Error(err)
	}
	again, err := LockStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if exists(dir) {
		t.Error("the store wasn't removed")
	}
}

func TestLockStoreSaysWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LockStore(filepath.Join(file, "store"))
	oneLine(t, err, "create the store", file)
}

func TestMakeFolderKeepsWhatExists(t *testing.T) {
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "a", "b")
	if err := makeFolder(dir); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{parent: 0o700, filepath.Dir(dir): 0o755, dir: 0o755} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
	}
}

func TestTempStoreRemovesAbandoned(t *testing.T) {
	parent := t.TempDir()
	old := time.Now().Add(-2 * abandonedAfter)
	make := func() *Store {
		store, err := TempStore(t.Context(), parent)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	age := func(s *Store) {
		if err := os.Chtimes(filepath.Join(s.Dir(), lockName), old, old); err != nil {
			t.Fatal(err)
		}
	}
	abandoned, used, recent := make(), make(), make()
	if err := errors.Join(abandoned.Close(), recent.Close()); err != nil {
		t.Fatal(err)
	}
	age(abandoned)
	age(used)
	unlocked := filepath.Join(parent, "tierledger-store-1")
	if err := errors.Join(os.Mkdir(unlocked, 0o700), os.Chtimes(unlocked, old, old)); err != nil {
		t.Fatal(err)
	}

	fresh := make()
	if exists(abandoned.Dir()) || exists(unlocked) {
		t.Error("an abandoned store wasn't removed")
	}
	if !exists(used.Dir()) || !exists(recent.Dir()) || !exists(fresh.Dir()) {
		t.Error("a store was removed that is in use or recent")
	}
	if err := fresh.Remove(context.Background()); err != nil || exists(fresh.Dir()) {
		t.Errorf("removed: %v", err)
	}
}
