package buckets

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a window given with a zone means the same on every machine
)

// Instant is a point in time as callers give it: RFC 3339 with an offset, and
// perhaps the zone's name after it in brackets (RFC 9557), as in
// 2027-03-28T03:30:00+02:00[Europe/Berlin]. An offset that the zone doesn't have
// at that time is refused (RFC 9557, section 3.4), so that a clock change can't
// move an opening by an hour unseen. It's kept in UTC, to the microsecond, in the
// years 1 to 9999, which every other notation of a time has too.
type Instant struct {
	time.Time
	err error // told when the field is checked, which knows its name
}

// UnmarshalJSON parses an instant.
func (i *Instant) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		i.err = errors.New("must be a string")
		return nil
	}
	i.Time, i.err = parseInstant(s)
	return nil
}

func parseInstant(s string) (time.Time, error) {
	stamp, zone, named := strings.Cut(s, "[")
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q isn't an RFC 3339 time with an offset", s)
	}
	if named {
		zone, closed := strings.CutSuffix(zone, "]")
		location, err := time.LoadLocation(zone)
		if !closed || err != nil || zone == "" || zone == "Local" {
			return time.Time{}, fmt.Errorf("%q doesn't end in a time zone's name in brackets", s)
		}
		_, given := t.Zone()
		if _, real := t.In(location).Zone(); real != given && !strings.HasSuffix(stamp, "Z") {
			return time.Time{}, fmt.Errorf("%s isn't %s's offset at that time", t.Format("-07:00"), zone)
		}
	}
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%q isn't in the years 1 to 9999 of UTC", s)
	}
	return t, nil
}

// utc gives the time, nil for none.
func (i *Instant) utc() *time.Time {
	if i == nil {
		return nil
	}
	return &i.Time
}
