package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

const (
	// callTimeout bounds a call to the server. After it the outcome is unknown.
	callTimeout = 5 * time.Second
	// publishTimeout bounds the wait for a batch's acknowledgement. Longer than other calls:
	// a batch that's sent again while the server still works on it only adds to its work.
	publishTimeout = 20 * time.Second
	// maxData bounds an event; a server takes 1 MB unless it's configured for more, and the
	// headers are part of it.
	maxData = 900 << 10
)

// Options configure a bus.
type Options struct {
	Conn *nats.Conn
	// Stream is the stream's name; another name is another stream, published anew.
	Stream string
	// MaxAge is how long the stream keeps an event; 0 for as long as it has room.
	MaxAge time.Duration
	// MaxBytes is how much the stream keeps. When it's full it takes nothing more until
	// events are old enough: they aren't dropped before. 0: what the server has.
	MaxBytes int64
	// Replicas of the stream in a cluster: 1, 3 or 5.
	Replicas int
	Log      *slog.Logger // nil: nowhere
}

// Bus is an outbox.Bus.
type Bus struct {
	Options
	js   jetstream.JetStream
	seen atomic.Uint64 // the session of which it's known what was lost

	mu     sync.Mutex
	stream jetstream.Stream // nil until it's known
}

// NewBus makes a bus. It doesn't ask the server anything.
func NewBus(o Options) (*Bus, error) {
	js, err := jetstream.New(o.Conn, jetstream.WithDefaultTimeout(callTimeout))
	if err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	return &Bus{Options: o, js: js}, nil
}

// Limit is the size of the largest event, in bytes.
func (b *Bus) Limit() int {
	if most := b.Conn.MaxPayload(); most > 0 {
		return int(min(most*9/10, maxData))
	}
	return maxData
}

// config is the stream as it shall be.
func (b *Bus) config() jetstream.StreamConfig {
	most := b.MaxBytes
	if most == 0 {
		most = -1
	}
	return jetstream.StreamConfig{
		Name:               b.Options.Stream,
		Description:        "entries of the journals as CloudEvents",
		Subjects:           []string{outbox.SubjectPrefix + ">"},
		Storage:            jetstream.FileStorage,
		Retention:          jetstream.LimitsPolicy,
		Discard:            jetstream.DiscardNew,
		MaxAge:             b.MaxAge,
		MaxBytes:           most,
		Replicas:           b.Replicas,
		AllowAtomicPublish: true,
		AllowDirect:        false, // a replica that's behind would show a journal's end as lost
	}
}

// open makes the stream, or brings it to its configuration.
func (b *Bus) open(ctx context.Context) (jetstream.Stream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stream != nil {
		return b.stream, nil
	}
	// One that's as it shall be isn't touched: an update stands in the way of whoever
	// publishes to it or makes a consumer.
	stream, err := b.js.Stream(ctx, b.Options.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) || err == nil && b.differs(stream.CachedInfo().Config) {
		stream, err = b.js.CreateOrUpdateStream(ctx, b.config())
	}
	if err != nil {
		return nil, fmt.Errorf("make the stream %s: %w", b.Options.Stream, err)
	}
	b.stream = stream
	return stream, nil
}

// lost forgets the stream, so that it's made anew if it's gone.
func (b *Bus) lost() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stream = nil
}

// Stream tells how the stream stands, and makes it when it isn't there.
func (b *Bus) Stream(ctx context.Context) (outbox.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if !b.Conn.IsConnected() {
		return outbox.Stream{}, fmt.Errorf("nats is %s", b.Conn.Status())
	}
	session := b.session()
	stream, err := b.open(ctx)
	if err != nil {
		return outbox.Stream{}, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		b.lost()
		return outbox.Stream{}, err
	}
	if want := b.config(); changed(info.Config, want) {
		b.lost() // the next look puts it back
		b.Log.Warn("the stream's configuration was changed; it's put back", slog.String("stream", want.Name))
	}
	return outbox.Stream{
		ID:      b.Options.Stream + " " + info.Created.UTC().Format(time.RFC3339Nano),
		First:   info.State.FirstSeq,
		Last:    info.State.LastSeq,
		Session: session,
	}, nil
}

// differs tells whether a stream's configuration isn't the one that we were told.
func (b *Bus) differs(has jetstream.StreamConfig) bool {
	want := b.config()
	return changed(has, want) || has.MaxAge != want.MaxAge || has.MaxBytes != want.MaxBytes || has.Replicas != want.Replicas
}

// changed tells whether a stream's configuration lets it lose, refuse or miss events that
// it shouldn't. Its age and size aren't compared: two processes may have been told different
// ones, while they're changed.
func changed(has, want jetstream.StreamConfig) bool {
	return has.Discard != want.Discard || has.Retention != want.Retention || has.MaxMsgs > 0 || has.MaxMsgsPerSubject > 0 || has.MaxMsgSize > 0 ||
		!has.AllowAtomicPublish || !slices.Equal(has.Subjects, want.Subjects)
}

// Seen says that what the stream lost up to a session is known.
func (b *Bus) Seen(session uint64) { b.seen.Store(session) }

// session counts connections to a server, from 1.
func (b *Bus) session() uint64 { return b.Conn.Stats().Reconnects + 1 }

// Last gives the last message of a journal.
func (b *Bus) Last(ctx context.Context, journal ledger.JournalID) (outbox.Mark, error) {
	return b.message(ctx, func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetLastMsgForSubject(ctx, outbox.JournalSubject(journal))
	})
}

// At gives the message at a place.
func (b *Bus) At(ctx context.Context, place uint64) (outbox.Mark, error) {
	return b.message(ctx, func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetMsg(ctx, place)
	})
}

