package embedded

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFindBinaries(t *testing.T) {
	root := t.TempDir()
	server := func(name, version string) string {
		return fakeServer(t, filepath.Join(root, name, "bin"), version)
	}
	p9, p13, p15, p17 := server("9", "9.6.24"), server("13", "13.4"), server("15", "15.18"), server("17", "17beta1")
	links := filepath.Join(root, "links")
	if err := os.Mkdir(links, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.Symlink(filepath.Join(p15, name), filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	empty, all := filepath.Join(root, "none"), filepath.Join(root, "*", "bin")

	for _, c := range []struct {
		name   string
		places places
		major  int
		want   string // folder
		errors []string
	}{
		{"newest of a glob", places{globs: []string{all}}, 0, p17, nil},
		{"globs in order", places{globs: []string{p15, all}}, 0, p15, nil},
		{"PATH first", places{path: empty + ":" + p15, globs: []string{all}}, 0, p15, nil},
		{"PATH has links", places{path: links, globs: []string{all}}, 0, p15, nil},
		{"PATH too old", places{path: p13, globs: []string{p15}}, 0, p15, nil},
		{"the cluster's version", places{path: p17, globs: []string{all}}, 15, p15, nil},
		{"the one given", places{only: p15, path: p17, globs: []string{all}}, 0, p15, nil},
		{"none", places{path: empty, globs: []string{empty}}, 0, "", []string{"apt-get install postgresql", "brew install postgresql@17"}},
		{"none where given", places{only: empty, path: p17}, 0, "", []string{"TIERLEDGER_PG_BIN", empty}},
		{"all too old", places{path: p13, globs: []string{p9}}, 0, "", []string{"PostgreSQL 15 or later is needed", p13 + " is 13.4", p9 + " is 9.6.24"}},
		{"the cluster's version is gone", places{path: p17}, 15, "", []string{"PostgreSQL 15, which made this store, is needed", p17 + " is 17beta1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := findBinaries(bounded(t), c.places, nil, c.major)
			if c.errors != nil {
				oneLine(t, err, c.errors...)
				return
			}
			if err != nil || got.dir != c.want {
				t.Errorf("got %s, %v; want %s", got.dir, err, c.want)
			}
		})
	}
}

func TestStartPostgresWithoutBinaries(t *testing.T) {
	t.Setenv("TIERLEDGER_PG_BIN", t.TempDir())
	dir := filepath.Join(t.TempDir(), "store")
	_, err := StartPostgres(bounded(t), PostgresOptions{Dir: dir})
	oneLine(t, err, "TIERLEDGER_PG_BIN")
	if exists(filepath.Join(dir, clusterName)) {
		t.Error("a cluster's folder was made")
	}
}

func TestCanReach(t *testing.T) {
	root := t.TempDir() // 0700 or wider, ours
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil {
		t.Fatal(err)
	}
	stranger := &account{name: "stranger", uid: 4_000_000, gid: 4_000_001}
	dir := filepath.Join(root, "a", "b")
	if err := makeFolder(dir); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode os.FileMode // of the folder above
		want bool
	}{{0o755, true}, {0o711, true}, {0o710, false}, {0o744, false}, {0o700, false}} {
		if err := os.Chmod(filepath.Dir(dir), c.mode); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, link} {
			if got := stranger.canReach(path); got != c.want {
				t.Errorf("mode %o: %s reached: %v", c.mode, path, got)
			}
		}
	}
	var ourselves *account
	if !ourselves.canReach(dir) {
		t.Error("our own user is never moved elsewhere")
	}
}
