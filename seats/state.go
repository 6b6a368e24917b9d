package seats

import (
	"time"

	"github.com/google/uuid"
)

// State is where a seat is.
type State string

// The states of a seat.
const (
	Available State = "available"
	Held      State = "held"
	Sold      State = "sold"
	Blocked   State = "blocked"
)

// States lists the states.
func States() []State { return []State{Available, Held, Sold, Blocked} }

// letter stands for a state in a row's summary.
func (s State) letter() byte { return s[0] }

// stateOf reads a letter.
func stateOf(letter byte) State {
	for _, s := range States() {
		if s.letter() == letter {
			return s
		}
	}
	panic("seats: no state has the letter " + string(letter))
}

// Change is what happens to seats of one hold, or to blocked ones, in one entry.
type Change struct {
	Seats     []string // labels
	To        State
	Hold      uuid.UUID  // that takes the seats or gives them back; none for a block
	Until     *time.Time // of a held seat: when it may return
	Allotment string     // of a blocked one: whom it's set aside for, "" for nobody
}

// seat is a seat's row.
type seat struct {
	spot      // where it is, as the chart says
	state     State
	hold      uuid.UUID
	until     *time.Time
	allotment string
	changes   int // in this batch
}

// legal tells whether a seat may change so. The statement that writes seats says the
// same.
func (s *seat) legal(c *Change) bool {
	switch s.state {
	case Available:
		return c.To == Held || c.To == Sold || c.To == Blocked
	case Held:
		return (c.To == Available || c.To == Sold) && c.Hold == s.hold
	case Sold:
		return c.To == Available && c.Hold == s.hold
	case Blocked:
		return c.To == Available && c.Hold == uuid.Nil
	}
	return false
}
