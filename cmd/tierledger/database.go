package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/embedded"
	"github.com/tierledger/tierledger/migrations"
)

const (
	// defaultStore is where dev keeps its store, in the working folder.
	defaultStore = ".tierledger"
	// urlName is the file in a store that tells the database's URL while dev or
	// demo run on it.
	urlName = "url"
	// clusterName is what every store has that ever ran.
	clusterName = "postgres"
	// databaseName is the database that a store uses of its private server.
	databaseName = "postgres"
	// stopTimeout bounds the orderly stop of each private server.
	stopTimeout = 20 * time.Second
)

// database is how a command is told which database to work on.
type database struct {
	url  string
	data string
}

// databaseFlags adds --database-url, --data and --config to a command.
func databaseFlags(c *cobra.Command, d *database) {
	flags := c.Flags()
	flags.StringVar(&d.url, "database-url", "", "PostgreSQL `URL` (or "+envName("database-url")+")")
	flags.StringVar(&d.data, "data", "", "store `DIR` of dev, running or not (default "+defaultStore+" if there's one and no URL)")
	configFlag(c)
	c.MarkFlagsMutuallyExclusive("database-url", "data")
}

// find tells the URL of the database that the command line, the settings or the
// working folder name. On a store that nobody runs it starts the private
// PostgreSQL; call done at the end either way.
func (d *database) find(c *cobra.Command) (url string, done func() error, err error) {
	if err := settle(c.Flags()); err != nil {
		return "", nil, err
	}
	nothing := func() error { return nil }
	switch {
	case d.data != "":
		return openStore(c.Context(), d.data)
	case d.url != "":
		return d.url, nothing, checkURL(d.url)
	case isStore(defaultStore):
		return openStore(c.Context(), defaultStore)
	}
	return "", nil, usagef("which database? Give --database-url, %s or --data", envName("database-url"))
}

// migrated is find, and refuses a database whose schema isn't up to date.
func (d *database) migrated(c *cobra.Command) (url string, done func() error, err error) {
	url, done, err = d.find(c)
	if err != nil {
		return "", nil, err
	}
	if err := checkSchema(c.Context(), url); err != nil {
		return "", nil, errors.Join(err, done())
	}
	return url, done, nil
}

// checkURL refuses what isn't a URL, without showing it: it may hold a password.
func checkURL(url string) error {
	if _, err := pgx.ParseConfig(url); err != nil {
		return usagef("database-url: not a PostgreSQL URL such as postgres://user@host/name")
	}
	return nil
}

// checkSchema refuses a database that lacks migrations.
func checkSchema(ctx context.Context, url string) error {
	pending, err := migrations.Pending(ctx, url)
	if err != nil {
		return err
	}
	if pending > 0 {
		return fmt.Errorf("the database lacks %s; run `tierledger migrate` first", count(pending, "migration"))
	}
	return nil
}

// isStore tells whether a folder is a store that was used.
func isStore(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, clusterName))
	return err == nil
}

// openStore gives the URL of a store's database: of the process that has it
// locked, else of a server that it starts and that done stops.
func openStore(ctx context.Context, dir string) (url string, done func() error, err error) {
	if !isStore(dir) {
		return "", nil, fmt.Errorf("%s isn't a store; `tierledger dev --data %s` makes one", dir, dir)
	}
	store, err := embedded.LockStore(dir)
	var used *embedded.InUseError
	if errors.As(err, &used) { // a crashed dev leaves a URL too, but no lock
		url, err := readURL(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil, used
		}
		return url, func() error { return nil }, err
	}
	if err != nil {
		return "", nil, err
	}
	server, err := embedded.StartPostgres(ctx, embedded.PostgresOptions{Dir: dir})
	if err != nil {
		return "", nil, errors.Join(err, store.Close())
	}
	return server.URL(databaseName), func() error {
		return errors.Join(stopPostgres(server), store.Close())
	}, nil
}

// stopPostgres stops a private server within its own bound, whatever has ended
// around it.
func stopPostgres(server *embedded.Postgres) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return server.Stop(ctx)
}

// readURL reads the URL that whoever runs on a store tells.
func readURL(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, urlName))
	return strings.TrimSpace(string(text)), err
}

// count says "1 migration", "2 migrations".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
