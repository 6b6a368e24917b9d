package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pgtest"
)

// An operator's day: split, moves, approvals, allotments, capacity, and back to one lane.
// Whatever is printed fits in a window.
func TestQuota(t *testing.T) {
	t.Parallel()
	files := make(map[string]string)
	keys := ""
	for name, role := range map[string]string{"bo": "operator", "shop": "booking"} {
		key, line, err := httpapi.NewKey(name, role)
		if err != nil {
			t.Fatal(err)
		}
		files["$"+strings.ToUpper(name)] = writeTemp(t, name, key)
		keys += line + "\n"
	}
	dir := storeFolder(t)
	dev := start(t, "dev", "--data", dir, "--listen", "127.0.0.1:0", "--keys", writeTemp(t, "keys", keys))
	createEvent(t, "", dev.url, "hall", 300, 4000)
	files["MOVE"] = "MOVE"
	for _, step := range steps(t, "quota.txt") {
		args := words(step.command)
		for i, arg := range args {
			if value, ok := files[arg]; ok {
				args[i] = value
			}
		}
		run := func() (code int, stdout, stderr string) {
			return runHere(t, append([]string{"quota", args[0], "--url", dev.url}, args[1:]...)...)
		}
		if step.repeated {
			pgtest.Until(t, fmt.Sprintf("line %d: %s says %q", step.line, step.command, step.says), func() bool {
				_, stdout, _ := run()
				return len(step.missing(stdout)) == 0
			})
			continue
		}
		code, stdout, stderr := run()
		if step.fails == (code == exitOK) {
			t.Fatalf("line %d: %s: exit code %d: %s%s", step.line, step.command, code, stdout, stderr)
		}
		for _, says := range step.missing(stdout + stderr) {
			t.Errorf("line %d: %s doesn't say %q: %s%s", step.line, step.command, says, stdout, stderr)
		}
		fits(t, stdout)
		if id := moveID.FindString(stdout); id != "" && args[0] != "show" && args[0] != "moves" {
			files["MOVE"] = id
		}
	}
	code, stdout, stderr := execute(t, "verify", "--data", dir)
	if code != exitOK {
		t.Errorf("verify: exit code %d: %s%s", code, stdout, stderr)
	}
}

var moveID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// step is a command of a script and what it must say.
type step struct {
	line            int
	command         string
	fails, repeated bool
	says            []string
}

// missing gives what isn't said by a text.
func (s step) missing(text string) []string {
	return slices.DeleteFunc(slices.Clone(s.says), func(line string) bool { return strings.Contains(text, line) })
}

// steps reads a script. A line that begins with "$ " is a command that works, with "! " one
// that fails, with "~ " one that's repeated until it says everything; what it must say comes
// below, a text a line.
func steps(t *testing.T, name string) (list []step) {
	t.Helper()
	for number, line := range script(t, name) {
		if sign, command, ok := strings.Cut(line, " "); ok && slices.Contains([]string{"$", "!", "~"}, sign) {
			list = append(list, step{line: number, command: command, fails: sign == "!", repeated: sign == "~"})
			continue
		}
		last := &list[len(list)-1]
		last.says = append(last.says, line)
	}
	return list
}

// script gives the lines of a file of testdata by their numbers, without comments and empty
// ones.
func script(t *testing.T, name string) func(yield func(int, string) bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(int, string) bool) {
		for i, line := range strings.Split(string(text), "\n") {
			if line != "" && line[0] != '#' && !yield(i+1, line) {
				return
			}
		}
	}
}

// words splits a command line as a shell does, as far as tests need it.
func words(line string) []string {
	var list []string
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		list = append(list, m[1]+m[2])
	}
	return list
}

// fits wants lines of at most maxColumns, without blanks at their ends.
func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) > maxColumns || strings.TrimRight(line, " ") != line {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}

// A wrong command line calls nobody.
func TestQuotaUsage(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was called", r.Method, r.URL)
	}))
	defer service.Close()
	wrong := writeTemp(t, "codes", "A=1\nB\n")
	const move = "move hall --reason x --tier ga --quantity 1 "
	for line, says := range map[string]string{
		"show":                                      "arg",
		"show hall --moves 501":                     "--moves must be 0 to 500",
		"show hall --every 0s":                      "--every must be above 0",
		"lanes hall 0 --reason x":                   `N: "0" isn't a number from 1 on`,
		"lanes hall many":                           `N: "many" isn't a number`,
		"lanes hall 2":                              "--reason is required",
		"lanes hall --reason x":                     "--reason is for a change: give the number of lanes too",
		"lanes hall --dry-run":                      "--dry-run is for a change",
		"move hall --reason x":                      "from",
		move:                                        "from",
		move + "--from x --to 1":                    `--from "x": "x" isn't a lane`,
		move + "--from 0 --to 1":                    `"0" isn't a lane`,
		move + "--from -1 --to 1":                   `"-1" isn't a lane`,
		move + "--from 1 --to 2/":                   `--to "2/": which allotment?`,
		move + "--from= --to 2":                     `--from "": not a bucket such as 2, 2/sponsor, /sponsor or any`,
		move + "--from 1 --to 2 --up-to 3":          "up-to",
		move + "--from /fans --to 2 --if-match 3":   "--if-match needs a lane in --from",
		move + "--from 1 --to 2 --if-match -3":      "--if-match must be a version",
		move + "--from 1 --to 2 --idempotency-key=": "--idempotency-key must not be empty",
		"reject x":                                  "reason",
		"undo x":                                    "reason",
		"allot hall fans":                           "reason",
		"allot hall fans --reason x --tier ga":      `--tier: "ga" isn't a name and a number`,
		"allot hall fans --reason x --tier ga=0":    `--tier: "ga=0" isn't`,
		"allot hall fans --reason x --code =3":      `code: "=3" isn't`,
		"codes hall fans":                           "which codes?",
		"codes hall fans A":                         `code: "A" isn't a name and a number`,
		"codes hall fans --codes-file " + wrong:     wrong + `:2: "B" isn't`,
		"capacity hall ga 0":                        `N: "0" isn't a number from 1 on`,
		"capacity hall ga 1.5":                      `N: "1.5" isn't`,
		"close hall fans":                           "reason",
	} {
		code, stdout, stderr := runHere(t, append([]string{"quota"}, append(words(line), "--url", service.URL)...)...)
		if code != exitUsage || !strings.Contains(stderr, says) || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d and one line with %q: %s%s", line, code, exitUsage, says, stdout, stderr)
		}
	}
	code, _, stderr := runHere(t, "quota", "codes", "hall", "fans", "--codes-file", "nowhere", "--url", service.URL)
	if code != exitFailed || !strings.Contains(stderr, "nowhere") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
