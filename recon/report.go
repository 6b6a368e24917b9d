package recon

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Operation is what a line is compared with: a step with the provider, ours or the
// provider's own, as it stands here.
type Operation struct {
	ID        uuid.UUID
	Order     uuid.UUID
	Kind      payments.Kind
	Status    string
	Provider  string
	Payment   string // the provider's reference of the payment, "" when it isn't known
	Reference string // the provider's name of the operation, likewise
	Amount    buckets.Money
	ToldAt    *time.Time // by the provider's clock: what its status rests on
	Captured  bool       // of an authorization: it took the money
}

// Books reads the operations that reports are matched with.
type Books interface {
	// ByID gives the operations with a provider that have the ids, in any status.
	ByID(ctx context.Context, provider string, ids []uuid.UUID) ([]Operation, error)
	// OfPayments gives all operations of the payments that a provider knows by the
	// references, ours and the provider's own: a chargeback names no operation.
	OfPayments(ctx context.Context, provider string, payments []string) ([]Operation, error)
	// Moved gives the operations with a provider that moved money, told at or after
	// from and before to, in the order of that time.
	Moved(ctx context.Context, provider string, from, to time.Time) ([]Operation, error)
}

const (
	// inTransit is for how long after a report's end operations are looked at: they
	// are the next report's, and only counted.
	inTransit = 48 * time.Hour
	maxPeriod = 366 * 24 * time.Hour
	// maxAhead is how far a provider's clock may be ahead of ours.
	maxAhead = 24 * time.Hour
	// maxDifferences bounds what an answer lists; the rest is counted.
	maxDifferences = 100
	// retryImport is about as long as an import takes.
	retryImport = 5 * time.Second
)

// Reports imports the reports of providers. It's safe for concurrent use.
type Reports struct {
	ledger *ledger.Ledger
	books  Books
	reads  *pgxpool.Pool
	clock  *pg.Clock
	turn   chan struct{} // one import at a time: a report takes memory, and the next may tell the same
}

// NewReports makes an importer that commits through a ledger and reads from a pool.
func NewReports(l *ledger.Ledger, books Books, reads *pgxpool.Pool) *Reports {
	return &Reports{ledger: l, books: books, reads: reads, clock: pg.NewClock(reads), turn: make(chan struct{}, 1)}
}

// Report is what came of an import.
type Report struct {
	Provider    string         `json:"provider"`
	Lines       int            `json:"lines"`
	Matched     int            `json:"matched"`
	Booked      int            `json:"booked"`      // lines that no report had told before
	Unexplained int            `json:"unexplained"` // lines that aren't matched, and operations that lack one
	ByResult    map[Result]int `json:"by_result"`
	Differences []Difference   `json:"differences"` // the first of what is unexplained
	Balance     []Balance      `json:"balance"`
}

// Difference is a line or an operation that is unexplained. Amounts are signed as the
// provider's balance changed.
type Difference struct {
	LineID      string         `json:"line_id,omitempty"`
	OperationID *uuid.UUID     `json:"operation_id,omitempty"`
	Result      Result         `json:"result"`
	Ours        *buckets.Money `json:"ours,omitempty"`
	Theirs      *buckets.Money `json:"theirs,omitempty"`
}

// Balance compares a currency: what the report's lines come to, and what the
// provider's accounts have over all journals. They're equal when the report is all of
// the provider's history, and was told of nothing but what is booked here.
type Balance struct {
	Report buckets.Money `json:"report"`
	Ledger buckets.Money `json:"ledger"`
}

// Import matches a settlement report with the operations, line by line, and books the
// fees of the lines that no report told before. The same report again changes nothing,
// but for lines whose operations have changed since: those are judged anew. An import
// that failed half way is finished by a repeat.
//
// Errors: ErrInvalidRequest with the field, ErrReportUnreadable with line and column
// and ErrReportContradicts with the line's id (nothing was booked), and those of
// ledger.Do.
func (r *Reports) Import(ctx context.Context, principal, provider string, body io.Reader) (Report, error) {
	if !payments.ValidName(provider) {
		return Report{}, fault.BadField("provider", "can't be a provider's name")
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return Report{}, ledger.ErrOverloaded.Because("another report is being imported").
			After(retryImport).From(ctx.Err())
	}
	lines, err := parseReport(body)
	if err != nil {
		return Report{}, err
	}
	if err := r.checkPeriod(ctx, lines); err != nil {
		return Report{}, err
	}
	known, err := r.known(ctx, provider, lines)
	if err != nil {
		return Report{}, err
	}
	e, err := r.gather(ctx, provider, lines)
	if err != nil {
		return Report{}, err
	}
	verdicts, unreported := e.match()
	booked, err := r.book(ctx, principal, provider, verdicts, known)
	if err != nil {
		return Report{}, err
	}
	report := summarise(provider, verdicts, unreported)
	report.Booked = booked
	report.Balance, err = r.balance(ctx, provider, lines)
	return report, err
}

