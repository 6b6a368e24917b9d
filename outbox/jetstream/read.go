package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

const (
	// readMost bounds the messages of one exchange.
	readMost = 1000
	// readIdle is when the server forgets a reader that has gone.
	readIdle = 30 * time.Second
)

// errTorn says that messages got lost on their way from the server: what came isn't all.
var errTorn = errors.New("the server sent messages that didn't come")

// Read reads the messages of a journal after a place.
func (b *Bus) Read(ctx context.Context, journal ledger.JournalID, place uint64, each func([]outbox.Mark) error) error {
	reader, left, err := b.reader(ctx, journal, place)
	if err != nil {
		b.lost()
		return fmt.Errorf("read the stream: %w", err)
	}
	defer b.forget(reader)
	for read := uint64(0); left > 0; {
		// As many as there are: the server has no reason to wait for more.
		batch, err := reader.Fetch(int(min(left, readMost)), jetstream.FetchMaxWait(callTimeout))
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		var marks []outbox.Mark
		for msg := range batch.Messages() {
			meta, err := msg.Metadata()
			if err != nil {
				return fmt.Errorf("read the stream: %w", err)
			}
			if read++; meta.Sequence.Consumer != read {
				return errTorn
			}
			marks = append(marks, mark(meta.Sequence.Stream, msg.Subject(), msg.Headers()))
		}
		if err := ended(batch.Error()); err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		if len(marks) == 0 {
			return errTorn
		}
		if err := each(marks); err != nil {
			return err
		}
		left -= min(left, uint64(len(marks)))
	}
	return nil
}

// reader makes a consumer for one reading, and tells how much it will read.
func (b *Bus) reader(ctx context.Context, journal ledger.JournalID, place uint64) (jetstream.Consumer, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := b.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	reader, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
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
	if err != nil {
		return nil, 0, err
	}
	return reader, reader.CachedInfo().NumPending, nil
}

// forget removes a reader; one that stays is forgotten by the server after a while.
func (b *Bus) forget(reader jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_ = b.js.DeleteConsumer(ctx, b.Options.Stream, reader.CachedInfo().Name)
}
