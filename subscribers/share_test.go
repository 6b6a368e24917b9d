package subscribers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tierledger/tierledger/subscribers"
)

// Calls at once are shared out by what's known of the subscribers.
func TestShare(t *testing.T) {
	t.Parallel()
	type line = subscribers.Line
	busy := func(n int, l line) []line { return slices.Repeat([]line{l}, n) }
	for _, c := range []struct {
		name   string
		others []line // they come first
		last   line
		want   int // for the last
	}{
		{"nobody else", nil, line{"quick", 8, 0, 0}, 8},
		{"some under way", nil, line{"quick", 8, 5, 0}, 3},
		{"more under way than there's room for", nil, line{"quick", 1, 5, 0}, 0},
		{"slow ones have their share", busy(64, line{"slow", 2, 2, 0}), line{"slow", 2, 0, 0}, 0},
		{"slow ones have nearly all of it", busy(127, line{"slow", 1, 1, 0}), line{"slow", 2, 0, 0}, 1},
		{"a quick one among slow ones", busy(64, line{"slow", 2, 2, 0}), line{"quick", 8, 0, 0}, 8},
		{"a new one among slow ones", busy(64, line{"slow", 2, 2, 0}), line{"unknown", 1, 0, 0}, 1},
		{"a new one among new ones", busy(192, line{"unknown", 1, 1, 0}), line{"unknown", 1, 0, 0}, 0},
		{"a slow one among new ones", busy(192, line{"unknown", 1, 1, 0}), line{"slow", 2, 0, 0}, 0},
		{"a quick one among new ones", busy(192, line{"unknown", 1, 1, 0}), line{"quick", 8, 0, 0}, 8},
		{"all is taken", busy(32, line{"quick", 8, 8, 0}), line{"quick", 8, 0, 0}, 0},
		{"little is left, for who has none", busy(63, line{"quick", 8, 4, 0}), line{"quick", 8, 0, 0}, 4},
		{"little is left, for who waits longest", append(busy(62, line{"quick", 4, 4, 0}), busy(5, line{"quick", 8, 0, time.Second})...),
			line{"quick", 8, 0, time.Minute}, 8},
		{"little is left, but not for who waits least", append(busy(62, line{"quick", 4, 4, 0}), busy(5, line{"quick", 8, 0, time.Second})...),
			line{"quick", 8, 0, 0}, 0},
	} {
		got := subscribers.Share(append(slices.Clone(c.others), c.last))
		if got[len(got)-1] != c.want {
			t.Errorf("%s: %d, want %d", c.name, got[len(got)-1], c.want)
		}
	}
}
