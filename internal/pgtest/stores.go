package pgtest

import (
	"context"
	"testing"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Stores opens the ledger and what stands on it on a test's database, as the
// service does but without sweeper, janitor and HTTP. Closed at the test's end. A
// command that time made and that failed fails the test.
func Stores(t testing.TB, db *DB, observe func(ledger.Batch), providers ...payments.Provider) service.Stores {
	t.Helper()
	pool, err := pg.Open(context.Background(), pg.Options{URL: db.ServiceURL(), Name: t.Name(), MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := service.Fit(service.Parts{Commits: pool, Reads: pool, Providers: providers, Observe: func(b ledger.Batch) {
		if b.Err != nil {
			t.Errorf("a due command failed: %v", b.Err)
		}
		if observe != nil {
			observe(b)
		}
	}})
	t.Cleanup(s.Ledger.Close)
	t.Cleanup(s.Quotas.Close)
	t.Cleanup(func() { s.Orders.Close(context.Background()) })
	return s
}
