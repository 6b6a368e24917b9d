package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minMajor is the oldest PostgreSQL whose features the schema uses.
const minMajor = 15

var errNoBinaries = errors.New("no PostgreSQL server found: install it with " +
	"`apt-get install postgresql` (Debian, Ubuntu) or `brew install postgresql@17` (macOS)")

// places says where server binaries are looked for: only is the one folder to
// use (TIERLEDGER_PG_BIN); without it come the folders of PATH, then the
// globs, of each the newest version first.
type places struct {
	only  string
	path  string
	globs []string
}

func defaultPlaces() places {
	return places{
		only: os.Getenv("TIERLEDGER_PG_BIN"),
		path: os.Getenv("PATH"),
		globs: []string{
			"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
			"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on Apple silicon
			"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
			"/usr/pgsql-*/bin",                   // the project's RPM packages
			"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
		},
	}
}

// folders returns the folders that hold both postgres and initdb, best first.
func (p places) folders() []string {
	var all []string
	if p.only != "" {
		all = []string{p.only}
	} else {
		all = filepath.SplitList(p.path)
		for _, glob := range p.globs {
			found, _ := filepath.Glob(glob)
			slices.SortStableFunc(found, func(a, b string) int {
				return lastNumber(b) - lastNumber(a)
			})
			all = append(all, found...)
		}
	}
	var both []string
	for _, dir := range all {
		// Links lead to the folder with the other programs, such as pg_basebackup.
		if path, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres")); err == nil && isProgram(filepath.Dir(path), "initdb") {
			dir = filepath.Dir(path)
		}
		if filepath.IsAbs(dir) && isProgram(dir, "postgres") && isProgram(dir, "initdb") && !slices.Contains(both, dir) {
			both = append(both, dir)
		}
	}
	return both
}

// binaries is one installation of the PostgreSQL server.
type binaries struct {
	dir     string
	version string // "15.18"
	major   int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// findBinaries picks the first installation that the account can run and that
// is recent enough; for a cluster that exists (major not 0), of its version.
func findBinaries(ctx context.Context, p places, acct *account, major int) (binaries, error) {
	folders := p.folders()
	if len(folders) == 0 {
		if p.only != "" {
			return binaries{}, fmt.Errorf("TIERLEDGER_PG_BIN: no postgres and initdb in %s", p.only)
		}
		return binaries{}, errNoBinaries
	}
	var rejected []string
	for _, dir := range folders {
		b, err := askVersion(ctx, dir, acct)
		switch {
		case ctx.Err() != nil:
			return binaries{}, fmt.Errorf("find a PostgreSQL server: %w", ctx.Err())
		case err != nil:
			rejected = append(rejected, err.Error())
		case b.major < minMajor || major != 0 && b.major != major:
			rejected = append(rejected, fmt.Sprintf("%s is %s", dir, b.version))
		default:
			return b, nil
		}
	}
	want := fmt.Sprintf("PostgreSQL %d or later", minMajor)
	if major != 0 {
		want = fmt.Sprintf("PostgreSQL %d, which made this store,", major)
	}
	return binaries{}, fmt.Errorf("%s is needed, but %s", want, strings.Join(rejected, ", "))
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// askVersion runs `postgres --version` as the account.
func askVersion(ctx context.Context, dir string, acct *account) (binaries, error) {
	b := binaries{dir: dir}
	out, err := run(ctx, acct, "/", b.path("postgres"), "--version")
	if err != nil {
		return b, err
	}
	m := versionPattern.FindStringSubmatch(out)
	if m == nil {
		return b, fmt.Errorf("%s --version says %q", b.path("postgres"), strings.TrimSpace(out))
	}
	b.version = m[1]
	b.major, err = strconv.Atoi(m[2])
	return b, err
}

func isProgram(dir, name string) bool {
	_, err := exec.LookPath(filepath.Join(dir, name))
	return err == nil
}

var numberPattern = regexp.MustCompile(`\d+`)

// lastNumber returns the last number in a path, which is its version; 0 if none.
func lastNumber(path string) int {
	found := numberPattern.FindAllString(path, -1)
	if len(found) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(found[len(found)-1])
	return n
}
