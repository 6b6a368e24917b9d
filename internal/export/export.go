// Package export writes an event's books for other programs: a plain-text journal
// that hledger checks without trusting us, and one JSON object per entry for
// whoever wants to recompute the hash chain.
package export

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/ledger"
)

// Formats lists what Write can write.
var Formats = []string{"hledger", "ndjson"}

// page is how many rows are read at a time.
const page = 500

// book is one event's journal, as far as it went when the export began.
type book struct {
	reader  *ledger.Reader
	event   string
	journal ledger.JournalID
	head    ledger.Seq
}

// Write writes the books of an event, from a reading of the database behind url.
// It writes every entry up to the journal's head at the start, and none after.
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
	pool, err := pg.Open(ctx, pg.Options{URL: url, Name: "tierledger export", MaxConns: 2, ReadOnly: true})
	if err != nil {
		return err
	}
	defer pool.Close()
	b := &book{reader: ledger.NewReader(pool), event: event}
	if b.journal, err = buckets.NewStore(nil, b.reader, pool).Journal(ctx, event); err != nil {
		return err
	}
	stock, err := b.reader.Stock(ctx, b.journal)
	if err != nil {
		return err
	}
	b.head = stock.Version
	out := bufio.NewWriterSize(w, 1<<16)
	if err := write(ctx, out, b); err != nil {
		return err
	}
	return out.Flush()
}

// entries calls fn for every entry in order.
func (b *book) entries(ctx context.Context, fn func(ledger.EntryView) error) error {
	for after := ledger.Seq(0); after < b.head; {
		list, err := b.reader.Entries(ctx, b.journal, after, int(min(page, b.head-after)))
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return fmt.Errorf("journal %d ends at entry %d, its head is %d", b.journal, after, b.head)
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

// accounts calls fn for every account, in the order of code and unit.
func (b *book) accounts(ctx context.Context, fn func(ledger.AccountView)) error {
	q := ledger.AccountQuery{Limit: page}
	for {
		list, err := b.reader.Accounts(ctx, b.journal, q)
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
	return b.entries(ctx, func(e ledger.EntryView) error {
		return enc.Encode(struct {
			Journal ledger.JournalID `json:"journal"`
			ledger.EntryView
		}{b.journal, e})
	})
}
