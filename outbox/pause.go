package outbox

import (
	"math/rand/v2"
	"time"
)

const (
	// firstRetry and lastRetry are the pauses before an effect that failed is tried again.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// backoff doubles a pause for each failure, with full jitter on its upper half, so that
// those who failed together don't come back together.
func backoff(failures int, first, last time.Duration) time.Duration {
	pause := min(first<<min(failures, 20), last)
	return pause/2 + rand.N(pause/2+1)
}
