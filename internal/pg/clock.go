package pg

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// clockAge is how long a reading of the database's clock is good for: the process's
// clock carries it on, and drifts by far less in that time.
const clockAge = time.Second

// Clock tells the database's time without a round trip for each question. It's safe for
// concurrent use.
type Clock struct {
	pool *pgxpool.Pool

	mu   sync.Mutex
	at   time.Time // by the database
	read time.Time // by the process, when that was told
}

// NewClock makes a clock that reads from a pool.
func NewClock(pool *pgxpool.Pool) *Clock { return &Clock{pool: pool} }

// Now gives the database's time, right to some milliseconds. The error is ErrUnavailable.
func (c *Clock) Now(ctx context.Context) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since := time.Since(c.read); since < clockAge {
		return c.at.Add(since), nil
	}
	var at time.Time
	if err := c.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&at); err != nil {
		return time.Time{}, Fault(fmt.Errorf("read the database's clock: %w", err))
	}
	c.at, c.read = at.UTC(), time.Now()
	return c.at, nil
}
