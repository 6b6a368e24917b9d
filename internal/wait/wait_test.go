package wait

import (
	"context"
	"testing"
	"time"
)

func TestFor(t *testing.T) {
	t.Parallel()
	began := time.Now()
	if !For(t.Context(), 20*time.Millisecond) || time.Since(began) < 20*time.Millisecond {
		t.Error("it didn't wait")
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if For(ctx, time.Hour) || For(ctx, 0) {
		t.Error("ctx goes on")
	}
}
