package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/internal/pg"
)

// Reader reads journals for people and reports, from a pool of its own, so that
// reports don't take connections from commits.
type Reader struct{ pool *pgxpool.Pool }

// NewReader makes a reader.
func NewReader(pool *pgxpool.Pool) *Reader { return &Reader{pool} }

// Stock is where a journal's tickets are.
type Stock struct {
	Version Seq // of the journal
	AsOf    time.Time
	Tiers   map[Unit]map[string]Account // by tier and inventory code
}

// Stock reads the inventory accounts of a journal, all of one instant.
func (r *Reader) Stock(ctx context.Context, journal JournalID) (Stock, error) {
	stock := Stock{Tiers: make(map[Unit]map[string]Account)}
	rows, err := r.pool.Query(ctx, sqlStock, int64(journal), InventoryCodes)
	if err == nil {
		var unit, code *string
		var amount *Amount
		var version *Seq
		_, err = pgx.ForEachRow(rows, []any{&stock.Version, &stock.AsOf, &unit, &code, &amount, &version}, func() error {
			if unit == nil {
				return nil
			}
			u := Unit(*unit)
			if stock.Tiers[u] == nil {
				stock.Tiers[u] = make(map[string]Account)
			}
			stock.Tiers[u][*code] = Account{
				AccountKey: AccountKey{*code, u}, Balance: *amount, Version: *version,
			}
			return nil
		})
	}
	return stock, pg.Fault(wrap(err, "read inventory of journal %d", journal))
}

// EntryData reads what an entry records; ErrEntryNotFound when there's none.
func (r *Reader) EntryData(ctx context.Context, journal JournalID, seq Seq) (json.RawMessage, error) {
	e, err := r.entry(ctx, journal, seq)
	return e.Data, err
}

func (r *Reader) entry(ctx context.Context, journal JournalID, seq Seq) (EntryView, error) {
	var e EntryView
	var hash []byte
	err := r.pool.QueryRow(ctx, sqlEntry, int64(journal), seq).
		Scan(&e.Seq, &e.ID, &e.Kind, &e.At, &e.Principal, &e.Data, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, ErrEntryNotFound.Because("%d", seq).With("seq", seq)
	}
	e.Hash = fmt.Sprintf("%x", hash)
	return e, pg.Fault(wrap(err, "read entry %d of journal %d", seq, journal))
}

// wrap says what failed; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
