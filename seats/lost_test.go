package seats_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
)

// through gives the hall as a process has it that reaches the database through a proxy.
func (h *hall) through(proxy *pgtest.Proxy) *hall {
	h.Helper()
	pool, err := pg.Open(h.Context(), pg.Options{URL: proxy.ServiceURL(h.TB, h.db), Name: h.Name(), MaxConns: 4})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(pool.Close)
	other := &hall{TB: h.TB, db: h.db, owner: h.owner, keys: h.keys}
	other.Stores = service.Fit(service.Parts{Commits: pool, Reads: pool, Observe: other.observe})
	h.Cleanup(other.Ledger.Close)
	return other
}

// The connection breaks before the batch is written, or after it was committed and before
// the answer: either way each change of seats is made once, and the caller is told so.
func TestSeatsWhoseCommitWasCutOff(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*pgtest.Proxy) <-chan struct{}{
		"before the write": (*pgtest.Proxy).LoseNextWrite,
		"after the commit": (*pgtest.Proxy).LoseNextAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t, nil)
			proxy := pgtest.NewProxy(t, h.db)
			cut := h.through(proxy)
			during := func(act func() error) {
				t.Helper()
				lost := lose(proxy)
				if err := act(); err != nil {
					t.Fatal(err)
				}
				<-lost
			}
			during(func() error { cut.load(*chart(section("A", "front", 2, 4))); return nil })
			h.want("aaaa aaaa")
			var list []holds.Hold
			for i, line := range []holds.Line{named("A-1-1", "A-1-2"), best(2), best(4)} {
				during(func() error {
					hold, err := cut.place(fmt.Sprint("c", i), line)
					list = append(list, hold)
					return err
				})
			}
			h.want("hhhh hhhh")
			during(func() error { return cut.release(list[0].ID) })
			during(func() error { cut.block("A-1-1"); return nil })
			during(func() error { cut.unblock("A-1-1"); return nil })
			h.want("aahh hhhh")
			h.runOut()
			during(func() error { _, err := cut.place("next", named("A-1-3")); return err })
			h.want("aaha aaaa")
			h.wantHappened("A-1-1", "available by chart.loaded", "held by hold.placed", "available by hold.released",
				"blocked by seats.blocked", "available by seats.unblocked")
			for _, hold := range list {
				if hold.ID == uuid.Nil || len(h.query(`SELECT hold_id::text FROM holds WHERE hold_id = $1`, hold.ID)) != 1 {
					t.Errorf("hold %+v", hold)
				}
			}
		})
	}
}
