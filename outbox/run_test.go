package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// feedFunc is a feed that the test makes up.
type feedFunc func(ctx context.Context, most int) ([]outbox.Message, error)

func (f feedFunc) Next(ctx context.Context, most int) ([]outbox.Message, error) { return f(ctx, most) }

// counting counts the messages of a feed.
func counting(feed outbox.Feed, n *atomic.Int64) outbox.Feed {
	return feedFunc(func(ctx context.Context, most int) ([]outbox.Message, error) {
		messages, err := feed.Next(ctx, most)
		n.Add(int64(len(messages)))
		return messages, err
	})
}

// subscribed makes a consumer on the server, so that what's published from now on is
// delivered to it, and gives the server's view of it.
func (w *world) subscribed(c outbox.Consumer) (feed outbox.Feed, info func() *natsjs.ConsumerInfo) {
	w.t.Helper()
	feed = w.bus.Feed(c.Name, func(context.Context) ([]string, error) { return c.Kinds, nil })
	js, err := natsjs.New(w.conn)
	w.must(err)
	var consumer natsjs.Consumer
	pgtest.Until(w.t, "the consumer is there", func() bool {
		ctx, cancel := context.WithTimeout(w.t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := feed.Next(ctx, 1); err != nil { // it may be there: the feed would make it again
			return false
		}
		consumer, err = js.Consumer(w.t.Context(), w.bus.Options.Stream, c.Name)
		return err == nil
	})
	return feed, func() *natsjs.ConsumerInfo {
		i, err := consumer.Info(w.t.Context())
		w.must(err)
		return i
	}
}

// A message that's there comes with its effect, without a sweep: the consumer learns of
// all entries by messages.
func TestMessagesWakeTheConsumer(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	c := consumer("woken", []string{noted}, nil)
	feed, info := s.subscribed(c)
	var delivered atomic.Int64
	i, seen := s.inbox(c, s.pool)
	s.run(i, counting(feed, &delivered))
	r, _ := s.relay(nil)
	for range 20 {
		s.write(1001, 5)
		r.Hint(1001)
	}
	s.arrived(i)
	pgtest.Until(t, "every message has come and is let go", func() bool {
		return delivered.Load() == 100 && info().NumAckPending == 0
	})
	s.wantEach("woken", []string{noted})
	if n := info().NumRedelivered; n != 0 {
		t.Errorf("%d messages came again", n)
	}
	if _, _, failed, dead := seen.sum(); failed+dead != 0 {
		t.Errorf("%d failures", failed)
	}
}

// Messages whose acknowledgement is lost come again, and find their effects there.
func TestUnacknowledgedMessagesComeAgain(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	c := consumer("deaf", []string{noted}, nil)
	feed, info := s.subscribed(c)
	js, err := natsjs.New(s.conn)
	s.must(err)
	config := info().Config
	config.AckWait = 300 * time.Millisecond
	_, err = js.UpdateConsumer(t.Context(), s.bus.Options.Stream, config)
	s.must(err)
	var mu sync.Mutex
	times := make(map[ledger.Seq]int)
	i, _ := s.inbox(c, s.pool)
	s.run(i, feedFunc(func(ctx context.Context, most int) ([]outbox.Message, error) {
		messages, err := feed.Next(ctx, most)
		mu.Lock()
		defer mu.Unlock()
		for k := range messages {
			if times[messages[k].Seq]++; times[messages[k].Seq] < 3 {
				messages[k].Done = func() {} // it never gets there
			}
		}
		return messages, err
	}))
	s.relay(nil)
	s.write(1001, 12)
	pgtest.Until(t, "every message has come three times", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for seq := range ledger.Seq(12) {
			if times[seq+1] < 3 {
				return false
			}
		}
		return true
	})
	pgtest.Until(t, "every message is let go", func() bool { return info().NumAckPending == 0 })
	s.wantEach("deaf", []string{noted})
}

