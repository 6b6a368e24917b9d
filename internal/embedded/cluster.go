package embedded

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fallbackRoot holds the clusters of stores that the server's user can't reach.
const fallbackRoot = "/var/lib/tierledger"

// locateCluster returns where the store's cluster is or is to be made. That is
// dir/postgres, or, when the account can't reach that, a folder below
// fallbackRoot that dir/postgres links to; the notice says so. The link is made
// before the cluster, so a cluster that nothing links to belongs to a store that
// was deleted: it is set aside, never reused.
func locateCluster(dir string, acct *account, notice func(string)) (string, error) {
	here := filepath.Join(dir, clusterName)
	info, err := os.Lstat(here)
	switch {
	case err == nil && info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(here)
		if err != nil {
			return "", fmt.Errorf("find the cluster: %w", err)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		noticeFallback(dir, target, acct, notice)
		return target, makeFolder(filepath.Dir(target))
	case err == nil && !acct.canReach(dir):
		return "", fmt.Errorf("the cluster %s can't be reached by user %s, as which PostgreSQL runs: let it pass through the folders above", here, acct.name)
	case err == nil, errors.Is(err, os.ErrNotExist) && acct.canReach(dir):
		// Resolved, as the server's processes are found by their working folder.
		dir, err := filepath.EvalSymlinks(dir)
		return filepath.Join(dir, clusterName), err
	case !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("find the cluster: %w", err)
	}
	return linkFallback(dir, acct, notice)
}

// linkFallback chooses the cluster's place below fallbackRoot.
func linkFallback(dir string, acct *account, notice func(string)) (string, error) {
	if err := makeFolder(fallbackRoot); err != nil {
		return "", fmt.Errorf("the store folder %s can't be reached by user %s: %w", dir, acct.name, err)
	}
	target := fallbackCluster(dir)
	if _, err := os.Lstat(target); err == nil {
		aside := fmt.Sprintf("%s.old-%d", target, time.Now().UnixNano())
		if err := os.Rename(target, aside); err != nil {
			return "", fmt.Errorf("set aside the cluster of a deleted store: %w", err)
		}
		notice(fmt.Sprintf("set aside the cluster of a deleted store of this name as %s", aside))
	}
	if err := os.Symlink(target, filepath.Join(dir, clusterName)); err != nil {
		return "", fmt.Errorf("link the cluster: %w", err)
	}
	noticeFallback(dir, target, acct, notice)
	return target, nil
}

func noticeFallback(dir, target string, acct *account, notice func(string)) {
	if acct != nil && filepath.Dir(target) == fallbackRoot {
		notice(fmt.Sprintf("the store folder %s can't be reached by user %s; using %s", dir, acct.name, target))
	}
}

// fallbackCluster is a function of the absolute store folder alone.
func fallbackCluster(dir string) string {
	return filepath.Join(fallbackRoot, fmt.Sprintf("%x", sha256.Sum256([]byte(dir)))[:12])
}

// clusterMajor returns the PostgreSQL version that made the cluster, 0 if there
// is none yet.
func clusterMajor(cluster string) (int, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		if entries, err := os.ReadDir(cluster); err == nil && len(entries) > 0 {
			return 0, fmt.Errorf("%s isn't empty and isn't a PostgreSQL cluster", cluster)
		}
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the cluster's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read the cluster's version: %w", err)
	}
	return major, nil
}

// checkOwner refuses a cluster of another user than the server's, which
// PostgreSQL would refuse less clearly.
func checkOwner(cluster string, acct *account) error {
	info, err := os.Stat(cluster)
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	if ownerOf(info) != acct.id() {
		return fmt.Errorf("the cluster %s belongs to user id %d, but PostgreSQL would run as user id %d", cluster, ownerOf(info), acct.id())
	}
	return nil
}

// createCluster runs initdb in a sibling folder and renames it when it is
// complete and on disk: a cluster that exists is whole. What an interrupted
// one left is removed first.
func createCluster(ctx context.Context, b binaries, acct *account, cluster string, unsafe bool) error {
	leftovers, _ := filepath.Glob(cluster + ".init-*")
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove an interrupted initdb: %w", err)
		}
	}
	parent := filepath.Dir(cluster)
	temp, err := os.MkdirTemp(parent, filepath.Base(cluster)+".init-*")
	if err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	defer os.RemoveAll(temp) // gone already when all went well
	if err := acct.own(temp); err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	args := []string{
		"-D", temp, "--encoding=UTF8", "--locale=C", "--username=" + superuser,
		"--auth=trust", // the socket's folder is private to the server's user
		"--no-instructions",
	}
	if unsafe {
		args = append(args, "--no-sync")
	}
	if _, err := run(ctx, acct, temp, b.path("initdb"), args...); err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	if err := os.Rename(temp, cluster); err != nil {
		return fmt.Errorf("create the cluster: %w", err)
	}
	return syncFolder(parent)
}

// syncFolder makes a rename in the folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
