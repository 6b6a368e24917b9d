package sale

import (
	"cmp"
	"slices"
)

// change is what happened to the held and sold tickets of a tier, at a version after
// one and not after another. Where the buyers know it exactly, these are neighbours.
type change struct {
	after, by  int64
	tier       string
	held, sold int64
	seats      []string // that they are for
}

// changes turns a receipt into what the journal must have recorded of it.
func (r *receipt) changes() (all []change) {
	for _, i := range r.hold.Items {
		at := r.hold.Version
		all = append(all, change{at - 1, at, i.Tier, i.Quantity, 0, i.Seats})
		all = append(all, r.end(i)...)
	}
	if r.purchase != nil {
		all = append(all, r.purchase.backs...)
	}
	return all
}

// end is how a line of a hold ended: it was given back, or sold and perhaps given back
// later. While it's open there's no end.
func (r *receipt) end(i item) []change {
	held, sold := -i.Quantity, i.Quantity
	begun, ended := r.hold.Version, r.ended.Version
	over := r.ended.Status == "released" || r.ended.Status == "expired"
	p := r.purchase
	if p == nil || !p.order.wasSold() {
		if over {
			return []change{{ended - 1, ended, i.Tier, held, 0, i.Seats}}
		}
		return nil
	}
	owned := cmp.Or(p.owned, p.order.Version)
	switch {
	case p.order.Status == "cancelled" && r.ended.Status == "confirmed": // the capture failed: sold for a while
		return []change{{ended - 1, ended, i.Tier, held, sold, i.Seats},
			{cmp.Or(p.owned, ended), p.order.Version, i.Tier, 0, -sold, i.Seats}}
	case p.order.Status == "cancelled": // likewise, and the hold tells less
		return []change{{begun, owned, i.Tier, held, sold, i.Seats},
			{cmp.Or(p.owned, begun), p.order.Version, i.Tier, 0, -sold, i.Seats}}
	case over: // the payment came late, when the hold had ended
		return []change{{ended - 1, ended, i.Tier, held, 0, i.Seats}, {ended, owned, i.Tier, 0, sold, i.Seats}}
	case ended <= owned:
		return []change{{ended - 1, ended, i.Tier, held, sold, i.Seats}}
	}
	return []change{{begun, owned, i.Tier, held, sold, i.Seats}}
}

// span is the least and the most that a count can be.
type span struct{ least, most int64 }

func (s *span) may(n int64)         { s.least, s.most = s.least+min(n, 0), s.most+max(n, 0) }
func (s *span) must(n int64)        { s.least, s.most = s.least+max(n, 0), s.most+min(n, 0) }
func (s *span) allows(n int64) bool { return s.least <= n && n <= s.most }
func (s *span) add(n int64, may bool) {
	if may {
		s.may(n)
	} else {
		s.must(n)
	}
}

// step is one side of a change: from a version on it may have happened, or it must.
type step struct {
	version int64
	may     bool
	change
}

// audit compares every reading of the availability with what the receipts add up to at
// its version, and every end of a hold with what its buyer thinks. Call it when all
// holds were read for the last time, and no reading is newer than that.
func (b *book) audit(readings []availability) {
	var steps []step
	for _, r := range b.receipts {
		b.auditEnd(r)
		for _, c := range r.changes() {
			steps = append(steps, step{c.after + 1, true, c}, step{c.by, false, c})
		}
	}
	slices.SortFunc(steps, func(x, y step) int { return cmp.Compare(x.version, y.version) })
	slices.SortFunc(readings, func(x, y availability) int { return cmp.Compare(x.Version, y.Version) })
	// Both are in the order of versions: one pass over the readings.
	held, sold := map[string]*span{}, map[string]*span{}
	for _, reading := range readings {
		for _, t := range reading.Tiers {
			if held[t.Tier] == nil {
				held[t.Tier], sold[t.Tier] = &span{}, &span{}
			}
		}
		for len(steps) > 0 && steps[0].version <= reading.Version {
			s := steps[0]
			held[s.tier].add(s.held, s.may)
			sold[s.tier].add(s.sold, s.may)
			steps = steps[1:]
		}
		for _, t := range reading.Tiers {
			h, s := held[t.Tier], sold[t.Tier]
			if !h.allows(t.Held) || !s.allows(t.Sold) || t.Available != t.Capacity-t.Held-t.Sold {
				b.surprise("version %d: the API says %d of %s are held, %d sold and %d left, the buyers hold %d to %d and own %d to %d of %d",
					reading.Version, t.Held, t.Tier, t.Sold, t.Available, h.least, h.most, s.least, s.most, t.Capacity)
			}
		}
	}
}

// auditEnd compares a hold's end with what its buyer thinks.
func (b *book) auditEnd(r *receipt) {
	want := []string{"expired"}
	switch p := r.purchase; {
	case r.released:
		want = []string{"released"}
	case p == nil || p.order.ID == "":
	case p.order.Status == "cancelled": // or it was ended when the order was
		want = []string{"expired", "released", "confirmed"}
	case p.order.sold():
		want = []string{"confirmed", "expired", "released"} // the latter: paid late, honoured
	case !p.order.Settled():
		want = []string{"payment_pending", "reconciling", "expired", "released"}
	default: // declined
		want = []string{"expired", "released"}
	}
	if !slices.Contains(want, r.ended.Status) {
		b.surprise("hold %s is %s, its buyer says %s", r.hold.ID, r.ended.Status, want[0])
	}
}
