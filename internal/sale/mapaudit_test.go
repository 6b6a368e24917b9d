package sale

import (
	"fmt"
	"strings"
	"testing"
)

// seatedHouse is a row of three seats: S1-1-1, S1-1-2 and S1-1-3.
func seatedHouse() *house { return Plan{Seats: 3}.house() }

// had is a receipt of the first seats of the house at version 10, which ended at 20.
func had(status string, seats int, o *Order) *receipt {
	labels := []string{"S1-1-1", "S1-1-2", "S1-1-3"}[:seats]
	r := &receipt{
		hold:  hold{ID: "h", Version: 10, Items: []item{{stalls, int64(seats), labels}}},
		ended: hold{Status: status, Version: 20},
	}
	if o != nil {
		r.purchase = &purchase{receipt: r, order: *o}
	}
	return r
}

// told reads versions with the letters of all seats, such as "10:hha".
func told(t *testing.T, text string) (all []mapReading) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		var m mapReading
		var letters string
		if _, err := fmt.Sscanf(word, "%d:%s", &m.version, &letters); err != nil {
			t.Fatal(err)
		}
		m.letters = []byte(letters)
		all = append(all, m)
	}
	return all
}

// A reader is told the first of the versions as a whole, and the changes from each to the
// next; others read the whole map.
func TestMapAudit(t *testing.T) {
	t.Parallel()
	captured := &Order{ID: "o", Status: "captured", Version: 20}
	for name, c := range map[string]struct {
		receipts    []*receipt
		told, whole string
		surprise    string
		stream      bool
	}{
		"expired":            {[]*receipt{had("expired", 2, nil)}, "1:aaa 10:hha 20:aaa", "12:hha 25:aaa", "", false},
		"sold":               {[]*receipt{had("confirmed", 2, captured)}, "1:aaa 10:hha 20:ssa", "25:ssa", "", false},
		"began later":        {[]*receipt{had("confirmed", 2, captured)}, "15:hha 20:ssa", "25:ssa", "", false},
		"told too early":     {[]*receipt{had("expired", 1, nil)}, "1:aaa 9:haa 20:aaa", "25:aaa", "version 9: by r seat S1-1-1 is held", false},
		"told too late":      {[]*receipt{had("expired", 1, nil)}, "1:aaa 11:haa 20:aaa", "25:aaa", "version 10: by r seat S1-1-1 is available", false},
		"not told":           {[]*receipt{had("expired", 2, nil)}, "1:aaa 10:haa 20:aaa", "25:aaa", "version 10: by r seat S1-1-2 is available", false},
		"not told at all":    {[]*receipt{had("confirmed", 1, captured)}, "1:aaa 10:haa", "25:haa", "version 20: by r seat S1-1-1 is held", false},
		"nobody's":           {[]*receipt{had("expired", 1, nil)}, "1:aaa 10:hah 20:aaa", "25:aaa", "seat S1-1-3 is held, the buyers hold it 0 to 0 times and own it 0 to 0 times: nobody had it", false},
		"sold, not held":     {[]*receipt{had("expired", 1, nil)}, "1:aaa 10:saa 20:aaa", "25:aaa", "S1-1-1 is sold", false},
		"blocked":            {nil, "1:aaa 10:baa", "25:baa", "S1-1-1 is blocked", false},
		"two owners":         {[]*receipt{had("confirmed", 1, captured), had("confirmed", 1, captured)}, "1:aaa 10:haa 20:saa", "25:saa", "own it 2 to 2 times: hold h at version 10 is confirmed at 20; hold h at version 10 is confirmed at 20", false},
		"wrong at the start": {[]*receipt{had("confirmed", 1, captured)}, "15:aaa 20:saa", "25:saa", "version 15: by r seat S1-1-1 is available", false},
		"the map differs":    {[]*receipt{had("expired", 1, nil)}, "1:aaa 10:haa 20:aaa", "12:hha", "version 12: seat S1-1-2 is held on the map, and available by r", false},
		"later than anybody": {[]*receipt{had("expired", 1, nil), {hold: hold{Version: 31, Items: []item{{stalls, 1, []string{"S1-1-3"}}}}}}, "1:aaa 10:haa 20:aaa", "12:haa", "", false},
		"a stream":           {[]*receipt{had("confirmed", 2, captured)}, "1:aaa 12:hha 25:ssa", "10:hhh 12:hha 25:ssa", "", true},
		"a stream, not told": {[]*receipt{had("confirmed", 2, captured)}, "1:aaa 12:hha 25:saa", "", "version 25: by r seat S1-1-2 is available", true},
		"a stream that lies": {[]*receipt{had("confirmed", 2, captured)}, "1:aaa 12:hhh 25:ssa", "", "version 12: by r seat S1-1-3 is held", true},
		"a stream, the map":  {[]*receipt{had("confirmed", 2, captured)}, "1:aaa 12:hha 25:ssa", "12:haa", "version 12: seat S1-1-2 is available on the map", true},
	} {
		h := seatedHouse()
		versions := told(t, c.told)
		f := &follower{name: "r", start: versions[0], version: 30, stream: c.stream}
		for i, m := range versions[1:] {
			f.messages = append(f.messages, m.version)
			for at := range m.letters {
				if m.letters[at] != versions[i].letters[at] {
					f.log = append(f.log, delta{m.version, at, m.letters[at]})
				}
			}
		}
		s := &sale{gallery: &gallery{house: h, followers: []*follower{f}, readings: told(t, c.whole)}}
		s.book.receipts = c.receipts
		s.auditMaps()
		got := strings.Join(s.book.surprises, "\n")
		if (got == "") != (c.surprise == "") || !strings.Contains(got, c.surprise) {
			t.Errorf("%s: surprises %q, want %q", name, got, c.surprise)
		}
	}
}

