package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/migrations"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
	"github.com/tierledger/tierledger/subscribers"
)

const (
	// effectConns are the database connections of the relay, the consumers and the webhooks'
	// senders: they don't take those of commits.
	effectConns = 8
	// busy is how many commands may wait without the relay's giving way to them.
	busy = 2
	// countEvery is how often what isn't published or consumed is counted.
	countEvery = 2 * time.Second
	// countTimeout bounds one count: a database that hangs is told of by the relay.
	countTimeout = 10 * time.Second
	// replayEvery is how often replays of dead letters are looked at. It doesn't bound their
	// rate: all that's due by then is done.
	replayEvery = 250 * time.Millisecond
	// latestAlarm is how long after a hold has run out its alarm may still be set; it rings at
	// once then.
	latestAlarm = time.Minute
	// wakeEvery is the shortest time between two wake-ups of a journal.
	wakeEvery = 100 * time.Millisecond
)

// effects are what happens behind the commits: publishing, and the consumers. Nothing that
// a buyer waits for is in it.
type effects struct {
	pool    *pgxpool.Pool
	bus     *jetstream.Bus // nil without NATS: then the consumers look by themselves
	relay   *outbox.Relay  // likewise
	alarms  *jetstream.Alarms
	inboxes []*outbox.Inbox
	backlog atomic.Pointer[outbox.Backlog] // as last counted
}

// openPool makes the pool of the outbox. It doesn't connect.
func (e *effects) openPool(ctx context.Context, url string) (err error) {
	e.pool, err = pg.Open(ctx, pg.Options{
		URL: url, Name: "tierledger outbox", Role: migrations.ServiceRole, MaxConns: effectConns})
	return err
}

// fitEffects puts the publisher and the consumers together.
func (s *Service) fitEffects() error {
	e, c := &s.effects, s.config
	if c.NATS != nil {
		o := c.Stream
		o.Conn, o.Log = c.NATS, c.Log
		var err error
		if e.bus, err = jetstream.NewBus(o); err != nil {
			return err
		}
		e.alarms = e.bus.Alarms()
		e.relay = outbox.NewRelay(outbox.RelayOptions{
			Pool: e.pool, Bus: e.bus, Observe: s.metrics.ObservePublished, Then: alarm(e.alarms),
			Busy: func() bool { return s.Ledger.Waiting() > busy }, Log: c.Log})
	}
	if len(c.Secrets) > 0 {
		e.consume(s, s.Tickets.Consumer())
		e.consume(s, s.Subscribers.Consumer())
	}
	return nil
}

// consume adds a consumer.
func (e *effects) consume(s *Service, c outbox.Consumer) {
	e.inboxes = append(e.inboxes, outbox.NewInbox(outbox.InboxOptions{
		Pool: e.pool, Consumer: c, Observe: s.metrics.ObserveStep, Log: s.config.Log}))
}

// startEffects starts everything that was put together.
func (s *Service) startEffects(ctx context.Context) {
	e := &s.effects
	if e.relay != nil {
		s.workers.Go(func() { e.relay.Run(ctx) })
		s.workers.Go(func() { s.wake(ctx) })
	}
	for _, inbox := range e.inboxes {
		var feed outbox.Feed
		if e.bus != nil {
			feed = e.bus.Feed(inbox.Consumer.Name, s.wanted(inbox.Consumer))
		}
		s.workers.Go(func() { inbox.Run(ctx, feed) })
	}
	if len(s.config.Secrets) > 0 {
		s.workers.Go(func() { s.Subscribers.Work(ctx) })
	}
	s.workers.Go(func() { s.replay(ctx) })
	s.workers.Go(func() { s.count(ctx) })
}

// wanted tells of which kinds the bus shall tell a consumer.
func (s *Service) wanted(c outbox.Consumer) func(context.Context) ([]string, error) {
	if c.Name == subscribers.ConsumerName {
		return s.Subscribers.Wanted
	}
	return func(context.Context) ([]string, error) { return c.Kinds, nil }
}

// redo tells how dead letters are done again: an entry's effect as the consumer does it, a
// webhook by attempting its delivery anew.
func redo(s Stores) map[string]outbox.Redo {
	issue, fan := s.Tickets.Consumer(), s.Subscribers.Consumer()
	effect := func(c outbox.Consumer) outbox.Redo {
		return func(ctx context.Context, tx pgx.Tx, _ outbox.DeadLetter, e outbox.Event) error {
			return c.Effect(ctx, tx, []outbox.Event{e})
		}
	}
	return map[string]outbox.Redo{
		issue.Name: effect(issue),
		fan.Name: func(ctx context.Context, tx pgx.Tx, l outbox.DeadLetter, e outbox.Event) error {
			if l.Target == "" {
				return fan.Effect(ctx, tx, []outbox.Event{e})
			}
			return s.Subscribers.Redo(ctx, tx, outbox.Letter{Consumer: l.Consumer, Event: e, Target: l.Target})
		},
	}
}

