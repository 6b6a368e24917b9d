package holds

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

const (
	// maxDue bounds the expiries that a batch carries; the next batch goes on.
	maxDue = 256
	// maxDueSeats bounds the holds whose seats are read with those: more than can run out
	// at the same time as the last of them, which a batch has placed.
	maxDueSeats = maxDue + 512
	// maxNext is how many holds ahead a refusal looks for the next to run out.
	maxNext = 8
)

// shelf holds the holds of one batch: those that are due, those that commands
// name, and a few that run out next.
type shelf struct {
	holds   map[uuid.UUID]*Hold
	ahead   []*Hold // by deadline: due ones, then the next
	named   [][16]byte
	placed  []*Hold
	changed []*Hold

	journal ledger.JournalID
	locked  bool
	marks   *marks
}

// Shelves makes the shelves of a process's batches.
func Shelves() func() ledger.Shelf {
	m := &marks{}
	return func() ledger.Shelf { return &shelf{holds: make(map[uuid.UUID]*Hold), marks: m} }
}

// marks remembers for each journal a time before which no open hold runs out. It
// only says where the search in the index begins: behind the entries of holds that
// have ended, which stay there while anybody's snapshot may need them. A mark stays
// true, as every new hold, and one that's held again, runs out after the time of its
// batch.
type marks struct{ byJournal sync.Map } // ledger.JournalID -> time.Time

func (m *marks) of(j ledger.JournalID) time.Time {
	if at, ok := m.byJournal.Load(j); ok {
		return at.(time.Time)
	}
	return time.Unix(0, 0)
}

func shelfOf(s *ledger.State) *shelf { return ledger.ShelfOf[*shelf](s) }

// Read queues the holds that are due or next, and those that commands name.
func (s *shelf) Read(q *ledger.Reads) {
	if q.Journal == ledger.System {
		return
	}
	s.journal, s.locked = q.Journal, q.Locked
	q.Queue(func(rows pgx.Rows) error {
		h, err := scanHold(rows)
		if err == nil {
			s.ahead = append(s.ahead, h)
			s.holds[h.ID] = h
		}
		return err
	}, sqlAhead, maxDue, maxNext, s.marks.of(q.Journal))
	seats.Queue(q, sqlDueSeats, maxDueSeats, s.marks.of(q.Journal))
	for _, c := range q.Commands {
		if n, ok := c.Body.(Naming); ok {
			for _, id := range n.HoldIDs() {
				s.named = append(s.named, id)
			}
		}
	}
	if len(s.named) == 0 {
		return
	}
	q.Queue(func(rows pgx.Rows) error {
		h, err := scanHold(rows)
		if err == nil && s.holds[h.ID] == nil {
			s.holds[h.ID] = h
		}
		return err
	}, sqlBatchHolds, s.named)
	seats.Queue(q, sqlSeatsOfHolds, s.named)
}

// Due gives an expiry for every hold that has run out.
func (s *shelf) Due(now time.Time) (due []ledger.Command, more bool) {
	for _, h := range s.ahead {
		if h.Due(now) {
			due = append(due, expiry(h))
		}
	}
	if s.locked {
		s.mark(now)
	}
	return due, len(due) >= maxDue
}

// mark remembers that no open hold runs out before the first that was read. Under
// the lock that is all there are; those to come run out after now.
func (s *shelf) mark(now time.Time) {
	if len(s.ahead) > 0 && s.ahead[0].ExpiresAt.Before(now) {
		now = s.ahead[0].ExpiresAt
	}
	s.marks.byJournal.Store(s.journal, now)
}

// expiry is the one command that can expire a hold by time.
func expiry(h *Hold) ledger.Command {
	journal, _ := ledger.JournalOf(h.ID)
	return ledger.Command{
		ID:        ledger.NewID(journal, ledger.SystemPrincipal, KindExpired, h.ID.String()),
		Principal: ledger.SystemPrincipal, Body: &expire{h.ID},
	}
}

// Accounts names the accounts of the holds that may end in this batch.
func (s *shelf) Accounts(now time.Time) []string {
	var codes []string
	add := func(h *Hold) {
		codes = append(codes, h.accounts()...)
	}
	for _, h := range s.ahead {
		if h.Due(now) {
			add(h)
		}
	}
	for _, id := range s.named {
		switch h := s.holds[id]; {
		case h == nil:
		case h.Status.Claims():
			add(h)
		default: // its tickets may yet be sold without it, or come back
			codes = append(codes, h.accounts()...)
		}
	}
	return codes
}

