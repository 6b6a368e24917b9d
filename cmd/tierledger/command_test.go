package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// runHere runs a command line in this process.
func runHere(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// Every command teaches: what it does, examples, exit codes.
func TestHelp(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := c.CommandPath()
		code, stdout, _ := runHere(t, append(strings.Fields(path)[1:], "--help")...)
		if code != exitOK || !strings.Contains(stdout, "Examples:") || !strings.Contains(stdout, path) {
			t.Errorf("%s --help: exit code %d: %s", path, code, stdout)
		}
		if !c.HasSubCommands() && !c.Hidden && !strings.Contains(stdout, "Exit codes: 0 ") {
			t.Errorf("%s --help doesn't tell the exit codes: %s", path, stdout)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand())
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"":                                    {exitOK, "Available Commands"},
		"keys":                                {exitOK, "Available Commands"},
		"version":                             {exitOK, "tierledger "},
		"keys new ops --role admin":           {exitOK, "line: ops admin sha256:"},
		"keys new ops --role king":            {exitUsage, "king"},
		"keys new ops":                        {exitUsage, "role"},
		"keys new":                            {exitUsage, "arg"},
		"keys old":                            {exitUsage, "old"},
		"nonsense":                            {exitUsage, "nonsense"},
		"version --nonsense":                  {exitUsage, "nonsense"},
		"dev surplus":                         {exitUsage, "surplus"},
		"dev --data x --ephemeral":            {exitUsage, "ephemeral"},
		"dev --log-level loud":                {exitUsage, "log-level"},
		"dev --data=":                         {exitUsage, "--data must name a folder"},
		"demo --buyers 0":                     {exitUsage, "--buyers must be 1 to"},
		"demo --quantity 9999999":             {exitUsage, "--quantity must be 1 to"},
		"verify --data nowhere":               {exitFailed, "nowhere isn't a store"},
		"verify --database-url :":             {exitUsage, "database-url: not a PostgreSQL URL"},
		"verify --data x --database-url y":    {exitUsage, "database-url"},
		"migrate --config nowhere":            {exitFailed, "nowhere"},
		"export":                              {exitUsage, "event"},
		"export --event e --format csv":       {exitUsage, "csv isn't in this version; there are hledger and ndjson"},
		"export --event e --format beancount": {exitUsage, "beancount isn't in this version"},
	} {
		t.Run(line, func(t *testing.T) {
			code, stdout, stderr := runHere(t, strings.Fields(line)...)
			if code != want.code || !strings.Contains(stdout+stderr, want.says) {
				t.Errorf("exit code %d, want %d and %q: %s%s", code, want.code, want.says, stdout, stderr)
			}
			if code != exitOK && (stdout != "" || !strings.HasPrefix(stderr, "tierledger: ") || strings.Count(stderr, "\n") != 1) {
				t.Errorf("want one line on standard error: %q %q", stdout, stderr)
			}
		})
	}
}

// Flag before environment before file before default.
func TestSettle(t *testing.T) {
	path := writeTemp(t, "env", `
# a comment
TIERLEDGER_LISTEN = "file:1"
TIERLEDGER_READ_CONNS=3
TIERLEDGER_COMMIT_CONNS=3
TIERLEDGER_DATABASE_URL='postgres://u:p=x#y@h/d?a=b'
`)
	t.Setenv("TIERLEDGER_COMMIT_CONNS", "4")
	t.Setenv("TIERLEDGER_SWEEP_EVERY", "4s")
	t.Setenv("TIERLEDGER_NATS_URL", "")
	o, c := &serveOptions{}, &cobra.Command{}
	o.flags(c)
	if err := c.ParseFlags([]string{"--config", path, "--sweep-every", "5s"}); err != nil {
		t.Fatal(err)
	}
	if err := settle(c.Flags()); err != nil {
		t.Fatal(err)
	}
	got := o.config
	if got.Listen != "file:1" || got.ReadConns != 3 || got.CommitConns != 4 || got.SweepEvery.String() != "5s" ||
		got.DatabaseURL != "postgres://u:p=x#y@h/d?a=b" || o.natsURL != "" {
		t.Errorf("%+v", got)
	}
}

func TestSettleRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"unknown":  {"TIERLEDGER_LISTN=x", ":1: there's no setting TIERLEDGER_LISTN"},
		"foreign":  {"\nPATH=x", ":2: there's no setting PATH"},
		"twice":    {"TIERLEDGER_LISTEN=x\nTIERLEDGER_LISTEN=y", ":2: TIERLEDGER_LISTEN is given twice"},
		"no value": {"hunter2", ":1: not a NAME=value line"},
		"wrong":    {"TIERLEDGER_READ_CONNS=many", "TIERLEDGER_READ_CONNS in "},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runHere(t, "serve", "--config", writeTemp(t, "env", c.text))
			if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.says) || strings.Contains(stderr, "hunter2") {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
	t.Setenv("TIERLEDGER_DRAIN_TIMEOUT", "soon")
	code, _, stderr := runHere(t, "serve")
	if code != exitUsage || !strings.Contains(stderr, "TIERLEDGER_DRAIN_TIMEOUT in the environment") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A file that couldn't be written in full isn't there, or is the old one.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	path := writeTemp(t, "books", "old")
	broken := errors.New("broken")
	err := writeFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, broken)
	})
	if text, _ := os.ReadFile(path); !errors.Is(err, broken) || string(text) != "old" {
		t.Errorf("%v, %q", err, text)
	}
	err = writeFile(path, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err })
	text, _ := os.ReadFile(path)
	files, _ := os.ReadDir(filepath.Dir(path))
	if err != nil || string(text) != "new" || len(files) != 1 {
		t.Errorf("%v, %q, %v", err, text, files)
	}
}