// message reads one, and tells what entry it has.
func (b *Bus) message(ctx context.Context, get func(context.Context, jetstream.Stream) (*jetstream.RawStreamMsg, error)) (outbox.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := b.open(ctx)
	if err != nil {
		return outbox.Mark{}, err
	}
	msg, err := get(ctx, stream)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return outbox.Mark{}, nil
	}
	if err != nil {
		b.lost()
		return outbox.Mark{}, err
	}
	return mark(msg.Sequence, msg.Subject, msg.Header), nil
}

// mark tells which entry a message has: none, if it's somebody else's.
func mark(place uint64, subject string, header nats.Header) outbox.Mark {
	journal, seq, err := address(subject, header)
	id, unread := uuid.Parse(header.Get(headerID))
	if err != nil || unread != nil {
		return outbox.Mark{Place: place}
	}
	return outbox.Mark{Place: place, Journal: journal, Seq: seq, ID: id}
}

// Headers of an event, beside its CloudEvent: what a reader needs to pass it over.
const (
	headerID   = "Tierledger-Id"
	headerSeq  = "Tierledger-Seq"
	headerType = "Content-Type"
)

// address reads which entry a message has.
func address(subject string, header nats.Header) (ledger.JournalID, ledger.Seq, error) {
	journal, _, err := outbox.ParseSubject(subject)
	if err != nil {
		return 0, 0, err
	}
	seq, err := strconv.ParseInt(header.Get(headerSeq), 10, 64)
	if err != nil || seq < 1 {
		return 0, 0, fmt.Errorf("header %s is %q, not an entry's number", headerSeq, header.Get(headerSeq))
	}
	return journal, ledger.Seq(seq), nil
}

// Headers of JetStream's batch publish (its ADR-50).
const (
	batchID       = "Nats-Batch-Id"
	batchSequence = "Nats-Batch-Sequence"
	batchCommit   = "Nats-Batch-Commit"
)

// Publish appends events of one journal, all or none.
func (b *Bus) Publish(ctx context.Context, after uint64, events []outbox.Event) (uint64, error) {
	if b.seen.Load() != b.session() {
		return 0, outbox.ErrUnseen
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	place, err := b.send(ctx, after, events)
	if errors.Is(err, errClearing) {
		wait.For(ctx, clearing)
		place, err = b.send(ctx, after, events)
	}
	if err != nil && !errors.Is(err, outbox.ErrFenced) && !errors.Is(err, outbox.ErrFull) {
		b.lost() // somebody may have changed its configuration
	}
	return place, err
}

// send sends a batch, once.
func (b *Bus) send(ctx context.Context, after uint64, events []outbox.Event) (uint64, error) {
	id := nats.NewInbox()[len(nats.InboxPrefix):]
	var buf []byte
	for i := range events {
		e := &events[i]
		buf = e.Append(buf[:0])
		msg := &nats.Msg{Subject: e.Subject(), Data: buf, Header: nats.Header{
			headerID: {e.ID.String()}, headerSeq: {strconv.FormatInt(int64(e.Seq), 10)}, headerType: {outbox.ContentType},
		}}
		if i == 0 {
			msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(after, 10)}
			msg.Header[jetstream.ExpectedLastSubjSeqSubjHeader] = []string{outbox.JournalSubject(e.Journal)}
		}
		if len(events) > 1 {
			msg.Header[batchID], msg.Header[batchSequence] = []string{id}, []string{strconv.Itoa(i + 1)}
		}
		if i < len(events)-1 {
			if err := b.Conn.PublishMsg(msg); err != nil {
				return 0, err
			}
			continue
		}
		if len(events) > 1 {
			msg.Header[batchCommit] = []string{"1"}
		}
		reply, err := b.Conn.RequestMsgWithContext(ctx, msg)
		if err != nil {
			return 0, fmt.Errorf("publish: %w", err)
		}
		return b.acknowledged(reply.Data, len(events))
	}
	return after, nil
}

// acknowledged reads the answer to a batch.
func (b *Bus) acknowledged(text []byte, n int) (uint64, error) {
	var ack struct {
		Error    *jetstream.APIError `json:"error"`
		Sequence uint64              `json:"seq"`
		Count    int                 `json:"count"`
	}
	if err := json.Unmarshal(text, &ack); err != nil {
		return 0, fmt.Errorf("publish: %q is no acknowledgement: %w", text, err)
	}
	switch {
	case ack.Error == nil && ack.Sequence == 0 || ack.Error == nil && n > 1 && ack.Count != n:
		return 0, fmt.Errorf("publish: %q acknowledges something else", text)
	case ack.Error == nil:
		return ack.Sequence, nil
	}
	return 0, refusal(ack.Error)
}

// refusal tells what an error of the server means.
func refusal(e *jetstream.APIError) error {
	switch e.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence:
		return outbox.ErrFenced
	case jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return errClearing
	case codeStoreFailed, codeStorageExceeded, codeAccountExceeded, codeInsufficient, codeTooManyBatches:
		return fmt.Errorf("%w: %s", outbox.ErrFull, e.Description)
	}
	return fmt.Errorf("publish: %w", e)
}

// errClearing is a fence of a replicated stream that may be false: the stream acknowledges
// a batch some moments before it takes the next of the same subjects.
var errClearing = fmt.Errorf("%w, or was just published to", outbox.ErrFenced)

// clearing is how long that may last.
const clearing = 5 * time.Millisecond

// Codes of the server's errors that its client doesn't name.
const (
	codeAccountExceeded jetstream.ErrorCode = 10002
	codeInsufficient    jetstream.ErrorCode = 10023
	codeStorageExceeded jetstream.ErrorCode = 10047
	codeStoreFailed     jetstream.ErrorCode = 10077 // the stream's own limits, or its disk
	codeTooManyBatches  jetstream.ErrorCode = 10210
)
