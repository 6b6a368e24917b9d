package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/ledger"
)

const (
	wakeAt  = "tierledger.wake.at."  // and the id of what's to be woken for: one schedule each, the last wins
	wakeDue = "tierledger.wake.due." // and the journal
	// wakeKept is how long a message waits for somebody to take it: later the sweep has
	// done it.
	wakeKept = 30 * time.Second
)

// Alarms wake journals at times to come. They're hints: one may be lost, come twice or too
// late, and what happens then is decided by the journal alone.
type Alarms struct {
	bus  *Bus
	name string

	known atomic.Bool // the stream and its consumer are there

	mu       sync.Mutex
	consumer jetstream.Consumer // nil until it's known
}

// Alarms makes the alarms of a bus. It doesn't ask the server anything.
func (b *Bus) Alarms() *Alarms { return &Alarms{bus: b, name: b.Options.Stream + "_WAKE"} }

// errUnset says that no alarm can be set now.
var errUnset = errors.New("the stream of alarms isn't known yet")

// Set has a journal woken at a time; a second one for the same id replaces the first. It never
// waits: until Next has found the stream, or made it, no alarm is set.
func (a *Alarms) Set(journal ledger.JournalID, id uuid.UUID, at time.Time) error {
	if !a.known.Load() {
		return errUnset
	}
	// Without a reply: a hint isn't worth waiting for one.
	return a.bus.Conn.PublishMsg(&nats.Msg{Subject: wakeAt + id.String(), Header: nats.Header{
		"Nats-Schedule":        {"@at " + at.UTC().Format(time.RFC3339Nano)},
		"Nats-Schedule-Target": {wakeDue + strconv.FormatUint(uint64(journal), 10)},
	}})
}

// Next waits for alarms that ring, and gives the journals to be woken, each once. Nobody
// else gets them.
func (a *Alarms) Next(ctx context.Context, most int) ([]ledger.JournalID, error) {
	consumer, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	messages, err := fetch(ctx, consumer, most)
	if err != nil {
		a.lost()
		return nil, err
	}
	var journals []ledger.JournalID
	seen := make(map[ledger.JournalID]bool)
	for _, m := range messages {
		m.Done()
		number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, wakeDue), 10, 32)
		if journal := ledger.JournalID(number); err == nil && !seen[journal] {
			seen[journal] = true
			journals = append(journals, journal)
		}
	}
	return journals, nil
}

// open makes the stream and its consumer.
func (a *Alarms) open(ctx context.Context) (jetstream.Consumer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.consumer != nil {
		return a.consumer, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := a.bus.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name:              a.name,
		Description:       "wake-ups of journals: hints, nothing is lost with them",
		Subjects:          []string{wakeAt + "*", wakeDue + "*"},
		Storage:           jetstream.MemoryStorage,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxMsgsPerSubject: 1, // one of many that wake a journal is enough
		MaxBytes:          wakeBytes,
		Replicas:          1,
		AllowMsgSchedules: true,
		AllowMsgTTL:       true,
		AllowRollup:       true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the stream %s: %w", a.name, err)
	}
	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable:           "wakeups",
		DeliverPolicy:     jetstream.DeliverNewPolicy,
		AckPolicy:         jetstream.AckExplicitPolicy,
		AckWait:           wakeKept,
		MaxDeliver:        1,
		FilterSubjects:    []string{wakeDue + "*"},
		InactiveThreshold: inactive,
		Replicas:          1,
		MemoryStorage:     true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the consumer of %s: %w", a.name, err)
	}
	a.consumer = consumer
	a.known.Store(true)
	return consumer, nil
}

// wakeBytes bounds what the alarms take: those of some 100,000 holds. Beyond that the
// oldest are forgotten.
const wakeBytes = 32 << 20

// lost forgets the consumer, so that it's made anew if it's gone.
func (a *Alarms) lost() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.consumer = nil
	a.known.Store(false)
}
