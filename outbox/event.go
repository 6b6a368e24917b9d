package outbox

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/ledger"
)

// Event is an entry of a journal as it's published and consumed. Journal and Seq name it
// for good: whoever takes effect from events remembers these.
type Event struct {
	Journal ledger.JournalID
	Seq     ledger.Seq
	ID      uuid.UUID // of the entry
	Kind    string
	At      time.Time       // of the entry, by the database's clock
	Data    json.RawMessage // what the entry records; nil when it's too large for the bus
}

const (
	// SubjectPrefix begins every event's subject; journal and kind follow.
	SubjectPrefix = "tierledger.journal."
	// ContentType is that of a CloudEvent in structured mode, as the CloudEvents JSON format
	// 1.0 names it.
	ContentType = "application/cloudevents+json"
	// SchemaVersion is that of the schemas of all kinds of data; it's in every event's type.
	// A field that's added keeps it, any other change makes another.
	SchemaVersion = 1
)

// Subject gives the subject that an event is published to: of one journal are those that
// begin with JournalSubject, of one kind those that match KindSubject.
func (e *Event) Subject() string {
	return SubjectPrefix + strconv.FormatUint(uint64(e.Journal), 10) + "." + e.Kind
}

// JournalSubject matches the events of one journal.
func JournalSubject(journal ledger.JournalID) string {
	return SubjectPrefix + strconv.FormatUint(uint64(journal), 10) + ".>"
}

// KindSubject matches the events of one kind in all journals.
func KindSubject(kind string) string { return SubjectPrefix + "*." + kind }

// Type is the CloudEvents type of a kind.
func Type(kind string) string { return "tierledger." + kind + ".v" + strconv.Itoa(SchemaVersion) }

// Append appends the event as a CloudEvent, in the JSON format of CloudEvents 1.0. The
// extension attributes journal and seq are strings, because integers of CloudEvents have
// 32 bits. Data that the bus can't take is left out, and dataref (an extension that
// CloudEvents documents) tells where it is.
func (e *Event) Append(b []byte) []byte {
	journal := strconv.FormatUint(uint64(e.Journal), 10)
	seq := strconv.FormatInt(int64(e.Seq), 10)
	b = append(b, `{"specversion":"1.0","id":"`...)
	b = append(b, e.ID.String()...)
	b = append(b, `","source":"/journals/`...)
	b = append(b, journal...)
	b = append(b, `","type":"`...)
	b = append(b, Type(e.Kind)...)
	b = append(b, `","time":"`...)
	b = e.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","journal":"`...)
	b = append(b, journal...)
	b = append(b, `","seq":"`...)
	b = append(b, seq...)
	b = append(b, `","kind":"`...)
	b = append(b, e.Kind...)
	if e.Data == nil {
		b = append(b, `","dataref":"`...)
		b = append(b, DataRef(e.Journal, e.Seq)...)
		return append(b, `"}`...)
	}
	b = append(b, `","datacontenttype":"application/json","data":`...)
	b = append(b, e.Data...)
	return append(b, '}')
}

// DataRef is where the data of an event is that was published without it: a URN that
// names the entry.
func DataRef(journal ledger.JournalID, seq ledger.Seq) string {
	return fmt.Sprintf("urn:tierledger:entry:%d:%d", journal, seq)
}

// MarshalJSON gives the CloudEvent.
func (e Event) MarshalJSON() ([]byte, error) { return e.Append(nil), nil }

// UnmarshalJSON reads a CloudEvent that Append wrote. Its error says what of it isn't so.
func (e *Event) UnmarshalJSON(text []byte) error {
	var c struct {
		SpecVersion string          `json:"specversion"`
		ID          uuid.UUID       `json:"id"`
		Type        string          `json:"type"`
		Time        time.Time       `json:"time"`
		Journal     string          `json:"journal"`
		Seq         string          `json:"seq"`
		Kind        string          `json:"kind"`
		Data        json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	journal, err := strconv.ParseUint(c.Journal, 10, 32)
	if err != nil {
		return fmt.Errorf("journal %q isn't a journal's number", c.Journal)
	}
	seq, err := strconv.ParseInt(c.Seq, 10, 64)
	switch {
	case err != nil || seq < 1:
		return fmt.Errorf("seq %q isn't an entry's number", c.Seq)
	case c.SpecVersion != "1.0":
		return fmt.Errorf("specversion %q isn't 1.0", c.SpecVersion)
	case c.Kind == "" || c.Type != Type(c.Kind):
		return fmt.Errorf("type %q isn't that of kind %q in version %d", c.Type, c.Kind, SchemaVersion)
	}
	*e = Event{ledger.JournalID(journal), ledger.Seq(seq), c.ID, c.Kind, c.Time, c.Data}
	return nil
}

// ParseSubject reads the journal and the kind of an event's subject.
func ParseSubject(subject string) (ledger.JournalID, string, error) {
	rest, ok := strings.CutPrefix(subject, SubjectPrefix)
	number, kind, more := strings.Cut(rest, ".")
	journal, err := strconv.ParseUint(number, 10, 32)
	if !ok || !more || kind == "" || err != nil || number != strconv.FormatUint(journal, 10) {
		return 0, "", fmt.Errorf("subject %q isn't %s, a journal's number and a kind", subject, SubjectPrefix)
	}
	return ledger.JournalID(journal), kind, nil
}