// What the stream has lost is taken from the journal, in its place, and counted; what the
// consumer has no messages of, because it's of other kinds, isn't.
func TestGapsAreFilledFromTheJournal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kinds  []string
		lost   []uint64
		told   int
		missed int
		events int
	}{
		"none":          {[]string{noted}, nil, 20, 0, 20},
		"in the middle": {[]string{noted}, []uint64{5, 6, 7, 15}, 16, 4, 20},
		"beginning":     {[]string{noted}, []uint64{1, 2}, 18, 2, 20},
		"end":           {[]string{noted}, []uint64{19, 20}, 18, 0, 20}, // they might be on their way
		"other kinds":   {[]string{filed}, nil, 2, 0, 2},
		"filtered":      {[]string{filed, noted}, []uint64{3, 21}, 20, 2, 22},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			of := consumer("gaps", c.kinds, nil)
			feed, _ := s.subscribed(of)
			s.write(1001, 20)
			s.file(1001, "a")
			s.file(1001, "b")
			r, stop := s.relay(nil)
			s.published(r)
			stop()
			js, err := natsjs.New(s.conn)
			s.must(err)
			stream, err := js.Stream(t.Context(), s.bus.Options.Stream)
			s.must(err)
			for _, place := range c.lost {
				s.must(stream.DeleteMsg(t.Context(), place))
			}
			// The sweep finds that it's too early, and the messages that it isn't any more.
			s.exec(`INSERT INTO inbox VALUES ('gaps', 1001, 0, 1, clock_timestamp() + interval '5 minutes')`)
			var told []outbox.Message
			i, seen := s.inbox(of, s.pool)
			s.run(i, feedFunc(func(ctx context.Context, most int) ([]outbox.Message, error) {
				if len(told) == c.told {
					<-ctx.Done()
					return nil, nil
				}
				messages, err := feed.Next(ctx, most)
				if told = append(told, messages...); err != nil || len(told) < c.told {
					return nil, err
				}
				// Also when the time for messages is up meanwhile.
				_, err = s.pool.Exec(context.WithoutCancel(ctx), `UPDATE inbox SET attempts = 0, retry_at = NULL`)
				return told, err
			}))
			s.arrived(i)
			s.wantEach("gaps", c.kinds)
			seen.told(t, c.events)
			events, missed, _, _ := seen.sum()
			if missed != c.missed || events != c.events {
				t.Errorf("%d of %d were missed, not %d of %d", missed, events, c.missed, c.events)
			}
		})
	}
}

// The bus goes away and comes back: effects take place all the while, by messages again
// in the end.
func TestConsumerOutlivesItsBus(t *testing.T) {
	t.Parallel()
	w := openRelaying(t, jetstream.Options{})
	s := shopOf(w.world)
	c := consumer("busless", []string{noted}, nil)
	feed, _ := s.subscribed(c)
	var delivered atomic.Int64
	i, seen := s.inbox(c, s.pool)
	s.run(i, counting(feed, &delivered))
	s.relay(nil)
	s.write(1001, 10)
	pgtest.Until(t, "ten messages have come", func() bool { return delivered.Load() == 10 })
	w.endNATS()
	s.write(1001, 10)
	s.arrived(i)
	if n := delivered.Load(); n != 10 {
		t.Errorf("%d messages have come from nowhere", n)
	}
	w.beginNATS()
	pgtest.Until(t, "the other ten messages come", func() bool { return delivered.Load() >= 20 })
	s.write(1001, 10)
	pgtest.Until(t, "further messages come", func() bool { return delivered.Load() >= 30 })
	s.arrived(i)
	s.wantEach("busless", []string{noted})
	if _, _, failed, _ := seen.sum(); failed != 0 {
		t.Errorf("%d failures", failed)
	}
}

// junk is what somebody else may put into the stream.
func junk() []*nats.Msg {
	return []*nats.Msg{
		{Subject: "tierledger.journal.1001." + noted, Data: []byte("none of ours\x00\xff")},
		{Subject: "tierledger.journal.1001." + noted, Header: nats.Header{"Tierledger-Seq": {"0"}}},
		{Subject: "tierledger.journal.1001." + noted, Data: []byte("{}"), Header: nats.Header{"Tierledger-Seq": {"1e3"}}},
		{Subject: "tierledger.journal.first." + noted, Data: []byte("{}"), Header: nats.Header{"Tierledger-Seq": {"1"}}},
		{Subject: "tierledger.journal.99999999999." + noted, Header: nats.Header{"Tierledger-Seq": {"1"}}},
	}
}

