package bench

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
)

// The SQLSTATEs with which the statement says no; it has written nothing then.
const (
	uniqueViolation  = "23505" // the key's entry exists
	notNullViolation = "23502" // the balance beyond the customer's limit is NULL
	checkViolation   = "23514" // available would be negative
)

// placeInOne places a hold in one statement that is its own transaction: the
// shortest time that a lock on the journal can be held.
func placeInOne(ctx context.Context, pool *pgxpool.Pool, c claim) (placed, error) {
	var p placed
	err := pool.QueryRow(ctx, sqlPlaceInOne, c.journal, c.ID, c.Principal, c.Digest[:], c.customer,
		c.line.Tier, c.line.Quantity).Scan(&p.seq, &p.data)
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return p, buckets.TierNotFound(c.line.Tier)
	case !errors.As(err, &refused):
		return p, err
	}
	switch refused.Code {
	case uniqueViolation:
		return pastPlaced(ctx, pool, &c)
	case notNullViolation:
		return p, holds.ErrLimitExceeded.Because("%d asked", c.line.Quantity)
	case checkViolation:
		return p, holds.ErrSoldOut.Because("%d asked", c.line.Quantity)
	}
	return p, err
}
