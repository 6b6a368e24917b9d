package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tierledger/tierledger/outbox"
)

// lose takes everything from the stream that has it all, and measures how soon that's
// noticed, and how soon all of it is there again. The server's folder is gone, and it comes
// back at its address; the relay runs all the time and isn't told.
func (r *relayRun) lose(ctx context.Context) error {
	if r.backlog == "" { // nothing was published that could be lost
		if err := r.fill(ctx); err != nil {
			return err
		}
	}
	if err := r.bus.startRemote(ctx); err != nil {
		return err
	}
	defer r.bus.stop()
	_, all, err := r.db.heads(ctx)
	if err != nil {
		return err
	}
	var back atomic.Pointer[time.Time] // when the server was there again
	var noticed, done atomic.Pointer[time.Time]
	var again atomic.Int64
	finished := make(chan struct{})
	stop, err := r.publish(ctx, func(p outbox.Published) {
		if back.Load() == nil || p.Again == 0 {
			return
		}
		now := time.Now()
		noticed.CompareAndSwap(nil, &now)
		if again.Add(int64(p.Again)) >= all && done.CompareAndSwap(nil, &now) {
			close(finished)
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	if _, err := r.caughtUp(ctx, "publish everything", r.db.notPublished); err != nil {
		return err
	}
	if err := r.bus.wipe(ctx); err != nil {
		return err
	}
	now := time.Now()
	back.Store(&now)
	stopWatch := r.watch("published again", all, 0, again.Load)
	err = await(ctx, finished)
	stopWatch()
	if err != nil {
		return err
	}
	r.report.RelayLoss = &RelayLoss{
		Lost: all, NoticedMS: round1(noticed.Load().Sub(now).Seconds() * 1e3), CompleteSeconds: seconds(done.Load().Sub(now)),
		AgainPerS: round(float64(again.Load())/done.Load().Sub(*noticed.Load()).Seconds(), 0),
	}
	_, err = r.audit(ctx)
	return err
}

// await waits until everything is published again.
func await(ctx context.Context, finished <-chan struct{}) error {
	timeout := time.NewTimer(catchUpPatience)
	defer timeout.Stop()
	select {
	case <-finished:
		return nil
	case <-timeout.C:
		return errors.New("the stream isn't complete again")
	case <-ctx.Done():
		return ctx.Err()
	}
}
