package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

const (
	// readMost bounds the messages of one exchange.
	readMost = 1000
	// readIdle is when the server forgets a reader that has gone, and forgetTimeout how long
	// it's told so.
	readIdle      = 30 * time.Second
	forgetTimeout = time.Second
	// nextSubject asks a consumer for messages (JetStream's wire API for pull consumers).
	nextSubject = "$JS.API.CONSUMER.MSG.NEXT."
)

// errTorn says that messages got lost on their way from the server: what came isn't all.
var errTorn = errors.New("the server sent messages that didn't come")

// reading is what's under way of a Read.
type reading struct {
	bus      *Bus
	consumer jetstream.Consumer
	came     chan *nats.Msg
	inbox    string
	left     uint64 // messages that there were, and didn't come yet
	read     uint64
}

// Read reads the messages of a journal after a place.
func (b *Bus) Read(ctx context.Context, journal ledger.JournalID, place uint64, each func([]outbox.Mark) error) error {
	consumer, err := b.reader(ctx, journal, place)
	if err != nil {
		b.lost()
		return err
	}
	defer b.forget(consumer)
	r := reading{bus: b, consumer: consumer, came: make(chan *nats.Msg, 2*readMost), inbox: nats.NewInbox(), left: consumer.CachedInfo().NumPending}
	sub, err := b.Conn.ChanSubscribe(r.inbox, r.came)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	for r.left > 0 {
		marks, err := r.exchange(ctx)
		if err != nil {
			return err
		}
		if err := each(marks); err != nil {
			return err
		}
	}
	return nil
}

// exchange asks for as many messages as there are, and takes them. It isn't left to the
// client's Fetch: that takes a message with a status among its headers, as anybody may have
// published it, for a word of the server.
func (r *reading) exchange(ctx context.Context) ([]outbox.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	marks := make([]outbox.Mark, 0, min(r.left, readMost))
	ask, err := json.Marshal(map[string]int64{"batch": int64(cap(marks)), "expires": int64(callTimeout)})
	if err == nil {
		err = r.bus.Conn.PublishRequest(nextSubject+r.bus.Options.Stream+"."+r.consumer.CachedInfo().Name, r.inbox, ask)
	}
	if err != nil {
		return nil, err
	}
	for len(marks) < cap(marks) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case msg := <-r.came:
			if msg.Reply == "" { // a message of the stream is to be acknowledged to somebody
				return nil, fmt.Errorf("the server says %s %s", msg.Header.Get("Status"), msg.Header.Get("Description"))
			}
			meta, err := msg.Metadata()
			if err != nil {
				return nil, err
			}
			if r.read++; meta.Sequence.Consumer != r.read {
				return nil, errTorn
			}
			marks = append(marks, mark(meta.Sequence.Stream, msg.Subject, msg.Header))
		}
	}
	r.left -= uint64(len(marks))
	return marks, nil
}

// reader makes a consumer for one reading.
func (b *Bus) reader(ctx context.Context, journal ledger.JournalID, place uint64) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	return stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Description:       "finds where a journal stands",
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       place + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubject:     outbox.JournalSubject(journal),
		HeadersOnly:       true,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: readIdle,
	})
}

// forget removes a reader; one that stays is forgotten by the server after a while.
func (b *Bus) forget(reader jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.Background(), forgetTimeout)
	defer cancel()
	_ = b.js.DeleteConsumer(ctx, b.Options.Stream, reader.CachedInfo().Name)
}
