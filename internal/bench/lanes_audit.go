package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// auditor looks at the buckets of a split event while it's sold: each reading is one
// statement, so of one instant. It checks that no ticket is lost or doubled, and how long
// a lane has none while another has plenty.
type auditor struct {
	db       *database
	event    string
	quantity int64

	readings   []reading
	broken     []string          // what readings found wrong, the first few
	wrong      int64             // readings
	lastServed map[int]time.Time // when a lane was last seen not to be dry
	dryFor     time.Duration     // the longest that one was, at most
}

// reading is what all lanes together had.
type reading struct {
	begun time.Time
	left  int64 // free, or under way between lanes
	sold  int64
}

// laneStock is what one lane has.
type laneStock struct {
	Lane                          int
	Free, Transit, Sold, Capacity int64
	Sum                           int64 // over all accounts
}

// maxBroken is how much of what readings found is told.
const maxBroken = 5

func newAuditor(db *database, event string, quantity int64) *auditor {
	return &auditor{db: db, event: event, quantity: quantity, lastServed: make(map[int]time.Time)}
}

// watch takes a reading every so often, and more when few tickets are left, until the
// returned function is called. That tells why one couldn't be taken.
func (a *auditor) watch(ctx context.Context, every time.Duration) (stop func() error) {
	done := make(chan struct{})
	var failed error
	var watcher sync.WaitGroup
	clear(a.lastServed)
	watcher.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			last, err := a.read(ctx)
			if err != nil {
				failed = err
				return
			}
			if last.left <= fewLeft {
				ticker.Reset(min(every, fewLeftEvery))
			}
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	})
	return func() error {
		close(done)
		watcher.Wait()
		return failed
	}
}

const (
	// fewLeft tickets can't all be had by whoever asks: refusals begin.
	fewLeft      = 1000
	fewLeftEvery = time.Millisecond
)

// read takes one reading.
func (a *auditor) read(ctx context.Context) (reading, error) {
	begun := time.Now()
	rows, err := a.db.pool.Query(ctx, sqlLanesNow, a.event, tier, ledger.InventoryCodes)
	if err != nil {
		return reading{}, fmt.Errorf("read the lanes: %w", err)
	}
	lanes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[laneStock])
	if err != nil {
		return reading{}, fmt.Errorf("read the lanes: %w", err)
	}
	return a.judge(lanes, begun), nil
}

// judge looks for what's wrong in a reading, and keeps what it comes to.
func (a *auditor) judge(lanes []laneStock, begun time.Time) reading {
	at := reading{begun: begun}
	var transit, capacity int64
	var wrong []string
	for _, l := range lanes {
		at.left += l.Free + l.Transit
		at.sold += l.Sold
		transit += l.Transit
		capacity -= l.Capacity
		if l.Sum != 0 {
			wrong = append(wrong, fmt.Sprintf("lane %d comes to %d", l.Lane, l.Sum))
		}
	}
	if transit < 0 {
		wrong = append(wrong, fmt.Sprintf("%d tickets are under way", transit))
	}
	if capacity != a.quantity {
		wrong = append(wrong, fmt.Sprintf("there are %d tickets, not %d", capacity, a.quantity))
	}
	if len(wrong) > 0 {
		a.wrong++
		a.broken = append(a.broken, wrong[:min(len(wrong), maxBroken-len(a.broken))]...)
	}
	a.dry(lanes, begun)
	a.readings = append(a.readings, at)
	return at
}

// dry learns how long lanes have had nothing while another had more than is worth moving:
// from the last reading before, so at most as long.
func (a *auditor) dry(lanes []laneStock, now time.Time) {
	var most int64
	for _, l := range lanes {
		most = max(most, l.Free)
	}
	for _, l := range lanes {
		before, seen := a.lastServed[l.Lane]
		if l.Free > 0 || most <= quota.Batch || !seen {
			a.lastServed[l.Lane] = now
		}
		if seen && l.Free == 0 && most > quota.Batch {
			a.dryFor = max(a.dryFor, now.Sub(before))
		}
	}
}

// refusedFalsely tells whether so many tickets were free or under way all the time until
// a refusal's answer. Nothing comes back while an event is sold out, so what a reading
// that began later found had been there.
func (a *auditor) refusedFalsely(answered time.Time, quantity int) bool {
	i, _ := slices.BinarySearchFunc(a.readings, answered, func(r reading, at time.Time) int { return r.begun.Compare(at) })
	return i < len(a.readings) && a.readings[i].left >= int64(quantity)
}

// moves counts the moves of an event, and their tickets, by cause.
func (db *database) moves(ctx context.Context, event string) (map[string]Moves, error) {
	rows, err := db.pool.Query(ctx, sqlMovesByCause, event)
	if err != nil {
		return nil, fmt.Errorf("count moves: %w", err)
	}
	moves := make(map[string]Moves)
	var cause string
	var m Moves
	_, err = pgx.ForEachRow(rows, []any{&cause, &m.Moves, &m.Tickets}, func() error {
		moves[cause] = m
		return nil
	})
	return moves, err
}
