package jetstream_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox/jetstream"
)

// alarms makes alarms that can be set.
func (s *single) alarms() *jetstream.Alarms {
	s.t.Helper()
	a := s.bus.Alarms()
	if err := a.Set(5, uuid.New(), time.Now()); err == nil {
		s.t.Error("an alarm was set before the stream is known")
	}
	list, err := a.Next(s.t.Context(), 1)
	if err != nil || len(list) > 0 {
		s.t.Fatalf("%v, %v", list, err)
	}
	return a
}

// rings waits for alarms, and gives the journals of the first that ring.
func (s *single) rings(a *jetstream.Alarms) (journals []ledger.JournalID) {
	s.t.Helper()
	pgtest.Until(s.t, "an alarm rings", func() bool {
		var err error
		journals, err = a.Next(s.t.Context(), 100)
		s.must(err)
		return len(journals) > 0
	})
	slices.Sort(journals)
	return journals
}

// waiting counts the messages of the alarms' stream.
func (s *single) waiting() uint64 {
	s.t.Helper()
	js, err := natsjs.New(s.conn)
	s.must(err)
	stream, err := js.Stream(s.t.Context(), "TIERLEDGER_WAKE")
	s.must(err)
	return stream.CachedInfo().State.Msgs
}

// An alarm rings at its time, not before. A journal that has many is woken once, or again while
// they're still ringing.
func TestAlarmsRing(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	a := s.alarms()
	at := time.Now().Add(1500 * time.Millisecond)
	for range 20 {
		s.must(a.Set(5, uuid.New(), at))
	}
	s.must(a.Set(4294967295, uuid.New(), at))
	s.must(a.Set(7, uuid.New(), at.Add(time.Hour)))
	var woken []ledger.JournalID
	for !slices.Contains(woken, 5) || !slices.Contains(woken, 4294967295) {
		woken = append(woken, s.rings(a)...)
		if now := time.Now(); now.Before(at.Truncate(time.Second)) {
			t.Errorf("%v was woken %v before its time", woken, at.Sub(now))
		}
	}
	if slices.Contains(woken, 7) {
		t.Errorf("%v were woken", woken)
	}
}

// An alarm whose time has passed rings at once.
func TestAnAlarmThatIsLate(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	a := s.alarms()
	s.must(a.Set(5, uuid.New(), time.Now().Add(-time.Hour)))
	if got := s.rings(a); !slices.Equal(got, []ledger.JournalID{5}) {
		t.Errorf("%v were woken", got)
	}
}

// Of the alarms for one id the last is there.
func TestTheLastAlarmOfAnIDWins(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	a := s.alarms()
	later, sooner := uuid.New(), uuid.New()
	now := time.Now()
	soon := now.Add(10 * time.Second) // the first one mustn't ring before the other's there
	s.must(a.Set(5, later, soon))
	s.must(a.Set(6, sooner, now.Add(time.Hour)))
	s.must(a.Set(5, later, now.Add(time.Hour)))
	s.must(a.Set(6, sooner, soon))
	pgtest.Until(t, "all of them are there", func() bool { return s.waiting() == 2 })
	if got := s.rings(a); !slices.Equal(got, []ledger.JournalID{6}) {
		t.Errorf("%v were woken", got)
	}
}

// The alarms are kept in memory: after a restart of the server those that are set anew ring.
func TestAlarmsAfterARestart(t *testing.T) {
	t.Parallel()
	s := openSingle(t, jetstream.Options{}, nil)
	a := s.alarms()
	s.must(a.Set(5, uuid.New(), time.Now().Add(time.Hour)))
	s.stop()
	s.start()
	pgtest.Until(t, "the connection is there again", s.conn.IsConnected)
	pgtest.Until(t, "an alarm rings", func() bool {
		_ = a.Set(6, uuid.New(), time.Now().Add(-time.Second))
		journals, err := a.Next(t.Context(), 100)
		return err == nil && slices.Equal(journals, []ledger.JournalID{6})
	})
}
