package bench

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/sale"
)

// settleEvery is how often the open orders are looked at.
const settleEvery = time.Second

// openOrders are those whose outcome isn't known yet. It's safe for concurrent use.
type openOrders struct {
	mu  sync.Mutex
	ids []string
}

func (o *openOrders) add(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids = append(o.ids, id)
}

func (o *openOrders) count() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return int64(len(o.ids))
}

func (o *openOrders) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.ids)
}

// replace makes the list another one.
func (o *openOrders) replace(ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids = ids
}

// settle waits until the outcome of every payment is known, as the service's schedule
// brings it, or until that has taken too long.
func (r *saleRun) settle(ctx context.Context) error {
	started := time.Now()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	if err := r.findOpen(ctx); err != nil {
		return err
	}
	stop := r.watch("settling", r.Settle, newSaleRecorders())
	defer stop()
	for r.open.count() > 0 && time.Since(started) < r.Settle {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := r.lookOnce(ctx); err != nil {
			return err
		}
	}
	r.report.SettleSeconds = seconds(time.Since(started))
	return nil
}

// findOpen adds what no client has seen to be open: the last step of an order that was
// given up, or a payment whose answer never came.
func (r *saleRun) findOpen(ctx context.Context) error {
	orders, err := r.orders(ctx, r.name)
	if err != nil {
		return err
	}
	known := r.open.list()
	for i := range orders {
		if unsettled(&orders[i]) && !slices.Contains(known, orders[i].ID) {
			known = append(known, orders[i].ID)
		}
	}
	r.open.replace(known)
	return nil
}

// lookOnce looks at every open order and keeps those that still are.
func (r *saleRun) lookOnce(ctx context.Context) error {
	ids := r.open.list()
	var mu sync.Mutex // guards what follows
	var left []string
	var failed error
	load.Closed(ctx, min(r.Clients, len(ids)), load.Bound{Turns: int64(len(ids))}, func(client int, n int64) {
		order := sale.Order{ID: ids[n]}
		err := r.look(context.WithoutCancel(ctx), client, &order)
		if err == nil && order.ActsOn() != "" {
			err = r.approve(context.WithoutCancel(ctx), client, order.ActsOn())
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			failed = err
		case unsettled(&order):
			left = append(left, order.ID)
		}
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.open.replace(left)
	return failed
}

// orders lists all orders of an event.
func (r *saleRun) orders(ctx context.Context, event string) ([]sale.Order, error) {
	return sale.List[sale.Order](ctx, r.server.url, "/v1/orders", url.Values{"event": {event}})
}

// unsettled tells whether more is to be expected of an order by itself. A case that
// waits for a person isn't.
func unsettled(o *sale.Order) bool {
	return len(o.Open()) > 0 || !o.Paid() && !o.Declined() && o.Status != "cancelled"
}

// count counts the orders as they are in the end, and holds them against the provider's
// own report. The report is read first: what it tells of an operation the ledger knew
// before, while an order without outcome may begin another one at any time.
func (r *saleRun) count(ctx context.Context) error {
	settlement, err := sale.ReadSettlement(ctx, r.server.url)
	if err != nil {
		return err
	}
	orders, err := r.orders(ctx, r.name)
	if err != nil {
		return err
	}
	tickets := int64(0)
	for i := range orders {
		o := &orders[i]
		tickets += o.Tickets()
		switch {
		case unsettled(o):
			r.report.Unsettled++
		case o.Paid():
			r.report.Captured++
		case o.Declined():
			r.report.Declined++
		default:
			r.report.Cancelled++
		}
	}
	r.report.Oversold = max(0, tickets-r.Quantity)
	if r.report.Webhooks, err = r.db.webhooks(ctx, r.name); err != nil {
		return err
	}
	warm, err := r.orders(ctx, r.warmEvent())
	if err != nil {
		return err
	}
	return r.countMoney(ctx, settlement, append(orders, warm...))
}

// countMoney holds all orders of the store against the provider's report.
func (r *saleRun) countMoney(ctx context.Context, settlement *sale.Settlement, orders []sale.Order) error {
	charges := settlement.Charges(orders)
	r.report.DoubleCharges = charges.Double(orders)
	r.report.LostPayments = int64(len(charges.Lost))
	reconciled, err := settlement.Reconcile(ctx, r.server.url, r.name+"-report")
	r.report.ReportLines, r.report.UnexplainedLines = reconciled.Lines, reconciled.Unexplained
	r.report.unsettledLines = reconciled.ByResult["unsettled"]
	return err
}
