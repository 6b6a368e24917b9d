// Package export writes an event's books for other programs: a plain-text journal
// that hledger checks without trusting us, and one JSON object per entry for
// whoever wants to recompute the hash chains. An event's lanes follow one another.
package export

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Formats lists what Write can write.
var Formats = []string{"hledger", "ndjson"}

// page is how many rows are read at a time.
const page = 500

// book is an event's journals, as far as they went when the export began.
type book struct {
	reader *ledger.Reader
	event  string
	lanes  []lane
}

// lane is one of them.
type lane struct {
	*book
	number  int // from 1; 0 when the event has no other
	journal ledger.JournalID
	head    ledger.Seq
}

// Write writes the books of an event, from a reading of the database behind url.
// It writes every entry up to the head that each lane's journal had at one instant, and
// none after: what one lane had sent to another by then may not have come there.
func Write(ctx context.Context, w io.Writer, url, event, format string) error {
	var write func(context.Context, *bufio.Writer, *book) error
	switch format {
	case "hledger":
		write = writeHledger
	case "ndjson":
		write = writeNDJSON
	default:
		return fmt.Errorf("format %q: must be one of %v", format, Formats)
	}
	pool, err := pg.Open(ctx, pg.Options{URL: url, Name: "tierledger export", MaxConns: 2, ReadOnly: true, Scans: true})
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := open(ctx, pool, event)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	if err := write(ctx, out, b); err != nil {
		return err
	}
	return out.Flush()
}

// open finds an event's journals and how far they go.
func open(ctx context.Context, pool *pgxpool.Pool, event string) (*book, error) {
	b := &book{reader: ledger.NewReader(pool), event: event}
	journals, err := buckets.NewStore(nil, b.reader, pool).Lanes(ctx, event)
	if err != nil {
		return nil, err
	}
	stocks, err := b.reader.Stocks(ctx, journals)
	if err != nil {
		return nil, err
	}
	for i, journal := range journals {
		l := lane{book: b, journal: journal, head: stocks[journal].Version}
		if len(journals) > 1 {
			l.number = i + 1
		}
		b.lanes = append(b.lanes, l)
	}
	return b, nil
}

// entries calls fn for every entry of the lane in order.
func (l *lane) entries(ctx context.Context, fn func(ledger.EntryView) error) error {
	for after := ledger.Seq(0); after < l.head; {
		list, err := l.reader.Entries(ctx, l.journal, after, int(min(page, l.head-after)))
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return fmt.Errorf("journal %d ends at entry %d, its head is %d", l.journal, after, l.head)
		}
		for _, e := range list {
			if err := fn(e); err != nil {
				return err
			}
		}
		after = list[len(list)-1].Seq
	}
	return nil
}

// accounts calls fn for every account of the lane, in the order of code and unit.
func (l *lane) accounts(ctx context.Context, fn func(ledger.AccountView)) error {
	q := ledger.AccountQuery{Limit: page}
	for {
		list, err := l.reader.Accounts(ctx, l.journal, q)
		if err != nil {
			return err
		}
		for _, a := range list {
			fn(a)
		}
		if len(list) < page {
			return nil
		}
		last := list[len(list)-1]
		q.AfterCode, q.AfterUnit = last.Account, last.Unit
	}
}

// writeNDJSON writes an object per entry, with all that its hash covers.
func writeNDJSON(ctx context.Context, w *bufio.Writer, b *book) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, l := range b.lanes {
		err := l.entries(ctx, func(e ledger.EntryView) error {
			return enc.Encode(struct {
				Journal ledger.JournalID `json:"journal"`
				Lane    int              `json:"lane,omitempty"`
				ledger.EntryView
			}{l.journal, l.number, e})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
