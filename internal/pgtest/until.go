package pgtest

import (
	"testing"
	"time"
)

// untilTimeout bounds waiting for what must come.
const untilTimeout = 3 * time.Minute

// Until waits for what tells nobody that it's so, such as a session that waits for a lock.
// What is awaited is named when it's in vain.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(untilTimeout); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: in vain", what)
		}
		<-time.After(time.Millisecond)
	}
}
