package ledger

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
)

// Reader reads journals for people and reports, from a pool of its own, so that
// reports don't take connections from commits.
type Reader struct{ pool *pgxpool.Pool }

// NewReader makes a reader.
func NewReader(pool *pgxpool.Pool) *Reader { return &Reader{pool} }

// Point is a point in a journal's history: after an entry, or at a time. One that
// is still to come is now, and so is the zero value.
type Point struct {
	Seq Seq
	At  time.Time
}

// AccountView is an account as callers see it.
type AccountView struct {
	Account string `json:"account"`
	Unit    Unit   `json:"unit"`
	Type    Type   `json:"type"`
	Control string `json:"control,omitempty"` // the control account above it
	Balance Amount `json:"balance"`
	Version Seq    `json:"version"`
}

// AccountQuery is a page of a journal's accounts.
type AccountQuery struct {
	At        Point
	AfterCode string // the last account of the page before
	AfterUnit Unit
	Limit     int
}

// Accounts reads a page of a journal's accounts in the order of code and unit, as
// they are or as they were at a point.
func (r *Reader) Accounts(ctx context.Context, journal JournalID, q AccountQuery) ([]AccountView, error) {
	return r.accounts(ctx, journal, q.At, sqlAccounts, sqlAccountsAt, q.AfterCode, q.AfterUnit, q.Limit)
}

// Account reads an account in one unit, or in all when unit is empty.
// ErrAccountNotFound when the journal has no such account.
func (r *Reader) Account(ctx context.Context, journal JournalID, code string, unit Unit, at Point) ([]AccountView, error) {
	const allUnits = 1000 // currencies and tiers of one event are far fewer
	list, err := r.accounts(ctx, journal, at, sqlAccount, sqlAccountAt, code, unit, allUnits)
	if err == nil && len(list) == 0 {
		err = ErrAccountNotFound.Because("%s %s", code, unit).With("account", code)
	}
	return list, err
}

// accounts runs the query for now, or the one for a point.
func (r *Reader) accounts(ctx context.Context, journal JournalID, at Point, now, then string, code string, unit Unit, limit int) ([]AccountView, error) {
	sql, args := now, []any{int64(journal), code, unit, limit}
	if at != (Point{}) {
		seq, err := resolve(ctx, r.pool, journal, at)
		if err != nil {
			return nil, err
		}
		sql, args = then, append(args, seq, controlCodes)
	}
	list, err := collect(ctx, r.pool, func(row pgx.CollectableRow) (a AccountView, err error) {
		err = row.Scan(&a.Account, &a.Unit, &a.Type, &a.Control, &a.Balance, &a.Version)
		return a, err
	}, sql, args...)
	return list, fail(err, "read accounts of journal %d", journal)
}

// controlCodes are the control accounts of the chart.
var controlCodes = []string{Held, Sold}

// resolve gives the seq of the last entry at or before a point, as q sees it.
func resolve(ctx context.Context, q querier, journal JournalID, p Point) (seq Seq, err error) {
	if p.At.IsZero() {
		err = q.QueryRow(ctx, sqlHead, int64(journal)).Scan(&seq)
	} else {
		err = q.QueryRow(ctx, sqlSeqAt, int64(journal), p.At).Scan(&seq)
	}
	if p.Seq != 0 {
		seq = min(seq, p.Seq)
	}
	return seq, fail(err, "find point in journal %d", journal)
}

// Accepted tells whether any of some commands, of whatever journals, was accepted.
func (r *Reader) Accepted(ctx context.Context, ids ...uuid.UUID) (yes bool, err error) {
	journals, keys := make([]int64, len(ids)), make([][16]byte, len(ids))
	for i, id := range ids {
		journal, _ := JournalOf(id)
		journals[i], keys[i] = int64(journal), id
	}
	err = r.pool.QueryRow(ctx, sqlAccepted, journals, keys).Scan(&yes)
	return yes, fail(err, "find commands")
}

