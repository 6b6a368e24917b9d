package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
)

// offer is what a claim is judged by, as it's locked and read.
type offer struct {
	event        string
	currency     ledger.Unit
	holdSeconds  int
	limit        *int64
	price        ledger.Amount
	priceVersion int64

	seq  ledger.Seq // of the last entry
	hash []byte
	now  time.Time

	balances map[string]ledger.Amount // by account
}

// placeUnderLock is the way it's usually done: a transaction that locks the
// tier's row, looks at everything, and writes row by row.
func placeUnderLock(ctx context.Context, pool *pgxpool.Pool, c claim) (p placed, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var o offer
		err := tx.QueryRow(ctx, sqlLockTier, c.journal, c.line.Tier).Scan(
			&o.event, &o.currency, &o.holdSeconds, &o.limit, &o.price, &o.priceVersion)
		if errors.Is(err, pgx.ErrNoRows) {
			return buckets.TierNotFound(c.line.Tier)
		}
		if err != nil {
			return err
		}
		p, err = pastPlaced(ctx, tx, &c)
		if err != nil || p.replayed {
			return err
		}
		if err := o.read(ctx, tx, &c, sqlReadHead); err != nil {
			return err
		}
		if err := o.judge(&c); err != nil {
			return err
		}
		p, err = o.write(ctx, tx, &c)
		return err
	})
	return p, err
}

// querier is a transaction or a pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// pastPlaced finds the answer that the claim's key had before, if any.
func pastPlaced(ctx context.Context, q querier, c *claim) (placed, error) {
	p := placed{replayed: true}
	var digest []byte
	err := q.QueryRow(ctx, sqlPast, c.journal, c.ID).Scan(&digest, &p.seq, &p.data)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return placed{}, nil
	case err == nil && string(digest) != string(c.Digest[:]):
		err = ledger.ErrIdempotencyMismatch.Because("the key was used for another request")
	}
	return p, err
}

// read reads the journal's head, with a statement that may lock it, and the accounts.
func (o *offer) read(ctx context.Context, tx pgx.Tx, c *claim, head string) error {
	var last time.Time
	if err := tx.QueryRow(ctx, head, c.journal).Scan(&o.seq, &last, &o.hash, &o.now); err != nil {
		return err
	}
	if o.now.Before(last) {
		o.now = last
	}
	codes := []string{ledger.Available, ledger.Held, ledger.HeldBy(c.customer), ledger.SoldTo(c.customer)}
	rows, err := tx.Query(ctx, sqlReadAccounts, c.journal, c.line.Tier, codes)
	if err != nil {
		return err
	}
	o.balances = make(map[string]ledger.Amount, len(codes))
	var code string
	var balance ledger.Amount
	_, err = pgx.ForEachRow(rows, []any{&code, &balance}, func() error {
		o.balances[code] = balance
		return nil
	})
	return err
}

func (o *offer) judge(c *claim) error {
	used := o.balances[ledger.HeldBy(c.customer)] + o.balances[ledger.SoldTo(c.customer)]
	if o.limit != nil && used+c.line.Quantity > ledger.Amount(*o.limit) {
		return holds.ErrLimitExceeded.Because("%d held or bought, %d asked", used, c.line.Quantity)
	}
	if free := o.balances[ledger.Available]; free < c.line.Quantity {
		return holds.ErrSoldOut.Because("%d are left, %d asked", free, c.line.Quantity)
	}
	return nil
}

// statement is one with its arguments.
type statement struct {
	sql  string
	args []any
}

// write inserts and updates the rows of the hold, a statement a table.
func (o *offer) write(ctx context.Context, tx pgx.Tx, c *claim) (placed, error) {
	n, seq := c.line.Quantity, o.seq+1
	h := holds.Hold{
		ID: c.ID, Event: o.event, Customer: c.customer, Status: holds.Held, Version: seq,
		CreatedAt: o.now, ExpiresAt: o.now.Add(time.Duration(o.holdSeconds) * time.Second),
		Items: []holds.Item{{
			Tier: c.line.Tier, Quantity: n, PriceVersion: o.priceVersion, Seats: c.line.Seats,
			UnitPrice: buckets.Money{Amount: o.price, Currency: o.currency},
		}},
		Total: buckets.Money{Amount: n * o.price, Currency: o.currency},
	}
	items, err := json.Marshal(h.Items)
	if err != nil {
		return placed{}, err
	}
	return o.record(ctx, tx, c, holds.KindPlaced, &h, statement{
		sqlInsertHold, []any{c.journal, c.ID, c.customer, h.Status, h.CreatedAt, h.ExpiresAt, items, h.Total.Amount, seq},
	})
}

// record writes the entry that a hold has come to a state by, and what it does to the
// accounts: it takes the line's tickets from those that are free, or gives them back
// where that's negative. Further rows go with it.
func (o *offer) record(ctx context.Context, tx pgx.Tx, c *claim, kind string, h *holds.Hold, rows ...statement) (placed, error) {
	data, err := json.Marshal(h)
	if err != nil {
		return placed{}, err
	}
	n, seq, mine := c.line.Quantity, o.seq+1, ledger.HeldBy(c.customer)
	hash := c.chain(o.hash, seq, o.now, data)
	free, held, own := o.balances[ledger.Available]-n, o.balances[ledger.Held]+n, o.balances[mine]+n
	for _, s := range slices.Concat([]statement{
		{sqlInsertEntry, []any{c.journal, seq, c.ID, kind, o.now, c.Principal, c.Digest[:], data, hash}},
		{sqlInsertPostings, []any{c.journal, seq, c.line.Tier, -n, free, mine, n, own}},
		{sqlUpsertAccounts, []any{c.journal, c.line.Tier, free, held, mine, own, seq}},
	}, rows, []statement{
		{sqlUpdateHead, []any{c.journal, seq, o.now, hash}},
	}) {
		if _, err := tx.Exec(ctx, s.sql, s.args...); err != nil {
			return placed{}, err
		}
	}
	return placed{data: data, seq: seq}, nil
}

// chain stands for the product's hash over an entry and the one before it.
func (c *claim) chain(previous []byte, seq ledger.Seq, at time.Time, data []byte) []byte {
	b := append([]byte(nil), previous...)
	b = binary.BigEndian.AppendUint64(b, uint64(seq))
	b = binary.BigEndian.AppendUint64(b, uint64(at.UnixMicro()))
	b = append(b, c.ID[:]...)
	b = append(b, c.Digest[:]...)
	b = append(b, data...)
	sum := sha256.Sum256(b)
	return sum[:]
}
