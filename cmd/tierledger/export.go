package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/internal/export"
)

// exportCommand makes the export command.
func exportCommand() *cobra.Command {
	var d database
	var event, format, output string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write an event's books for other programs",
		Long: `export writes an event's journal up to its last entry: as an hledger journal, in which
every posting asserts the balance after it, so that an independent program can check
the books; or as one JSON object per entry (ndjson), with all that its hash covers.
Of an event that is split into lanes, it writes each lane's journal in turn, as they
all were at one instant. Each has its own hash chain, and accounts of its own in hledger:
available:lane/2 is the second lane's part of available.

Exit codes: 0 written, 1 it failed, 2 wrong usage.`,
		Example: `  tierledger export --event arena-2027 --format hledger | hledger -f - check -s
  tierledger export --event arena-2027 --format ndjson --output books.ndjson`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			// Before the database: a format that isn't there isn't there for any event.
			if !slices.Contains(export.Formats, format) {
				return usagef("--format %s isn't in this version; there are %s", format, strings.Join(export.Formats, " and "))
			}
			url, done, err := d.migrated(c)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			write := func(w io.Writer) error { return export.Write(c.Context(), w, url, event, format) }
			if output == "" {
				return write(c.OutOrStdout())
			}
			return writeFile(output, write)
		},
	}
	flags := c.Flags()
	flags.StringVar(&event, "event", "", "`EVENT` whose books to write (required)")
	flags.StringVar(&format, "format", "", "`FORMAT`: "+strings.Join(export.Formats, " or ")+" (required)")
	flags.StringVar(&output, "output", "", "`FILE` to write (default: standard output)")
	_, _ = c.MarkFlagRequired("event"), c.MarkFlagRequired("format")
	databaseFlags(c, &d)
	return c
}

// writeFile writes a file that is there in full or not at all. Only its owner may
// read it: books are nobody else's business.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tierledger-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has its name
	// On disk before it gets its name: a crash leaves the old file or the new one.
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
