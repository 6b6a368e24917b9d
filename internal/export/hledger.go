package export

import (
	"bufio"
	"context"
	"fmt"
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
func writeHledger(ctx context.Context, w *bufio.Writer, b *book) error {
	fmt.Fprintf(w, "; The books of %s: journal %d, entries 1 to %d.\n", b.event, b.journal, b.head)
	fmt.Fprintf(w, "; Check them with: hledger check -s -f FILE\n\n")
	units := make(map[ledger.Unit]bool)
	var last string
	err := b.accounts(ctx, func(a ledger.AccountView) {
		if !units[a.Unit] {
			units[a.Unit] = true
			fmt.Fprintf(w, "commodity %s\n", sample(a.Unit))
		}
		if a.Account != last {
			fmt.Fprintf(w, "account %s  ; type: %s\n", a.Account, accountTypes[a.Type])
			last = a.Account
		}
	})
	if err != nil {
		return err
	}
	return b.entries(ctx, func(e ledger.EntryView) error {
		if len(e.Postings) == 0 {
			return nil
		}
		fmt.Fprintf(w, "\n%s (%d) %s  ; id:%s, at:%s\n",
			e.At.Format(time.DateOnly), e.Seq, e.Kind, e.ID, e.At.Format(time.RFC3339Nano))
		for _, p := range e.Postings {
			fmt.Fprintf(w, "    %s  %s = %s\n", p.Account, quantity(p.Amount, p.Unit), quantity(p.Balance, p.Unit))
		}
		return nil
	})
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
