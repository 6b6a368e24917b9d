package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// hot is the measurement that the benchmark is about: the load, and beside it those who
// read the map and follow its changes.
func (r *seatsRun) hot(ctx context.Context) error {
	if err := r.open(ctx, r.event(hotEvent), r.house, r.HoldSeconds); err != nil {
		return err
	}
	o := r.newOffice(r.server, r.event(hotEvent), r.house)
	if err := o.warmUp(ctx, r.db); err != nil {
		return err
	}
	shoppers, err := r.gather(ctx, o)
	if err != nil {
		return err
	}
	defer shoppers.leave()
	from, err := r.db.position(ctx)
	if err != nil {
		return err
	}
	seq, err := r.db.head(ctx, o.event)
	if err != nil {
		return err
	}
	shoppers.look()
	m, err := o.load(ctx, string(Product), "run", r.bound(), r.Rate)
	if err != nil {
		return err
	}
	to, err := r.db.position(ctx)
	if err != nil {
		return err
	}
	r.report.take(m)
	r.report.WALBytesPerHold = round(per(float64(to-from), m.held()), 1)
	if r.report.BatchMean, err = r.db.batchMean(ctx, o.event, seq); err != nil {
		return err
	}
	shoppers.leave()
	return shoppers.tell(ctx, r)
}

// alone measures the product as the baseline is measured: clients that never rest, and
// nobody beside them. Where the first measurement was that already, it's not made twice.
func (r *seatsRun) alone(ctx context.Context) error {
	if !r.Baseline {
		return nil
	}
	if err := r.open(ctx, r.event(blankEvent), r.house, r.HoldSeconds); err != nil {
		return err
	}
	if r.Rate == 0 && r.MapReads == 0 && r.Followers == 0 {
		r.alonePerS = r.report.AttemptsPerS
		return nil
	}
	if err := r.open(ctx, r.event(aloneEvent), r.house, r.HoldSeconds); err != nil {
		return err
	}
	o := r.newOffice(r.server, r.event(aloneEvent), r.house)
	if err := o.warmUp(ctx, r.db); err != nil {
		return err
	}
	m, err := o.load(ctx, "product alone", "run", r.bound(), 0)
	if err != nil {
		return err
	}
	r.report.add(m, nil)
	r.alonePerS = m.attemptsPerS()
	return nil
}

// crowd are the shoppers beside the load.
type crowd struct {
	maps      *mapReads // nil for none
	followers *followers
	witness   *witness      // nil for none
	begin     chan struct{} // closed when the reads of the map begin
	end       context.CancelFunc
	all       sync.WaitGroup
}

// gather connects everybody who's to look on, and returns when all are there.
func (r *seatsRun) gather(ctx context.Context, o *office) (*crowd, error) {
	head, err := r.db.head(ctx, o.event)
	if err != nil {
		return nil, err
	}
	c := &crowd{begin: make(chan struct{})}
	ctx, c.end = context.WithCancel(ctx)
	if r.MapReads > 0 {
		if c.maps, err = openMapReads(ctx, o); err != nil {
			c.leave()
			return nil, fmt.Errorf("map: %w", err)
		}
		c.all.Go(func() {
			select {
			case <-c.begin:
				c.maps.pace = load.Open(ctx, mapConns, r.MapReads, load.Bound{For: maxDuration}, func(client int, n int64, due time.Time) {
					c.maps.turn(ctx, client, n, due)
				})
			case <-ctx.Done():
			}
		})
	}
	c.followers = follow(ctx, &c.all, o, r.Followers, head)
	if r.Followers > 0 {
		if c.witness, err = newWitness(ctx, o); err == nil {
			c.witness.start(ctx, &c.all)
		}
	}
	if !c.followers.connected(ctx) || err != nil {
		err = errors.Join(err, ctx.Err())
		c.leave()
		return nil, err
	}
	return c, nil
}

// look begins with the reads of the map, and counts what comes from now on.
func (c *crowd) look() {
	c.followers.measured.Store(true)
	close(c.begin)
}

// leave ends all of them; a second one does nothing.
func (c *crowd) leave() {
	c.end()
	c.all.Wait()
	if c.maps != nil {
		c.maps.close()
	}
}

// tell reports what they saw.
func (c *crowd) tell(ctx context.Context, r *seatsRun) (err error) {
	if m := c.maps; m != nil {
		r.report.MapReport = m.report()
		r.report.fail(m.recorder.Failures(), m.recorder.FailureTexts())
	}
	if w := c.witness; w != nil {
		f := c.followers
		r.report.DeltaReport = f.report()
		r.report.fail(f.recorder.Failures(), f.recorder.FailureTexts())
		if w.err != nil {
			r.report.fail(1, []string{w.err.Error()})
		}
		r.report.DeltaWrong, err = w.wrong(ctx, r.db)
	}
	return err
}