// replay does what's due of the replays of dead letters, until ctx ends.
func (s *Service) replay(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.Letters.Work(ctx); err != nil && ctx.Err() == nil {
			s.config.Log.Warn("replays of dead letters were cut short", slog.Any("error", err))
		}
		wait.For(ctx, replayEvery)
	}
}

// count keeps what isn't published or consumed in the metrics, until ctx ends.
func (s *Service) count(ctx context.Context) {
	for ctx.Err() == nil {
		s.countOnce(ctx)
		wait.For(ctx, countEvery)
	}
}

func (s *Service) countOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	e := &s.effects
	if e.relay != nil {
		b, err := e.relay.Backlog(ctx)
		if err == nil {
			s.metrics.SetUnpublished(b)
		}
		e.backlog.Store(&b) // it has the relay's own trouble, whatever the database says
	}
	for _, inbox := range e.inboxes {
		if lag, err := inbox.Lag(ctx); err == nil {
			s.metrics.SetConsumerLag(inbox.Consumer.Name, lag)
		}
	}
	if b, err := s.Subscribers.Backlog(ctx); err == nil {
		s.metrics.SetWebhooks(b)
	}
	if c, err := s.Letters.Counts(ctx); err == nil {
		s.metrics.SetLetters(c)
	}
}

// check tells whether publishing goes on, by what was counted last: anybody may ask. Calls
// should come all the same when it doesn't: nothing is lost, the journals wait.
func (e *effects) check() httpapi.Check {
	return httpapi.Check{Name: "publisher", Advisory: true, Probe: func(context.Context) error {
		if nc := e.bus.Conn; !nc.IsConnected() {
			return fmt.Errorf("nats is %s", nc.Status())
		}
		if b := e.backlog.Load(); b != nil && b.Trouble != "" {
			return errors.New(b.Trouble)
		}
		return nil
	}}
}

// alarm sets alarms for the holds that are published, for the time at which they run out,
// each under its hold. An alarm wakes the journal, which expires all that's due: so of the
// holds that a second has made, in one event with one duration, the last one's will do.
// It's a hint: a batch of the journal, or the sweep, expires what no alarm has told of.
func alarm(alarms *jetstream.Alarms) func([]outbox.Event) {
	return func(events []outbox.Event) {
		var last time.Time
		for _, e := range slices.Backward(events) {
			if e.Kind != holds.KindPlaced || e.At.Truncate(time.Second).Equal(last) {
				continue
			}
			last = e.At.Truncate(time.Second)
			var h struct {
				HoldID    uuid.UUID `json:"hold_id"`
				ExpiresAt time.Time `json:"expires_at"`
			}
			if json.Unmarshal(e.Data, &h) != nil || time.Until(h.ExpiresAt) < -latestAlarm {
				continue // the sweep has it
			}
			if alarms.Set(e.Journal, h.HoldID, h.ExpiresAt) != nil {
				return // NATS is away: the relay says so
			}
		}
	}
}

// wake runs a batch on journals whose alarms ring, until ctx ends.
func (s *Service) wake(ctx context.Context) {
	const most = 500
	for away := false; ctx.Err() == nil; {
		journals, err := s.effects.alarms.Next(ctx, most)
		if err != nil {
			if !away { // the first of many alike
				s.config.Log.Warn("no alarm rings; holds are expired by the sweep", slog.Any("error", err))
			}
			away = true
			wait.For(ctx, countEvery)
			continue
		}
		away = false
		for _, journal := range journals {
			if err := s.wakeOne(ctx, journal); err != nil && ctx.Err() == nil {
				s.config.Log.Debug("a journal wasn't woken", slog.Int64("journal", int64(journal)), slog.Any("error", err))
			}
		}
		wait.For(ctx, wakeEvery)
	}
}

// wakeOne wakes a journal. The sweep does it again if it fails.
func (s *Service) wakeOne(ctx context.Context, journal ledger.JournalID) error {
	ctx, cancel := context.WithTimeout(ctx, countEvery)
	defer cancel()
	return s.Ledger.Wake(ctx, journal)
}
