package sale

import (
	"fmt"
	"strings"
	"testing"
)

// A receipt of two tickets at version 10, and how it goes on.
func bought(end hold, o *Order, owned int64, backs ...change) *receipt {
	r := &receipt{hold: hold{ID: "h", Version: 10, Items: []item{{"ga", 2, nil}}}, ended: end}
	if o != nil {
		r.purchase = &purchase{receipt: r, order: *o, owned: owned, backs: backs}
	}
	return r
}

// What the availability may say at each version, by what the buyers know.
func TestAuditKnowsWhenTicketsMove(t *testing.T) {
	t.Parallel()
	capture := []Operation{{Kind: "capture", Status: "succeeded"}}
	failed := []Operation{{Kind: "capture", Status: "declined"}}
	for name, c := range map[string]struct {
		receipt *receipt
		right   string // version:held,sold ...
		wrong   string
	}{
		"expired": {bought(hold{Status: "expired", Version: 20}, nil, 0),
			"9:0,0 10:2,0 19:2,0 20:0,0", "9:2,0 10:0,0 19:0,0 20:2,0"},
		"declined": {bought(hold{Status: "expired", Version: 20}, &Order{ID: "o", Status: "pending", PaymentStatus: "declined", Version: 15}, 0),
			"10:2,0 19:2,0 20:0,0", "16:0,0 20:0,2"},
		"confirmed": {bought(hold{Status: "confirmed", Version: 20}, &Order{ID: "o", Status: "captured", Operations: capture, Version: 30}, 25),
			"19:2,0 20:0,2 30:0,2", "19:0,2 20:2,0 20:0,0 25:2,0"},
		"open": {bought(hold{Status: "payment_pending", Version: 20}, &Order{ID: "o", Status: "pending", Version: 20, Operations: []Operation{{Kind: "authorize", Status: "unknown"}}}, 0),
			"10:2,0 40:2,0", "40:0,0 40:0,2"},
		"capture failed, seen confirmed": {bought(hold{Status: "confirmed", Version: 15}, &Order{ID: "o", Status: "cancelled", Operations: failed, Version: 30}, 15),
			"12:2,0 15:0,2 16:0,0 29:0,2 30:0,0", "10:0,0 12:0,2 15:2,0 30:0,2"},
		"capture failed, not seen": {bought(hold{Status: "released", Version: 30}, &Order{ID: "o", Status: "cancelled", Operations: failed, Version: 30}, 0),
			"12:2,0 12:0,2 29:0,0 30:0,0", "10:0,2 30:2,0 30:0,2"},
		"honoured late": {bought(hold{Status: "expired", Version: 20}, &Order{ID: "o", Status: "captured", Version: 40}, 40),
			"19:2,0 20:0,0 25:0,2 39:0,0 40:0,2", "19:0,2 20:2,0 40:0,0"},
		"one ticket back": {bought(hold{Status: "confirmed", Version: 20}, &Order{ID: "o", Status: "partially_refunded", Version: 40}, 20, change{30, 35, "ga", 0, -1, nil}),
			"30:0,2 31:0,1 34:0,2 35:0,1 40:0,1", "30:0,1 35:0,2 40:0,0"},
	} {
		for _, reading := range readings(c.right) {
			if got := audited(c.receipt, reading); got != "" {
				t.Errorf("%s: version %d is right and surprises: %s", name, reading.Version, got)
			}
		}
		for _, reading := range readings(c.wrong) {
			if got := audited(c.receipt, reading); !strings.Contains(got, "the API says") {
				t.Errorf("%s: version %d is wrong (%d held, %d sold) and nobody noticed", name, reading.Version, reading.held(), reading.sold())
			}
		}
	}
}

func readings(text string) (all []availability) {
	for _, word := range strings.Fields(text) {
		var a availability
		var held, sold int64
		if _, err := fmt.Sscanf(word, "%d:%d,%d", &a.Version, &held, &sold); err != nil {
			panic(err)
		}
		a.Tiers = append(a.Tiers, tier{"ga", 10, 10 - held - sold, held, sold})
		all = append(all, a)
	}
	return all
}

func audited(r *receipt, reading availability) string {
	var b book
	b.receipts = append(b.receipts, r)
	b.audit([]availability{reading})
	return strings.Join(b.surprises, "; ")
}

func TestAuditOfEnds(t *testing.T) {
	t.Parallel()
	paid := &Order{ID: "o", Status: "captured"}
	for name, c := range map[string]struct {
		receipt  *receipt
		surprise bool
	}{
		"bought":             {bought(hold{Status: "confirmed"}, paid, 1), false},
		"bought, but held":   {bought(hold{Status: "held"}, paid, 1), true},
		"abandoned":          {bought(hold{Status: "expired"}, nil, 0), false},
		"abandoned and sold": {bought(hold{Status: "confirmed"}, nil, 0), true},
		"never asked":        {bought(hold{Status: "expired"}, &Order{}, 0), false},
		"declined and sold":  {bought(hold{Status: "confirmed"}, &Order{ID: "o", Status: "pending", PaymentStatus: "declined"}, 0), true},
	} {
		var b book
		b.auditEnd(c.receipt)
		if got := b.surprised > 0; got != c.surprise {
			t.Errorf("%s: surprises %q", name, b.surprises)
		}
	}
}
