package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/outbox"
)

const (
	// maxSample are the events that the other ways publish again and again; they have them
	// ready in memory, and needn't read or encode anything.
	maxSample = 100_000
	// wayTime bounds the measurement of each other way.
	wayTime = 5 * time.Second
	// maxUnanswered is how many messages may be on their way to JetStream unacknowledged.
	maxUnanswered = 4096
)

// wayStream is the stream of the other ways, and its only subject.
const wayStream = "TIERLEDGER_BENCH"

// sample makes messages of the first events of the backlog, as the product does.
func (r *relayRun) sample(ctx context.Context) ([]nats.Msg, error) {
	rows, err := r.db.pool.Query(ctx, sqlSample, r.backlog, maxSample)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var messages []nats.Msg
	for rows.Next() {
		var e outbox.Event
		if err := rows.Scan(&e.Journal, &e.Seq, &e.ID, &e.Kind, &e.At, (*[]byte)(&e.Data)); err != nil {
			return nil, err
		}
		messages = append(messages, nats.Msg{Subject: wayStream, Data: e.Append(nil), Header: nats.Header{
			"Tierledger-Id": {e.ID.String()}, "Tierledger-Seq": {strconv.FormatInt(int64(e.Seq), 10)},
			"Content-Type": {outbox.ContentType},
		}})
	}
	return messages, rows.Err()
}

// openWay makes an empty stream for another way; the function removes it.
func (r *relayRun) openWay(ctx context.Context, o ...natsjs.JetStreamOpt) (js natsjs.JetStream, remove func() error, err error) {
	if js, err = natsjs.New(r.bus.conn, o...); err != nil {
		return nil, nil, err
	}
	_, err = js.CreateStream(ctx, natsjs.StreamConfig{
		Name: wayStream, Subjects: []string{wayStream}, Storage: natsjs.FileStorage, Discard: natsjs.DiscardNew, Replicas: 1})
	if err != nil {
		return nil, nil, err
	}
	return js, func() error { return js.DeleteStream(context.WithoutCancel(ctx), wayStream) }, nil
}

// bare is how many messages a second the stream takes that nobody fences or orders: they
// are sent without waiting, thousands at a time unacknowledged. Lost ones would need to be
// sent again, and be anywhere then.
func (r *relayRun) bare(ctx context.Context, sample []nats.Msg) (perS float64, err error) {
	var failed atomic.Pointer[error]
	js, remove, err := r.openWay(ctx, natsjs.WithPublishAsyncMaxPending(maxUnanswered),
		natsjs.WithPublishAsyncErrHandler(func(_ natsjs.JetStream, _ *nats.Msg, err error) { failed.Store(&err) }))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var sent atomic.Int64
	defer r.watch("bare publishing", r.Entries, 0, sent.Load)()
	started := time.Now()
	for n := int64(0); n < r.Entries && time.Since(started) < wayTime && ctx.Err() == nil; n++ {
		msg := sample[n%int64(len(sample))] // a copy: a message that's sent is the client's
		if _, err := js.PublishMsgAsync(&msg, natsjs.WithStallWait(stallAfter)); err != nil {
			return 0, err
		}
		sent.Add(1)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(stallAfter):
		return 0, errors.New("acknowledgements are missing")
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := failed.Load(); err != nil {
		return 0, fmt.Errorf("a message wasn't taken: %w", *err)
	}
	return round(float64(sent.Load())/time.Since(started).Seconds(), 0), nil
}

// oneByOne is how many messages a second the stream takes when each is sent after the one
// before is acknowledged: what keeps the order without batches.
func (r *relayRun) oneByOne(ctx context.Context, sample []nats.Msg) (perS float64, err error) {
	js, remove, err := r.openWay(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var sent atomic.Int64
	defer r.watch("one by one", r.Entries, 0, sent.Load)()
	started := time.Now()
	for n := int64(0); n < r.Entries && time.Since(started) < wayTime; n++ {
		msg := sample[n%int64(len(sample))]
		if _, err := js.PublishMsg(ctx, &msg); err != nil {
			return 0, err
		}
		sent.Add(1)
	}
	return round(float64(sent.Load())/time.Since(started).Seconds(), 0), nil
}