// retryAt is the earliest time at which tickets of a tier, or of any for "", may come back.
// When more holds run out before that than the shelf shows, it's a time before which none
// do.
func (s *shelf) retryAt(now time.Time, tier ledger.Unit) time.Time {
	at := now
	if len(s.ahead) >= maxDue && !s.ahead[maxDue-1].ExpiresAt.After(now) {
		return now // more may be due than this batch could expire
	}
	for _, h := range s.ahead {
		if h.Status != Held {
			continue
		}
		at = h.ExpiresAt
		for _, i := range h.Items {
			if i.Tier == tier || tier == "" {
				return at
			}
		}
	}
	return at
}

// Write queues the placed and the changed holds.
func (s *shelf) Write(q *ledger.Writes) {
	queueHolds(q, sqlInsertHolds, s.placed)
	queueHolds(q, sqlUpdateHolds, s.changed)
}

// queueHolds queues a statement that takes holds' columns as arrays.
func queueHolds(q *ledger.Writes, sql string, list []*Hold) {
	n := len(list)
	if n == 0 {
		return
	}
	// Of basic types: pgx encodes those without reflection.
	ids, customers, statuses := make([][16]byte, n), make([]string, n), make([]string, n)
	created, expires := make([]time.Time, n), make([]time.Time, n)
	items, totals, versions := make([]string, n), make([]int64, n), make([]int64, n)
	payUntil, access := make([]*time.Time, n), make([]string, n)
	for i, h := range list {
		text, err := json.Marshal(h.Items)
		if err != nil {
			panic(err) // an Item has nothing that can't be JSON
		}
		ids[i], customers[i], statuses[i], items[i] = h.ID, h.Customer, string(h.Status), string(text)
		created[i], expires[i], payUntil[i] = h.CreatedAt, h.ExpiresAt, h.PayUntil
		access[i] = h.Code
		totals[i], versions[i] = int64(h.Total.Amount), int64(h.Version)
	}
	q.Queue(sql, ids, customers, statuses, created, expires, payUntil, access, items, totals, versions)
}

// The rows that decisions of this package change.
type (
	placedRow  struct{ *Hold }
	changedRow struct{ *Hold }
)

// Check refuses seats that can't be held.
func (r placedRow) Check(s *ledger.State) error { return seats.Changed(r.change()).Check(s) }

// Keep records a new hold, and that its seats are held.
func (r placedRow) Keep(s *ledger.State) {
	shelf := shelfOf(s)
	shelf.holds[r.ID] = r.Hold
	shelf.placed = append(shelf.placed, r.Hold)
	seats.Changed(r.change()).Keep(s)
}

func (r placedRow) change() seats.Change {
	return seats.Change{Seats: Seats(r.Items), To: seats.Held, Hold: r.ID, Until: &r.ExpiresAt}
}

// Check refuses a change that the hold's seats don't allow.
func (r changedRow) Check(s *ledger.State) error { return seats.Changed(r.change(s)).Check(s) }

// Keep records that a hold has changed, and its seats with it.
func (r changedRow) Keep(s *ledger.State) {
	shelf := shelfOf(s)
	h, c := shelf.holds[r.ID], r.change(s)
	*h = *r.Hold
	if !slices.Contains(shelf.changed, h) { // a statement can't change a row twice
		shelf.changed = append(shelf.changed, h)
	}
	seats.Changed(c).Keep(s)
}

// change is what becomes of the hold's seats: they're sold when it's bought, and free when
// it ends otherwise.
func (r changedRow) change(s *ledger.State) seats.Change {
	c := seats.Change{Hold: r.ID}
	switch claimed := shelfOf(s).holds[r.ID].Status.Claims(); {
	case claimed && r.Status == Confirmed:
		c.Seats, c.To = Seats(r.Items), seats.Sold
	case claimed && !r.Status.Claims():
		c.Seats, c.To = Seats(r.Items), seats.Available
	}
	return c
}

// scanHold reads a row. The event's name and currency are the event's to say.
// Further targets take the columns behind the hold's.
func scanHold(row pgx.CollectableRow, further ...any) (*Hold, error) {
	h := &Hold{}
	var items []byte
	err := row.Scan(append([]any{&h.ID, &h.Customer, &h.Status, &h.CreatedAt, &h.ExpiresAt, &h.PayUntil, &h.Code, &items,
		&h.Total.Amount, &h.Version}, further...)...)
	if err != nil {
		return nil, err
	}
	h.CreatedAt, h.ExpiresAt = h.CreatedAt.UTC(), h.ExpiresAt.UTC()
	if h.PayUntil != nil {
		*h.PayUntil = h.PayUntil.UTC()
	}
	return h, json.Unmarshal(items, &h.Items)
}
