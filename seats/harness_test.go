package seats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// gigJournal is the journal of the event of a hall, the first of its database.
const gigJournal = ledger.JournalID(1)

// hall is an event with seats on sale, on a database of its own. No sweeper runs.
type hall struct {
	service.Stores
	testing.TB
	db    *pgtest.DB
	owner *pgx.Conn
	keys  *atomic.Int64

	mu      sync.Mutex
	batches []ledger.Batch
	stop    *stop // that the batch under way has decided; nil for none
}

// openHall makes an event with the tiers front and back, sold by seat, and ga.
func openHall(t testing.TB, chart *seats.Chart) *hall {
	t.Helper()
	h := &hall{TB: t, db: pgtest.New(t), keys: new(atomic.Int64)}
	h.Stores = pgtest.Stores(t, h.db, h.observe)
	var err error
	if h.owner, err = pgx.Connect(context.Background(), h.db.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.owner.Close(context.Background()) })
	price := buckets.Money{Amount: 5000, Currency: "USD"}
	_, err = h.Events.Create(context.Background(), "tester", "event", buckets.Spec{
		Event: "gig", Name: "Gig", Currency: "USD", HoldSeconds: 3600, Tiers: []buckets.TierSpec{
			{Tier: "front", Seated: true, Price: price}, {Tier: "back", Seated: true, Price: price},
			{Tier: "ga", Quantity: 10, Price: price},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if chart != nil {
		h.load(*chart)
	}
	return h
}

// another gives the hall as another process has it, on the same database.
func (h *hall) another() *hall {
	h.Helper()
	other := &hall{TB: h.TB, db: h.db, owner: h.owner, keys: h.keys}
	other.Stores = pgtest.Stores(h.TB, h.db, other.observe)
	return other
}

func (h *hall) observe(b ledger.Batch) {
	h.mu.Lock()
	h.batches = append(h.batches, b)
	s := h.stop
	if b.Journal == gigJournal {
		h.stop = nil
	}
	h.mu.Unlock()
	if s != nil && b.Journal == gigJournal {
		close(s.stands)
		<-s.goOn
	}
}

// stop is a command that does nothing; when its batch has been answered, the hall's journal
// stands still in this process, until it may go on.
type stop struct {
	hall         *hall
	stands, goOn chan struct{}
}

func (s *stop) Accounts() []string { return nil }

func (s *stop) Decide(*ledger.State) (ledger.Decision, error) {
	s.hall.mu.Lock()
	defer s.hall.mu.Unlock()
	s.hall.stop = s // the observer is the next that's called
	return ledger.Decision{}, nil
}

func (h *hall) must(_ ledger.Receipt, err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// key gives a new one.
func (h *hall) key() string { return fmt.Sprint("k", h.keys.Add(1)) }

func (h *hall) load(c seats.Chart) {
	h.Helper()
	h.loadTo("gig", c)
}

func (h *hall) loadTo(event string, c seats.Chart) {
	h.Helper()
	h.must(h.Seats.Load(context.Background(), "tester", h.key(), event, c))
}

// event makes another event beside the hall's, with the tier front.
func (h *hall) event(event string, chart *seats.Chart) {
	h.Helper()
	h.must(h.Events.Create(context.Background(), "tester", h.key(), buckets.Spec{
		Event: event, Name: event, Currency: "USD", HoldSeconds: 3600, Tiers: []buckets.TierSpec{
			{Tier: "front", Seated: true, Price: buckets.Money{Amount: 5000, Currency: "USD"}},
		},
	}))
	if chart != nil {
		h.loadTo(event, *chart)
	}
}

func (h *hall) exec(sql string, args ...any) {
	h.Helper()
	if _, err := h.owner.Exec(context.Background(), sql, args...); err != nil {
		h.Fatal(err)
	}
}

// query gives what a statement gives, a text a row.
func (h *hall) query(sql string, args ...any) []string {
	h.Helper()
	rows, err := h.owner.Query(context.Background(), sql, args...)
	if err != nil {
		h.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		h.Fatal(err)
	}
	return list
}

// section makes a section of equal rows.
func section(name string, tier ledger.Unit, rows, perRow int) seats.Section {
	s := seats.Section{Section: name, Tier: tier}
	for r := range rows {
		row := seats.Row{Row: fmt.Sprint(r + 1)}
		for n := range perRow {
			row.Seats = append(row.Seats, seats.Seat{Seat: fmt.Sprint(n + 1), X: 10 * n, Y: 10 * r})
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

func chart(sections ...seats.Section) *seats.Chart { return &seats.Chart{Sections: sections} }

// place asks for a hold under a new key.
func (h *hall) place(customer string, lines ...holds.Line) (holds.Hold, error) {
	return h.placeAs(h.key(), customer, lines...)
}

func (h *hall) placeAs(key, customer string, lines ...holds.Line) (hold holds.Hold, err error) {
	r, err := h.Holds.Place(context.Background(), "tester", key, "gig", holds.Request{Customer: customer, Items: lines})
	if err == nil {
		err = json.Unmarshal(r.Data, &hold)
	}
	return hold, err
}

// take is place for one that must be granted.
func (h *hall) take(customer string, lines ...holds.Line) holds.Hold {
	h.Helper()
	hold, err := h.place(customer, lines...)
	if err != nil {
		h.Fatal(err, fault.As(err).Fields)
	}
	return hold
}

func (h *hall) release(id uuid.UUID) error {
	_, err := h.Holds.Release(context.Background(), "tester", h.key(), id, nil)
	return err
}

func (h *hall) block(labels ...string) {
	h.Helper()
	h.must(h.Seats.Block(context.Background(), "tester", h.key(), "gig", seats.BlockRequest{Seats: labels, Reason: "camera"}, false))
}

func (h *hall) unblock(labels ...string) {
	h.Helper()
	h.must(h.Seats.Unblock(context.Background(), "tester", h.key(), "gig", seats.BlockRequest{Seats: labels, Reason: "no camera"}, false))
}

func named(labels ...string) holds.Line { return holds.Line{Seats: labels} }
func best(n ledger.Amount) holds.Line {
	return holds.Line{BestAvailable: &seats.Best{Quantity: n}}
}

// labelsOf gives the labels of all seats of a hold, for comparing them.
func labelsOf(h holds.Hold) string { return strings.Join(holds.Seats(h.Items), " ") }

// field gives a fact of a refusal.
func field(err error, name string) any {
	for _, f := range fault.As(err).Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// runOut makes every open hold due now, as time would.
func (h *hall) runOut() {
	h.Helper()
	h.db.Except("holds_recorded") // their entries have the deadlines that they were given
	h.exec(`WITH due AS (UPDATE holds SET expires_at = now() WHERE status = 'held' RETURNING hold_id)
		UPDATE seats SET until = now() WHERE state = 'held' AND hold_id IN (SELECT hold_id FROM due)`)
}

// states gives the letters of the rows, as they're summarised.
func (h *hall) states() string {
	h.Helper()
	return strings.Join(h.query(`SELECT states FROM seat_rows ORDER BY journal_id, row_number`), " ")
}

// want compares the letters of the rows.
func (h *hall) want(states string) {
	h.Helper()
	if got := h.states(); got != states {
		h.Errorf("the rows are %s, want %s", got, states)
	}
}

// oneBatch has callers ask one after the other and be judged in one batch, in their order.
func (h *hall) oneBatch(asks ...func() error) []error {
	h.Helper()
	errs := h.queued(asks...)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.batches, func(b ledger.Batch) bool { return b.Commands == len(asks) }) {
		h.Errorf("they weren't one batch: %+v", h.batches)
	}
	return errs
}

// queued has callers ask one after the other while the batch before keeps them waiting.
func (h *hall) queued(asks ...func() error) []error {
	h.Helper()
	s := &stop{h, make(chan struct{}), make(chan struct{})}
	goOn := sync.OnceFunc(func() { close(s.goOn) })
	defer goOn()
	h.must(h.Ledger.Do(context.Background(), gigJournal,
		ledger.Command{ID: ledger.NewID(gigJournal, "tester", h.key()), Principal: "tester", Body: s}))
	<-s.stands
	var callers sync.WaitGroup
	errs := make([]error, len(asks))
	for i, ask := range asks {
		callers.Go(func() { errs[i] = ask() })
		pgtest.Until(h, "the command waits", func() bool { return h.Ledger.Waiting() > i })
	}
	goOn()
	callers.Wait()
	return errs
}
