package bench

import (
	"context"
	"fmt"
)

// baselines measures the two other ways to do the same, on tables of their own.
func (r *run) baselines(ctx context.Context) error {
	if !r.Baseline {
		return nil
	}
	for _, system := range []System{RowLock, SingleStatement} {
		if err := r.db.clone(ctx, r.event(blankEvent)); err != nil {
			return err
		}
		m, err := r.baseline(ctx, system)
		if err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		ratio := new(round(r.report.HoldsPerS/m.holdsPerS(), 2))
		r.report.Systems = append(r.report.Systems, m.result(ratio))
		if system == RowLock {
			r.report.RatioToBaseline = ratio
		} else {
			r.report.RatioToSingleStatement = ratio
		}
	}
	return nil
}

func (r *run) baseline(ctx context.Context, system System) (*measurement, error) {
	t, err := r.openServer(ctx, system, "")
	if err != nil {
		return nil, err
	}
	defer t.close()
	if err := r.warmUp(ctx, t, blankEvent, "warm"); err != nil {
		return nil, err
	}
	m := r.measure(ctx, t, string(system), blankEvent)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return m, t.close()
}
