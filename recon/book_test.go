package recon

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/ledger"
)

var testTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// journal is a journal in memory.
type journal struct {
	*testing.T
	*ledger.Memory
	shelf *shelf
}

func newJournal(t *testing.T) *journal {
	s := NewShelf().(*shelf)
	return &journal{t, ledger.NewMemory(testJournal, s), s}
}

// row makes a line with a fee, read at a version.
func row(id string, fee ledger.Amount, result Result, version ledger.Seq) bookedLine {
	operation := ledger.NewID(testJournal, "tester", id)
	return bookedLine{ID: id, Type: LineCapture, Payment: "p1", Operation: &operation, CreatedAt: testTime, Gross: 1000, Fee: fee,
		Net: 1000 - fee, Currency: "USD", Result: result, journal: testJournal, version: version}
}

// books books lines with one command.
func (j *journal) books(lines ...bookedLine) (booking, error) {
	j.Helper()
	receipts, errs := j.Do(testTime, bookCommand(testJournal, "tester", "sim", lines))
	var b booking
	if errs[0] == nil && receipts[0].Kind != "" {
		if err := json.Unmarshal(receipts[0].Data, &b); err != nil {
			j.Fatal(err)
		}
	}
	return b, errs[0]
}

// state shows the rows, the account of fees and the number of entries.
func (j *journal) is(want string) {
	j.Helper()
	got := fmt.Sprint(j.Balance("fees:provider:sim", "USD"), j.Balance("provider:sim", "USD"), len(j.Entries()))
	for _, id := range []string{"a", "b", "c"} {
		if l := j.shelf.lines[lineKey{"sim", id}]; l != nil {
			got += fmt.Sprintf(" %s=%s@%d", id, l.Result, l.version)
		}
	}
	if got != want {
		j.Errorf("%s, want %s", got, want)
	}
}

func TestBook(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	expect := func(booked, judged int, lines ...bookedLine) {
		t.Helper()
		if b, err := j.books(lines...); err != nil || b.Booked != booked || b.Judged != judged || len(b.Lines) != booked+judged {
			t.Errorf("%+v, %v, want %d booked and %d judged", b, err, booked, judged)
		}
	}
	expect(2, 0, row("a", 30, Unsettled, 0), row("b", -10, Matched, 0))
	j.is("20 -20 1 a=unsettled@1 b=matched@1")
	// An overlapping report, whose reader hadn't seen the rows yet.
	expect(1, 0, row("b", -10, Matched, 0), row("c", 5, Matched, 0))
	j.is("25 -25 2 a=unsettled@1 b=matched@1 c=matched@2")
	// Judged again; nothing is posted.
	expect(0, 1, row("a", 30, Matched, 1), row("c", 5, Matched, 2))
	j.is("25 -25 3 a=matched@3 b=matched@1 c=matched@2")
	// By what was read before that: it's too late, and there's nothing to do.
	expect(0, 0, row("a", 30, AmountDiffers, 1))
	expect(0, 0, row("a", 30, AmountDiffers, 0))
	expect(0, 0, row("a", 30, Matched, 3), row("b", -10, Matched, 1))
	j.is("25 -25 3 a=matched@3 b=matched@1 c=matched@2")
	// And back: it isn't the command of the first time.
	expect(0, 1, row("a", 30, Unsettled, 3))
	j.is("25 -25 4 a=unsettled@4 b=matched@1 c=matched@2")
	// Each row is written once, as it is in the end.
	if len(j.shelf.new) != 3 || len(j.shelf.rejudged) != 0 || j.shelf.new[0].Result != Unsettled || j.shelf.new[0].version != 4 {
		t.Errorf("new %v, rejudged %v", j.shelf.new, j.shelf.rejudged)
	}
}

// A row that was judged by others since it was read may tell something else, too.
func TestBookRefusesWhatContradicts(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	if _, err := j.books(row("a", 30, Matched, 0)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*bookedLine){
		"type":     func(l *bookedLine) { l.Type = LineCharge },
		"payment":  func(l *bookedLine) { l.Payment = "p2" },
		"created":  func(l *bookedLine) { l.CreatedAt = testTime.Add(time.Microsecond) },
		"gross":    func(l *bookedLine) { l.Gross++; l.Fee++ },
		"fee":      func(l *bookedLine) { l.Fee++; l.Net-- },
		"currency": func(l *bookedLine) { l.Currency = "EUR" },
	} {
		other := row("a", 30, Matched, 0)
		change(&other)
		if _, err := j.books(row("b", 1, Matched, 0), other); !errors.Is(err, ErrReportContradicts) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	j.is("30 -30 1 a=matched@1")
}

// The same lines are the same command, whoever imports them; anything else isn't.
func TestBookCommandIDs(t *testing.T) {
	t.Parallel()
	first := bookCommand(testJournal, "ann", "sim", []bookedLine{row("a", 30, Matched, 0)})
	if again := bookCommand(testJournal, "bob", "sim", []bookedLine{row("a", 30, Matched, 0)}); again.ID != first.ID || again.Digest != first.Digest {
		t.Error("the same lines are another command")
	}
	seen := map[uuid.UUID]string{first.ID: "first"}
	for name, c := range map[string]ledger.Command{
		"journal":  bookCommand(testJournal+1, "ann", "sim", []bookedLine{row("a", 30, Matched, 0)}),
		"provider": bookCommand(testJournal, "ann", "other", []bookedLine{row("a", 30, Matched, 0)}),
		"line":     bookCommand(testJournal, "ann", "sim", []bookedLine{row("b", 30, Matched, 0)}),
		"fee":      bookCommand(testJournal, "ann", "sim", []bookedLine{row("a", 31, Matched, 0)}),
		"result":   bookCommand(testJournal, "ann", "sim", []bookedLine{row("a", 30, Unsettled, 0)}),
		"version":  bookCommand(testJournal, "ann", "sim", []bookedLine{row("a", 30, Matched, 1)}),
		"lines":    bookCommand(testJournal, "ann", "sim", []bookedLine{row("a", 30, Matched, 0), row("b", 30, Matched, 0)}),
	} {
		if seen[c.ID] != "" {
			t.Errorf("another %s has the id of %s", name, seen[c.ID])
		}
		seen[c.ID] = name
	}
}
