package httpapi

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tierledger/tierledger/fault"
)

func TestRetryAfter(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1", -time.Second: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90",
	} {
		if got := retryAfter(d); got != want {
			t.Errorf("after %v: got %s, want %s", d, got, want)
		}
	}
}

// 429 and 503 say when to come back, also when the error doesn't.
func TestUnavailableAlwaysHasRetryAfter(t *testing.T) {
	a := New(Config{}).(*api)
	for _, kind := range []fault.Kind{fault.TooMany, fault.Unavailable} {
		def := &fault.Def{Kind: kind, Code: "busy", Title: "Not now."}
		c := &call{request: httptest.NewRequest("GET", "/", nil)}
		if got := a.refuse(t.Context(), c, def.Because("")).headers.Get("Retry-After"); got != "1" {
			t.Errorf("%d has Retry-After %q", statusOf(def), got)
		}
	}
}

func TestEveryKindHasAStatus(t *testing.T) {
	seen := make(map[int]bool)
	for kind := fault.Internal; kind <= fault.Unavailable; kind++ {
		status := statuses[kind]
		if status == 0 || seen[status] {
			t.Errorf("kind %d has the status %d", kind, status)
		}
		seen[status] = true
	}
}

func TestThrottle(t *testing.T) {
	var once throttle
	now := time.Unix(1_900_000_000, 0)
	passed := 0
	for range 5 {
		if once.pass(now) {
			passed++
		}
	}
	if passed != 1 || !once.pass(now.Add(time.Second)) {
		t.Errorf("%d lines passed within a second", passed)
	}
}
