package quota

import (
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// shelf holds the moves that the commands of one batch are about.
type shelf struct {
	moves   map[uuid.UUID]*Move // of this journal
	sent    map[uuid.UUID]*Move // of others, to this one
	arrived map[uuid.UUID]bool

	journal ledger.JournalID
	offer   *buckets.Shelf

	changed  []*Move
	arrivals []*arrival
}

// NewShelf makes an empty shelf.
func NewShelf() ledger.Shelf {
	return &shelf{
		moves: make(map[uuid.UUID]*Move), sent: make(map[uuid.UUID]*Move), arrived: make(map[uuid.UUID]bool),
	}
}

func shelfOf(s *ledger.State) *shelf { return ledger.ShelfOf[*shelf](s) }

// Read queues the moves that commands decide on, and those whose other end they are.
func (s *shelf) Read(q *ledger.Reads) {
	if q.Journal == ledger.System {
		return
	}
	s.journal, s.offer = q.Journal, ledger.ShelfIn[*buckets.Shelf](q)
	var own, others [][16]byte
	var from []int64
	for _, c := range q.Commands {
		switch body := c.Body.(type) {
		case *receive:
			journal, _ := ledger.JournalOf(body.id)
			others, from = append(others, body.id), append(from, int64(journal))
		case naming:
			own = append(own, body.moveID())
		}
	}
	if len(own) > 0 {
		q.Queue(func(rows pgx.Rows) error {
			m, err := scanMove(rows)
			if err == nil {
				s.moves[m.ID] = m
			}
			return err
		}, sqlBatchMoves, own)
	}
	if len(others) > 0 {
		q.Queue(func(rows pgx.Rows) error {
			m := &Move{}
			var arrived bool
			err := rows.Scan(&m.ID, &m.Status, &m.Tier, &m.toAccount, &m.toJournal, &m.Quantity, &arrived)
			s.sent[m.ID], s.arrived[m.ID] = m, arrived
			return err
		}, sqlBatchSent, from, others)
	}
}

// everything is more than any bucket has.
const everything = 1 << 40

// ended lists the allotments that have ended and have tickets left in the journal.
func (s *shelf) ended(now time.Time) (list []*buckets.Allotment) {
	if s.offer == nil {
		return nil
	}
	for _, a := range s.offer.Allotments {
		if len(a.Left) > 0 && a.Ended(now) {
			list = append(list, a)
		}
	}
	return list
}

// Due gives back what ended allotments have left in the journal.
func (s *shelf) Due(now time.Time) (due []ledger.Command, more bool) {
	for _, a := range s.ended(now) {
		reason := "allotment " + a.Allotment + " was closed"
		if a.ClosedAt == nil {
			reason = "allotment " + a.Allotment + " was released at its time"
		}
		for _, tier := range a.Left {
			id := ledger.NewID(s.journal, ledger.SystemPrincipal, KindMoved, a.Allotment, string(tier),
				strconv.FormatInt(int64(a.LeftVersion), 10))
			due = append(due, ledger.Command{ID: id, Principal: ledger.SystemPrincipal, Body: &send{
				id: id, principal: ledger.SystemPrincipal, unit: tier, account: ledger.FreeOf(a.Allotment),
				to: ledger.Available, quantity: everything, upTo: true, cause: Release, reason: reason,
			}})
		}
	}
	return due, false
}

// Accounts names the accounts of the moves that were read, and of what is due.
func (s *shelf) Accounts(now time.Time) (codes []string) {
	for _, a := range s.ended(now) {
		codes = append(codes, ledger.FreeOf(a.Allotment), ledger.Available, ledger.Transit)
	}
	for _, m := range s.moves {
		codes = append(codes, m.account, m.toAccount, ledger.TransitTo(m.toAccount))
	}
	for _, m := range s.sent {
		codes = append(codes, m.toAccount, ledger.TransitTo(m.toAccount))
	}
	return codes
}

// Write queues the changed moves, and the arrivals.
func (s *shelf) Write(q *ledger.Writes) {
	for _, m := range s.changed {
		q.Queue(sqlKeepMove, m.ID, m.Status, m.Tier, m.account, m.From.Lane, m.AnyLane, m.toJournal, m.To.Lane, m.toAccount, m.Quantity,
			m.UpTo, m.Cause, m.Reason, m.AskedBy, m.DecidedBy, m.AskedAt, m.MovedAt, m.Version)
	}
	for _, a := range s.arrivals {
		q.Queue(sqlInsertArrival, a.Move, a.From, a.Unit, a.Account, a.Quantity, a.At, a.Version)
	}
}

// The rows that decisions of this package change.
type (
	moveRow    struct{ *Move }
	arrivalRow struct{ *arrival }
)

// Keep records a move, or what became of it.
func (r moveRow) Keep(s *ledger.State) {
	shelf := shelfOf(s)
	shelf.moves[r.ID] = r.Move
	shelf.changed = append(shelf.changed, r.Move)
}

// Keep records that a move's tickets have come.
func (r arrivalRow) Keep(s *ledger.State) {
	shelf := shelfOf(s)
	shelf.arrived[r.Move] = true
	shelf.arrivals = append(shelf.arrivals, r.arrival)
}
