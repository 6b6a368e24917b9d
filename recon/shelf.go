package recon

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/ledger"
)

// lineKey names a line of a journal.
type lineKey struct{ provider, id string }

// shelf holds the lines that the commands of one batch book.
type shelf struct {
	lines    map[lineKey]*shelvedLine
	new      []*shelvedLine
	rejudged []*shelvedLine
}

// shelvedLine is a row of the batch. One that the batch made or changed is written
// once, as it is in the end.
type shelvedLine struct {
	bookedLine
	provider string
	touched  bool
}

// NewShelf makes an empty shelf.
func NewShelf() ledger.Shelf { return &shelf{lines: make(map[lineKey]*shelvedLine)} }

func shelfOf(s *ledger.State) *shelf { return ledger.ShelfOf[*shelf](s) }

// Read queues the rows of the lines that commands book.
func (s *shelf) Read(q *ledger.Reads) {
	var providers, ids []string
	for _, c := range q.Commands {
		if b, ok := c.Body.(*book); ok {
			for i := range b.lines {
				providers, ids = append(providers, b.provider), append(ids, b.lines[i].ID)
			}
		}
	}
	if len(ids) == 0 {
		return
	}
	q.Queue(func(rows pgx.Rows) error {
		l := &shelvedLine{}
		err := scanLine(rows, &l.bookedLine, &l.provider)
		s.lines[lineKey{l.provider, l.ID}] = l
		return err
	}, sqlBatchLines, providers, ids)
}

// Due gives nothing: time books no lines.
func (s *shelf) Due(time.Time) (due []ledger.Command, more bool) { return nil, false }

// Accounts gives nothing: a command names its accounts itself.
func (s *shelf) Accounts(time.Time) []string { return nil }

// Write queues the new lines, and those that were judged again.
func (s *shelf) Write(q *ledger.Writes) {
	queueLines(q, sqlInsertLines, s.new)
	queueLines(q, sqlJudgeLines, s.rejudged)
}

// queueLines queues a statement that takes lines' columns as arrays.
func queueLines(q *ledger.Writes, sql string, list []*shelvedLine) {
	n := len(list)
	if n == 0 {
		return
	}
	providers, ids, types, payments := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	operations, created := make([]*[16]byte, n), make([]time.Time, n)
	gross, fees, nets := make([]int64, n), make([]int64, n), make([]int64, n)
	currencies, results, versions := make([]string, n), make([]string, n), make([]int64, n)
	for i, l := range list {
		providers[i], ids[i], types[i], payments[i] = l.provider, l.ID, string(l.Type), l.Payment
		operations[i], created[i] = (*[16]byte)(l.Operation), l.CreatedAt
		gross[i], fees[i], nets[i] = int64(l.Gross), int64(l.Fee), int64(l.Net)
		currencies[i], results[i], versions[i] = string(l.Currency), string(l.Result), int64(l.version)
	}
	q.Queue(sql, providers, ids, types, payments, operations, created, gross, fees, nets, currencies, results, versions)
}

// lineRow is a row that a decision makes or changes.
type lineRow struct {
	provider string
	bookedLine
}

// Keep records it.
func (r lineRow) Keep(s *ledger.State) {
	shelf := shelfOf(s)
	key := lineKey{r.provider, r.ID}
	l := shelf.lines[key]
	switch {
	case l == nil:
		l = &shelvedLine{provider: r.provider, touched: true}
		shelf.lines[key] = l
		shelf.new = append(shelf.new, l)
	case !l.touched:
		l.touched = true
		shelf.rejudged = append(shelf.rejudged, l)
	}
	l.bookedLine = r.bookedLine
}

// scanLine reads a row. Further targets take the columns behind the line's.
func scanLine(row pgx.CollectableRow, l *bookedLine, further ...any) error {
	err := row.Scan(append([]any{&l.ID, &l.Type, &l.Payment, &l.Operation, &l.CreatedAt, &l.Gross, &l.Fee, &l.Net,
		&l.Currency, &l.Result, &l.version}, further...)...)
	l.CreatedAt = l.CreatedAt.UTC()
	return err
}
