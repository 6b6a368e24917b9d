package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/tierledger/tierledger/buckets"
)

// product measures the ledger: refusals first, on a store that has nothing to
// vacuum, then holds.
func (r *run) product(ctx context.Context) error {
	rows, err := r.db.rowsWritten(ctx)
	if err != nil {
		return err
	}
	t, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	for _, spec := range []buckets.Spec{
		r.spec(hotEvent, r.Quantity), r.spec(blankEvent, r.Quantity), r.spec(soldOutEvent, soldOutQuantity),
	} {
		if err := t.create(ctx, spec); err != nil {
			return fmt.Errorf("create event: %w", err)
		}
	}
	if r.SoldOut {
		if err := r.refusals(ctx, t); err != nil {
			return err
		}
	}
	if err := r.holds(ctx, t); err != nil {
		return err
	}
	r.report.RSSMB = t.peakMB()
	if err := t.close(); err != nil {
		return err
	}
	after, err := r.db.rowsWritten(ctx) // complete: the sessions that wrote have ended
	if err != nil {
		return err
	}
	r.report.RowsPerHold = round(per(float64(after-rows), r.held), 2)
	return nil
}

// productName tells the product over HTTP from the product without.
func (r *run) productName() string {
	if r.Engine {
		return "engine"
	}
	return string(Product)
}

// holds is the measurement that the benchmark is about.
func (r *run) holds(ctx context.Context, t target) error {
	if err := r.warmUp(ctx, t, hotEvent, "warm"); err != nil {
		return err
	}
	from, err := r.db.position(ctx)
	if err != nil {
		return err
	}
	seq, err := r.db.head(ctx, r.event(hotEvent))
	if err != nil {
		return err
	}
	m := r.measure(ctx, t, r.productName(), hotEvent)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	to, err := r.db.position(ctx)
	if err != nil {
		return err
	}
	r.report.BatchMean, err = r.db.batchMean(ctx, r.event(hotEvent), seq)
	r.report.take(m)
	r.report.WALBytesPerHold = round(per(float64(to-from), m.held()), 1)
	r.held += m.held()
	return err
}

// refusals measures an event that has no free tickets, and what a no writes to
// the database's log. The first warm-up takes the tickets. The vacuum leaves the
// server nothing to clean up by itself, and the second warm-up reads what that has
// changed in the catalogs, which may write too.
func (r *run) refusals(ctx context.Context, t target) error {
	if err := r.warmUp(ctx, t, soldOutEvent, "take"); err != nil {
		return err
	}
	if err := r.db.vacuum(ctx); err != nil {
		return err
	}
	if err := r.warmUp(ctx, t, soldOutEvent, "warm"); err != nil {
		return err
	}
	from, err := r.db.position(ctx)
	if err != nil {
		return err
	}
	only := *r
	only.Holds = 0 // the time is what's given here
	m := only.measure(ctx, t, "sold out", soldOutEvent)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	bytes, err := r.db.writtenSince(ctx, from)
	if err != nil {
		return err
	}
	r.held += m.held()
	r.report.takeRefusals(m, per(float64(bytes), m.refused()))
	return nil
}

// restart measures how soon the service serves again on a store of many holds.
func (r *run) restart(ctx context.Context) error {
	if r.Holds == 0 || r.Engine {
		return nil
	}
	started := time.Now()
	t, err := r.openServer(ctx, Product, "")
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.ready(ctx); err != nil {
		return err
	}
	r.report.StartSeconds = new(seconds(time.Since(started)))
	return t.close()
}