// Every seat that's sold has one owner, as of the last reading of the map.
func TestOwners(t *testing.T) {
	t.Parallel()
	order := func(id, status string, version int64, seats, returned string) Order {
		return Order{ID: id, Status: status, Version: version, Items: []OrderItem{{
			Tier: stalls, Seats: strings.Fields(seats), ReturnedSeats: strings.Fields(returned)}}}
	}
	for name, c := range map[string]struct {
		orders   []Order
		surprise string
	}{
		"as it should be": {[]Order{order("o", "captured", 9, "S1-1-1 S1-1-2", "S1-1-2"), order("p", "cancelled", 9, "S1-1-1", "")}, ""},
		"two owners":      {[]Order{order("o", "captured", 9, "S1-1-1", ""), order("p", "refunded", 9, "S1-1-1", "")}, "owned by 2 orders: o, p"},
		"nobody's":        {nil, "seat S1-1-1 is sold on the map, and nobody owns it"},
		"given up":        {[]Order{order("o", "cancelled", 9, "S1-1-1", "")}, "nobody owns it"},
		"not on the map":  {[]Order{order("o", "captured", 9, "S1-1-1 S1-1-3", "")}, "seat S1-1-3 is available on the map, and order o owns it"},
		"not in the hall": {[]Order{order("o", "captured", 9, "S1-1-1 S9-9-9", "")}, "seat S9-9-9 is owned by an order"},
		"changed since":   {[]Order{order("o", "captured", 11, "S1-1-1 S1-1-3", "")}, ""},
	} {
		s := &sale{gallery: &gallery{house: seatedHouse(), readings: told(t, "10:saa")}}
		s.auditOwners(c.orders)
		got := strings.Join(s.book.surprises, "\n")
		if (got == "") != (c.surprise == "") || !strings.Contains(got, c.surprise) {
			t.Errorf("%s: surprises %q, want %q", name, got, c.surprise)
		}
	}
}

// What a reader is told must make sense by itself.
func TestLearn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, says string }{
		"in order":      {"id: 12\nevent: changes\ndata: {\"version\":12,\ndata: \"changes\":[{\"version\":11,\"state\":\"held\",\"seats\":[\"S1-1-1\"]},{\"version\":12,\"state\":\"sold\",\"seats\":[\"S1-1-2\"]}]}\n\n", ""},
		"nothing":       {": still here\n\n\nid:10\nevent:changes\ndata:{\"version\":10,\"changes\":[]}\n\n", ""},
		"again":         {"id: 12\nevent: changes\ndata: {\"version\":12,\"changes\":[{\"version\":10,\"state\":\"held\",\"seats\":[\"S1-1-1\"]}]}\n\n", "one to \"held\" at version 10"},
		"out of order":  {"id: 12\nevent: changes\ndata: {\"version\":12,\"changes\":[{\"version\":12,\"state\":\"held\",\"seats\":[]},{\"version\":11,\"state\":\"held\",\"seats\":[]}]}\n\n", "at version 11, after one at 12"},
		"from later":    {"id: 12\nevent: changes\ndata: {\"version\":12,\"changes\":[{\"version\":13,\"state\":\"held\",\"seats\":[]}]}\n\n", "at version 13"},
		"backwards":     {"id: 9\nevent: changes\ndata: {\"version\":9,\"changes\":[]}\n\n", "version 9 was told after version 10"},
		"another id":    {"id: 11\nevent: changes\ndata: {\"version\":12,\"changes\":[]}\n\n", "has id \"11\""},
		"no such state": {"id: 12\nevent: changes\ndata: {\"version\":12,\"changes\":[{\"version\":11,\"state\":\"lost\",\"seats\":[]}]}\n\n", "one to \"lost\""},
		"no such seat":  {"id: 12\nevent: changes\ndata: {\"version\":12,\"changes\":[{\"version\":11,\"state\":\"held\",\"seats\":[\"X\"]}]}\n\n", "seat X"},
		"gap":           {"event: gap\ndata: {\"version\":99}\n\n", errGap.Error()},
		"not JSON":      {"id: 12\nevent: changes\ndata: what\n\n", "a message of the stream"},
		"other message": {"event: news\ndata: {}\n\n", "a message \"news\""},
	} {
		f := &follower{maps: &mapAPI{house: seatedHouse()}}
		f.reset(told(t, "10:aaa")[0])
		var m message
		complete := false
		for _, text := range strings.Split(c.text, "\n") {
			if complete = m.line(text); complete {
				break
			}
		}
		n, err := m.news()
		if err == nil {
			err = f.learn(n)
		}
		if got := fmt.Sprint(err); !complete || (err == nil) != (c.says == "") || err != nil && !strings.Contains(got, c.says) {
			t.Errorf("%s: complete %t, %v, want %q", name, complete, err, c.says)
		}
		if name == "in order" && (string(f.letters) != "hsa" || f.knows() != 12 || f.lastChange(11) != 11 || f.lastChange(99) != 12) {
			t.Errorf("%s: %s at %d, last change %d", name, f.letters, f.knows(), f.lastChange(99))
		}
	}
}
