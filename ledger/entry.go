package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Hash is a SHA-256 digest.
type Hash [sha256.Size]byte

// Posting is one leg of an entry.
type Posting struct {
	Account string
	Unit    Unit
	Amount  Amount
	Balance Amount // of the account after this posting
}

// Entry is one immutable record of a journal.
type Entry struct {
	Journal   JournalID
	Seq       Seq
	ID        uuid.UUID
	Kind      string // what happened, such as hold.placed
	At        time.Time
	Principal string          // who asked
	Digest    Hash            // of the request
	Data      json.RawMessage // the fact, and the answer that its caller got
	Postings  []Posting
	Hash      Hash // over the previous entry's hash and all of the above
}

// chainVersion begins every entry's hashed form, so that another form can follow.
const chainVersion = 1

// chain computes an entry's hash: SHA-256 over the previous hash and the entry's
// fields in the order of the struct. Integers are 64 bits, big endian; time is in
// microseconds since 1970; text and data are preceded by their length in bytes,
// the postings by their number. docs/architecture.md describes it for auditors.
func (e *Entry) chain(previous Hash, buf []byte) (Hash, []byte) {
	b := append(buf[:0], previous[:]...)
	b = append(b, chainVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Journal))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Seq))
	b = append(b, e.ID[:]...)
	b = appendText(b, e.Kind)
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixMicro()))
	b = appendText(b, e.Principal)
	b = append(b, e.Digest[:]...)
	b = appendText(b, string(e.Data))
	b = binary.BigEndian.AppendUint64(b, uint64(len(e.Postings)))
	for _, p := range e.Postings {
		b = appendText(b, p.Account)
		b = appendText(b, string(p.Unit))
		b = binary.BigEndian.AppendUint64(b, uint64(p.Amount))
		b = binary.BigEndian.AppendUint64(b, uint64(p.Balance))
	}
	return sha256.Sum256(b), b
}

func appendText(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}
