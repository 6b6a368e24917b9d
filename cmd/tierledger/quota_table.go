package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// maxColumns is how wide a table, or a line of text, may be.
const maxColumns = 100

// only leaves one tier in a view; false when it isn't there.
func only(v *quota.View, tier string) bool {
	other := func(t ledger.Unit) bool { return string(t) != tier }
	v.Tiers = slices.DeleteFunc(v.Tiers, func(t buckets.TierAvailability) bool { return other(t.Tier) })
	v.Buckets = slices.DeleteFunc(v.Buckets, func(b quota.BucketView) bool { return other(b.Tier) })
	v.ByLane = slices.DeleteFunc(v.ByLane, func(l quota.LaneView) bool { return other(l.Tier) })
	return len(v.Tiers) > 0
}

// quotaTables lays a view out: the lanes of each tier, then the allotments.
func quotaTables(v quota.View) []byte {
	var b strings.Builder
	b.WriteString(wrap(lanesText(v.Lanes, v.Event)+"; as of "+instant(v.AsOf), "  "))
	for _, t := range v.Tiers {
		b.WriteByte('\n')
		tierTable(&b, t, v)
	}
	if len(v.Allotments) > 0 {
		b.WriteByte('\n')
		allotmentsTable(&b, v)
	}
	return []byte(b.String())
}

// laneLine is a line of a tier's table.
type laneLine struct {
	lane, inUse                      string
	free, allotted, held, sold, sent ledger.Amount
	version                          string
}

// String lays the line out.
func (l laneLine) String() string {
	line := fmt.Sprintf(laneLayout, l.lane, l.inUse, thousands(int64(l.free)), thousands(int64(l.allotted)),
		thousands(int64(l.held)), thousands(int64(l.sold)), thousands(int64(l.sent)), l.version)
	return strings.TrimRight(line, " ") + "\n"
}

const laneLayout = "%-6s%6s%13s%13s%13s%13s%13s%12s"

// tierTable lays out what each lane has of a tier. What a lane sent to others less what it
// got from them adds up to what's on the move: that's told above the table.
func tierTable(b *strings.Builder, t buckets.TierAvailability, v quota.View) {
	title := fmt.Sprintf("tier %s: capacity %s", t.Tier, thousands(int64(t.Capacity)))
	for _, n := range []struct {
		name  string
		count ledger.Amount
	}{{"blocked", t.Blocked}, {"void", t.Void}, {"in transit", t.InTransit}} {
		if n.count != 0 {
			title += fmt.Sprintf(", %s %s", n.name, thousands(int64(n.count)))
		}
	}
	b.WriteString(wrap(title, "  "))
	fmt.Fprintf(b, laneLayout+"\n", "lane", "in use", "free", "allotted", "held", "sold", "net sent", "version")
	all := laneLine{lane: "all"}
	for i := range v.Lanes.Journals {
		l := lineOf(v, t.Tier, i+1)
		b.WriteString(l.String())
		all.free += l.free
		all.allotted += l.allotted
		all.held += l.held
		all.sold += l.sold
		all.sent += l.sent
	}
	if len(v.Lanes.Journals) > 1 {
		b.WriteString(all.String())
	}
}

// lineOf gives the line of a lane. One that never had a ticket of the tier has a line too.
func lineOf(v quota.View, tier ledger.Unit, lane int) laneLine {
	l := laneLine{lane: fmt.Sprint(lane), inUse: "no"}
	if lane <= v.Lanes.Lanes {
		l.inUse = "yes"
	}
	for _, has := range v.ByLane {
		if has.Tier == tier && has.Lane == lane {
			l.held, l.sold, l.sent = has.Held, has.Sold, has.InTransit
		}
	}
	for _, bucket := range v.Buckets {
		switch {
		case bucket.Tier != tier || bucket.Lane != lane:
		case bucket.Allotment != "":
			l.allotted += bucket.Free
		default:
			l.free, l.version = bucket.Free, fmt.Sprint(bucket.Version)
		}
	}
	return l
}

// allotmentsTable lays the allotments out, and what's free in them.
func allotmentsTable(b *strings.Builder, v quota.View) {
	const layout = "%s  %-9s %-20s %-20s %-4s %11s\n"
	fmt.Fprintf(b, layout, column("allotment", 28), "status", "opens", "releases", "code", "version")
	for _, a := range v.Allotments {
		code := "no"
		if a.CodeRequired {
			code = "yes"
		}
		fmt.Fprintf(b, layout, column(a.Allotment, 28), allotmentStatus(a, v.AsOf), instantOr(a.OpensAt, "with the sale"),
			instantOr(a.ReleasesAt, "never"), code, fmt.Sprint(a.Version))
	}
	first := true
	for _, bucket := range v.Buckets {
		if bucket.Allotment == "" {
			continue
		}
		const layout = "%s  %s  %4s%13s%13s\n"
		if first {
			fmt.Fprintf(b, "\n"+layout, column("free in", 28), column("tier", 30), "lane", "free", "version")
		}
		first = false
		fmt.Fprintf(b, layout, column(bucket.Allotment, 28), column(string(bucket.Tier), 30), fmt.Sprint(bucket.Lane),
			thousands(int64(bucket.Free)), fmt.Sprint(bucket.Version))
	}
}

// allotmentStatus says in a word whether an allotment sells.
func allotmentStatus(a *buckets.Allotment, now time.Time) string {
	switch {
	case a.ClosedAt != nil:
		return "closed"
	case a.Ended(now):
		return "released"
	case a.OpensAt != nil && now.Before(*a.OpensAt):
		return "not open"
	}
	return "live"
}

// instantOr writes a time, or what none means.
func instantOr(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return instant(*t)
}

// column pads a name. One that's longer than its column stands on a line of its own.
func column(name string, width int) string {
	if len(name) > width {
		return name + "\n" + strings.Repeat(" ", width)
	}
	return fmt.Sprintf("%-*s", width, name)
}

// wrap breaks text between words, or inside one that's too long, so that no line is wider
// than a table; the lines after the first are indented.
func wrap(text, indent string) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case used+1+n > maxColumns && used > len(indent):
			b.WriteString("\n" + indent)
			used = len(indent)
		default:
			b.WriteByte(' ')
			used++
		}
		for used+n > maxColumns {
			head := []rune(word)[:maxColumns-used]
			b.WriteString(string(head) + "\n" + indent)
			word, n, used = word[len(string(head)):], n-len(head), len(indent)
		}
		b.WriteString(word)
		used += n
	}
	return b.String() + "\n"
}
