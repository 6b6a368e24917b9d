package outbox_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
)

// anyEvent draws an event as the journal may have it.
func anyEvent(t *rapid.T) outbox.Event {
	e := outbox.Event{
		Journal: ledger.JournalID(rapid.Uint32().Draw(t, "journal")),
		Seq:     ledger.Seq(rapid.Int64Min(1).Draw(t, "seq")),
		ID:      uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")),
		Kind:    rapid.StringMatching(`[a-z_]{1,20}\.[a-z_]{1,20}`).Draw(t, "kind"),
		At:      time.UnixMicro(rapid.Int64Range(0, 253402300799999999).Draw(t, "at")).UTC(), // to the year 9999
	}
	if rapid.Bool().Draw(t, "has data") {
		e.Data = anyData(t)
	}
	return e
}

// anyData draws JSON that encoding/json would write in another way.
func anyData(t *rapid.T) json.RawMessage {
	text, err := json.Marshal(rapid.String().Draw(t, "text"))
	if err != nil {
		t.Fatal(err)
	}
	number := rapid.StringMatching(`-?[1-9][0-9]{0,40}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number")
	return json.RawMessage(rapid.SampledFrom([]string{
		fmt.Sprintf(`{"b" : %s,`+"\n\t"+`"a":[%s , null ], "a": "<&>\u00e9" }`, text, number),
		fmt.Sprintf(`[ %s,%s]`, number, text), string(text), number, `null`, `true`, `{}`, `{ }`,
	}).Draw(t, "data"))
}

func TestAnEventIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		text := e.Append([]byte("before"))[len("before"):]
		var got outbox.Event
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got.Journal != e.Journal || got.Seq != e.Seq || got.ID != e.ID || got.Kind != e.Kind || !got.At.Equal(e.At) {
			t.Errorf("%+v was read as %+v", e, got)
		}
		if string(got.Data) != string(e.Data) || (got.Data == nil) != (e.Data == nil) {
			t.Errorf("data %q was read as %q", e.Data, got.Data)
		}
		journal, kind, err := outbox.ParseSubject(e.Subject())
		if journal != e.Journal || kind != e.Kind || err != nil {
			t.Errorf("subject %s is of journal %d, kind %s, %v", e.Subject(), journal, kind, err)
		}
		wantCloudEvent(t, e, text)
	})
}

// The rules of CloudEvents 1.0 and of its JSON format, each by its section there.
var (
	attributeName = regexp.MustCompile(`^[a-z0-9]{1,20}$`)                                                                  // Attribute Naming Convention
	timestamp     = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$`)                     // Type System: RFC 3339
	urn           = regexp.MustCompile(`^urn:[a-zA-Z0-9][a-zA-Z0-9-]{0,30}[a-zA-Z0-9]:[A-Za-z0-9()+,\-.:=@;$_!*'%/?#~&]+$`) // RFC 8141
)

func wantCloudEvent(t *rapid.T, e outbox.Event, text []byte) {
	members := membersOf(t, text)
	if strings.Contains(string(text), "\n") && e.Data == nil {
		t.Errorf("%s has lines", text)
	}
	for name, value := range members {
		var s string
		switch {
		case !attributeName.MatchString(name):
			t.Errorf("attribute %q: only lower-case letters and digits, at most 20", name)
		case name == "data":
			if string(value) != string(e.Data) {
				t.Errorf("data is %q, not verbatim %q", value, e.Data)
			}
		case json.Unmarshal(value, &s) != nil || s == "":
			t.Errorf("attribute %s is %s: all of ours are strings, and none is empty", name, value)
		}
	}
	text1 := func(name string) (s string) { _ = json.Unmarshal(members[name], &s); return s }
	if got := text1("specversion"); got != "1.0" {
		t.Errorf("specversion is %q", got)
	}
	if got := text1("id"); got != e.ID.String() {
		t.Errorf("id is %q", got)
	}
	if source, err := url.Parse(text1("source")); err != nil || source.String() == "" {
		t.Errorf("source is %q: a URI-reference, not empty", text1("source"))
	}
	if got := text1("type"); got != "tierledger."+e.Kind+".v1" {
		t.Errorf("type is %q", got)
	}
	if at, err := time.Parse(time.RFC3339, text1("time")); err != nil || !timestamp.MatchString(text1("time")) || !at.Equal(e.At) {
		t.Errorf("time is %q of %v: %v", text1("time"), e.At, err)
	}
	if text1("journal") != fmt.Sprint(e.Journal) || text1("seq") != fmt.Sprint(e.Seq) || text1("kind") != e.Kind {
		t.Errorf("journal, seq, kind are %s, %s, %s", members["journal"], members["seq"], members["kind"])
	}
	want := []string{"data", "datacontenttype"}
	if e.Data == nil {
		want = []string{"dataref"}
		if ref := text1("dataref"); !urn.MatchString(ref) || ref != fmt.Sprintf("urn:tierledger:entry:%d:%d", e.Journal, e.Seq) {
			t.Errorf("dataref is %q", ref)
		}
	} else if got := text1("datacontenttype"); got != "application/json" {
		t.Errorf("datacontenttype is %q", got)
	}
	want = append(want, "id", "journal", "kind", "seq", "source", "specversion", "time", "type")
	slices.Sort(want)
	var names []string
	for name := range members {
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("the attributes are %q, not %q", names, want)
	}
}

