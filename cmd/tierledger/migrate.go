package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/migrations"
)

// migrateCommand makes the migrate command.
func migrateCommand() *cobra.Command {
	var d database
	var check bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date",
		Long: `migrate applies the migrations that the database lacks, one after the other, each as a
whole or not at all. It may run while an older release serves, and by several starters
at once. The login must own the database and have CREATEROLE, unless the role
` + migrations.ServiceRole + ` exists.

Exit codes: 0 up to date, 1 it failed or, with --check, migrations are pending, 2 wrong usage.`,
		Example: `  tierledger migrate --database-url postgres://owner@db/tickets
  tierledger migrate --check --config /etc/tierledger.env`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			url, done, err := d.find(c)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			pending, err := migrations.Pending(c.Context(), url)
			if err != nil {
				return err
			}
			if !check && pending > 0 {
				err = migrations.Apply(c.Context(), url)
			}
			return tellMigrated(c.OutOrStdout(), pending, check, err)
		},
	}
	c.Flags().BoolVar(&check, "check", false, "change nothing; exit 1 if migrations are pending")
	databaseFlags(c, &d)
	return c
}

// tellMigrated says what was done or, with check, what is to be done; that there is
// something to be done is then an error.
func tellMigrated(w io.Writer, pending int, check bool, err error) error {
	switch {
	case err != nil:
		return err
	case pending == 0:
		fmt.Fprintln(w, "the schema is up to date")
	case check:
		return fmt.Errorf("%s pending", count(pending, "migration"))
	default:
		fmt.Fprintf(w, "applied %s\n", count(pending, "migration"))
	}
	return nil
}
