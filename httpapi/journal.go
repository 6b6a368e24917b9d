package httpapi

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

func (a *api) listAccounts(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	at, err := c.at()
	if err != nil {
		return answer{}, err
	}
	journal, err := a.journal(ctx, c)
	if err != nil {
		return answer{}, err
	}
	code, unit, _ := strings.Cut(page.After, " ") // neither has a space
	accounts, err := a.Reader.Accounts(ctx, journal, ledger.AccountQuery{
		At: at, AfterCode: code, AfterUnit: ledger.Unit(unit), Limit: page.Limit + 1,
	})
	if err != nil {
		return answer{}, err
	}
	return listed(page, accounts, func(v ledger.AccountView) string { return v.Account + " " + string(v.Unit) })
}

// getAccount answers with the account in one unit, or in all that it counts: a
// list that has no second page.
func (a *api) getAccount(ctx context.Context, c *call) (answer, error) {
	at, err := c.at()
	if err != nil {
		return answer{}, err
	}
	journal, code, err := a.account(ctx, c)
	if err != nil {
		return answer{}, err
	}
	accounts, err := a.Reader.Account(ctx, journal, code, ledger.Unit(c.query.Get("unit")), at)
	if err != nil {
		return answer{}, err
	}
	return listed(cursor{Limit: len(accounts)}, accounts, nil)
}

// journal finds the journal that a read is about: of the first lane of the event, where a
// sale that was never split has everything, or of the one that's asked for.
func (a *api) journal(ctx context.Context, c *call) (ledger.JournalID, error) {
	if !c.query.Has("lane") {
		return a.Events.Journal(ctx, c.vars["event"])
	}
	lane, err := strconv.Atoi(c.query.Get("lane"))
	if err != nil || lane < 1 {
		return 0, fault.BadField("lane", "must be the number of a lane, from 1")
	}
	return a.Events.LaneJournal(ctx, c.vars["event"], lane)
}

// account reads the journal and the account's code from the path.
func (a *api) account(ctx context.Context, c *call) (ledger.JournalID, string, error) {
	journal, err := a.journal(ctx, c)
	code := c.vars["code"]
	if err == nil && !plain(code) {
		err = ledger.ErrAccountNotFound.Because("%q", clip(code)).With("account", clip(code))
	}
	return journal, code, err
}

// listPostings answers with an account's statement. An entry may have several
// lines in it, so that a page may end inside one: the position is the entry, and
// how many of its lines have been shown.
func (a *api) listPostings(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	seq, shown, err := page.afterLine()
	if err != nil {
		return answer{}, err
	}
	journal, code, err := a.account(ctx, c)
	if err != nil {
		return answer{}, err
	}
	unit := ledger.Unit(c.query.Get("unit"))
	lines, err := a.Reader.Postings(ctx, journal, code, unit, max(0, seq-1), shown+page.Limit+1)
	if err == nil && len(lines) == 0 {
		// An account that was never posted to has no statement.
		_, err = a.Reader.Account(ctx, journal, code, unit, ledger.Point{})
	}
	if err != nil {
		return answer{}, err
	}
	return listed(page, lines[min(shown, len(lines)):], func(last ledger.StatementLine) string {
		n := 0
		for _, l := range lines[:shown+page.Limit] {
			if l.Seq == last.Seq {
				n++
			}
		}
		return fmt.Sprintf("%d %d", last.Seq, n)
	})
}

// afterLine reads the position in a statement.
func (p *cursor) afterLine() (seq ledger.Seq, shown int, err error) {
	if p.After == "" {
		return 0, 0, nil
	}
	entry, lines, _ := strings.Cut(p.After, " ")
	n, err := strconv.ParseInt(entry, 10, 64)
	shown, shownErr := strconv.Atoi(lines)
	if err != nil || shownErr != nil || n < 1 || shown < 1 || shown > maxLimit {
		return 0, 0, badCursor()
	}
	return ledger.Seq(n), shown, nil
}

func (a *api) listEntries(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	var after int64
	if page.After != "" {
		if after, err = strconv.ParseInt(page.After, 10, 64); err != nil {
			return answer{}, badCursor()
		}
	}
	journal, err := a.journal(ctx, c)
	if err != nil {
		return answer{}, err
	}
	entries, err := a.Reader.Entries(ctx, journal, ledger.Seq(after), page.Limit+1)
	if err != nil {
		return answer{}, err
	}
	return listed(page, entries, func(e ledger.EntryView) string { return strconv.FormatInt(int64(e.Seq), 10) })
}

func (a *api) getEntry(ctx context.Context, c *call) (answer, error) {
	seq, err := strconv.ParseInt(c.vars["seq"], 10, 64)
	if err != nil {
		return answer{}, fault.BadField("seq", "must be the number of an entry")
	}
	journal, err := a.journal(ctx, c)
	if err != nil {
		return answer{}, err
	}
	entry, err := a.Reader.Entry(ctx, journal, ledger.Seq(seq))
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(entry.Seq, entry)
}

func (a *api) getTrialBalance(ctx context.Context, c *call) (answer, error) {
	at, err := c.at()
	if err != nil {
		return answer{}, err
	}
	journal, err := a.journal(ctx, c)
	if err != nil {
		return answer{}, err
	}
	balance, err := a.Reader.TrialBalance(ctx, journal, at)
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(balance.Seq, balance)
}

// at reads the point in a journal's history that the call asks about: an entry's
// number or a time. Without one it's now.
func (c *call) at() (ledger.Point, error) {
	text := c.query.Get("at")
	if text == "" {
		return ledger.Point{}, nil
	}
	if seq, err := strconv.ParseInt(text, 10, 64); err == nil && seq > 0 {
		return ledger.Point{Seq: ledger.Seq(seq)}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return ledger.Point{}, fault.BadField("at", "must be the number of an entry or an RFC 3339 time")
	}
	if at.IsZero() {
		at = at.Add(time.Microsecond) // the zero time says now; no entry is older than either
	}
	return ledger.Point{At: at}, nil
}
