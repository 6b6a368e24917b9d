package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// Consumer takes effect from the entries of some kinds, each once, in the order of their
// journal. It never sees an entry that isn't committed.
type Consumer struct {
	// Name is for good: its positions in the journals are kept under it.
	Name string
	// Kinds are the entries that have an effect; none: all.
	Kinds []string
	// Effect does what entries of one journal call for, in the transaction that also records
	// that it's done: it's done with that, or not at all. It does nothing outside of the
	// transaction. After an error the same entries come again, one at a time, up to
	// MaxAttempts times each, with a growing pause; then a dead letter is written, and the
	// next entry's turn has come. An error that is ErrAway, or says that the database is
	// away, isn't the entry's fault: the consumer pauses, and no attempt is counted.
	// It may be nil.
	Effect func(ctx context.Context, tx pgx.Tx, events []Event) error
	// Then is told of the same entries after the commit, at most once: for what is only a
	// hint to somebody. It may be nil.
	Then func(ctx context.Context, events []Event)
	// Idle tells, in the same transaction, that no entry so far has an effect, whatever its
	// kind: then they needn't be read. It may be nil.
	Idle func(ctx context.Context, tx pgx.Tx) (bool, error)
}

// ErrAway says that something which a consumer depends on isn't there. The entry isn't at
// fault, and no attempt is counted.
var ErrAway = errors.New("outbox: a dependency is away")

// MaxAttempts is how often an entry's effect is tried before it's a dead letter.
const MaxAttempts = 8

// Letter is an effect, or a message, that couldn't be done after all attempts.
type Letter struct {
	Consumer string
	Event    Event  // its Data isn't kept: the journal has it
	Target   string // whom it was for, when one entry has several effects, or where in a stream it was
	Payload  []byte // as it came
	Reason   string // for people
	Attempts int
}

// retry gives the pause before a further attempt after some have failed.
func retry(attempts int) time.Duration { return backoff(attempts, firstRetry, lastRetry) }

// Message is what a bus delivers: a hint that a journal has an entry. The entry itself is
// read from the journal, so a message that's lost, repeated, late or made up changes nothing.
type Message struct {
	Subject string
	Data    []byte // of one with an Err; of any other, perhaps
	Place   uint64 // in the stream
	Origin  string // where in the stream it is, for people
	Journal ledger.JournalID
	Seq     ledger.Seq
	Err     error // why journal and seq can't be read from it

	Done  func()              // it needn't come again
	Again func(time.Duration) // it shall come again after a while
	Drop  func()              // it must never come again; what it was is kept elsewhere
}

// Feed delivers the messages of one consumer, each to one process.
type Feed interface {
	// Next waits for messages, at most so many; none when there are none for a while.
	Next(ctx context.Context, most int) ([]Message, error)
}