// Head reads the number of a journal's last entry.
func (r *Reader) Head(ctx context.Context, journal JournalID) (Seq, error) {
	return resolve(ctx, r.pool, journal, Point{})
}

// StatementLine is one posting in an account's statement.
type StatementLine struct {
	Seq     Seq       `json:"seq"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	EntryID uuid.UUID `json:"entry_id"`
	PostingView
}

// Postings reads a page of an account's statement in order, after an entry; of a
// control account, the postings below it.
func (r *Reader) Postings(ctx context.Context, journal JournalID, code string, unit Unit, after Seq, limit int) ([]StatementLine, error) {
	sql := sqlStatement
	switch {
	case slices.Contains(controlCodes, code):
		sql = sqlControlStatement
	case unit != "":
		sql = sqlUnitStatement
	}
	list, err := collect(ctx, r.pool, func(row pgx.CollectableRow) (l StatementLine, err error) {
		err = row.Scan(&l.Seq, &l.At, &l.Kind, &l.EntryID, &l.Account, &l.PostingView.Unit, &l.Amount, &l.Balance)
		l.At, l.Version = l.At.UTC(), l.Seq
		return l, err
	}, sql, int64(journal), code, unit, after, limit)
	return list, fail(err, "read postings of %s in journal %d", code, journal)
}

// TrialBalance is every balance of a journal, control accounts for those below
// them. Debits and credits of each unit are equal.
type TrialBalance struct {
	Seq      Seq           `json:"seq"` // the last entry it counts
	Accounts []TrialLine   `json:"accounts"`
	Totals   []TrialTotals `json:"totals"`
}

// TrialLine is an account's balance on its side.
type TrialLine struct {
	Account string `json:"account"`
	Unit    Unit   `json:"unit"`
	Type    Type   `json:"type"`
	Debit   Amount `json:"debit"`
	Credit  Amount `json:"credit"`
}

// TrialTotals are the sums of a unit.
type TrialTotals struct {
	Unit   Unit   `json:"unit"`
	Debit  Amount `json:"debit"`
	Credit Amount `json:"credit"`
}

// TrialBalance reads the trial balance as it is or as it was at a point. A past
// one adds up the journal's postings up to there.
func (r *Reader) TrialBalance(ctx context.Context, journal JournalID, at Point) (TrialBalance, error) {
	var t TrialBalance
	tx, err := r.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return t, fail(err, "trial balance of journal %d", journal)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // it has only read
	if t.Seq, err = resolve(ctx, tx, journal, at); err != nil {
		return t, err
	}
	sql, args := sqlTrialBalance, []any{int64(journal)}
	if at != (Point{}) {
		sql, args = sqlTrialBalanceAt, append(args, t.Seq)
	}
	t.Accounts, err = collect(ctx, tx, func(row pgx.CollectableRow) (l TrialLine, err error) {
		var balance Amount
		err = row.Scan(&l.Account, &l.Unit, &l.Type, &balance)
		l.Debit, l.Credit = max(balance, 0), max(-balance, 0)
		return l, err
	}, sql, args...)
	t.total()
	return t, fail(err, "trial balance of journal %d", journal)
}

// total adds up the lines by unit, in the order in which units appear.
func (t *TrialBalance) total() {
	t.Totals = []TrialTotals{}
	at := make(map[Unit]int)
	for _, l := range t.Accounts {
		i, ok := at[l.Unit]
		if !ok {
			i = len(t.Totals)
			at[l.Unit] = i
			t.Totals = append(t.Totals, TrialTotals{Unit: l.Unit})
		}
		t.Totals[i].Debit += l.Debit
		t.Totals[i].Credit += l.Credit
	}
}

// Entry reads an entry with its postings; ErrEntryNotFound when there's none.
func (r *Reader) Entry(ctx context.Context, journal JournalID, seq Seq) (EntryView, error) {
	list, err := r.entries(ctx, journal, sqlEntry, int64(journal), seq)
	if err == nil && len(list) == 0 {
		return EntryView{}, ErrEntryNotFound.Because("%d", seq).With("seq", seq)
	}
	if err != nil {
		return EntryView{}, err
	}
	return list[0], nil
}

// Entries reads a page of a journal in order, after an entry.
func (r *Reader) Entries(ctx context.Context, journal JournalID, after Seq, limit int) ([]EntryView, error) {
	return r.entries(ctx, journal, sqlEntries, int64(journal), after, limit)
}

// entries reads the entries of a query, and their postings.
func (r *Reader) entries(ctx context.Context, journal JournalID, sql string, args ...any) ([]EntryView, error) {
	list, err := collect(ctx, r.pool, func(row pgx.CollectableRow) (e EntryView, err error) {
		var digest, hash []byte
		err = row.Scan(&e.Seq, &e.ID, &e.Kind, &e.At, &e.Principal, &digest, &e.Data, &hash)
		e.Digest, e.Hash = hex.EncodeToString(digest), hex.EncodeToString(hash)
		e.At, e.Postings = e.At.UTC(), []PostingView{}
		return e, err
	}, sql, args...)
	if err != nil || len(list) == 0 {
		return list, fail(err, "read entries of journal %d", journal)
	}
	first := list[0].Seq // seq is gapless, so an entry's place follows from it
	rows, err := r.pool.Query(ctx, sqlPostingsBetween, int64(journal), first, list[len(list)-1].Seq)
	if err != nil {
		return nil, fail(err, "read postings of journal %d", journal)
	}
	var p PostingView
	_, err = pgx.ForEachRow(rows, []any{&p.Version, &p.Account, &p.Unit, &p.Amount, &p.Balance}, func() error {
		e := &list[p.Version-first]
		e.Postings = append(e.Postings, p)
		return nil
	})
	return list, fail(err, "read postings of journal %d", journal)
}

// EntryData reads what an entry records; ErrEntryNotFound when there's none.
func (r *Reader) EntryData(ctx context.Context, journal JournalID, seq Seq) (json.RawMessage, error) {
	e, err := r.Entry(ctx, journal, seq)
	return e.Data, err
}

// Stock is where a journal's tickets are.
type Stock struct {
	Version Seq // of the journal
	AsOf    time.Time
	Tiers   map[Unit]map[string]Account // by tier and inventory code, those of allotments among them
}

// Stocks reads the inventory accounts of journals, all of one instant.
func (r *Reader) Stocks(ctx context.Context, journals []JournalID) (map[JournalID]Stock, error) {
	stocks := make(map[JournalID]Stock, len(journals))
	rows, err := r.pool.Query(ctx, sqlStocks, journals, InventoryCodes, Uses)
	if err != nil {
		return nil, fail(err, "read stock of journals %v", journals)
	}
	var journal JournalID
	var seq Seq
	var asOf time.Time
	var unit *Unit // of a journal without accounts: one row of NULLs
	var code *string
	var balance *Amount
	var version *Seq
	_, err = pgx.ForEachRow(rows, []any{&journal, &seq, &asOf, &unit, &code, &balance, &version}, func() error {
		stock, ok := stocks[journal]
		if !ok {
			stock = Stock{Version: seq, AsOf: asOf, Tiers: make(map[Unit]map[string]Account)}
			stocks[journal] = stock
		}
		if unit == nil {
			return nil
		}
		if stock.Tiers[*unit] == nil {
			stock.Tiers[*unit] = make(map[string]Account)
		}
		stock.Tiers[*unit][*code] = Account{AccountKey: AccountKey{*code, *unit}, Balance: *balance, Version: *version}
		return nil
	})
	return stocks, fail(err, "read stock of journals %v", journals)
}

// Stock is Stocks for one journal.
func (r *Reader) Stock(ctx context.Context, journal JournalID) (Stock, error) {
	stocks, err := r.Stocks(ctx, []JournalID{journal})
	return stocks[journal], err
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func collect[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// fail says what failed, in callers' terms; nil stays nil.
func fail(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return pg.Fault(fmt.Errorf(format+": %w", append(args, err)...))
}
