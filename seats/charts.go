package seats

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Charts are the charts that a process has read: what was loaded never changes, so it may
// be remembered. A chart that nobody has used for a while is forgotten, and read anew when
// it's wanted. It's safe for concurrent use.
type Charts struct {
	mu        sync.Mutex
	byJournal map[ledger.JournalID]*remembered
	swept     time.Time
}

type remembered struct {
	plan *plan
	used time.Time // by the process's clock
}

// forgetAfter is how long nobody uses a chart, or a map, until its memory is given back.
const forgetAfter = 10 * time.Minute

// NewCharts remembers nothing yet.
func NewCharts() *Charts { return &Charts{byJournal: make(map[ledger.JournalID]*remembered)} }

// of gives the chart of a journal as far as it's known. Whatever is read afterwards is at
// least as new.
func (c *Charts) of(j ledger.JournalID) *plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	known := c.byJournal[j]
	if known != nil {
		known.used = now
	}
	if now.Sub(c.swept) > forgetAfter/10 {
		c.swept = now
		maps.DeleteFunc(c.byJournal, func(_ ledger.JournalID, r *remembered) bool { return now.Sub(r.used) > forgetAfter })
	}
	if known == nil {
		return noPlan
	}
	return known.plan
}

// keep remembers a longer chart.
func (c *Charts) keep(j ledger.JournalID, next *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.byJournal[j]; known == nil || len(known.plan.sections) < len(next.sections) {
		c.byJournal[j] = &remembered{next, time.Now()}
	}
}

// read gives the chart of a journal as it is now.
func (c *Charts) read(ctx context.Context, from *pgxpool.Pool, j ledger.JournalID) (*plan, error) {
	known := c.of(j)
	rows, _ := from.Query(ctx, sqlSections, int64(j), len(known.sections)) // its error comes with the rows
	sections, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*section, error) { return scanSection(row) })
	if err != nil {
		return nil, pg.Fault(err)
	}
	return c.extend(j, known, sections), nil
}

// extend remembers a chart with the sections that were read behind it.
func (c *Charts) extend(j ledger.JournalID, known *plan, sections []*section) *plan {
	if len(sections) == 0 {
		return known
	}
	next := known.with(sections...)
	c.keep(j, next)
	return next
}