// A message that names no entry is kept as a dead letter before it's dropped for good, and
// isn't dropped as long as that can't be done. It holds nothing up.
func TestJunkIsKeptAndDropped(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	c := consumer("tidy", []string{noted}, nil)
	feed, info := s.subscribed(c)
	s.exec(`REVOKE INSERT ON dead_letters FROM tierledger_service`)
	for _, msg := range junk() {
		_, err := s.conn.RequestMsg(msg, time.Minute)
		s.must(err)
	}
	var kept, dropped atomic.Int64
	i, seen := s.inbox(c, s.pool)
	s.run(i, feedFunc(func(ctx context.Context, most int) ([]outbox.Message, error) {
		messages, err := feed.Next(ctx, most)
		for k := range messages {
			m := messages[k]
			messages[k].Again = func(pause time.Duration) { kept.Add(1); m.Again(pause) }
			messages[k].Drop = func() {
				var n int
				err := s.pool.QueryRow(context.Background(), `SELECT count(*) FROM dead_letters WHERE consumer = 'tidy'
					AND payload = $1 AND starts_with(target, $2)`, append([]byte{}, m.Data...), "TIERLEDGER ").Scan(&n)
				if err != nil || n == 0 {
					t.Errorf("%s is dropped, and %d letters are there (%v)", m.Origin, n, err)
				}
				dropped.Add(1)
				m.Drop()
			}
		}
		return messages, err
	}))
	s.write(1001, 10)
	s.arrived(i)
	want := int64(len(junk()))
	pgtest.Until(t, "the junk is kept", func() bool { return kept.Load() >= want })
	if n := dropped.Load(); n != 0 {
		t.Errorf("%d messages are lost", n)
	}
	s.exec(`GRANT INSERT ON dead_letters TO tierledger_service`)
	pgtest.Until(t, "the junk is dropped", func() bool { return dropped.Load() == want })
	pgtest.Until(t, "the server knows", func() bool { i := info(); return i.NumAckPending == 0 && i.NumPending == 0 })
	s.wantEach("tidy", []string{noted})
	n := one[int64](s.world, `SELECT count(*) FROM dead_letters WHERE seq = 0 AND kind = '' AND attempts >= 1 AND reason LIKE 'the message names no entry: %'`)
	if _, _, failed, dead := seen.sum(); n != want || int64(dead) != want || int64(failed) != want {
		t.Errorf("%d letters, and the observer was told of %d", n, dead)
	}
	if n := dropped.Load(); n != want {
		t.Errorf("%d messages were dropped", n)
	}
}

// Junk comes with its data, or not yet: also when the time for it is up.
func TestJunkComesWithItsData(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	feed, _ := s.subscribed(consumer("tidy", []string{noted}, nil))
	ended, end := context.WithDeadline(t.Context(), time.Now())
	defer end()
	_, err := s.conn.RequestMsg(junk()[0], time.Minute)
	s.must(err)
	pgtest.Until(t, "the junk comes", func() bool {
		messages, err := feed.Next(ended, 10)
		for _, m := range messages {
			if m.Err == nil || !bytes.Equal(m.Data, junk()[0].Data) {
				t.Errorf("%q came (%v)", m.Data, m.Err)
			}
			m.Drop()
		}
		return err == nil && len(messages) > 0
	})
}

// Junk of two streams at the same place is two letters.
func TestJunkOfAnotherStreamIsAnotherLetter(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	c := consumer("tidy", []string{noted}, nil)
	js, err := natsjs.New(s.conn)
	s.must(err)
	for k := range 2 {
		feed, info := s.subscribed(c)
		_, err := s.conn.RequestMsg(&nats.Msg{Subject: "tierledger.journal.1." + noted, Data: fmt.Append(nil, "junk ", k)}, time.Minute)
		s.must(err)
		i, _ := s.inbox(c, s.pool)
		stop := s.run(i, feed)
		pgtest.Until(t, "the junk is dropped", func() bool {
			return one[int](s.world, `SELECT count(*) FROM dead_letters`) == k+1 && info().NumAckPending == 0 && info().NumPending == 0
		})
		stop()
		s.must(js.DeleteStream(t.Context(), s.bus.Options.Stream))
	}
	rows, err := s.owner.Query(t.Context(), `SELECT convert_from(payload, 'UTF8') FROM dead_letters ORDER BY 1`)
	s.must(err)
	var got []string
	for rows.Next() {
		var text string
		s.must(rows.Scan(&text))
		got = append(got, text)
	}
	if want := []string{"junk 0", "junk 1"}; !slices.Equal(got, want) {
		t.Errorf("the letters are %q", got)
	}
}

// A message is read as it was published: what it's told of is what takes effect.
func TestEffectSeesTheEventThatWasPublished(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.write(1001, 3)
	r, _ := s.relay(nil)
	s.published(r)
	var got []outbox.Event
	i, _ := s.inbox(outbox.Consumer{Name: "reads", Kinds: []string{noted}, Then: func(_ context.Context, events []outbox.Event) {
		got = append(got, events...)
	}}, s.pool)
	s.must(i.Advance(t.Context(), 1001))
	want, err := json.Marshal(s.streamed()[1001])
	s.must(err)
	if text, err := json.Marshal(got); err != nil || string(text) != string(want) {
		t.Errorf("%s (%v), published was %s", text, err, want)
	}
}
