package outbox

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/ledger"
)

// Bus is where events are published to. It's transport: what it keeps can be lost, and is
// published again from the journals.
type Bus interface {
	// Stream tells how the stream stands.
	Stream(ctx context.Context) (Stream, error)
	// Seen says that what the stream lost up to a session is known: after another session
	// has begun, nothing can be published until that one is seen.
	Seen(session uint64)
	// Last gives the last message of a journal; the zero Mark when the stream has none.
	Last(ctx context.Context, journal ledger.JournalID) (Mark, error)
	// At gives the message at a place; the zero Mark when there's none any more.
	At(ctx context.Context, place uint64) (Mark, error)
	// Read calls each with the messages of a journal after a place, in their order and as many
	// at a time as come in one exchange: those that there were when it began, which may not be
	// the newest. An error means that there may be more; each's own ends it.
	Read(ctx context.Context, journal ledger.JournalID, place uint64, each func([]Mark) error) error
	// Publish appends events of one journal, all or, but for ErrFull, none, if the journal's
	// last message is at the place after; 0 for none. It returns the last one's place.
	// ErrFenced: somebody else has published. ErrFull: the bus takes no more now; the beginning
	// of the events may be there. ErrUnseen: another session has begun. Any other error: the
	// outcome is unknown.
	Publish(ctx context.Context, after uint64, events []Event) (place uint64, err error)
	// Limit is the size of the largest event that the bus takes, in bytes.
	Limit() int
}

// Stream is how the stream of the events stands.
type Stream struct {
	ID    string // its name and birth: another birth is another stream, and empty at first
	First uint64 // place of the oldest message that it has
	Last  uint64 // place of the newest that it has had; 0 for none
	// Session counts connections to a server. After another one the stream may have lost
	// what it had.
	Session uint64
}

// Mark is what's known of a message: where it is, and which entry it has. One that is
// somebody else's has none, and seq 0.
type Mark struct {
	Place   uint64 // its stream sequence
	Journal ledger.JournalID
	Seq     ledger.Seq
	ID      uuid.UUID
}

// Errors of a bus.
var (
	ErrFenced = errors.New("outbox: the journal's last message isn't where it was expected")
	ErrFull   = errors.New("outbox: the stream is full")
	ErrUnseen = errors.New("outbox: what the stream lost isn't known")
)
