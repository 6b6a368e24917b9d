package recon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// known reads the rows of a report's lines, by id. ErrReportContradicts when a line
// isn't told as it was before.
func (r *Reports) known(ctx context.Context, provider string, lines []Line) (map[string]bookedLine, error) {
	ids := make([]string, len(lines))
	for i, l := range lines {
		ids[i] = l.ID
	}
	known := make(map[string]bookedLine)
	rows, err := r.reads.Query(ctx, sqlKnownLines, provider, ids)
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("read lines of %s: %w", provider, err))
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l bookedLine, err error) {
		err = scanLine(row, &l, &l.journal)
		return l, err
	})
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("read lines of %s: %w", provider, err))
	}
	for _, l := range list {
		known[l.ID] = l
	}
	for i := range lines {
		told := (&verdict{Line: lines[i]}).booked()
		if k, ok := known[told.ID]; ok && !k.tellsSame(&told) {
			return nil, contradicts(&told)
		}
	}
	return known, nil
}

// claims reads which operations have lines of other reports.
func (r *Reports) claims(ctx context.Context, provider string, e *evidence) (map[claim]bool, error) {
	here := make(map[string]struct{}, len(e.lines))
	for _, l := range e.lines {
		here[l.ID] = struct{}{}
	}
	ids := make(map[uuid.UUID]struct{})
	for _, list := range [][]Operation{e.operations, e.moved} {
		for i := range list {
			ids[list[i].ID] = struct{}{}
		}
	}
	claims := make(map[claim]bool)
	rows, err := r.reads.Query(ctx, sqlClaims, provider, slices.Collect(maps.Keys(ids)))
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("read lines of operations: %w", err))
	}
	var line string
	var c claim
	_, err = pgx.ForEachRow(rows, []any{&line, &c.kind, &c.operation}, func() error {
		if _, again := here[line]; !again {
			claims[c] = true
		}
		return nil
	})
	return claims, pg.Fault(err)
}

// span gives the time of the last line of other reports before a first line, which is
// that line's own when there's none; and of the first one after a last line, zero when
// there's none. Between them, whatever moved money has its line in this report.
func (r *Reports) span(ctx context.Context, provider string, first, last time.Time) (from, to time.Time, err error) {
	var before, after *time.Time
	if err := r.reads.QueryRow(ctx, sqlSpan, provider, first, last).Scan(&before, &after); err != nil {
		return from, to, pg.Fault(fmt.Errorf("find reports beside one of %s: %w", provider, err))
	}
	from = first
	if before != nil {
		from = before.UTC()
	}
	if after != nil {
		to = after.UTC()
	}
	return from, to, nil
}

// balance compares what lines come to with the provider's accounts, by currency.
func (r *Reports) balance(ctx context.Context, provider string, lines []Line) ([]Balance, error) {
	sums := make(map[ledger.Unit]*Balance)
	of := func(currency ledger.Unit) *Balance {
		if sums[currency] == nil {
			none := buckets.Money{Currency: currency}
			sums[currency] = &Balance{Report: none, Ledger: none}
		}
		return sums[currency]
	}
	for i := range lines {
		of(lines[i].Currency).Report.Amount += lines[i].Net
	}
	rows, err := r.reads.Query(ctx, sqlProviderBalance, providerOf(provider))
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("read balance of %s: %w", provider, err))
	}
	var currency ledger.Unit
	var amount ledger.Amount
	_, err = pgx.ForEachRow(rows, []any{&currency, &amount}, func() error {
		of(currency).Ledger.Amount = amount
		return nil
	})
	if err != nil {
		return nil, pg.Fault(fmt.Errorf("read balance of %s: %w", provider, err))
	}
	list := make([]Balance, 0, len(sums))
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, *sums[currency])
	}
	return list, nil
}