// membersOf reads an object's members as they are; none may be there twice.
func membersOf(t *rapid.T, text []byte) map[string]json.RawMessage {
	members := make(map[string]json.RawMessage)
	d := json.NewDecoder(strings.NewReader(string(text)))
	if token, err := d.Token(); token != json.Delim('{') || err != nil {
		t.Fatalf("%s is no object: %v", text, err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if members[name.(string)] != nil {
			t.Errorf("%s is there twice", name)
		}
		members[name.(string)] = value
	}
	if _, err := d.Token(); err != nil || d.More() {
		t.Errorf("%s doesn't end with its object: %v", text, err)
	}
	return members
}

func TestEventsOfOtherVersionsAreRefused(t *testing.T) {
	t.Parallel()
	const good = `{"specversion":"1.0","id":"6ba7b810-9dad-11d1-80b4-00c04fd430c8","source":"/journals/5",` +
		`"type":"tierledger.hold.placed.v1","time":"2026-01-02T03:04:05.678901Z","journal":"5","seq":"7","kind":"hold.placed",` +
		`"datacontenttype":"application/json","data":{}}`
	var e outbox.Event
	if err := json.Unmarshal([]byte(good), &e); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new, says string }{
		{"another version of CloudEvents", `"1.0"`, `"2.0"`, "2.0"},
		{"no version of CloudEvents", `"specversion":"1.0",`, ``, "specversion"},
		{"another version of the data", `.v1"`, `.v2"`, "version 1"},
		{"no version of the data", `.v1"`, `"`, "version 1"},
		{"another kind", `"kind":"hold.placed"`, `"kind":"hold.released"`, "hold.released"},
		{"no kind", `"kind":"hold.placed",`, ``, "kind"},
		{"no journal", `"journal":"5",`, ``, "journal"},
		{"a journal beyond 32 bits", `"journal":"5"`, `"journal":"4294967296"`, "4294967296"},
		{"a negative journal", `"journal":"5"`, `"journal":"-5"`, "-5"},
		{"a journal that's a number", `"journal":"5"`, `"journal":5`, "journal"},
		{"no seq", `"seq":"7",`, ``, "seq"},
		{"seq 0", `"seq":"7"`, `"seq":"0"`, `"0"`},
		{"a negative seq", `"seq":"7"`, `"seq":"-7"`, `"-7"`},
		{"a seq beyond 64 bits", `"seq":"7"`, `"seq":"9223372036854775808"`, "9223372036854775808"},
		{"an id that's none", `6ba7b810-`, `6ba7`, "UUID"},
		{"a time that's none", `2026-01-02T`, `2026-01-02 `, "2026-01-02 "},
		{"half of it", `"data":{}}`, `"data":{`, "JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			got := outbox.Event{Kind: "untouched"}
			err := json.Unmarshal([]byte(text), &got)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v", err)
			}
			if got.Kind != "untouched" {
				t.Errorf("the event became %+v", got)
			}
		})
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	e := outbox.Event{Journal: 4294967295, Kind: "order.captured"}
	for got, want := range map[string]string{
		e.Subject():                          "tierledger.journal.4294967295.order.captured",
		outbox.JournalSubject(0):             "tierledger.journal.0.>",
		outbox.KindSubject("order.captured"): "tierledger.journal.*.order.captured",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, subject := range []string{
		"", "tierledger.journal.", "tierledger.journal.5", "tierledger.journal.5.", "tierledger.journal.05.a", "tierledger.journal..a.b", "tierledger.journal.x.a",
		"tierledger.journal.-5.a", "tierledger.journal.4294967296.a", "tierledger.journals.5.a", "5.a", "tierledger.wake.due.5",
	} {
		if journal, kind, err := outbox.ParseSubject(subject); err == nil || journal != 0 || kind != "" {
			t.Errorf("%q was read as journal %d, kind %q", subject, journal, kind)
		}
	}
}
