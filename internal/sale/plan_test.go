package sale

import (
	"reflect"
	"testing"
	"time"
)

// The same plan is the same crowd; it comes in a rush, and has all habits.
func TestCrowd(t *testing.T) {
	t.Parallel()
	p := Plan{Buyers: 2000, Quantity: 100, Seed: 7}
	crowd := p.crowd()
	if again := p.crowd(); !reflect.DeepEqual(crowd, again) {
		t.Error("the same plan makes another crowd")
	}
	if other := (Plan{Buyers: 2000, Quantity: 100, Seed: 8}).crowd(); reflect.DeepEqual(crowd, other) {
		t.Error("another seed makes the same crowd")
	}
	seen, early := map[habit]int{}, 0
	last := time.Duration(0)
	for _, b := range crowd {
		n := int64(0)
		for _, i := range b.items {
			n += i.Quantity
			if i.Quantity < 1 || i.Tier == "vip" && i.Quantity > vipLimit {
				t.Fatalf("%s wants %v", b.customer, b.items)
			}
		}
		if n < 1 || n > customerLimit || b.arrives < last || b.arrives > p.rush() {
			t.Fatalf("%s wants %d tickets, arrives at %v after one at %v", b.customer, n, b.arrives, last)
		}
		last = b.arrives
		seen[b.habit]++
		if b.arrives < p.rush()/4 {
			early++
		}
	}
	if len(seen) != 6 {
		t.Errorf("habits: %v", seen)
	}
	if first, second := crowd[0].wallet, crowd[100].wallet; len(p.deck()) != 100 || !reflect.DeepEqual(first, second) {
		t.Errorf("a deck of %d wallets, dealt %v and then %v", len(p.deck()), first, second)
	}
	if early < len(crowd)/2 { // steepness 4: 64 % in the first quarter
		t.Errorf("%d of %d come in the first quarter: that's no rush", early, len(crowd))
	}
}

// Enough come for seats, about two for each; the others are who they'd be without.
func TestParties(t *testing.T) {
	t.Parallel()
	p := Plan{Buyers: 2000, Quantity: 980, Seats: 1000, Seed: 7} // and 19 of the small tier
	crowd, without := p.crowd(), Plan{Buyers: 2000, Quantity: 980, Seed: 7}.crowd()
	if again := p.crowd(); !reflect.DeepEqual(crowd, again) {
		t.Error("the same plan makes another crowd")
	}
	seen := map[string]int{}
	for i, b := range crowd {
		if b.party == nil {
			if !reflect.DeepEqual(b, without[i]) {
				t.Fatalf("%s is another buyer without seats: %+v, %+v", b.customer, b, without[i])
			}
			continue
		}
		n := b.party.best.Quantity
		for _, l := range b.party.beside {
			n += l.Quantity
			seen["beside"]++
		}
		if b.party.best.Quantity < 1 || n > customerLimit || b.party.best.Section != "" && b.party.best.Tier != "" {
			t.Fatalf("%s wants %+v", b.customer, b.party)
		}
		for what, is := range map[string]bool{
			"party": true, "named": b.party.named, "apart": b.party.best.AcceptSplit, "accessible": b.party.best.Accessible,
			"section": b.party.best.Section != "", "tier": b.party.best.Tier != "", "six": b.party.best.Quantity == customerLimit,
		} {
			if is {
				seen[what]++
			}
		}
	}
	if len(seen) != 8 || seen["party"] < 500 || seen["party"] > 650 {
		t.Errorf("seen: %v", seen)
	}
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	for quantity, want := range map[int]int64{1: 2, 49: 50, 100: 102, 3000: 3060} {
		if got := (Plan{Quantity: quantity}).Capacity(); got != want {
			t.Errorf("%d hot tickets: capacity %d, want %d", quantity, got, want)
		}
	}
}
