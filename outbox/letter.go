package outbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

const (
	// maxPayload bounds what's kept of a message: what the bus takes at most.
	maxPayload = 1 << 20
	// maxTold bounds a reason, in bytes. What's beyond it helps nobody.
	maxTold = 2000
	// maxName bounds the other texts of a letter, in bytes.
	maxName = 500
)

// LetterStatus is what became of a dead letter.
type LetterStatus string

// The states of a dead letter. Replayed means that its effect is there.
const (
	Dead      LetterStatus = "dead"
	Replayed  LetterStatus = "replayed"
	Discarded LetterStatus = "discarded"
)

// LetterStatuses lists all of them.
func LetterStatuses() []LetterStatus { return []LetterStatus{Dead, Replayed, Discarded} }

// DeadLetter is a letter as it's kept.
type DeadLetter struct {
	ID       uuid.UUID        `json:"letter_id"`
	Consumer string           `json:"consumer"`
	Journal  ledger.JournalID `json:"journal"`
	Seq      ledger.Seq       `json:"seq"` // 0: it names no entry, and can only be discarded
	Target   string           `json:"target,omitempty"`
	Kind     string           `json:"kind"`
	Money    bool             `json:"money"` // its entry moved money: a second person decides on it
	Reason   string           `json:"reason"`
	Attempts int              `json:"attempts"` // in all
	DiedAt   time.Time        `json:"died_at"`  // the last time
	Status   LetterStatus     `json:"status"`
	Taken    bool             `json:"taken,omitempty"`     // its replay still has to do it
	Replay   *uuid.UUID       `json:"replay_id,omitempty"` // that has it, or had it last
	EndedAt  *time.Time       `json:"ended_at,omitempty"`
	Payload  []byte           `json:"-"` // only of one that's read alone
}

// LetterID gives the id of a dead letter, which is its business key: whatever dies for the
// same consumer, entry and target is the same letter.
func LetterID(consumer string, journal ledger.JournalID, seq ledger.Seq, target string) uuid.UUID {
	return ledger.NewID(journal, "dead letter", consumer, strconv.FormatInt(int64(seq), 10), target)
}

// Bury keeps a letter. One that was buried before has died again: its attempts add up, and
// the rest tells of the last time. Call it in the transaction that lets go of the origin.
func Bury(ctx context.Context, tx pgx.Tx, l Letter) error {
	e := &l.Event
	consumer, target, kind := clean(l.Consumer, maxName), clean(l.Target, maxName), clean(e.Kind, maxName)
	id := LetterID(consumer, e.Journal, e.Seq, target)
	_, err := tx.Exec(ctx, sqlBury, id, consumer, int64(e.Journal), e.Seq, target, kind, l.payload(),
		clean(l.Reason, maxTold), max(l.Attempts, 1))
	if err != nil {
		return fmt.Errorf("bury entry %d of journal %d for %s: %w", e.Seq, e.Journal, consumer, err)
	}
	return nil
}

// payload gives what's kept of the message. An event that's too large is kept as it's
// published then, without its data, which the journal has; of anything else that's too
// large, the beginning.
func (l *Letter) payload() []byte {
	text := l.Payload
	if text == nil && l.Event.Seq > 0 {
		text = l.Event.Append(nil)
	}
	switch {
	case len(text) <= maxPayload:
		return append([]byte{}, text...) // nil would be NULL
	case l.Event.Seq > 0:
		bare := l.Event
		bare.Data = nil
		return bare.Append(nil)
	}
	return text[:maxPayload]
}

// clean makes text that the database takes of what anybody may have sent: UTF-8 without
// zero bytes, of at most some bytes. A text that's cut ends in an ellipsis.
func clean(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= most {
		return text
	}
	const more = "…"
	cut := most - len(more)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}

func scanLetter(row pgx.CollectableRow) (l DeadLetter, err error) {
	err = row.Scan(l.fields()...)
	l.settle()
	return l, err
}

// fields are where the columns of a letter go.
func (l *DeadLetter) fields() []any {
	return []any{&l.ID, &l.Consumer, &l.Journal, &l.Seq, &l.Target, &l.Kind, &l.Money, &l.Reason, &l.Attempts,
		&l.DiedAt, &l.Status, &l.Taken, &l.Replay, &l.EndedAt}
}

func (l *DeadLetter) settle() {
	l.DiedAt = l.DiedAt.UTC()
	if l.EndedAt != nil {
		*l.EndedAt = l.EndedAt.UTC()
	}
}
