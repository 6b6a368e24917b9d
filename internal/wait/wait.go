// Package wait has the pause that a caller's end cuts short.
package wait

import (
	"context"
	"time"
)

// For waits, at most until ctx ends, and tells whether ctx goes on.
func For(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}
