package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tierledger/tierledger/keyring"
)

// newSecretCommand makes the keys secret command. It writes no file: the secret belongs
// where the service's other secrets are.
func newSecretCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "secret",
		Short: "Make a secret for the service itself",
		Long: `secret makes a secret and prints it, this once, for serve's --secret-keys (or
TIERLEDGER_SECRET_KEYS). Tickets are signed with it, and what must not be read in the
database is sealed with it: whoever has it can make tickets, and whoever loses it can't
open what was sealed. To change it without a gap put the new one behind the old one, with a
comma; when gates have its key put it in front; and keep the old one as long as there are
tickets of it to be verified, or secrets to be opened.

Exit codes: 0 printed, 1 it failed, 2 wrong usage.`,
		Example: `  tierledger keys secret
  TIERLEDGER_SECRET_KEYS=$(tierledger keys secret | sed -n 's/^secret: //p') tierledger serve`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			secret := keyring.New()
			ring, err := keyring.Parse(secret)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "secret: %s\nkid:    %s\n", secret, ring[0].ID)
			return nil
		},
	}
}
