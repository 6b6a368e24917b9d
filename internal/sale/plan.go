package sale

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// MaxBuyers bounds a sale to what this machine's memory and patience bear.
	MaxBuyers = 1_000_000
	// MaxQuantity bounds the tickets on sale.
	MaxQuantity = 1_000_000
	// MaxSeats bounds the seats that are sold by name: as many as an event may have.
	MaxSeats = 100_000

	// holdSeconds is short, so that what was abandoned is seen to come back. A payment
	// can't begin in the last five of them.
	holdSeconds   = 9
	graceSeconds  = 3 // to finish a payment that was begun
	customerLimit = 6
	vipLimit      = 2
	// openAfter is when the sale opens; who comes earlier is told when.
	openAfter = 500 * time.Millisecond
	// steepness is how many times fewer buyers arrive at the end of the rush than
	// at its beginning, as a power of e.
	steepness = 4
)

// Plan is a sale to be played. The same plan is the same crowd.
type Plan struct {
	URL      string // of the API, on loopback
	Event    string // to be created
	Buyers   int    // 1 to MaxBuyers
	Quantity int    // of the hot tier, 1 to MaxQuantity
	Seats    int    // assigned ones, 0 to MaxSeats
	Seed     uint64
}

// rush is how long the buyers take to arrive: two seconds, and what a small
// machine needs for so many.
func (p Plan) rush() time.Duration {
	return 2*time.Second + time.Duration(p.Buyers)*1600*time.Microsecond
}

// loading is about how long the chart takes to be loaded.
func (p Plan) loading() time.Duration { return time.Duration(p.Seats) * 50 * time.Microsecond }

// vip is the quantity of the small tier.
func (p Plan) vip() int { return max(1, p.Quantity/50) }

// Capacity is the number of all tickets.
func (p Plan) Capacity() int64 { return int64(p.Quantity + p.vip() + p.Seats) }

// spec is the event as the API wants it.
func (p Plan) spec(opens time.Time, h *house) map[string]any {
	usd := func(cents int) map[string]any { return map[string]any{"amount": cents, "currency": currency} }
	tiers := []map[string]any{
		{"tier": "ga", "name": "General admission", "quantity": p.Quantity, "price": usd(5000), "fee": usd(250), "tax_rate": "0.01"},
		{"tier": "vip", "name": "Front of stage", "quantity": p.vip(), "price": usd(19000), "fee": usd(950), "tax_rate": "0.01", "limit_per_customer": vipLimit},
	}
	for _, t := range []map[string]any{ // the chart makes their quantity
		{"tier": stalls, "name": "Stalls", "seated": true, "price": usd(12000), "fee": usd(600), "tax_rate": "0.01"},
		{"tier": balcony, "name": "Balcony", "seated": true, "price": usd(8000), "fee": usd(400), "tax_rate": "0.01"},
	} {
		if h.has(t["tier"].(string)) {
			tiers = append(tiers, t)
		}
	}
	return map[string]any{
		"event": p.Event, "name": "One night only", "currency": currency,
		"hold_seconds": holdSeconds, "grace_seconds": graceSeconds, "limit_per_customer": customerLimit,
		"late_payment_policy": "honour_if_available",
		"sale_opens_at":       opens.UTC().Format(time.RFC3339Nano),
		"tiers":               tiers,
	}
}

// habit is what a buyer does.
type habit int

const (
	pays     habit = iota // holds, and pays
	abandons              // holds, and is never seen again
	releases              // holds, thinks, gives back; says so twice
	repeats               // sends every request again: must get the same answers; pays
	alters                // sends other content under the same key: must be refused; pays
	grabs                 // asks for more than the limit first: must be refused; pays
)

// habits are how often each habit occurs among ten buyers.
var habits = [10]habit{pays, pays, pays, pays, abandons, abandons, releases, repeats, alters, grabs}

// item is a line of a hold, as it's held.
type item struct {
	Tier     string   `json:"tier"`
	Quantity int64    `json:"quantity"`
	Seats    []string `json:"seats,omitempty"`
}

// line is a line of a request: a quantity of a tier, seats by name, or the best there are.
type line struct {
	Tier     string   `json:"tier,omitempty"`
	Quantity int64    `json:"quantity,omitempty"`
	Seats    []string `json:"seats,omitempty"`
	Best     *best    `json:"best_available,omitempty"`
}

// best asks for the best seats that are free.
type best struct {
	Tier        string `json:"tier,omitempty"`
	Section     string `json:"section,omitempty"`
	Quantity    int64  `json:"quantity"`
	AcceptSplit bool   `json:"accept_split,omitempty"`
	Accessible  bool   `json:"accessible,omitempty"`
}

// buyer is one person who comes to the sale.
type buyer struct {
	customer string
	arrives  time.Duration // after the beginning
	habit    habit
	items    []line
	party    *party        // wants seats side by side; nil: whoever doesn't
	tries    int           // refusals that the buyer bears, and one more
	thinks   time.Duration // before giving back, or paying
	wallet   wallet
	hangsUp  bool       // before the answer to the payment comes, and asks again
	refunds  refund     // asked for when all is paid
	rand     *rand.Rand // for what isn't decided yet
	served   bool       // held something at some time
}

// crowd makes the buyers in the order of their arrival.
func (p Plan) crowd() []*buyer {
	crowd := make([]*buyer, p.Buyers)
	deck := p.deck()
	for i := range crowd {
		r := rand.New(rand.NewPCG(p.Seed, uint64(i)))
		crowd[i] = &buyer{
			customer: fmt.Sprintf("buyer-%d", i+1),
			arrives:  arrival(r.Float64(), p.rush()),
			habit:    habits[r.IntN(len(habits))],
			items:    basket(r),
			tries:    1 + r.IntN(5),
			thinks:   time.Duration(200+r.IntN(1500)) * time.Millisecond,
			hangsUp:  r.IntN(10) == 0,
			refunds:  refunds[r.IntN(len(refunds))],
			rand:     r,
		}
	}
	slices.SortFunc(crowd, func(a, b *buyer) int { return int(a.arrives - b.arrives) })
	for i, b := range crowd {
		b.wallet = deck[i%len(deck)]
	}
	p.seat(crowd)
	return crowd
}

// arrival turns an even draw from 0 to 1 into a time in the rush, whose rate falls
// off exponentially.
func arrival(draw float64, rush time.Duration) time.Duration {
	t := -math.Log(1-draw*(1-math.Exp(-steepness))) / steepness
	return time.Duration(t * float64(rush))
}

// basket is 1 to 6 tickets, for one buyer in ten with vip ones among them.
func basket(r *rand.Rand) []line {
	n := 1 + int64(r.IntN(customerLimit))
	if r.IntN(10) > 0 {
		return []line{{Tier: "ga", Quantity: n}}
	}
	vip := min(n, 1+int64(r.IntN(vipLimit)))
	if n == vip {
		return []line{{Tier: "vip", Quantity: vip}}
	}
	return []line{{Tier: "ga", Quantity: n - vip}, {Tier: "vip", Quantity: vip}}
}
