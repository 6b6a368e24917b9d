package ledger

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// JournalID numbers a journal; it fits 32 bits.
type JournalID uint32

// System is the journal of what isn't about one event. An event's journal has
// the seq of the system entry that created it as its number.
const System JournalID = 0

// SystemPrincipal is who asks for what the program does of itself, such as expiries.
// No caller may have the name.
const SystemPrincipal = "system"

// Seq numbers the entries of a journal from 1. It's also the version of the
// journal and of every account and row that the entry touched.
type Seq int64

// NewID makes a UUIDv8 (RFC 9562, section 5.8) from a journal and names: 32 bits
// of the journal's number, then 90 bits of a hash over the names. The same names
// give the same id, and any id tells its journal.
func NewID(journal JournalID, names ...string) uuid.UUID {
	h := sha256.New()
	var size [8]byte
	for _, name := range names {
		binary.BigEndian.PutUint64(size[:], uint64(len(name)))
		h.Write(size[:])
		h.Write([]byte(name))
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	var id uuid.UUID
	binary.BigEndian.PutUint32(id[:4], uint32(journal))
	copy(id[4:], sum[:12])
	id[6] = id[6]&0x0f | 0x80 // version 8
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return id
}

// JournalOf tells which journal an id belongs to; false for an id that NewID
// can't have made.
func JournalOf(id uuid.UUID) (JournalID, bool) {
	if id.Version() != 8 || id.Variant() != uuid.RFC4122 {
		return 0, false
	}
	return JournalID(binary.BigEndian.Uint32(id[:4])), true
}
