package tickets_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/tickets"
)

// Each order gets the tickets that it has paid for, and those of what goes back are revoked.
func TestTicketsOfASale(t *testing.T) {
	t.Parallel()
	b := open(t)
	paid := b.buy("ann", "sim_ok", "2 ga", "A-1-1", "A-1-2")
	b.until(paid, orders.Captured)
	free := b.buy("bob", "sim_ok", "2 lawn")
	failed := b.buy("cid", "sim_capture_fails", "1 ga")
	b.until(failed, orders.Cancelled)
	declined := b.buy("dan", "sim_decline", "1 ga")
	asked := b.buy("eve", "sim_requires_action", "1 ga")
	b.follow()
	b.want(paid, "ga ga A-1-1 A-1-2")
	b.want(free, "lawn lawn")
	for _, id := range []uuid.UUID{failed, declined, asked} {
		b.want(id, "")
	}

	b.bank(asked, "complete")
	b.until(asked, orders.Captured)
	b.refund(paid, orders.RefundLine{Tier: "ga", Quantity: 1}, orders.RefundLine{Tier: "stalls", Seats: []string{"A-1-1"}})
	b.until(paid, orders.PartiallyRefunded)
	again := b.buy("fay", "sim_ok", "A-1-1") // it's on sale again
	b.until(again, orders.Captured)
	b.follow()
	b.want(asked, "ga")
	b.want(paid, "ga (ga) (A-1-1) A-1-2")
	b.want(again, "A-1-1")

	b.refund(free, orders.RefundLine{Tier: "lawn", Quantity: 2})
	b.bank(asked, "dispute")
	b.follow()
	b.want(free, "(lawn) (lawn)")
	b.want(asked, "ga")
}

// A capture that's taken back leaves the tickets, and the end of the order revokes them.
func TestACaptureThatIsTakenBack(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.buy("ann", "sim_ok", "2 ga")
	b.until(id, orders.Captured)
	b.bank(id, "fail")
	b.until(id, orders.Confirmed)
	b.follow()
	b.want(id, "ga ga")
	_, err := b.Orders.Cancel(b.ctx, "t", b.key(), id, nil)
	b.must(err)
	b.follow()
	b.want(id, "(ga) (ga)")
}

// An order that's sold and whose capture has no outcome yet has no ticket.
func TestConfirmedIsNotCaptured(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.buy("ann", "sim_ok", "1 ga")
	b.until(id, orders.Captured)
	b.replay(b.events(`seq <= (SELECT seq FROM entries WHERE kind = 'order.confirmed')`))
	b.want(id, "")
	if b.rows() != "[] []" {
		t.Error(b.rows())
	}
	b.follow()
	b.want(id, "ga")
}

// Every lane's journal has its own tickets.
func TestTicketsOfLanes(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.event = "tour"
	_, err := b.Events.Create(b.ctx, "t", "tour", buckets.Spec{Event: "tour", Name: "Tour", Currency: "USD", HoldSeconds: 3600,
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 100, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}})
	b.must(err)
	_, err = b.Quotas.Split(b.ctx, "t", "split", "tour", 3, "a rush", nil, false)
	b.must(err)
	journals := make(map[ledger.JournalID]bool)
	var ids []uuid.UUID
	for n := range 9 {
		ids = append(ids, b.buy(fmt.Sprint("c", n), "sim_ok", "2 ga"))
		journal, _ := ledger.JournalOf(ids[n])
		journals[journal] = true
	}
	if len(journals) < 2 {
		t.Fatalf("all in %v", journals)
	}
	for _, id := range ids {
		b.until(id, orders.Captured)
	}
	b.follow()
	for _, id := range ids {
		b.want(id, "ga ga")
		if got, err := b.tickets.Get(b.ctx, b.list(id)[1].ID); err != nil || got.Event != "tour" || got.Order != id || got.Number != 2 {
			t.Errorf("%+v %v", got, err)
		}
	}
}

