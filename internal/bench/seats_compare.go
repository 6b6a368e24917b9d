package bench

import (
	"context"
	"fmt"
)

// baseline measures the other way to do the same, on tables of its own.
func (r *seatsRun) baseline(ctx context.Context) error {
	if !r.Baseline {
		return nil
	}
	event := r.event(blankEvent)
	if err := r.db.clone(ctx, event, clonedSeats...); err != nil {
		return err
	}
	server, err := r.openServer(ctx, SeatLock, "", r.Clients)
	if err != nil {
		return err
	}
	defer server.close()
	o := r.newOffice(server, event, r.house)
	if err := o.warmUp(ctx, r.db); err != nil {
		return fmt.Errorf("%s: %w", SeatLock, err)
	}
	m, err := o.load(ctx, string(SeatLock), "run", r.bound(), 0)
	if err != nil {
		return err
	}
	r.report.RatioToBaseline = new(round(r.alonePerS/m.attemptsPerS(), 2))
	r.report.add(m, r.report.RatioToBaseline)
	return server.close()
}
