package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

const (
	// recentOrders are those that readers look at.
	recentOrders = 1024
	// readerPause is how long a reader rests between two looks.
	readerPause = 5 * time.Millisecond

	// holdAnswer is how long the provider keeps a call that times out, before it breaks
	// off; it's short, so that clients go on.
	holdAnswer  = time.Second
	slowAnswer  = 500 * time.Millisecond
	lateWebhook = 3 * time.Second
)

// sell loads the service and keeps what comes back.
func (r *saleRun) sell(ctx context.Context) error {
	from, err := r.db.position(ctx)
	if err != nil {
		return err
	}
	seq, err := r.db.head(ctx, r.name)
	if err != nil {
		return err
	}
	to := newSaleRecorders()
	pace := r.load(ctx, to)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	position, err := r.db.position(ctx)
	if err != nil {
		return err
	}
	head, err := r.db.head(ctx, r.name)
	if err != nil {
		return err
	}
	if r.report.BatchMean, err = r.db.batchMean(ctx, r.name, seq); err != nil {
		return err
	}
	r.report.take(to, pace)
	purchases := to.complete.Count(outcomeCaptured)
	r.report.EntriesPerPurchase = round(per(float64(head-seq), purchases), 2)
	r.report.WALBytesPerPurchase = round(per(float64(position-from), purchases), 1)
	return nil
}

// load makes the load, for as long as it's to last.
func (r *saleRun) load(ctx context.Context, to *saleRecorders) (pace load.Pace) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	stop := r.watch("selling", 0, to)
	defer stop()
	reading, stopReading := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for reader := range r.Readers {
		readers.Go(func() { r.read(reading, to, r.Clients+reader) })
	}
	defer readers.Wait()
	defer stopReading()
	turn := func(client int, n int64, due time.Time) {
		r.purchase(ctx, to, client, r.name, n, due)
		if to.failed() >= maxFailed {
			giveUp()
		}
	}
	bound := load.Bound{For: r.Duration}
	if r.Purchases > 0 {
		bound = load.Bound{Turns: r.Purchases, For: maxDuration}
	}
	if r.Rate > 0 {
		return load.Open(ctx, r.Clients, r.Rate, bound, turn)
	}
	pace.Took = load.Closed(ctx, r.Clients, bound, func(client int, n int64) { turn(client, n, time.Now()) })
	return pace
}

// read looks at the status of recent orders until ctx ends.
func (r *saleRun) read(ctx context.Context, to *saleRecorders, client int) {
	chance := rand.New(rand.NewPCG(1, uint64(client)))
	ticker := time.NewTicker(readerPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		id := r.recent.pick(chance)
		if id == "" {
			continue
		}
		started := time.Now()
		a, err := r.server.clients[client].Do(context.WithoutCancel(ctx), http.MethodGet, "/v1/orders/"+id, "", nil)
		switch {
		case err != nil:
			to.status.Failed(err.Error())
		case a.Status != http.StatusOK:
			to.status.Failed(fmt.Sprintf("status: %d %s", a.Status, a.Code()))
		default:
			to.status.Answered(outcomeAnswered, time.Since(started))
		}
	}
}

// control tells the provider how long an authorization takes, and spreads a share of
// faults over all that can go wrong: of a call, of a decision, of a webhook.
func (r *saleRun) control(ctx context.Context, faults float64) error {
	body, err := json.Marshal(map[string]any{
		"authorize_latency_ms": r.Authorize.Milliseconds(),
		"slow_ms":              slowAnswer.Milliseconds(),
		"hold_answer_ms":       holdAnswer.Milliseconds(),
		"webhook_delay_ms":     lateWebhook.Milliseconds(),
		"rates": map[string]float64{
			"timeout_applied": faults / 5, "timeout_lost": faults / 5, "error_applied": faults / 5, "error": faults / 5,
			"slow":    faults / 5,
			"decline": faults / 2, "requires_action": faults / 2,
			"capture_fails": faults,
			"webhook_lost":  faults / 4, "webhook_twice": faults / 4, "webhook_late": faults / 4, "webhook_reordered": faults / 4,
		},
	})
	if err != nil {
		return err
	}
	a, err := r.server.clients[0].Do(ctx, http.MethodPost, "/sim/control", "", body)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%d: %s", a.Status, a.Body)
	}
	if err != nil {
		return fmt.Errorf("the simulated provider: %w", err)
	}
	return nil
}

// watch reports progress until the returned function is called.
func (r *saleRun) watch(phase string, limit time.Duration, to *saleRecorders) (stop func()) {
	if r.Progress == nil {
		return func() {}
	}
	started := time.Now()
	return tick(func() {
		r.Progress(SaleProgress{
			Phase: phase, Captured: to.ends.Count(outcomeCaptured), Declined: to.ends.Count(outcomeDeclined),
			Open: r.open.count(), Failed: to.failed(), Elapsed: time.Since(started), Limit: limit,
		})
	})
}

// recent keeps the orders that were made last. It's safe for concurrent use.
type recent struct {
	mu   sync.Mutex
	ids  [recentOrders]string
	seen int
}

func (r *recent) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[r.seen%recentOrders] = id
	r.seen++
}

// pick gives one of them, "" when there's none.
func (r *recent) pick(chance *rand.Rand) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == 0 {
		return ""
	}
	return r.ids[chance.IntN(min(r.seen, recentOrders))]
}
