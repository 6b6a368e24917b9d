package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/outbox"
)

// relayConns are as many connections as the service gives to what follows the journals.
const relayConns = 8

// publish runs a relay on the present connection until the returned function is called.
// Observe is told of its batches.
func (r *relayRun) publish(ctx context.Context, observe func(outbox.Published)) (stop func(), err error) {
	bus, err := r.bus.stream()
	if err != nil {
		return nil, err
	}
	pool, err := pg.Open(ctx, pg.Options{
		URL: r.db.url, Name: "tierledger outbox", Role: migrations.ServiceRole, MaxConns: relayConns})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(r.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	relay := outbox.NewRelay(outbox.RelayOptions{Pool: pool, Bus: bus, Observe: observe, Log: log})
	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); relay.Run(ctx) }()
	return func() { end(); <-done; pool.Close() }, nil
}

// publishRest publishes what's left.
func (r *relayRun) publishRest(ctx context.Context) error {
	stop, err := r.publish(ctx, nil)
	if err != nil {
		return err
	}
	defer stop()
	_, err = r.caughtUp(ctx, "publish what's left", r.db.notPublished)
	return err
}

// fillChunk are the holds between two checkpoints.
const fillChunk = 100_000

// fill makes a backlog: the entries of as many holds, placed by the ledger itself in this
// process while nobody publishes.
func (r *relayRun) fill(ctx context.Context) error {
	const event = "backlog"
	e, err := openEngine(ctx, r.db.url, "")
	if err != nil {
		return err
	}
	defer e.close()
	if err := r.openEvent(ctx, e, event); err != nil {
		return err
	}
	r.backlog = r.event(event)
	left, err := r.db.notPublished(ctx) // the event is entries too
	if err != nil {
		return err
	}
	for chunk := int64(0); left < r.Entries; chunk++ {
		turns := min(r.Entries-left, fillChunk)
		to, _ := r.hold(ctx, e, event, event+"-"+strconv.FormatInt(chunk, 10), 0, EngineClients, load.Bound{Turns: turns})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if to.Failures() > 0 {
			return fmt.Errorf("holds of the backlog: %s", strings.Join(to.FailureTexts(), "; "))
		}
		if err := r.db.checkpoint(ctx); err != nil { // or the server's log takes as much disk again
			return err
		}
		left += turns
	}
	if err := e.close(); err != nil {
		return err
	}
	if err := r.db.vacuum(ctx); err != nil { // the server would do it by itself, while it's measured
		return err
	}
	return r.db.checkpoint(ctx)
}

// publishBacklog measures how fast a backlog is published, beside two other ways to put
// the same messages into the same JetStream.
func (r *relayRun) publishBacklog(ctx context.Context) error {
	if err := r.bus.start(ctx); err != nil {
		return err
	}
	defer r.bus.stop()
	if err := r.publishRest(ctx); err != nil { // the parts before may have left some
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	b := &RelayBacklog{}
	if err := r.drain(ctx, b); err != nil {
		return err
	}
	if _, err := r.audit(ctx); err != nil {
		return err
	}
	sample, err := r.sample(ctx)
	if err != nil {
		return err
	}
	if b.BarePerS, err = r.bare(ctx, sample); err != nil {
		return fmt.Errorf("bare: %w", err)
	}
	if b.OneByOnePerS, err = r.oneByOne(ctx, sample); err != nil {
		return fmt.Errorf("one by one: %w", err)
	}
	b.RatioToBare, b.RatioToOneByOne = round(b.EntriesPerS/b.BarePerS, 2), round(b.EntriesPerS/b.OneByOnePerS, 2)
	r.report.RelayBacklog = b
	return nil
}

// drain measures the relay from its start until the stream has acknowledged everything.
func (r *relayRun) drain(ctx context.Context, b *RelayBacklog) error {
	left, err := r.db.notPublished(ctx)
	if err != nil {
		return err
	}
	size, err := r.streamSize(ctx)
	if err != nil {
		return err
	}
	profiled, err := startProfile(r.Profile)
	if err != nil {
		return err
	}
	var published, batches atomic.Int64
	all := make(chan struct{})
	stopWatch := r.watch("the relay publishes", left, 0, published.Load)
	started := time.Now()
	stop, err := r.publish(ctx, func(p outbox.Published) {
		batches.Add(1)
		n := int64(p.Events)
		if sum := published.Add(n); sum >= left && sum-n < left {
			close(all)
		}
	})
	if err != nil {
		return err
	}
	select {
	case <-all:
	case <-ctx.Done():
	}
	took := time.Since(started)
	stop()
	stopWatch()
	profiled()
	after, err := r.streamSize(ctx)
	if err != nil {
		return err
	}
	b.Entries, b.Seconds = left, seconds(took)
	b.EntriesPerS = round(float64(left)/took.Seconds(), 0)
	b.EventBytes = round(per(float64(after-size), left), 0)
	b.MBPerS = round1(float64(after-size) / 1e6 / took.Seconds())
	b.BatchMean = round1(per(float64(left), batches.Load()))
	return ctx.Err()
}

// streamSize is what the stream has, in bytes; the relay makes it.
func (r *relayRun) streamSize(ctx context.Context) (uint64, error) {
	js, err := natsjs.New(r.bus.conn)
	if err != nil {
		return 0, err
	}
	name := service.Default().Stream.Stream
	stream, err := js.Stream(ctx, name)
	if errors.Is(err, natsjs.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find the stream %s: %w", name, err)
	}
	return stream.CachedInfo().State.Bytes, nil
}
