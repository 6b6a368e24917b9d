package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	exitOK     = 0
	exitFailed = 1 // refused, failed, or an invariant is violated
	exitUsage  = 2 // the command line or a setting can't be right
)

// usageError is a command line or a setting that can't be right.
type usageError struct{ error }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errTold ends a command with exitFailed after it has said why.
var errTold = errors.New("failed, and said why")

// run is the whole program: it executes one command line and returns the exit
// code. When ctx ends, the command stops in order.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	began := false
	noteBegin(root, &began)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errTold):
		return exitFailed
	case errors.As(err, &usage), !began: // cobra's own errors come before the command's body
		complain(stderr, fmt.Errorf("%w (see `tierledger help`)", err))
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = errors.New("interrupted")
	}
	complain(stderr, err)
	return exitFailed
}

// complain writes an error as one line, whatever the error's own layout.
func complain(w io.Writer, err error) {
	fmt.Fprintf(w, "tierledger: %s\n", strings.Join(strings.Fields(err.Error()), " "))
}

// noteBegin makes every command's body tell when it begins.
func noteBegin(c *cobra.Command, began *bool) {
	if body := c.RunE; body != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			*began = true
			return body(c, args)
		}
	}
	for _, sub := range c.Commands() {
		noteBegin(sub, began)
	}
}

// rootCommand makes the program's commands. Nothing is shared between two of them,
// so that tests may run any number at once.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tierledger",
		Short: "The ledger behind high-demand ticket sales",
		Long: `tierledger keeps tickets and the claims on them in one ledger: no ticket is ever
sold twice, no claim is lost, and every number can be recomputed.

Start with ` + "`tierledger demo`" + `, which plays a whole sale on this machine, or with
` + "`tierledger dev`" + `, which gives you a server to work against. Neither needs setting up.

Exit codes of every command: 0 done, 1 refused, failed or violated, 2 wrong usage.`,
		Example: `  tierledger demo                 a whole sale, from the rush to the audit
  tierledger dev                  an API on http://127.0.0.1:8080 to try things on`,
		SilenceUsage:       true,
		SilenceErrors:      true,
		DisableSuggestions: true, // errors are one line
	}
	root.AddCommand(devCommand(), demoCommand(), serveCommand(), migrateCommand(), verifyCommand(),
		exportCommand(), keysCommand(), eventsCommand(), quotaCommand(), subscriptionsCommand(), dlqCommand(), benchCommand(), versionCommand())
	return root
}

// logFlag adds --log-level to a command.
func logFlag(c *cobra.Command, level *slog.LevelVar, usual slog.Level) {
	level.Set(usual)
	c.Flags().TextVar(level, "log-level", level, "least severe log lines to write: debug, info, warn or error")
}

// newLog makes the log of a program: lines for people on a terminal, else JSON.
func newLog(w io.Writer, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// isTerminal tells whether a person looks at what is written.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
