package jetstream_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// feed makes the feed of a consumer that wants kinds, and has the server make it.
func (s *single) feed(name string, kinds ...string) *jetstream.Feed {
	s.t.Helper()
	f := s.bus.Feed(name, func(context.Context) ([]string, error) { return kinds, nil })
	s.ready(f)
	return f
}

// ready has a feed make its consumer, and takes what's there for it.
func (s *single) ready(f *jetstream.Feed) {
	s.t.Helper()
	list, err := f.Next(s.t.Context(), 100)
	s.must(err)
	for _, m := range list {
		m.Done()
	}
}

// next waits for n messages, and gives them in the order of their arrival.
func (s *single) next(f *jetstream.Feed, n int) (list []outbox.Message) {
	s.t.Helper()
	pgtest.Until(s.t, "the messages come", func() bool {
		messages, err := f.Next(s.t.Context(), 100)
		s.must(err)
		list = append(list, messages...)
		return len(list) >= n
	})
	if len(list) != n {
		s.t.Fatalf("%d messages came, not %d", len(list), n)
	}
	return list
}

// publish appends an event of each kind to a journal.
func (s *single) publish(journal ledger.JournalID, kinds ...string) {
	s.t.Helper()
	for _, kind := range kinds {
		mark, err := s.bus.Last(s.t.Context(), journal)
		s.must(err)
		list := made(journal, int(mark.Seq), 1, 10)
		list[0].Kind = kind
		_, err = s.bus.Publish(s.t.Context(), mark.Place, list)
		s.must(err)
	}
}

// pending is what a consumer hasn't acknowledged, and what it hasn't delivered.
func (s *single) pending(name string) (delivered int, waiting uint64) {
	s.t.Helper()
	js, err := natsjs.New(s.conn)
	s.must(err)
	c, err := js.Consumer(s.t.Context(), "TIERLEDGER", name)
	s.must(err)
	return c.CachedInfo().NumAckPending, c.CachedInfo().NumPending
}

func TestAFeedHasItsKinds(t *testing.T) {
	t.Parallel()
	kinds := []string{"hold.placed", "order.captured", "order.voided", "price.changed", "hold.released"}
	for name, c := range map[string]struct{ wants, gets []string }{
		"two":              {[]string{"order.captured", "hold.placed"}, []string{"hold.placed", "order.captured"}},
		"a family":         {[]string{"order.*"}, []string{"order.captured", "order.voided"}},
		"a family, and of": {[]string{"order.voided", "order.*", "hold.placed"}, []string{"hold.placed", "order.captured", "order.voided"}},
		"all":              {[]string{"*.*"}, kinds},
		"all, and of":      {[]string{"order.*", "*.*", "hold.placed"}, kinds},
		"one twice":        {[]string{"hold.placed", "hold.placed"}, []string{"hold.placed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSingle(t, jetstream.Options{}, nil)
			s.publish(5, "hold.placed") // before the consumer is there: found in the journal
			f := s.feed("consumer", c.wants...)
			s.publish(5, kinds...)
			s.publish(4294967295, c.gets[0])
			var got []string
			for i, m := range s.next(f, len(c.gets)+1) {
				_, kind, err := outbox.ParseSubject(m.Subject)
				if m.Err != nil || err != nil || m.Origin == "" || m.Place == 0 {
					t.Errorf("message %d is %+v", i, m)
				}
				if got = append(got, kind); i < len(c.gets) && (m.Journal != 5 || m.Seq < 2 || m.Seq > 6) {
					t.Errorf("message %d is of journal %d, entry %d", i, m.Journal, m.Seq)
				} else if i == len(c.gets) && (m.Journal != 4294967295 || m.Seq != 1) {
					t.Errorf("message %d is of journal %d, entry %d", i, m.Journal, m.Seq)
				}
				m.Done()
			}
			if want := append(slices.Clone(c.gets), c.gets[0]); !slices.Equal(got, want) {
				t.Errorf("the kinds are %q, not %q", got, want)
			}
			pgtest.Until(t, "all is acknowledged", func() bool {
				delivered, waiting := s.pending("consumer")
				return delivered == 0 && waiting == 0
			})
		})
	}
}

// A feed follows what's wanted (what was published before may come too), and nothing comes while nothing is.
func TestAFeedWhoseWantsChange(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	var kinds []string
	f := s.bus.Feed("consumer", func(context.Context) ([]string, error) { return kinds, nil })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if list, err := f.Next(ctx, 10); len(list) > 0 || err != nil {
		t.Errorf("who wants nothing has %v, %v", list, err)
	}
	for _, kind := range []string{"hold.placed", "order.captured", "hold.placed"} {
		kinds = []string{kind}
		s.ready(f)
		s.publish(5, "hold.placed", "order.captured")
		m := s.next(f, 1)[0]
		if m.Subject != "tierledger.journal.5."+kind {
			t.Errorf("who wants %s has %s", kind, m.Subject)
		}
		m.Done()
	}
}