// What comes again, alone or with others, and in any process, changes nothing.
func TestTicketsAreIssuedOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	var ids []uuid.UUID
	for n := range 6 {
		ids = append(ids, b.buy(fmt.Sprint("c", n), "sim_ok", "3 ga"))
	}
	for _, id := range ids {
		b.until(id, orders.Captured)
	}
	journal, _ := ledger.JournalOf(ids[0])
	all := b.events(`kind LIKE 'order.%'`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := b.inbox(b.store(b.ring).Consumer()).Advance(b.ctx, journal); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() { // replays don't wait for the position
			err := pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error { return b.store(b.ring).Consumer().Effect(b.ctx, tx, all) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b.follow()
	for _, id := range ids {
		b.want(id, "ga ga ga")
	}
	before := b.rows()
	b.replay(all)
	for _, e := range slices.Backward(all) {
		b.replay([]outbox.Event{e})
	}
	if b.rows() != before {
		t.Error("the replays have changed something")
	}
}

// Two that come to one order at once take turns: the second goes on from what the first has
// left. Here it's the end of a sale, replayed, and the order's next one.
func TestEntriesOfOneOrderTakeTurns(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.buy("ann", "sim_ok", "2 ga")
	b.until(id, orders.Captured)
	captured := b.events(`kind = 'order.captured'`)
	b.replay(captured)
	b.bank(id, "fail")
	b.until(id, orders.Confirmed)
	_, err := b.Orders.Cancel(b.ctx, "t", b.key(), id, nil)
	b.must(err)
	next := captured[0]
	next.Seq += 100 // as if it had been honoured

	first, err := b.pool.Begin(b.ctx)
	b.must(err)
	_, err = first.Exec(b.ctx, `SELECT FROM ticketed_orders FOR UPDATE`) // as when it has read, and not written
	b.must(err)
	var second sync.WaitGroup
	second.Go(func() {
		err := pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error {
			return b.tickets.Consumer().Effect(b.ctx, tx, []outbox.Event{next})
		})
		if err != nil {
			t.Error(err)
		}
	})
	pgtest.Until(t, "the second to wait", func() bool {
		return query[int](b, `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)[0] == 1
	})
	b.must(b.tickets.Consumer().Effect(b.ctx, first, b.events(`kind = 'order.cancelled'`)))
	b.must(first.Commit(b.ctx))
	second.Wait()
	b.want(id, "(ga) (ga) ga ga")
	b.exec(`DELETE FROM tickets`) // the order that it's made up for isn't in the journal
	b.exec(`DELETE FROM ticketed_orders`)
}

// An effect whose transaction fails hasn't happened, and happens the next time.
func TestAnEffectThatIsRolledBack(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.buy("ann", "sim_ok", "2 ga")
	b.until(id, orders.Captured)
	failed := errors.New("the power went")
	err := pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error {
		return errors.Join(b.tickets.Consumer().Effect(b.ctx, tx, b.events(`kind = 'order.captured'`)), failed)
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	b.want(id, "")
	b.follow()
	b.want(id, "ga ga")
}

// An entry that was given up is made good by the order's next, and changes nothing when
// it's replayed after that.
func TestADeadLetterThatComesLate(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.buy("ann", "sim_ok", "3 ga")
	b.until(id, orders.Captured)
	captured := b.events(`kind = 'order.captured'`)
	c := b.tickets.Consumer()
	effect := c.Effect
	c.Effect = func(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
		if slices.ContainsFunc(events, func(e outbox.Event) bool { return e.Seq == captured[0].Seq }) {
			return errors.New("it can't be done")
		}
		return effect(ctx, tx, events)
	}
	for range outbox.MaxAttempts {
		b.followWith(c)
		b.exec(`UPDATE inbox SET retry_at = 'epoch' WHERE retry_at IS NOT NULL`)
	}
	if n := query[int](b, `SELECT count(*)::int FROM dead_letters WHERE consumer = 'tickets'`)[0]; n != 1 {
		t.Fatalf("%d dead letters", n)
	}
	b.want(id, "")
	b.sound() // it's known that something is missing

	b.refund(id, orders.RefundLine{Tier: "ga", Quantity: 1})
	b.until(id, orders.PartiallyRefunded)
	b.follow()
	b.want(id, "ga ga")
	b.replay(captured)
	b.want(id, "ga ga")
	b.exec(`BEGIN`)
	b.exec(`UPDATE dead_letters SET status = 'replayed', replay_id = gen_random_uuid(), ended_at = now()`)
	b.sound()
	b.exec(`ROLLBACK`)
}

// Without a secret nothing is issued, and nothing is lost.
func TestWithoutASecret(t *testing.T) {
	t.Parallel()
	b := open(t)
	id := b.buy("ann", "sim_ok", "1 ga")
	b.until(id, orders.Captured)
	journal, _ := ledger.JournalOf(id)
	none := b.store(nil)
	if err := b.inbox(none.Consumer()).Advance(b.ctx, journal); !errors.Is(err, outbox.ErrAway) {
		t.Errorf("%v", err)
	}
	if _, err := none.Keys(); !errors.Is(err, tickets.ErrNoTicketKeys) {
		t.Errorf("%v", err)
	}
	b.follow()
	b.want(id, "ga")
}

// An entry that records no order fails, and says which it is.
func TestAnEntryWithoutAnOrder(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, data := range []string{`{}`, `[]`, ``} {
		err := pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error {
			return b.tickets.Consumer().Effect(b.ctx, tx, []outbox.Event{{Journal: 1, Seq: 7, Kind: orders.KindCaptured, Data: []byte(data)}})
		})
		if err == nil || errors.Is(err, outbox.ErrAway) {
			t.Errorf("%q: %v", data, err)
		}
	}
}

// Reading what isn't there.
func TestTicketsThatDoNotExist(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, id := range []uuid.UUID{uuid.New(), uuid.Nil, tickets.ID(99, uuid.Nil, 1)} {
		if _, err := b.tickets.Get(b.ctx, id); !errors.Is(err, tickets.ErrTicketNotFound) {
			t.Errorf("%s: %v", id, err)
		}
		if list, err := b.tickets.List(b.ctx, id, 0, 10); err != nil || len(list) != 0 {
			t.Errorf("%s: %v %v", id, list, err)
		}
	}
}
