package recon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// KindBooked is the kind of the entries that book lines of reports.
const KindBooked = "report.booked"

// maxBooked bounds a command: its lines delay whoever else is in the batch.
const maxBooked = 500

// providerOf is the account of a provider's balance, feesOf of what it costs.
func providerOf(name string) string { return "provider:" + name }
func feesOf(name string) string     { return "fees:provider:" + name }

// bookedLine is a line as its row and its entry have it.
type bookedLine struct {
	ID        string        `json:"line_id"`
	Type      LineType      `json:"type"`
	Payment   string        `json:"payment"`
	Operation *uuid.UUID    `json:"operation_id,omitempty"`
	CreatedAt time.Time     `json:"created_at"`
	Gross     ledger.Amount `json:"gross"`
	Fee       ledger.Amount `json:"fee"`
	Net       ledger.Amount `json:"net"`
	Currency  ledger.Unit   `json:"currency"`
	Result    Result        `json:"result"`

	journal ledger.JournalID
	version ledger.Seq // of the row; 0 for none
}

// booked gives the row that a verdict makes.
func (v *verdict) booked() bookedLine {
	l := bookedLine{
		ID: v.ID, Type: v.Type, Payment: v.Payment, CreatedAt: v.CreatedAt,
		Gross: v.Gross, Fee: v.Fee, Net: v.Net, Currency: v.Currency, Result: v.result, journal: v.journal,
	}
	if v.operation != uuid.Nil {
		l.Operation = &v.operation
	}
	return l
}

// tellsSame tells whether two rows are of one line of a report; judgedSame whether they
// were also found to be the same.
func (l *bookedLine) tellsSame(o *bookedLine) bool {
	return l.Type == o.Type && l.Payment == o.Payment && l.CreatedAt.Equal(o.CreatedAt) &&
		l.Gross == o.Gross && l.Fee == o.Fee && l.Net == o.Net && l.Currency == o.Currency
}

func (l *bookedLine) judgedSame(o *bookedLine) bool {
	return l.Result == o.Result && (l.Operation == nil) == (o.Operation == nil) &&
		(l.Operation == nil || *l.Operation == *o.Operation)
}

func contradicts(l *bookedLine) *fault.Error {
	return ErrReportContradicts.Because("line %s was booked as another", l.ID).With("line_id", l.ID)
}

// book commits the lines that aren't as they are known to be, journal by journal, and
// counts those that are new. A line stays in the journal where it was booked first.
func (r *Reports) book(ctx context.Context, principal, provider string, verdicts []verdict, known map[string]bookedLine) (booked int, err error) {
	byJournal := make(map[ledger.JournalID][]bookedLine)
	for i := range verdicts {
		l := verdicts[i].booked()
		if k, ok := known[l.ID]; ok {
			if l.judgedSame(&k) {
				continue
			}
			l.journal, l.version = k.journal, k.version
		}
		byJournal[l.journal] = append(byJournal[l.journal], l)
	}
	for _, journal := range slices.Sorted(maps.Keys(byJournal)) {
		for lines := range slices.Chunk(byJournal[journal], maxBooked) {
			receipt, err := r.ledger.Do(ctx, journal, bookCommand(journal, principal, provider, lines))
			if err != nil {
				return booked, err
			}
			if receipt.Kind == "" || receipt.Replayed {
				continue // others have booked them
			}
			var b booking
			if err := json.Unmarshal(receipt.Data, &b); err != nil {
				return booked, fmt.Errorf("answer of %s: %w", KindBooked, err)
			}
			booked += b.Booked
		}
	}
	return booked, nil
}

// bookCommand makes the command that books lines. Its id is made of the provider and
// the lines, as they are to be and as they were: the same lines are the same command,
// whoever imports them, and judged again they're another.
func bookCommand(journal ledger.JournalID, principal, provider string, lines []bookedLine) ledger.Command {
	h := sha256.New()
	for i := range lines {
		fmt.Fprintf(h, "%s %d\n", asJSON(&lines[i]), lines[i].version)
	}
	c := ledger.Command{Principal: principal, Body: &book{provider: provider, lines: lines}}
	h.Sum(c.Digest[:0])
	c.ID = ledger.NewID(journal, ledger.SystemPrincipal, KindBooked, provider, hex.EncodeToString(c.Digest[:]))
	return c
}

// asJSON writes what has nothing that can't be JSON.
func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// book is the command that books lines of a report in one journal.
type book struct {
	provider string
	lines    []bookedLine // with the versions of the rows that the verdicts rest on
}

// booking is the data of its entry.
type booking struct {
	Provider string          `json:"provider"`
	Booked   int             `json:"booked"` // lines that weren't booked before
	Judged   int             `json:"judged"` // lines that were, and are found to be something else
	Fees     []buckets.Money `json:"fees"`   // of the new lines
	Lines    []bookedLine    `json:"lines"`  // the new and the judged
}

func (b *book) Accounts() []string { return []string{providerOf(b.provider), feesOf(b.provider)} }

// Decide books the fees of the lines that have no row yet, and records what all are
// found to be. A row that has changed since it was read was judged by another import,
// and stays as that left it. Without anything to change there's no entry.
func (b *book) Decide(s *ledger.State) (ledger.Decision, error) {
	shelf := shelfOf(s)
	done := booking{Provider: b.provider, Fees: []buckets.Money{}}
	fees := make(map[ledger.Unit]ledger.Amount)
	var rows []ledger.Row
	for _, l := range b.lines {
		row := shelf.lines[lineKey{b.provider, l.ID}]
		switch {
		case row == nil:
			done.Booked++
			fees[l.Currency] += l.Fee
		case !row.tellsSame(&l):
			return ledger.Decision{}, contradicts(&l)
		case row.version != l.version || row.judgedSame(&l):
			continue
		default:
			done.Judged++
		}
		l.version = s.NextSeq()
		done.Lines = append(done.Lines, l)
		rows = append(rows, lineRow{b.provider, l})
	}
	if len(rows) == 0 {
		return ledger.Decision{}, nil
	}
	var legs []ledger.Leg
	for _, currency := range slices.Sorted(maps.Keys(fees)) {
		fee := fees[currency]
		if fee == 0 {
			continue
		}
		done.Fees = append(done.Fees, buckets.Money{Amount: fee, Currency: currency})
		legs = append(legs,
			ledger.Leg{Account: feesOf(b.provider), Unit: currency, Amount: fee},
			ledger.Leg{Account: providerOf(b.provider), Unit: currency, Amount: -fee})
	}
	return ledger.Decision{Kind: KindBooked, Legs: legs, Rows: rows, Data: asJSON(&done)}, nil
}
