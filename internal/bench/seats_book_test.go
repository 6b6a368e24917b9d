package bench

import (
	"testing"
	"time"
)

func TestBookFindsWhatWasGivenTwice(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	hold := func(version, released int64, from, to int, seats ...int32) claimed {
		return claimed{seats: seats, version: version, released: released, from: at(from), to: at(to)}
	}
	for name, x := range map[string]struct {
		claims []claimed
		want   int64
	}{
		"other seats":                 {[]claimed{hold(1, 0, 0, 20, 1, 2), hold(2, 0, 0, 20, 3)}, 0},
		"the same":                    {[]claimed{hold(1, 0, 0, 20, 1, 2), hold(2, 0, 1, 21, 2, 1, 3)}, 2},
		"after it ran out":            {[]claimed{hold(1, 0, 0, 20, 1), hold(2, 0, 20, 40, 1)}, 0},
		"before it ran out":           {[]claimed{hold(1, 0, 0, 20, 1), hold(2, 0, 19, 39, 1)}, 1},
		"after its release":           {[]claimed{hold(1, 2, 0, 20, 1), hold(3, 0, 1, 21, 1)}, 0},
		"before its release":          {[]claimed{hold(1, 3, 0, 20, 1), hold(2, 0, 1, 21, 1)}, 1},
		"answered in another order":   {[]claimed{hold(3, 0, 1, 21, 1), hold(1, 2, 0, 20, 1)}, 0},
		"the third, after the second": {[]claimed{hold(1, 2, 0, 20, 1), hold(3, 5, 1, 21, 1), hold(4, 0, 1, 21, 1)}, 1},
	} {
		var b seatBook
		for _, c := range x.claims {
			released := c.released
			c.released = 0
			if n := b.add(c); released != 0 {
				b.release(n, released)
			}
		}
		if got := b.doubled(); got != x.want {
			t.Errorf("%s: %d, want %d", name, got, x.want)
		}
	}
}

func TestMoments(t *testing.T) {
	m := moments{started: time.Now().Add(-time.Hour)}
	const far = 3*momentsPage + 7
	for _, version := range []int64{5, far, momentsPages * momentsPage} {
		m.came(version)
	}
	for _, x := range []struct {
		after, upTo int64
		known       bool
	}{{4, 5, true}, {5, 5, false}, {5, far - 1, false}, {5, far, true}, {0, 10, true}, {far, momentsPages * momentsPage, false}} {
		if late, ok := m.since(x.after, x.upTo); ok != x.known || late < 0 || late > time.Minute {
			t.Errorf("after %d up to %d: %s, %t", x.after, x.upTo, late, ok)
		}
	}
}
