package quota_test

import (
	"context"
	"sync"
	"testing"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
)

// A process that loses commits in turn before the server gets them and after it made them
// does what it was asked for, once.
func TestMovesWhoseCommitsAreLost(t *testing.T) {
	t.Parallel()
	for name, act := range lasts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := wrecked(t)
			act.prepare(w)
			proxy := pgtest.NewProxy(t, w.db)
			pool, err := pg.Open(context.Background(), pg.Options{URL: proxy.ServiceURL(t, w.db), Name: "unlucky", MaxConns: 8})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			unlucky := service.Fit(service.Parts{Commits: pool, Reads: pool})
			t.Cleanup(unlucky.Ledger.Close)
			t.Cleanup(unlucky.Quotas.Close)
			stop := make(chan struct{})
			var cutting sync.WaitGroup
			cutting.Go(func() {
				for _, lose := range []func() <-chan struct{}{proxy.LoseNextWrite, proxy.LoseNextAnswer, proxy.LoseNextAnswer, proxy.LoseNextWrite} {
					select {
					case <-lose():
					case <-stop:
						return
					}
				}
			})
			w.must(w.do(act, unlucky))
			close(stop)
			cutting.Wait()
			w.sweep()
			w.settled()
			act.want(w)
		})
	}
}
