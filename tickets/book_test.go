package tickets

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

// parseLines reads an order's lines: "ga 3" is three of ga, "ga 3-1" with one returned,
// "A 12" the seats A1 and A2, "A 12-1" with A1 returned. Tiers in capitals have seats.
func parseLines(text string) (items []orders.Item) {
	for part := range strings.SplitSeq(text, ",") {
		tier, units, _ := strings.Cut(strings.TrimSpace(part), " ")
		units, back, _ := strings.Cut(units, "-")
		item := orders.Item{Item: holds.Item{Tier: ledger.Unit(tier)}}
		if strings.ToUpper(tier) == tier {
			labels := func(numbers string) (list []string) {
				for _, n := range numbers {
					list = append(list, tier+string(n))
				}
				return list
			}
			item.Seats, item.ReturnedSeats = labels(units), labels(back)
			item.Quantity, item.Returned = ledger.Amount(len(units)), ledger.Amount(len(back))
		} else {
			n, _ := strconv.Atoi(units)
			m, _ := strconv.Atoi(back)
			item.Quantity, item.Returned = ledger.Amount(n), ledger.Amount(m)
		}
		items = append(items, item)
	}
	return items
}

// show gives a book's tickets by number, each as its tier or seat, revoked ones in
// parentheses.
func (b *book) show() string {
	var list []string
	for i, t := range b.tickets {
		text := string(t.Tier)
		if t.Seat != "" {
			text = t.Seat
		}
		if t.revoked > 0 {
			text = "(" + text + ")"
		}
		if t.Number != i+1 || t.ID != ID(b.journal, b.order, i+1) || t.revoked > 0 && t.revoked <= t.issued {
			text += "!"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func newBook() *book { return &book{journal: 7, order: ledger.NewID(7, "an order")} }

// reread gives the book as it's read again after it was written.
func (b *book) reread() *book {
	again := &book{journal: b.journal, order: b.order, seq: b.seq}
	for _, t := range b.tickets {
		known := *t
		again.tickets = append(again.tickets, &known)
	}
	return again
}

// What becomes of an order's tickets: seq, status and lines of an entry, and the tickets
// after it.
func TestTicketsFollowTheOrder(t *testing.T) {
	for name, story := range map[string]string{
		"paid": `
			1 pending            ga 2        |
			2 confirmed          ga 2        |
			3 captured           ga 2        | ga ga`,
		"free, or paid at once": `
			1 captured           ga 2        | ga ga`,
		"a capture that fails": `
			2 confirmed          ga 2        |
			3 cancelled          ga 2        |`,
		"never paid": `
			1 pending            A 12        |
			2 cancelled          A 12        |`,
		"told again": `
			3 captured           ga 2        | ga ga
			3 captured           ga 2        | ga ga
			4 captured           ga 2        | ga ga`,
		"a capture taken back, and made again": `
			3 captured           ga 2        | ga ga
			4 confirmed          ga 2        | ga ga
			5 captured           ga 2        | ga ga`,
		"a capture taken back, and cancelled": `
			3 captured           ga 2        | ga ga
			4 confirmed          ga 2        | ga ga
			5 cancelled          ga 2        | (ga) (ga)`,
		"that, and honoured": `
			3 captured           A 12, ga 1  | A1 A2 ga
			5 cancelled          A 12, ga 1  | (A1) (A2) (ga)
			7 captured           A 12, ga 1  | (A1) (A2) (ga) A1 A2 ga
			8 captured           A 12-2, ga 1-1  | (A1) (A2) (ga) A1 (A2) (ga)`,
		"that, and honoured by an authorization": `
			3 captured           ga 1        | ga
			5 cancelled          ga 1        | (ga)
			6 confirmed          ga 1        | (ga)
			7 captured           ga 1        | (ga) ga`,
		"late, and honoured": `
			2 cancelled          ga 2        |
			3 captured           ga 2        | ga ga`,
		"a refund of units, the highest numbers first": `
			3 captured           ga 3        | ga ga ga
			4 captured           ga 3-1      | ga ga (ga)
			5 partially_refunded ga 3-1      | ga ga (ga)
			6 partially_refunded ga 3-3      | (ga) (ga) (ga)
			7 refunded           ga 3-3      | (ga) (ga) (ga)`,
		"a refund of seats, by name": `
			3 captured           A 123       | A1 A2 A3
			4 captured           A 123-1     | (A1) A2 A3
			5 partially_refunded A 123-13    | (A1) A2 (A3)`,
		"a refund that fails keeps the units": `
			3 captured           ga 2        | ga ga
			4 captured           ga 2-1      | ga (ga)
			5 captured           ga 2-1      | ga (ga)`,
		"a refund of money alone, and a chargeback": `
			3 captured           ga 2        | ga ga
			4 partially_refunded ga 2        | ga ga
			5 refunded           ga 2        | ga ga
			6 captured           ga 2        | ga ga`,
		"two lines of one tier": `
			3 captured           ga 2, ga 2      | ga ga ga ga
			4 captured           ga 2-1, ga 2    | ga (ga) ga ga
			5 captured           ga 2-2, ga 2-1  | (ga) (ga) ga (ga)`,
		"given up, and made good by the next": `
			4 captured           A 12-1      | A2
			3 captured           A 12        | A2`,
		"given up, and replayed after the end": `
			4 cancelled          ga 2        |
			3 captured           ga 2        |`,
		"given up, and replayed after all went back": `
			4 captured           ga 2-2      |
			3 captured           ga 2        |`,
		"given up, and replayed after it was taken back": `
			4 confirmed          ga 2        |
			3 captured           ga 2        | ga ga`,
		"an end given up, and replayed after another sale": `
			3 captured           ga 2        | ga ga
			6 captured           ga 2        | ga ga
			5 cancelled          ga 2        | ga ga`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			for step := range strings.SplitSeq(strings.TrimSpace(story), "\n") {
				told, want, _ := strings.Cut(step, "|")
				words := strings.Fields(told)
				seq, err := strconv.Atoi(words[0])
				if err != nil {
					t.Fatal(err)
				}
				b = b.reread()
				b.follow(record{ledger.Seq(seq), at(seq), order(b.order, words[1], strings.Join(words[2:], " "))})
				if got := b.show(); got != strings.TrimSpace(want) {
					t.Errorf("%s: %q", strings.TrimSpace(step), got)
				}
			}
		})
	}
}

// What's followed in one transaction is written like what's followed in several.
func TestATicketThatIsIssuedAndRevokedAtOnce(t *testing.T) {
	b := newBook()
	b.follow(record{3, at(3), order(b.order, "captured", "ga 2")})
	b.follow(record{4, at(4), order(b.order, "captured", "ga 2-1")})
	if b.show() != "ga (ga)" || len(b.issued) != 2 || len(b.revoked) != 0 {
		t.Errorf("%s, %d issued, %d revoked", b.show(), len(b.issued), len(b.revoked))
	}
	b = b.reread()
	b.follow(record{5, at(5), order(b.order, "captured", "ga 2-2")})
	if b.show() != "(ga) (ga)" || len(b.issued) != 0 || len(b.revoked) != 1 {
		t.Errorf("%s, %d issued, %d revoked", b.show(), len(b.issued), len(b.revoked))
	}
}

func order(id uuid.UUID, status, lines string) *orders.Order {
	s := orders.Status(status)
	if !s.Valid() {
		panic(fmt.Sprintf("%q is no status", status))
	}
	return &orders.Order{ID: id, Event: "gig", Status: s, Items: parseLines(lines)}
}
