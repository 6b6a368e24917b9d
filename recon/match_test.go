package recon

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

const testJournal = ledger.JournalID(9)

func TestMatchScripts(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/match", func(t *testing.T, d *datadriven.TestData) string {
		s := script{T: t, names: map[uuid.UUID]string{}}
		for line := range strings.Lines(d.Input) {
			s.read(strings.Fields(line))
		}
		return s.show()
	})
}

// script is evidence written as text.
type script struct {
	*testing.T
	evidence
	names map[uuid.UUID]string
}

// id gives the id that a name stands for: one of ours, or of the provider's own.
func (s *script) id(name string) uuid.UUID {
	id := ledger.NewID(testJournal, "tester", name)
	if strings.HasPrefix(name, "op_") {
		id = ledger.NewID(testJournal, ledger.SystemPrincipal, "foreign", "sim", name)
	}
	s.names[id] = name
	return id
}

func (s *script) read(f []string) {
	s.Helper()
	switch f[0] {
	case "op":
		s.operations = append(s.operations, s.operation(f[1:]))
	case "moved":
		s.moved = append(s.moved, s.operation(f[1:]))
	case "claim":
		if s.claims == nil {
			s.claims = map[claim]bool{}
		}
		s.claims[claim{s.id(f[1]), LineType(f[2])}] = true
	case "last":
		s.last = *s.at(f[1])
	case "line":
		l := Line{ID: f[1], Type: LineType(f[2]), Payment: dash(f[3]), Gross: s.amount(f[5]), Currency: ledger.Unit(f[6]),
			CreatedAt: *s.at(f[7])}
		switch f[4] {
		case "-":
		case "theirs":
			l.Reference = uuid.NameSpaceURL.String() // nobody of ours made it
		default:
			l.Reference = s.id(f[4]).String()
		}
		s.lines = append(s.lines, l)
		if l.CreatedAt.After(s.last) {
			s.last = l.CreatedAt
		}
	default:
		s.Fatalf("%q", f)
	}
}

func (s *script) operation(f []string) Operation {
	o := Operation{ID: s.id(f[0]), Kind: payments.Kind(f[1]), Status: f[2], Provider: "sim", Payment: dash(f[3]), Reference: f[0],
		Amount: buckets.Money{Amount: s.amount(f[4]), Currency: ledger.Unit(f[5])}, ToldAt: s.at(f[6])}
	o.Captured = len(f) > 7
	return o
}

func dash(text string) string { return strings.TrimPrefix(text, "-") }

func (s *script) amount(text string) ledger.Amount {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.Fatal(err)
	}
	return ledger.Amount(n)
}

func (s *script) at(text string) *time.Time {
	if text == "-" {
		return nil
	}
	at, err := time.Parse("2006-01-02 15:04", "2026-11-30 "+text)
	if err != nil {
		s.Fatal(err)
	}
	return &at
}

func (s *script) show() string {
	var out strings.Builder
	verdicts, unreported := s.match()
	for i := range verdicts {
		v := &verdicts[i]
		fmt.Fprintf(&out, "%s %s %s in %d", v.ID, v.result, cmp.Or(s.names[v.operation], "-"), v.journal)
		if d := v.difference(); d.Ours != nil && v.result != Matched {
			fmt.Fprintf(&out, " ours %d %s", d.Ours.Amount, d.Ours.Currency)
		}
		out.WriteString("\n")
	}
	for _, d := range unreported {
		fmt.Fprintf(&out, "%s %s ours %d %s\n", s.names[*d.OperationID], d.Result, d.Ours.Amount, d.Ours.Currency)
	}
	return out.String()
}

// However the lines are ordered, each is found to be the same; no operation has two
// lines of a type that aren't duplicates; and whatever is matched agrees.
func TestMatchProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		operations := rapid.SliceOfN(rapid.Custom(drawOperation), 0, 6).Draw(t, "operations")
		lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Line { return drawLine(t, operations) }), 1, 8).Draw(t, "lines")
		for i := range lines {
			lines[i].ID = fmt.Sprint("t", i)
		}
		judge := func(lines []Line) map[string]verdict {
			e := evidence{lines: lines, operations: operations}
			verdicts, _ := e.match()
			byID := map[string]verdict{}
			for _, v := range verdicts {
				byID[v.ID] = v
			}
			return byID
		}
		first := judge(lines)
		again := judge(rapid.Permutation(slices.Clone(lines)).Draw(t, "order"))
		has := map[claim]string{}
		for id, v := range first {
			if w := again[id]; w.result != v.result || w.operation != v.operation || w.journal != v.journal {
				t.Errorf("%s is %s of %s, in another order %s of %s", id, v.result, v.operation, w.result, w.operation)
			}
			if v.compared != nil && v.result != Duplicate {
				c := claim{v.operation, v.Type}
				if has[c] != "" {
					t.Errorf("%s and %s have %s", id, has[c], v.operation)
				}
				has[c] = id
			}
			if v.result == Matched && v.Type != LineFee && (v.ours(v.compared) != v.gross() || v.compared.Payment != v.Payment) {
				t.Errorf("%s is matched with %+v", id, *v.compared)
			}
		}
	})
}

func drawOperation(t *rapid.T) Operation {
	name := rapid.SampledFrom([]string{"a", "b", "c", "op_1", "op_2"}).Draw(t, "name")
	s := script{names: map[uuid.UUID]string{}}
	at := time.Unix(int64(rapid.IntRange(1, 5).Draw(t, "told")), 0)
	return Operation{
		ID: s.id(name), Provider: "sim", Reference: name, ToldAt: &at,
		Kind: rapid.SampledFrom([]payments.Kind{payments.Authorize, payments.Capture, payments.Refund,
			payments.Chargeback}).Draw(t, "kind"),
		Status:  rapid.SampledFrom([]string{"succeeded", "declined", "unknown"}).Draw(t, "status"),
		Payment: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "payment"),
		Amount: buckets.Money{Amount: ledger.Amount(rapid.IntRange(1, 2).Draw(t, "amount")),
			Currency: rapid.SampledFrom([]ledger.Unit{"USD", "JPY"}).Draw(t, "currency")},
		Captured: rapid.Bool().Draw(t, "captured"),
	}
}

func drawLine(t *rapid.T, operations []Operation) Line {
	kind := rapid.SampledFrom([]LineType{LineCharge, LineCapture, LineCaptureFailed, LineRefund, LineChargeback, LineFee}).Draw(t, "type")
	sign, _ := kind.sign()
	l := Line{
		Type: kind, Payment: rapid.SampledFrom([]string{"p1", "p2", "p3"}).Draw(t, "payment"),
		CreatedAt: time.Unix(int64(rapid.IntRange(1, 5).Draw(t, "created")), 0),
		Gross:     ledger.Amount(sign * rapid.IntRange(1, 2).Draw(t, "gross")),
		Currency:  rapid.SampledFrom([]ledger.Unit{"USD", "JPY"}).Draw(t, "currency"),
	}
	if len(operations) > 0 && rapid.Bool().Draw(t, "named") {
		l.Reference = rapid.SampledFrom(operations).Draw(t, "operation").ID.String()
	}
	return l
}
