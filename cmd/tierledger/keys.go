package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/httpapi"
)

// keysCommand makes the keys command, which only has commands below it.
func keysCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "keys",
		Short: "Make API keys, and the service's own secret",
		Long: `The keys file that serve and dev read has a line per key: who it is, the roles, and
the key's SHA-256, so that the file tells nobody a key. A second line for the same
name is a second key, for a change without a gap; serve reads the file again at SIGHUP.`,
		Example: `  tierledger keys new box-office --role booking
  tierledger keys new ops --role operator,auditor
  tierledger keys secret`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newKeyCommand(), newSecretCommand())
	return c
}

// newKeyCommand makes the keys new command. It writes no file: the key belongs to its
// holder, the line to whoever runs the service.
func newKeyCommand() *cobra.Command {
	var roles []string
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a key for NAME",
		Long: `new makes a key and prints it, this once, and the line to add to the keys file.
Roles: booking (holds), operator (events and tiers too), finance (the ledger), auditor
(reads everything), admin (everything).

Exit codes: 0 printed, 1 it failed, 2 wrong usage.`,
		Example: `  tierledger keys new box-office --role booking
  tierledger keys new ops --role operator,auditor | sed -n 's/^line: //p' >> keys`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			key, line, err := httpapi.NewKey(args[0], roles...)
			if err != nil {
				return usageError{err}
			}
			fmt.Fprintf(c.OutOrStdout(), "key:  %s\nline: %s\n", key, line)
			return nil
		},
	}
	c.Flags().StringSliceVar(&roles, "role", nil, "`ROLES` of the key, with commas between (required)")
	_ = c.MarkFlagRequired("role")
	return c
}
