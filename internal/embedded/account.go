package embedded

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the unprivileged user that the server runs as when we are root
// (PostgreSQL refuses root). A nil account means our own user.
type account struct {
	name     string
	uid, gid uint32
}

// serverAccount returns nil for an ordinary user; for root the owner of the
// cluster if that exists already, else postgres, else nobody.
func serverAccount(cluster string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if info, err := os.Stat(cluster); err == nil && ownerOf(info) != 0 {
		if u, err := user.LookupId(strconv.Itoa(ownerOf(info))); err == nil {
			return accountOf(u)
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return accountOf(u)
		}
	}
	return nil, fmt.Errorf("PostgreSQL can't run as root, and there is no user postgres or nobody: run as an ordinary user")
}

func accountOf(u *user.User) (*account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return &account{name: u.Username, uid: uint32(uid), gid: uint32(gid)}, nil
}

// id returns the user id that the server runs as.
func (a *account) id() int {
	if a == nil {
		return os.Geteuid()
	}
	return int(a.uid)
}

// credential is what a child process is started with: no supplementary groups.
func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// own gives the account a file or folder that we created.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// canReach reports whether the account may pass through an existing folder and
// all its parents. It reads mode bits only: an ACL that says otherwise shows as
// an error of initdb.
func (a *account) canReach(dir string) bool {
	if a == nil {
		return true
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || !a.canPass(info) {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

func (a *account) canPass(info os.FileInfo) bool {
	stat := info.Sys().(*syscall.Stat_t)
	switch {
	case stat.Uid == a.uid:
		return info.Mode()&0o100 != 0
	case stat.Gid == a.gid:
		return info.Mode()&0o010 != 0
	default:
		return info.Mode()&0o001 != 0
	}
}