// checkPeriod refuses lines of the future, and a report of more than a year: all that
// moved in its period is read.
func (r *Reports) checkPeriod(ctx context.Context, lines []Line) error {
	if len(lines) == 0 {
		return nil
	}
	now, err := r.clock.Now(ctx)
	if err != nil {
		return err
	}
	first := slices.MinFunc(lines, byTime).CreatedAt
	last := slices.MaxFunc(lines, byTime).CreatedAt
	switch {
	case last.After(now.Add(maxAhead)):
		return ErrReportUnreadable.Because("a line is of %s, and now is %s", last.Format(time.RFC3339), now.Format(time.RFC3339))
	case last.Sub(first) > maxPeriod:
		return ErrReportUnreadable.Because("the lines are of more than %d days: ask for a shorter period", maxPeriod/(24*time.Hour))
	}
	return nil
}

func byTime(a, b Line) int { return a.CreatedAt.Compare(b.CreatedAt) }

// gather reads what the lines are judged by.
func (r *Reports) gather(ctx context.Context, provider string, lines []Line) (*evidence, error) {
	e := &evidence{lines: lines}
	if len(lines) == 0 {
		return e, nil
	}
	var ids []uuid.UUID
	references := make(map[string]struct{})
	first, last := lines[0].CreatedAt, lines[0].CreatedAt
	for _, l := range lines {
		if id, err := uuid.Parse(l.Reference); err == nil {
			ids = append(ids, id)
		}
		if l.Payment != "" {
			references[l.Payment] = struct{}{}
		}
		if l.CreatedAt.Before(first) {
			first = l.CreatedAt
		}
		if l.CreatedAt.After(last) {
			last = l.CreatedAt
		}
	}
	named, err := r.books.ByID(ctx, provider, ids)
	if err != nil {
		return nil, fmt.Errorf("operations that the report names: %w", err)
	}
	paid, err := r.books.OfPayments(ctx, provider, slices.Sorted(maps.Keys(references)))
	if err != nil {
		return nil, fmt.Errorf("operations of the report's payments: %w", err)
	}
	e.operations = append(named, paid...)
	from, to, err := r.span(ctx, provider, first, last)
	if err != nil {
		return nil, err
	}
	e.last = last
	if to.IsZero() {
		to = last.Add(inTransit)
	} else {
		e.last = to
	}
	if e.moved, err = r.books.Moved(ctx, provider, from, to); err != nil {
		return nil, fmt.Errorf("operations of the report's time: %w", err)
	}
	e.claims, err = r.claims(ctx, provider, e)
	return e, err
}

// summarise counts the results and lists the first that are unexplained: lines in the
// report's order, then operations.
func summarise(provider string, verdicts []verdict, unreported []Difference) Report {
	r := Report{Provider: provider, Lines: len(verdicts), ByResult: make(map[Result]int), Differences: []Difference{}}
	count := func(d Difference) {
		r.ByResult[d.Result]++
		if d.Result == Matched || d.Result == Timing {
			return
		}
		if r.Unexplained++; r.Unexplained <= maxDifferences {
			r.Differences = append(r.Differences, d)
		}
	}
	for i := range verdicts {
		count(verdicts[i].difference())
	}
	for _, d := range unreported {
		count(d)
	}
	r.Matched = r.ByResult[Matched]
	return r
}

// difference shows a verdict.
func (v *verdict) difference() Difference {
	theirs := v.gross()
	if v.Type == LineFee {
		theirs.Amount = v.Net
	}
	d := Difference{LineID: v.ID, Result: v.result, Theirs: &theirs}
	if v.operation != uuid.Nil {
		d.OperationID = &v.operation
	}
	if v.compared != nil {
		ours := v.ours(v.compared)
		d.Ours = &ours
	}
	return d
}
