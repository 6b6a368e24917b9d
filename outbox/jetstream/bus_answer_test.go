package jetstream_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// What the server may answer to a batch, and what becomes of it. (The test is the server: it
// has no stream.)
func TestAnswersToABatch(t *testing.T) {
	t.Parallel()
	refused := func(code natsjs.ErrorCode) string { return fmt.Sprintf(`{"error":{"code":503,"err_code":%d}}`, code) }
	for name, c := range map[string]struct {
		n      int // events
		answer string
		place  uint64
		is     error // ErrFenced or ErrFull; nil for neither
		asked  int64 // so often was it sent
	}{
		"one":                         {1, `{"stream":"S","seq":7}`, 7, nil, 1},
		"two":                         {2, `{"stream":"S","seq":7,"batch":"b","count":2}`, 7, nil, 1},
		"fewer than were sent":        {3, `{"stream":"S","seq":7,"batch":"b","count":2}`, 0, nil, 1},
		"a batch as if it were one":   {2, `{"stream":"S","seq":7}`, 0, nil, 1},
		"no place":                    {1, `{"stream":"S"}`, 0, nil, 1},
		"a batch with no place":       {2, `{"stream":"S","batch":"b","count":2}`, 0, nil, 1},
		"nothing":                     {1, ``, 0, nil, 1},
		"no JSON":                     {2, `+OK`, 0, nil, 1},
		"the wrong last message":      {2, refused(10071), 0, outbox.ErrFenced, 1},
		"or was just published to":    {2, refused(10164), 0, outbox.ErrFenced, 2},
		"the stream's limits":         {2, refused(10077), 0, outbox.ErrFull, 1},
		"the server's storage":        {2, refused(10047), 0, outbox.ErrFull, 1},
		"the account's storage":       {2, refused(10002), 0, outbox.ErrFull, 1},
		"the server's resources":      {2, refused(10023), 0, outbox.ErrFull, 1},
		"too many batches":            {2, refused(10210), 0, outbox.ErrFull, 1},
		"batches aren't allowed":      {2, refused(10174), 0, nil, 1},
		"the stream isn't found":      {2, refused(10059), 0, nil, 1},
		"the server is shutting down": {2, refused(10008), 0, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &single{t: t, dir: t.TempDir(), change: func(o *server.Options) { o.JetStream = false }}
			s.start()
			t.Cleanup(s.stop)
			s.conn, s.bus = s.connect(jetstream.Options{})
			s.bus.Seen(1)
			var asked atomic.Int64
			_, err := s.conn.Subscribe("tierledger.journal.>", func(m *nats.Msg) {
				if m.Reply != "" {
					asked.Add(1)
					_ = m.Respond([]byte(c.answer))
				}
			})
			s.must(err)
			s.must(s.conn.Flush())
			place, err := s.bus.Publish(t.Context(), 3, made(5, 0, c.n, 10))
			if place != c.place || (err == nil) != (c.place != 0) ||
				errors.Is(err, outbox.ErrFenced) != (c.is == outbox.ErrFenced) || errors.Is(err, outbox.ErrFull) != (c.is == outbox.ErrFull) {
				t.Errorf("%q: %d, %v", c.answer, place, err)
			}
			if n := asked.Load(); n != c.asked {
				t.Errorf("it was sent %d times, not %d", n, c.asked)
			}
		})
	}
}

// Whatever somebody changes of the stream so that it might lose, refuse or miss events is put
// back.
func TestAStreamThatIsChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*natsjs.StreamConfig){
		"it drops the oldest":        func(c *natsjs.StreamConfig) { c.Discard = natsjs.DiscardOld },
		"it keeps what's wanted":     func(c *natsjs.StreamConfig) { c.Retention = natsjs.InterestPolicy },
		"a number of messages":       func(c *natsjs.StreamConfig) { c.MaxMsgs = 1000 },
		"a number of each subject's": func(c *natsjs.StreamConfig) { c.MaxMsgsPerSubject = 1 },
		"a size":                     func(c *natsjs.StreamConfig) { c.MaxMsgSize = 1000 },
		"no batches":                 func(c *natsjs.StreamConfig) { c.AllowAtomicPublish = false },
		"other subjects":             func(c *natsjs.StreamConfig) { c.Subjects = []string{"tierledger.journal.*.hold.placed"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSingle(t, jetstream.Options{}, nil)
			js, err := natsjs.New(s.conn)
			s.must(err)
			stream, err := js.Stream(t.Context(), "TIERLEDGER")
			s.must(err)
			config := stream.CachedInfo().Config
			change(&config)
			_, err = js.UpdateStream(t.Context(), config)
			s.must(err)
			s.stream() // sees it
			s.stream() // puts it back
			if place, err := s.bus.Publish(t.Context(), 0, made(5, 0, 3, 2000)); err != nil || place != 3 {
				t.Errorf("%d, %v", place, err)
			}
			if got := s.stream(); got.First != 1 || got.Last != 3 {
				t.Errorf("the stream is %+v", got)
			}
			info, err := stream.Info(t.Context())
			s.must(err)
			if info.State.Msgs != 3 || info.Config.Discard != natsjs.DiscardNew || info.Config.MaxMsgs != -1 {
				t.Errorf("the stream is %+v", info)
			}
		})
	}
}

// A bus that's told another age or size than the stream has gives it those, when it looks
// first; one that has looked before leaves it.
func TestAStreamOfAnotherAgeOrSize(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{MaxAge: time.Hour, MaxBytes: 1 << 20}, nil)
	js, err := natsjs.New(s.conn)
	s.must(err)
	for _, o := range []jetstream.Options{{MaxAge: time.Minute, MaxBytes: 1 << 20}, {MaxAge: time.Minute, MaxBytes: 2 << 20}} {
		_, bus := s.connect(o)
		_, err := bus.Stream(t.Context())
		s.must(err)
		s.stream()
		stream, err := js.Stream(t.Context(), "TIERLEDGER")
		s.must(err)
		if c := stream.CachedInfo().Config; c.MaxAge != o.MaxAge || c.MaxBytes != o.MaxBytes {
			t.Errorf("the stream has %v and %d, not %+v", c.MaxAge, c.MaxBytes, o)
		}
	}
}

// The fence is a journal's: an event of one kind comes after the last of whatever kind.
func TestTheFenceOfManyKinds(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	last, err := s.bus.Publish(t.Context(), 0, made(5, 0, 2, 10))
	s.must(err)
	for _, n := range []int{1, 2} {
		others := made(5, int(last), n, 10)
		for i := range others {
			others[i].Kind = fmt.Sprintf("test.other%d", n)
		}
		for _, after := range []uint64{0, last - 1} {
			if place, err := s.bus.Publish(t.Context(), after, others); !errors.Is(err, outbox.ErrFenced) {
				t.Errorf("%d of another kind after %d: %d, %v", n, after, place, err)
			}
		}
		place, err := s.bus.Publish(t.Context(), last, others)
		if err != nil || place != last+uint64(n) {
			t.Fatalf("%d of another kind after the last: %d, %v", n, place, err)
		}
		last = place
	}
}
