package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/outbox"
)

// span is a part of a journal: the entries after one seq, up to another.
type span struct{ journal, after, upTo int64 }

func (s span) has(journal, seq int64) bool {
	return journal == s.journal && seq > s.after && seq <= s.upTo
}

// streamRead is what a reader of the stream finds.
type streamRead struct {
	last      map[int64]int64 // seq of each journal's last message
	messages  int64
	doubled   int64 // messages whose entry, or a later one of the journal, was before them
	skipped   int64 // entries after which a later one came first
	spans     []span
	lags      *load.Recorder // of the entries in the spans, from their time until they were stored
	malformed error
}

// stallAfter is when a reader that gets no message gives up.
const stallAfter = 30 * time.Second

// readStream reads the whole stream in its order.
func (r *relayRun) readStream(ctx context.Context, spans ...span) (*streamRead, error) {
	s := &streamRead{last: make(map[int64]int64), spans: spans, lags: load.NewRecorder()}
	js, err := natsjs.New(r.bus.conn)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, service.Default().Stream.Stream)
	if err != nil {
		return nil, fmt.Errorf("find the stream: %w", err)
	}
	info, err := stream.Info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return s, err
	}
	consumer, err := stream.OrderedConsumer(ctx, natsjs.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	messages, err := consumer.Messages(natsjs.PullMaxMessages(10_000))
	if err != nil {
		return nil, err
	}
	defer messages.Stop()
	var read atomic.Int64
	defer r.watch("the stream is read", int64(info.State.Msgs), 0, read.Load)()
	for ctx.Err() == nil {
		msg, err := messages.Next(natsjs.NextMaxWait(stallAfter))
		if err != nil {
			return nil, fmt.Errorf("read the stream: %w", err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return nil, err
		}
		s.take(msg.Subject(), msg.Headers(), msg.Data(), meta.Timestamp)
		read.Add(1)
		if meta.Sequence.Stream >= info.State.LastSeq {
			return s, s.malformed
		}
	}
	return nil, ctx.Err()
}

// take takes one message.
func (s *streamRead) take(subject string, header nats.Header, data []byte, stored time.Time) {
	s.messages++
	number, _, err := outbox.ParseSubject(subject)
	seq, err2 := strconv.ParseInt(header.Get("Tierledger-Seq"), 10, 64)
	if err := errors.Join(err, err2); err != nil {
		s.malformed = fmt.Errorf("message on %s: %w", subject, err)
		return
	}
	journal := int64(number)
	switch last := s.last[journal]; {
	case seq <= last:
		s.doubled++
		return
	case seq > last+1:
		s.skipped += seq - last - 1
	}
	s.last[journal] = seq
	for _, span := range s.spans {
		if !span.has(journal, seq) {
			continue
		}
		var e outbox.Event
		err := json.Unmarshal(data, &e)
		if err == nil && int64(e.Seq) != seq {
			err = fmt.Errorf("it's entry %d", e.Seq)
		}
		if err != nil {
			s.malformed = fmt.Errorf("entry %d of journal %d: %w", seq, journal, err)
			return
		}
		s.lags.Answered("", max(0, stored.Sub(e.At)))
	}
}

// audit compares the stream with the journals, all of whose entries must be there, once,
// in order.
func (s *streamRead) audit(heads map[int64]int64) (a StreamAudit) {
	a = StreamAudit{Messages: s.messages, Doubled: s.doubled, Missing: s.skipped}
	for journal, head := range heads {
		a.Missing += max(0, head-s.last[journal])
	}
	for journal, last := range s.last {
		a.Doubled += max(0, last-heads[journal]) // nobody knows them
	}
	return a
}

// audit reads the stream and adds to the report what's wrong with it.
func (r *relayRun) audit(ctx context.Context, spans ...span) (*streamRead, error) {
	heads, _, err := r.db.heads(ctx)
	if err != nil {
		return nil, err
	}
	s, err := r.readStream(ctx, spans...)
	if err != nil {
		return nil, err
	}
	a := s.audit(heads)
	r.report.Audited.Messages += a.Messages
	r.report.Audited.Missing += a.Missing
	r.report.Audited.Doubled += a.Doubled
	return s, nil
}
