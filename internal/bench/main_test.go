package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/tierledger/tierledger/internal/pgtest"
)

// asServer as first argument makes this test binary a child that serves.
const asServer = "bench-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == asServer {
		s := Server{System: System(os.Args[3]), DatabaseURL: os.Getenv(EnvDatabaseURL)}
		if len(os.Args) > 5 && os.Args[4] == "--lanes" {
			s.Lanes = os.Args[5]
		}
		if len(os.Args) > 5 && os.Args[4] == "--nats-dir" {
			s.NATSDir = os.Args[5]
		}
		if err := s.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.Main(m)
}

// small is a run that takes a second or two.
func small(t *testing.T, databaseURL string) HotTier {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := DefaultHotTier()
	h.DatabaseURL = databaseURL
	h.Clients, h.Duration = 8, minDuration
	h.Server = []string{program, asServer}
	h.Stderr = t.Output()
	return h
}

var errBroken = errors.New("broken")
