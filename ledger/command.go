package ledger

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Body is what a command asks for. Its methods are pure: no context, clock,
// logger or driver inside.
type Body interface {
	// Accounts names the accounts (all units of each) that the decision reads or
	// posts to, as far as the body alone tells; a Shelf may add those that its
	// rows lead to.
	Accounts() []string
	// Decide judges the command against the rows as the earlier commands left
	// them. It returns a decision, or the reason for a no.
	Decide(s *State) (Decision, error)
}

// Decision is what an accepted command does.
type Decision struct {
	Kind string // of the entry; "" when there's nothing to change, only an answer
	Legs []Leg
	Rows []Row           // changed rows of other packages
	Data json.RawMessage // the entry's data: the answer
}

// Leg is an amount for an account. Legs for one account and unit are merged.
type Leg struct {
	Account string
	Unit    Unit
	Amount  Amount
}

// Row is a changed row of some package; it finds its Shelf in the state and
// leaves itself there.
type Row interface{ Keep(s *State) }

// Checked is a Row that may not fit what was read; it's asked before anything of the
// decision is applied. Its error is a bug, or a damaged row: the command fails alone.
type Checked interface {
	Row
	Check(s *State) error
}

// Command is a request to change one journal, under an idempotency key.
type Command struct {
	ID        uuid.UUID
	Principal string
	Digest    Hash
	Body      Body
	DryRun    bool // decide and answer, but write nothing
}

// NewCommand makes a command whose id is made of the principal and the key: the
// same two name the same command for good. The digest covers the operation's name
// and its parameters as JSON, so that a reused key is told from a repeat.
func NewCommand(journal JournalID, principal, key, operation string, parameters any, body Body) (Command, error) {
	text, err := json.Marshal(parameters)
	if err != nil {
		return Command{}, fmt.Errorf("digest of %s: %w", operation, err)
	}
	h := sha256.New()
	for _, s := range []string{principal, key, operation} {
		h.Write(appendText(nil, s))
	}
	h.Write(text)
	c := Command{ID: NewID(journal, principal, key), Principal: principal, Body: body}
	h.Sum(c.Digest[:0])
	return c, nil
}

// Receipt is the answer to an accepted command.
type Receipt struct {
	ID       uuid.UUID // the command's, and so the entry's; it tells the journal
	Kind     string
	Seq      Seq       // of the entry; for a decision without one, of the journal's head
	At       time.Time // of the entry, by the database's clock
	Data     json.RawMessage
	Replayed bool // the command had been accepted before; this is that answer
}

// Sharing is a Shelf that knows whether the journal is one of several over which a load is
// spread. Its batches are small for that reason, and the others use the machine while it
// waits: so it gathers a little before each.
type Sharing interface{ Shares() bool }

// Shelf holds one package's rows for the length of one batch.
type Shelf interface {
	// Read queues the reads of the rows that the commands need.
	Read(q *Reads)
	// Due returns the commands that time has made by now, such as expiries. They
	// go before the batch's own. More says that there may be others, which the
	// next batch will see.
	Due(now time.Time) (due []Command, more bool)
	// Accounts names the accounts that the rows just read lead to, by now.
	Accounts(now time.Time) []string
	// Write queues the writes of the rows that decisions have changed.
	Write(q *Writes)
}
