package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/outbox"
)

const (
	// ackWait is when a message comes again whose process said nothing more of it.
	ackWait = 30 * time.Second
	// maxPending bounds what's delivered and not acknowledged, over all processes.
	maxPending = 5000
	// inactive is when a consumer is removed that no process asks for any more. What it
	// would have told is found without it.
	inactive = 7 * 24 * time.Hour
	// fetchWait bounds the wait for a message that doesn't come.
	fetchWait  = time.Second
	fetchLeast = 10 * time.Millisecond
)

// Feed delivers to a consumer of the outbox. Processes that run the same consumer share it.
type Feed struct {
	bus  *Bus
	name string
	want func(context.Context) ([]string, error)

	mu       sync.Mutex
	consumer jetstream.Consumer // nil until it's known
	subjects []string           // that it's for
}

var _ outbox.Feed = (*Feed)(nil)

// Feed makes the feed of a consumer. Want gives what it's told of: kinds, or families of
// kinds such as order.*; all of them is *.*. It's asked before each wait, and nothing comes
// while it wants nothing. Feed doesn't ask the server anything.
func (b *Bus) Feed(consumer string, want func(context.Context) ([]string, error)) *Feed {
	return &Feed{bus: b, name: consumer, want: want}
}

// Next waits for messages, at most so many.
func (f *Feed) Next(ctx context.Context, most int) ([]outbox.Message, error) {
	kinds, err := f.want(ctx)
	if err != nil {
		return nil, err
	}
	if len(kinds) == 0 {
		<-ctx.Done()
		return nil, nil
	}
	consumer, err := f.open(ctx, subjects(kinds))
	if err != nil {
		return nil, err
	}
	messages, err := fetch(ctx, consumer, most)
	if err != nil {
		f.lost()
		return nil, err
	}
	ready := messages[:0]
	for _, m := range messages {
		if m.Err == nil || f.load(ctx, &m) {
			ready = append(ready, m)
		}
	}
	return ready, nil
}

// load reads the data of a message, which isn't delivered with it. One that can't be read
// now comes again.
func (f *Feed) load(ctx context.Context, m *outbox.Message) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	stream, err := f.bus.open(ctx)
	if err == nil {
		var raw *jetstream.RawStreamMsg
		if raw, err = stream.GetMsg(ctx, m.Place); err == nil {
			m.Data = raw.Data
		}
	}
	if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		m.Again(time.Second)
		return false
	}
	return true
}

// fetch waits for a first message, and takes with it what's there.
func fetch(ctx context.Context, consumer jetstream.Consumer, most int) ([]outbox.Message, error) {
	// The server ends the wait, not we: what it sends just then would be nobody's.
	wait := fetchWait
	if end, ok := ctx.Deadline(); ok {
		wait = max(min(wait, time.Until(end)), fetchLeast)
	}
	first, err := consumer.Fetch(1, jetstream.FetchMaxWait(wait))
	if err != nil {
		return nil, ended(err)
	}
	list, err := collect(nil, first)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	rest, err := consumer.FetchNoWait(most - 1)
	if err != nil {
		return list, nil // the next call meets it again
	}
	list, _ = collect(list, rest)
	return list, nil
}

// collect takes the messages of a batch.
func collect(list []outbox.Message, batch jetstream.MessageBatch) ([]outbox.Message, error) {
	for msg := range batch.Messages() {
		list = append(list, message(msg))
	}
	return list, ended(batch.Error())
}

// ended drops the errors that say that nothing has come.
func ended(err error) error {
	if errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// message makes a message of the outbox of one of JetStream.
func message(msg jetstream.Msg) outbox.Message {
	m := outbox.Message{Subject: msg.Subject(), Data: msg.Data(), Origin: "unknown"}
	if meta, err := msg.Metadata(); err == nil {
		m.Place = meta.Sequence.Stream
		m.Origin = fmt.Sprintf("%s %d of %s", meta.Stream, meta.Sequence.Stream, meta.Timestamp.UTC().Format(time.RFC3339Nano))
	}
	m.Journal, m.Seq, m.Err = address(msg.Subject(), msg.Headers())
	// None of these waits for the server, and an acknowledgement that's lost costs one
	// delivery that finds everything done.
	m.Done = func() { _ = msg.Ack() }
	m.Again = func(pause time.Duration) { _ = msg.NakWithDelay(pause) }
	m.Drop = func() { _ = msg.TermWithReason("it's a dead letter") }
	return m
}

// subjects gives the subjects of kinds; one that's in another's family is left out, for
// filters mustn't overlap.
func subjects(kinds []string) (list []string) {
	for _, kind := range kinds {
		family, _, _ := strings.Cut(kind, ".")
		family += ".*"
		if kind != "*.*" && slices.Contains(kinds, "*.*") || kind != family && slices.Contains(kinds, family) {
			continue
		}
		list = append(list, outbox.KindSubject(kind))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// open makes the consumer, or brings it to its configuration.
func (f *Feed) open(ctx context.Context, subjects []string) (jetstream.Consumer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.consumer != nil && slices.Equal(f.subjects, subjects) {
		return f.consumer, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := f.bus.open(ctx)
	if err != nil {
		return nil, err
	}
	config := jetstream.ConsumerConfig{
		Durable:           f.name,
		Description:       "wakes the consumer " + f.name,
		DeliverPolicy:     jetstream.DeliverNewPolicy, // what was before is found in the journals
		AckPolicy:         jetstream.AckExplicitPolicy,
		AckWait:           ackWait,
		MaxDeliver:        -1, // attempts are counted in the inbox
		MaxAckPending:     maxPending,
		InactiveThreshold: inactive,
		Replicas:          f.bus.Replicas,
		FilterSubjects:    subjects,
		HeadersOnly:       true, // the entry is read from the journal
	}
	consumer, err := stream.CreateOrUpdateConsumer(ctx, config)
	if err != nil {
		f.bus.lost()
		return nil, fmt.Errorf("make the consumer %s: %w", f.name, err)
	}
	f.consumer, f.subjects = consumer, subjects
	return consumer, nil
}

// lost forgets the consumer, so that it's made anew if it's gone.
func (f *Feed) lost() {
	f.mu.Lock()
	f.consumer = nil
	f.mu.Unlock()
	f.bus.lost()
}
