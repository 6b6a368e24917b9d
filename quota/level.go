package quota

import (
	"cmp"
	"math"
	"slices"

	"github.com/tierledger/tierledger/ledger"
)

// stock is what a lane has of a bucket, and how fast it sells.
type stock struct {
	journal ledger.JournalID
	lane    int
	inUse   bool
	free    ledger.Amount
	rate    float64
}

// cover is how long the stock lasts, in seconds.
func (s stock) cover() float64 {
	if s.free == 0 {
		return 0
	}
	return float64(s.free) / max(s.rate, 1e-9)
}

// shares tells what lanes in use would have of all that's free: by the rates at which they
// sell, but for a tenth that's shared evenly, so that a lane without buyers has some for
// its first. With tickets for all of them none goes without.
func shares(lanes []stock) []ledger.Amount {
	var total ledger.Amount
	var rates float64
	users := 0
	for _, l := range lanes {
		total += l.free
		if l.inUse {
			users++
			rates += l.rate
		}
	}
	list := make([]ledger.Amount, len(lanes))
	var sum float64 // of the parts so far: what's rounded in one comes to the next
	var given ledger.Amount
	for i, l := range lanes {
		if !l.inUse || total == 0 {
			continue
		}
		part := 1 / float64(users)
		if rates > 0 {
			part = 0.1*part + 0.9*l.rate/rates
		}
		sum += part
		upTo := ledger.Amount(math.Round(float64(total) * sum))
		list[i] = max(1, upTo-given)
		given = upTo
	}
	return list
}

// level chooses transfers that give lanes in use their shares of what's free. Only a lane
// whose stock lasts for less than low seconds gets any, from lanes that have more than keep
// and than their share; lanes that aren't in use give all they have.
func level(lanes []stock, low float64, keep ledger.Amount) (list []transfer) {
	lanes = slices.Clone(lanes)
	share := shares(lanes)
	// What a lane can give: a bucket's last tickets stay where they are.
	surplus := func(i int) ledger.Amount {
		if l := lanes[i]; l.inUse && l.free <= keep {
			return 0
		}
		return max(0, lanes[i].free-share[i])
	}
	order := make([]int, len(lanes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lanes[a].cover(), lanes[b].cover()) })
	for _, n := range order {
		needy := &lanes[n]
		if !needy.inUse || needy.cover() >= low {
			continue
		}
		for missing := share[n] - needy.free; missing > 0; {
			donor := 0
			for i := range lanes {
				if surplus(i) > surplus(donor) {
					donor = i
				}
			}
			q := min(missing, surplus(donor))
			if q == 0 || needy.free > 0 && q < keep {
				break
			}
			list = append(list, transfer{from: lanes[donor].journal, to: needy.journal, toLane: needy.lane, quantity: q})
			lanes[donor].free -= q
			needy.free += q
			missing -= q
		}
	}
	return merge(append(list, empty(lanes, share)...))
}

// empty chooses transfers of all that lanes have that aren't in use, to those in use that
// are furthest below their shares.
func empty(lanes []stock, share []ledger.Amount) (list []transfer) {
	below := func(i int) ledger.Amount { return share[i] - lanes[i].free }
	for from := range lanes {
		for l := &lanes[from]; !l.inUse && l.free > 0; {
			to := -1
			for i := range lanes {
				if lanes[i].inUse && (to < 0 || below(i) > below(to)) {
					to = i
				}
			}
			q := l.free
			if to < 0 {
				return list
			}
			if n := below(to); n > 0 {
				q = min(q, n)
			}
			list = append(list, transfer{from: l.journal, to: lanes[to].journal, toLane: lanes[to].lane, quantity: q})
			l.free -= q
			lanes[to].free += q
		}
	}
	return list
}

// merge makes one transfer of those between the same lanes.
func merge(list []transfer) (merged []transfer) {
next:
	for _, t := range list {
		for i := range merged {
			if m := &merged[i]; m.from == t.from && m.to == t.to {
				m.quantity += t.quantity
				continue next
			}
		}
		merged = append(merged, t)
	}
	return merged
}
