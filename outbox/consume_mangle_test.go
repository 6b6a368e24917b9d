package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// mangled is a feed that loses messages and acknowledgements, doubles and delays messages,
// changes their order, and makes some up.
type mangled struct {
	feed outbox.Feed
	mu   sync.Mutex
	rand *rand.Rand
	late []outbox.Message
	made int // up
	done int // of those: let go
	off  bool
}

// Next gives what a bus that isn't to be trusted gives.
func (m *mangled) Next(ctx context.Context, most int) ([]outbox.Message, error) {
	came, err := m.feed.Next(ctx, most)
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []outbox.Message
	if len(m.late) > 0 && (m.off || m.rand.IntN(2) == 0) {
		out, m.late = append(out, m.late...), nil
	}
	for _, msg := range came {
		deaf := msg
		deaf.Done = func() {}
		switch m.rand.IntN(6) {
		case 0:
			msg.Done() // nobody sees it
		case 1:
			msg.Again(time.Duration(m.rand.IntN(300)) * time.Millisecond)
			out = append(out, deaf) // its acknowledgement is lost, and it comes again
		case 2:
			out = append(out, deaf, msg, deaf)
		case 3:
			m.late = append(m.late, msg)
		default:
			out = append(out, msg)
		}
	}
	if len(out) > 0 && !m.off {
		for _, journal := range []ledger.JournalID{1001, 1002, 4711} { // the last isn't there
			out = append(out, m.makeUp(journal, ledger.Seq(1+m.rand.IntN(200))))
		}
	}
	m.rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, err
}

// makeUp makes a message that nobody has published. It's called with mu.
func (m *mangled) makeUp(journal ledger.JournalID, seq ledger.Seq) outbox.Message {
	m.made++
	msg := outbox.Message{Journal: journal, Seq: seq, Origin: "nowhere"}
	msg.Done = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.done++
	}
	msg.Drop = msg.Done
	msg.Again = func(time.Duration) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.late = append(m.late, msg)
	}
	return msg
}

// quiet ends the mangling, and tells whether everything that was made up is let go.
func (m *mangled) quiet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = true
	return m.made > 0 && m.made == m.done
}

// Messages are only hints: whatever the bus does, two processes of a consumer leave each
// effect once, in order, and everything that was made up is let go.
func TestMessagesAreOnlyHints(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			c := consumer("wary", []string{noted}, nil)
			feed, info := s.subscribed(c)
			m := &mangled{feed: feed, rand: rand.New(rand.NewPCG(seed, 1))}
			var inboxes []*outbox.Inbox
			for range 2 {
				i, _ := s.inbox(c, s.process(s.db.URL()))
				s.run(i, m)
				inboxes = append(inboxes, i)
			}
			s.relay(nil)
			journals := []ledger.JournalID{1001, 1002, 1003}
			for _, journal := range journals {
				s.must(s.Ledger.Create(t.Context(), journal))
			}
			var writers sync.WaitGroup
			for _, journal := range journals {
				writers.Go(func() { s.fill(journal, 100) })
			}
			writers.Wait()
			s.arrived(inboxes[0])
			pgtest.Until(t, "all messages are let go", func() bool { return m.quiet() && info().NumAckPending == 0 })
			s.wantEach("wary", []string{noted})
			if n := one[int](s.world, `SELECT count(*) FROM dead_letters`) + one[int](s.world, `SELECT count(*) FROM inbox WHERE journal_id = 4711`); n != 0 {
				t.Errorf("%d dead letters, or positions in a journal that isn't there", n)
			}
		})
	}
}
