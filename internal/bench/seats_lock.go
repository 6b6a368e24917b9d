package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
)

const (
	// sweepEvery and sweepMost are how often, and how many at once, the baseline ends
	// holds that have run out.
	sweepEvery = 200 * time.Millisecond
	sweepMost  = 256
)

// errSeatTaken has the product's code.
var errSeatTaken = &fault.Def{Kind: fault.Conflict, Code: "seat_unavailable", Title: "A seat can't be had"}

func validSeats(line holds.Line) error {
	n := len(line.Seats)
	if line.BestAvailable != nil {
		n += int(line.BestAvailable.Quantity)
	}
	if n < 1 || n > maxSeatsPerHold {
		return holds.ErrInvalidQuantity.Because("%d", n)
	}
	return nil
}

// placeSeats is the way it's usually done: a transaction that locks the seats' rows in
// order, and then the journal for what's left to be written. Who takes the best
// available steps over the rows that others have locked.
func placeSeats(ctx context.Context, pool *pgxpool.Pool, c claim) (p placed, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		p, err = pastPlaced(ctx, tx, &c)
		if err != nil || p.replayed {
			return err
		}
		taken, err := pickSeats(ctx, tx, &c)
		if err != nil {
			return err
		}
		c.line = taken.line()
		var o offer
		if err := o.find(ctx, tx, &c, sqlLockHead); err != nil {
			return err
		}
		if err := o.judge(&c); err != nil {
			return err
		}
		if p, err = o.write(ctx, tx, &c); err != nil {
			return err
		}
		until := o.now.Add(time.Duration(o.holdSeconds) * time.Second)
		return taken.change(ctx, tx, &c, p.seq, holds.Held, statement{
			sqlTakeSeats, []any{c.journal, c.line.Seats, c.ID, until, p.seq},
		}, c.ID)
	})
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == uniqueViolation { // the key was used at the same time
		return pastPlaced(ctx, pool, &c)
	}
	return p, err
}

// find reads what the claim's tier costs, the journal's head and the accounts.
func (o *offer) find(ctx context.Context, tx pgx.Tx, c *claim, head string) error {
	err := tx.QueryRow(ctx, sqlReadOffer, c.journal, c.line.Tier).Scan(
		&o.event, &o.currency, &o.holdSeconds, &o.limit, &o.price, &o.priceVersion)
	if errors.Is(err, pgx.ErrNoRows) {
		return buckets.TierNotFound(c.line.Tier)
	}
	if err != nil {
		return err
	}
	return o.read(ctx, tx, c, head)
}

// seatRow is a seat that the transaction has locked.
type seatRow struct {
	label string
	row   int
	place int
	tier  ledger.Unit
	state string
}

type seatRows []seatRow

// line is the hold's, of seats of one tier.
func (s seatRows) line() holds.Line {
	l := holds.Line{Tier: s[0].tier, Quantity: ledger.Amount(len(s))}
	for _, seat := range s {
		l.Seats = append(l.Seats, seat.label)
	}
	return l
}

// change writes what a hold's coming or going does to the seats: the statement that
// changes their rows, the summaries of the rows that they're in, and the record of it.
func (s seatRows) change(ctx context.Context, tx pgx.Tx, c *claim, seq ledger.Seq, to holds.Status, seats statement, hold uuid.UUID) error {
	tag, err := tx.Exec(ctx, seats.sql, seats.args...)
	if err == nil && tag.RowsAffected() != int64(len(s)) {
		err = fmt.Errorf("%d of %d seats changed", tag.RowsAffected(), len(s))
	}
	if err != nil {
		return err
	}
	state, letter := "held", "h"
	if to != holds.Held {
		state, letter = "available", "a"
	}
	for first := 0; first < len(s); {
		n := 1
		for first+n < len(s) && s[first+n].row == s[first].row && s[first+n].place == s[first].place+n {
			n++
		}
		_, err := tx.Exec(ctx, sqlUpdateRow, c.journal, s[first].row, s[first].place, strings.Repeat(letter, n), seq)
		if err != nil {
			return err
		}
		first += n
	}
	_, err = tx.Exec(ctx, sqlInsertChange, c.journal, seq, state, hold, c.line.Seats)
	return err
}

