package sale

import (
	"testing"
	"testing/synctest"
	"time"
)

// A sale waits for what the service brings by itself within its patience, and for
// nothing that others have to do.
func TestWhatASaleWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		in := func(d time.Duration) *time.Time { return new(began.Add(d)) }
		unknown := func(next time.Duration) []Operation {
			return []Operation{{Kind: "authorize", Status: "unknown", NextAttemptAt: in(next)}}
		}
		asked := []Operation{{Kind: "authorize", Status: "requires_action", NextAttemptAt: in(time.Hour)}}
		cases := []struct {
			name  string
			order Order
			acted bool
			until time.Duration // from the beginning, when it's looked at after each second
		}{
			{"captured", Order{Status: "captured"}, false, 0},
			{"unknown, asked soon", Order{Status: "pending", PayUntil: began, Operations: unknown(10 * time.Second)}, false, finishFor},
			{"unknown, asked later", Order{Status: "pending", PayUntil: began, Operations: unknown(time.Minute)}, false, actFor},
			{"not paid, its time ends", Order{Status: "pending", PayUntil: *in(9 * time.Second), Operations: asked}, false, 9*time.Second + giveUpFor},
			{"a case for a person", Order{Status: "cancelled", Reconciling: true}, false, actFor},
			{"a transfer that may come", Order{Status: "cancelled", Operations: asked}, false, 0},
			{"a transfer that has come", Order{Status: "cancelled", Operations: asked}, true, finishFor},
		}
		for now := time.Duration(0); now < finishFor; now += time.Second {
			for _, c := range cases {
				p := purchase{order: c.order, acted: c.acted}
				if _, waits := p.waitFor(began); waits != (now < c.until) {
					t.Errorf("%s: waits %t after %v, want until %v", c.name, waits, now, c.until)
				}
			}
			time.Sleep(time.Second)
		}
	})
}
