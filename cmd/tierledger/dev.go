package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// devOptions are the flags of dev; demo has some of them.
type devOptions struct {
	listen    string
	data      string
	ephemeral bool
	keysFile  string
	natsAt    string
	level     slog.LevelVar
}

// devCommand makes the dev command.
func devCommand() *cobra.Command {
	o := &devOptions{}
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine, for development",
		Long: `dev runs a private PostgreSQL and NATS, brings the schema up to date and serves the
API, and a simulated payment provider below /sim. It needs PostgreSQL's programs on the
machine, nothing set up. The store stays in --data and is found again by the next dev;
other commands find it there too, even while dev runs.

Entries are published to that NATS, which only dev itself reaches unless --nats-listen
says where it listens. Whoever reaches it may do anything with its streams.

Calls from this machine may come without a key and are admin, so never expose dev.
"ready URL" on standard output says that it serves. Ctrl-C stops everything in order;
a second one stops at once, which loses nothing that was answered.

Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 it couldn't start or broke, 2 wrong usage.`,
		Example: `  tierledger dev
  tierledger dev --ephemeral --listen 127.0.0.1:0     a throw-away store on a free port`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "`ADDRESS` to serve on; port 0 takes a free one")
	flags.StringVar(&o.data, "data", defaultStore, "store `DIR`, created if missing")
	flags.BoolVar(&o.ephemeral, "ephemeral", false, "use a temporary store and remove it at the end")
	flags.StringVar(&o.natsAt, "nats-listen", "", "`ADDRESS` on which other programs of this machine reach NATS, to read the events (default: none)")
	flags.StringVar(&o.keysFile, "keys", "", "`FILE` of API keys, for calls that do give one")
	c.MarkFlagsMutuallyExclusive("data", "ephemeral")
	logFlag(c, &o.level, slog.LevelWarn)
	return c
}

// run serves until ctx ends. A start that ctx cuts short is no failure either.
func (o *devOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	if o.data == "" { // an unset variable in a script; a throw-away store would surprise
		return usagef("--data must name a folder; --ephemeral uses a temporary one")
	}
	s, err := openSandbox(ctx, o.sandbox(stderr))
	if err != nil {
		return unlessStopped(ctx, err)
	}
	return errors.Join(s.serve(ctx, stdout), s.Close())
}

// sandbox is what the flags make of a sandbox. Standard output is for the ready
// line and reports; everything else goes to standard error.
func (o *devOptions) sandbox(stderr io.Writer) sandboxOptions {
	data := o.data
	if o.ephemeral {
		data = ""
	}
	return sandboxOptions{
		listen: o.listen, data: data, keysFile: o.keysFile, natsListen: o.natsAt,
		log: newLog(stderr, &o.level),
		say: func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) },
	}
}

// serve tells that the sandbox is ready and waits until ctx ends.
func (s *sandbox) serve(ctx context.Context, stdout io.Writer) error {
	fmt.Fprintf(stdout, "ready %s\n", s.URL())
	select {
	case <-ctx.Done():
		s.options.say("stopping")
		return nil
	case err := <-s.service.Done():
		return fmt.Errorf("serving ended: %w", err)
	}
}

// unlessStopped drops the error of work that was cut short because ctx ended: a
// stop that was asked for is no failure.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