// What's junk says so, and is dropped for good; the others come again when they're asked to.
func TestJunkOfAFeed(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	f := s.feed("consumer", "*.*")
	js, err := natsjs.New(s.conn)
	s.must(err)
	for _, msg := range []*nats.Msg{
		{Subject: "tierledger.journal.5.test.noted", Data: []byte("junk")},
		{Subject: "tierledger.journal.five.test.noted", Header: nats.Header{"Tierledger-Seq": {"1"}}},
		{Subject: "tierledger.journal.5.test.noted", Header: nats.Header{"Tierledger-Seq": {"-1"}}},
		{Subject: "tierledger.journal.4294967296.test.noted", Header: nats.Header{"Tierledger-Seq": {"1"}}},
	} {
		_, err := js.PublishMsg(t.Context(), msg)
		s.must(err)
	}
	s.publish(6, "test.noted")
	for i, m := range s.next(f, 5) {
		if (m.Err != nil) != (i < 4) || m.Err == nil && (m.Journal != 6 || m.Seq != 1) || m.Err != nil && m.Journal != 0 {
			t.Errorf("message %d is %+v", i, m)
		}
		if m.Err != nil {
			m.Drop()
		} else {
			m.Again(0)
		}
	}
	m := s.next(f, 1)[0]
	if m.Journal != 6 {
		t.Errorf("%+v came again", m)
	}
	m.Again(50 * time.Millisecond)
	if m = s.next(f, 1)[0]; m.Journal != 6 {
		t.Errorf("%+v came again", m)
	}
	m.Done()
	pgtest.Until(t, "all is gone", func() bool {
		delivered, waiting := s.pending("consumer")
		return delivered == 0 && waiting == 0
	})
}

// Two processes share a consumer: each message goes to one. Another consumer has all of its
// own.
func TestAFeedIsShared(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	first, other := s.feed("consumer", "*.*"), s.feed("another", "*.*")
	_, bus := s.connect(jetstream.Options{})
	second := bus.Feed("consumer", func(context.Context) ([]string, error) { return []string{"*.*"}, nil })
	s.ready(second)
	mark, err := s.bus.Publish(t.Context(), 0, made(5, 0, 40, 10))
	s.must(err)
	seen := make(map[ledger.Seq]int)
	for n := 0; n < int(mark); {
		for _, f := range []*jetstream.Feed{first, second} {
			list, err := f.Next(t.Context(), 7)
			s.must(err)
			if len(list) > 7 {
				t.Errorf("%d messages came, 7 at most were asked for", len(list))
			}
			for _, m := range list {
				n++
				seen[m.Seq]++
				m.Done()
			}
		}
	}
	for seq, n := range seen {
		if n != 1 {
			t.Errorf("entry %d came %d times", seq, n)
		}
	}
	if list := s.next(other, 40); list[0].Seq != 1 || list[39].Seq != 40 {
		t.Errorf("the other consumer has entries %d to %d", list[0].Seq, list[39].Seq)
	}
}

// The stream, and the consumer with it, are gone, and come again.
func TestAFeedOutlivesItsStream(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *single){
		"the stream is deleted": func(s *single) {
			js, err := natsjs.New(s.conn)
			s.must(err)
			s.must(js.DeleteStream(s.t.Context(), "TIERLEDGER"))
		},
		"the consumer is deleted": func(s *single) {
			js, err := natsjs.New(s.conn)
			s.must(err)
			s.must(js.DeleteConsumer(s.t.Context(), "TIERLEDGER", "consumer"))
		},
		"the server has another store": func(s *single) {
			s.stop()
			s.dir = s.t.TempDir()
			s.start()
			pgtest.Until(s.t, "the connection is there again", s.conn.IsConnected)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSingle(t, jetstream.Options{}, nil)
			f := s.feed("consumer", "*.*")
			s.publish(5, "test.noted")
			s.next(f, 1)[0].Done()
			end(s)
			// Each round publishes one: the first that comes after the feed is there again.
			pgtest.Until(t, "messages come again", func() bool {
				if stream, err := s.bus.Stream(t.Context()); err == nil {
					s.bus.Seen(stream.Session)
					s.publish(anyJournal(), "test.noted")
				}
				list, _ := f.Next(t.Context(), 10)
				return len(list) > 0
			})
		})
	}
}

// anyJournal names a journal that nobody has.
func anyJournal() ledger.JournalID { return ledger.JournalID(uuid.New().ID()) }
