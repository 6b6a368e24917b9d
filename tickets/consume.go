package tickets

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/outbox"
)

// ConsumerName is the name under which the consumer's positions are kept.
const ConsumerName = "tickets"

// kinds are the entries that may change which tickets are valid: those with which an order
// comes to another state than pending, or gives units back. The others record an order whose
// tickets are as the entry before said.
var kinds = []string{
	orders.KindConfirmed, // of an order that costs nothing, or whose money came with its authorization
	orders.KindCaptured,
	orders.KindHonoured,
	orders.KindCancelled,
	orders.KindRefundAsked,
	// These change no ticket. They make good an entry before that was given up.
	orders.KindCaptureFailed, orders.KindRefunded, orders.KindRefundFailed, orders.KindChargedBack, orders.KindChargebackWon,
}

// Consumer issues and revokes tickets as the journal says. It needs a secret to sign with;
// without one its effect is outbox.ErrAway.
func (s *Store) Consumer() outbox.Consumer {
	return outbox.Consumer{Name: ConsumerName, Kinds: kinds, Effect: s.effect}
}

// effect makes the tickets of orders what entries of one journal call for: it reads the
// entries, locks and reads the orders' books, has them follow, signs, and writes.
func (s *Store) effect(ctx context.Context, tx pgx.Tx, events []outbox.Event) error {
	if len(s.Ring) == 0 {
		return fmt.Errorf("%w: %w", outbox.ErrAway, keyring.ErrEmpty)
	}
	found, err := recordsOf(events)
	if err != nil || len(found) == 0 {
		return err
	}
	books, err := lockBooks(ctx, tx, events[0].Journal, found)
	if err != nil {
		return fmt.Errorf("lock tickets: %w", err)
	}
	for _, b := range books {
		for _, r := range found[b.order] {
			b.follow(r)
		}
		for _, t := range b.issued {
			if t.Token, err = sign(&s.Ring[0], t); err != nil {
				return err
			}
		}
	}
	if err := writeBooks(ctx, tx, events[0].Journal, books); err != nil {
		return fmt.Errorf("write tickets: %w", err)
	}
	return nil
}

// recordsOf gives what entries record of each order that decides about tickets.
func recordsOf(events []outbox.Event) (map[uuid.UUID][]record, error) {
	found := make(map[uuid.UUID][]record)
	for i := range events {
		e := &events[i]
		if !slices.Contains(kinds, e.Kind) {
			continue
		}
		var o orders.Order
		if err := json.Unmarshal(e.Data, &o); err != nil {
			return nil, fmt.Errorf("read the order of entry %d: %w", e.Seq, err)
		}
		if o.ID == uuid.Nil {
			return nil, fmt.Errorf("entry %d records no order", e.Seq)
		}
		if decides(o.Status) {
			found[o.ID] = append(found[o.ID], record{e.Seq, e.At, &o})
		}
	}
	return found, nil
}

// lockBooks takes the books of orders for this transaction, in the order of their ids. A book
// that's new has no tickets.
func lockBooks(ctx context.Context, tx pgx.Tx, journal ledger.JournalID, found map[uuid.UUID][]record) ([]*book, error) {
	var books []*book
	for id := range found {
		books = append(books, &book{journal: journal, order: id})
	}
	slices.SortFunc(books, func(a, b *book) int { return bytes.Compare(a.order[:], b.order[:]) })
	var ids [][16]byte
	var seqs []ledger.Seq
	known := make(map[uuid.UUID]*book)
	for _, b := range books {
		known[b.order] = b
		ids = append(ids, b.order)
		last := found[b.order]
		seqs = append(seqs, last[len(last)-1].seq)
	}
	rows, _ := tx.Query(ctx, sqlOpenBooks, int64(journal), ids, seqs) // its error comes with the rows
	opened, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(opened) == len(books) {
		return books, err
	}
	ids = slices.DeleteFunc(ids, func(id [16]byte) bool { return slices.Contains(opened, uuid.UUID(id)) })
	rows, _ = tx.Query(ctx, sqlLockBooks, int64(journal), ids)
	var id uuid.UUID
	var seq ledger.Seq
	if _, err := pgx.ForEachRow(rows, []any{&id, &seq}, func() error { known[id].seq = seq; return nil }); err != nil {
		return nil, err
	}
	rows, _ = tx.Query(ctx, sqlTicketsOfBooks, int64(journal), ids)
	list, err := pgx.CollectRows(rows, readTicket)
	for _, t := range list {
		known[t.Order].tickets = append(known[t.Order].tickets, t)
	}
	return books, err
}

// writeBooks writes what the books have issued and revoked, and how far they follow.
func writeBooks(ctx context.Context, tx pgx.Tx, journal ledger.JournalID, books []*book) error {
	q := &pgx.Batch{}
	var c columns
	var ids [][16]byte
	var seqs []ledger.Seq
	for _, b := range books {
		for _, t := range slices.Concat(b.issued, b.revoked) {
			c.add(t)
		}
		ids, seqs = append(ids, b.order), append(seqs, b.seq)
	}
	q.Queue(sqlKeepBooks, int64(journal), ids, seqs)
	if len(c.order) > 0 {
		q.Queue(sqlKeepTickets, int64(journal), c.order, c.number, c.line, c.id, c.tier, c.seat, c.token, c.issued, c.at, c.revoked)
	}
	return tx.SendBatch(ctx, q).Close()
}

// columns are the columns of tickets that are written: all, though of one that's there only
// revoked counts.
type columns struct {
	order, id         [][16]byte
	number, line      []int
	tier, seat, token []string
	issued            []ledger.Seq
	at                []time.Time
	revoked           []*ledger.Seq
}

// add appends a ticket.
func (c *columns) add(t *Ticket) {
	c.order, c.id = append(c.order, t.Order), append(c.id, t.ID)
	c.number, c.line = append(c.number, t.Number), append(c.line, t.line)
	c.tier, c.seat, c.token = append(c.tier, string(t.Tier)), append(c.seat, t.Seat), append(c.token, t.Token)
	c.issued, c.at = append(c.issued, t.issued), append(c.at, t.IssuedAt)
	var revoked *ledger.Seq
	if t.revoked > 0 {
		revoked = &t.revoked
	}
	c.revoked = append(c.revoked, revoked)
}