// release answers a request to give a hold back.
func (b *baseline) release(w http.ResponseWriter, r *http.Request) {
	p, err := b.tryRelease(r)
	respond(w, http.StatusOK, p, err)
}

func (b *baseline) tryRelease(r *http.Request) (placed, error) {
	key := r.Header.Get("Idempotency-Key")
	id, err := uuid.Parse(r.PathValue("hold"))
	if key == "" || err != nil {
		return placed{}, fault.ErrInvalidRequest.Because("no key, or no such hold")
	}
	return b.end(r.Context(), id, key, holds.Released)
}

// end releases a hold or lets it run out, in a transaction of its own. What has ended
// stays as it is.
func (b *baseline) end(ctx context.Context, id uuid.UUID, key string, to holds.Status) (p placed, err error) {
	kind := holds.KindReleased
	if to == holds.Expired {
		kind = holds.KindExpired
	}
	command, err := ledger.NewCommand(b.journal, principal, key, kind, id, nil)
	if err != nil {
		return placed{}, err
	}
	c := claim{Command: command, journal: b.journal}
	err = pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		h, due, err := lockHold(ctx, tx, &c, id)
		if err != nil {
			return err
		}
		if h.Status != holds.Held || due != (to == holds.Expired) {
			p.seq = h.Version
			p.data, err = json.Marshal(h)
			return err
		}
		taken, err := lockSeats(ctx, tx, &c, h.Items[0].Seats)
		if err != nil {
			return err
		}
		c.line = taken.line()
		c.line.Quantity = -c.line.Quantity
		var o offer
		if err := o.find(ctx, tx, &c, sqlLockHead); err != nil {
			return err
		}
		h.Event, h.Total.Currency, h.Status, h.Version = o.event, o.currency, to, o.seq+1
		p, err = o.record(ctx, tx, &c, kind, h, statement{sqlEndHold, []any{c.journal, id, to, h.Version}})
		if err != nil {
			return err
		}
		return taken.change(ctx, tx, &c, p.seq, to, statement{
			sqlReturnSeats, []any{c.journal, c.line.Seats, id, p.seq},
		}, id)
	})
	return p, err
}

// lockHold locks a hold, and tells whether it has run out.
func lockHold(ctx context.Context, tx pgx.Tx, c *claim, id uuid.UUID) (h *holds.Hold, due bool, err error) {
	h = &holds.Hold{ID: id}
	var items []byte
	var now time.Time
	err = tx.QueryRow(ctx, sqlLockHold, c.journal, id).Scan(
		&h.Customer, &h.Status, &h.CreatedAt, &h.ExpiresAt, &items, &h.Total.Amount, &h.Version, &now)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, holds.NotFound(id)
	}
	if err != nil {
		return nil, false, err
	}
	c.customer = h.Customer
	h.CreatedAt, h.ExpiresAt = h.CreatedAt.UTC(), h.ExpiresAt.UTC()
	return h, h.Due(now), json.Unmarshal(items, &h.Items)
}

// sweep ends holds that have run out, until ctx ends; the returned function waits for
// that.
func (b *baseline) sweep(ctx context.Context) (wait func()) {
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		ticker := time.NewTicker(sweepEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := b.sweepOnce(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "baseline: sweep:", err)
			}
		}
	})
	return sweeper.Wait
}

func (b *baseline) sweepOnce(ctx context.Context) error {
	rows, err := b.pool.Query(ctx, sqlDueHolds, b.journal, sweepMost)
	if err != nil {
		return err
	}
	due, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	for i := 0; i < len(due) && err == nil; i++ {
		_, err = b.end(ctx, due[i], "expire-"+due[i].String(), holds.Expired)
	}
	return err
}
