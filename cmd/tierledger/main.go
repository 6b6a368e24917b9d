// Command tierledger is the ledger behind high-demand ticket sales: the service,
// and everything that sets it up, tries it out and checks it.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// gcPercent lets the heap grow further between collections than Go's default of
// 100: a service's heap is a few megabytes, and at the default pace collecting it
// takes a quarter of its processor time. GOGC in the environment overrides it.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		// The first signal asks for an orderly end. From here on, a second one ends
		// the process at once, as the system does it.
		signal.Stop(signals)
		cancel()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
