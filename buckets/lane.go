package buckets

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// MaxLanes bounds the lanes of an event: with more, tickets would be on the move rather
// than on sale.
const MaxLanes = 64

// Layout is over which lanes an event is split, and was before. The zero value is none.
type Layout struct {
	Generation int64              // one more with every change; 0: never split
	Counts     []int              // every number of lanes that was in use, the newest last
	Journals   []ledger.JournalID // of every lane that there was; the first is the event's home
}

// Whole is the layout of an event that was never split.
func Whole(home ledger.JournalID) Layout {
	return Layout{Counts: []int{1}, Journals: []ledger.JournalID{home}}
}

// Home is the journal of the first lane: it has the event, its tiers and its allotments.
func (l Layout) Home() ledger.JournalID { return l.Journals[0] }

// Lanes counts the lanes in use: those from 1 up to it. Lanes beyond are closed to
// customers who have nothing there.
func (l Layout) Lanes() int { return l.Counts[len(l.Counts)-1] }

// Split tells whether there's more than one journal to look at.
func (l Layout) Split() bool { return len(l.Journals) > 1 }

// LaneOf numbers the lane of a customer who has nothing yet. It's the jump consistent
// hash (Lamping and Veach, arXiv:1406.2294) of the first eight bytes of the name's
// SHA-256: with more lanes a customer stays or moves to a new one.
func (l Layout) LaneOf(customer string) int { return jump(keyOf(customer), l.Lanes()) }

// Of numbers the lane that a journal is; 0 for none of the event's.
func (l Layout) Of(journal ledger.JournalID) int { return slices.Index(l.Journals, journal) + 1 }

// change gives the layout of the next generation, with n lanes in use.
func (l Layout) change(n int, journals []ledger.JournalID) Layout {
	counts := slices.DeleteFunc(slices.Clone(l.Counts), func(c int) bool { return c == n })
	return Layout{Generation: l.Generation + 1, Counts: append(counts, n), Journals: journals}
}

// visited lists the lanes that were a customer's by some layout, without doubles.
func (l Layout) visited(customer string) (lanes []int) {
	key := keyOf(customer)
	for _, n := range l.Counts {
		if lane := jump(key, n); !slices.Contains(lanes, lane) {
			lanes = append(lanes, lane)
		}
	}
	return lanes
}

func keyOf(customer string) uint64 {
	sum := sha256.Sum256([]byte(customer))
	return binary.BigEndian.Uint64(sum[:8])
}

// jump gives a bucket from 1 to n.
func jump(key uint64, n int) int {
	var b, j int64 = -1, 0
	for j < int64(n) {
		b = j
		key = key*2862933555777941757 + 1
		j = int64(float64(b+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return int(b) + 1
}

// Lane is what a lane's journal knows of its split.
type Lane struct {
	Lane int // from 1
	Layout
	Version ledger.Seq
}

// Route is the way of a customer's command into a lane: which one it is for by the layout
// that its sender knew, and where else it might have gone before.
type Route struct {
	Journal    ledger.JournalID
	Customer   string
	Generation int64
	Elsewhere  []Elsewhere
}

// Elsewhere is another lane in which the customer may have something, and the id that the
// command has there.
type Elsewhere struct {
	Journal ledger.JournalID
	ID      uuid.UUID
}

// Route leads a customer's command to a journal of the event; to the one of the
// customer's lane for 0.
func (l Layout) Route(journal ledger.JournalID, customer, principal, key string) *Route {
	r := &Route{Journal: journal, Customer: customer, Generation: l.Generation}
	if journal == 0 {
		r.Journal = l.Journals[l.LaneOf(customer)-1]
	}
	for _, lane := range l.visited(customer) {
		if j := l.Journals[lane-1]; j != r.Journal {
			r.Elsewhere = append(r.Elsewhere, Elsewhere{j, ledger.NewID(j, principal, key)})
		}
	}
	return r
}

// Routed is a command's body that a customer's lane must take.
type Routed interface{ Route() *Route }

// seen is what another lane has of a customer, read in one statement.
type seen struct {
	generation int64
	tickets    ledger.Amount
	accepted   bool // the command
}

// Admit tells whether the lane of a batch may take a customer's command: at one time no
// customer has tickets in two lanes, so that the limits of any are those of the event, and
// a command that another lane accepted isn't accepted again.
//
// A customer who has something in the lane is at home there. Another is by its layout's
// hash, once every other lane that was the customer's goes by the same layout, or a newer
// one, and has nothing of the customer's: those lanes then take nobody who has nothing
// there, so that it stays so. The error is ErrLaneChanging; see MovedTo.
func Admit(s *ledger.State, r *Route) error {
	shelf := ShelfOf(s)
	lane := shelf.Lane
	if lane == nil {
		if r.Generation != 0 {
			return moved(0)
		}
		return nil
	}
	if r.Generation != lane.Generation {
		return moved(0)
	}
	elsewhere := shelf.elsewhere[r]
	for i, e := range elsewhere {
		if e.accepted {
			return moved(r.Elsewhere[i].Journal)
		}
	}
	if atHome(s, r.Customer) {
		return nil
	}
	if own := lane.LaneOf(r.Customer); own != lane.Lane {
		return moved(lane.Journals[own-1])
	}
	for i, e := range elsewhere {
		switch {
		case e.generation < lane.Generation:
			return moved(0)
		case e.tickets > 0:
			return moved(r.Elsewhere[i].Journal)
		}
	}
	return nil
}

// atHome tells whether a customer has tickets in the lane of a batch.
func atHome(s *ledger.State, customer string) bool {
	for tier := range ShelfOf(s).Tiers {
		if s.Balance(ledger.HeldBy(customer), tier) > 0 || s.Balance(ledger.SoldTo(customer), tier) > 0 {
			return true
		}
	}
	return false
}

func moved(to ledger.JournalID) *fault.Error {
	return ErrLaneChanging.Because("the event's lanes are being changed").After(retryLanes).With(fieldJournal, to)
}

// fieldJournal has the journal to ask instead, in an ErrLaneChanging.
const fieldJournal = "journal"

// MovedTo tells whether an error of Admit says to ask another lane, and which; 0 to look
// at the layout again.
func MovedTo(err error) (ledger.JournalID, bool) {
	e := fault.As(err)
	if e == nil || e.Def != ErrLaneChanging {
		return 0, false
	}
	for _, f := range e.Fields {
		if to, ok := f.Value.(ledger.JournalID); ok && f.Name == fieldJournal {
			return to, true
		}
	}
	return 0, true
}
