package export

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/ledger"
)

// accountTypes are hledger's letters; it knows no memo or inventory, which are
// things that are there, so assets.
var accountTypes = map[ledger.Type]string{
	ledger.Asset: "A", ledger.Liability: "L", ledger.Income: "R", ledger.Expense: "X", ledger.Equity: "E",
	ledger.Inventory: "A", ledger.Memo: "A",
}

// writeHledger writes hledger's journal format. Every account and commodity is
// declared, so that strict checks pass; every posting carries its amount and
// asserts the balance after it, so that a change of one posting can't go unseen.
// Control accounts are hledger's parent accounts and need no declaration.
//
// Each lane has accounts of its own, below those that the event has: transit:lane/1 says
// what the lane has sent less what it got, and transit what is under way. Access codes are
// in the books as everything is; their uses are a commodity beside the tickets.
func writeHledger(ctx context.Context, w *bufio.Writer, b *book) error {
	for _, l := range b.lanes {
		fmt.Fprintf(w, "; The books of %s: %sjournal %d, entries 1 to %d.\n", b.event, l.title(), l.journal, l.head)
	}
	if len(b.lanes) > 1 {
		fmt.Fprintf(w, "; An account of a lane ends with it; the one above has what all lanes have together.\n")
	}
	fmt.Fprintf(w, "; Check them with: hledger check -s -f FILE\n\n")
	units := make(map[ledger.Unit]bool)
	for _, l := range b.lanes {
		var last string
		err := l.accounts(ctx, func(a ledger.AccountView) {
			if !units[a.Unit] {
				units[a.Unit] = true
				fmt.Fprintf(w, "commodity %s\n", sample(a.Unit))
			}
			if a.Account != last {
				fmt.Fprintf(w, "account %s  ; type: %s\n", l.account(a.Account), accountTypes[a.Type])
				last = a.Account
			}
		})
		if err != nil {
			return err
		}
	}
	for _, l := range b.lanes {
		if err := l.entries(ctx, func(e ledger.EntryView) error { l.writeEntry(w, e); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// writeEntry writes an entry that has postings as hledger's transaction.
func (l *lane) writeEntry(w *bufio.Writer, e ledger.EntryView) {
	if len(e.Postings) == 0 {
		return
	}
	code := strconv.FormatInt(int64(e.Seq), 10)
	if l.number > 0 {
		code = fmt.Sprintf("%d/%d", l.number, e.Seq)
	}
	fmt.Fprintf(w, "\n%s (%s) %s  ; id:%s, at:%s\n",
		e.At.Format(time.DateOnly), code, e.Kind, e.ID, e.At.Format(time.RFC3339Nano))
	for _, p := range e.Postings {
		fmt.Fprintf(w, "    %s  %s = %s\n", l.account(p.Account), quantity(p.Amount, p.Unit), quantity(p.Balance, p.Unit))
	}
}

// account names an account of the lane. No account of ours has a slash.
func (l *lane) account(code string) string {
	if l.number == 0 {
		return code
	}
	return fmt.Sprintf("%s:lane/%d", code, l.number)
}

// title says which lane it is, when there are others.
func (l *lane) title() string {
	if l.number == 0 {
		return ""
	}
	return fmt.Sprintf("lane %d, ", l.number)
}

// exponent is the number of decimals that a unit is written with.
func exponent(u ledger.Unit) int32 {
	if c, _, ok := u.Currency(); ok {
		n, _ := c.Exponent()
		return int32(n)
	}
	return 0
}

// quantity writes an amount in whole units; the unit is quoted, as hledger wants
// for names with digits or points.
func quantity(a ledger.Amount, u ledger.Unit) string {
	n := exponent(u)
	return fmt.Sprintf("%s %q", decimal.New(int64(a), -n).StringFixed(n), string(u))
}

// sample shows hledger a unit's decimals; without any it wants the bare point.
func sample(u ledger.Unit) string {
	n := exponent(u)
	text := decimal.New(1000, 0).StringFixed(n)
	if n == 0 {
		text += "."
	}
	return fmt.Sprintf("%s %q", text, string(u))
}
