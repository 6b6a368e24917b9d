package ledger

import (
	"time"

	"github.com/google/uuid"
)

// Memory is a journal without a database: the pure core alone, for property
// tests, scripts and simulators. It decides and applies exactly as a committer's
// batch does; its shelves keep what decisions leave in them.
type Memory struct{ state *State }

// NewMemory makes an empty journal with shelves that are never read or written.
func NewMemory(journal JournalID, shelves ...Shelf) *Memory {
	return &Memory{&State{
		Journal: journal, shelves: shelves,
		accounts: make(map[AccountKey]*balance),
		past:     make(map[uuid.UUID]pastEntry),
	}}
}

// Do decides what is due at a time, then the commands in order, and gives their
// answers.
func (m *Memory) Do(now time.Time, commands ...Command) ([]Receipt, []error) {
	m.state.Now = now
	for _, shelf := range m.state.shelves {
		due, _ := shelf.Due(now)
		for _, c := range due {
			if _, err := m.state.judge(c); err != nil {
				panic(err) // what is due can't be refused
			}
		}
	}
	receipts, errs := make([]Receipt, len(commands)), make([]error, len(commands))
	for i, c := range commands {
		receipts[i], errs[i] = m.state.judge(c)
	}
	return receipts, errs
}

// Entries gives the journal so far.
func (m *Memory) Entries() []Entry { return m.state.entries }

// Balance gives an account's balance.
func (m *Memory) Balance(code string, unit Unit) Amount { return m.state.Balance(code, unit) }
