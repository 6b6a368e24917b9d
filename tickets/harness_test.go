package tickets_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/seats"
	"github.com/tierledger/tierledger/tickets"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// booth is an event on sale, gig, whose tickets are issued when follow says so: ga at 50.00,
// a row of six seats A-1-1 to A-1-6 in stalls, and lawn, which costs nothing.
type booth struct {
	testing.TB
	service.Stores
	ctx     context.Context
	db      *pgtest.DB
	pool    *pgxpool.Pool
	owner   *pgx.Conn
	bankURL string
	ring    keyring.Ring
	tickets *tickets.Store
	event   string // that buy buys of
	keys    atomic.Int64
}

func open(t testing.TB) *booth {
	t.Helper()
	b := &booth{TB: t, ctx: context.Background(), db: pgtest.New(t), event: "gig"}
	b.Stores, b.bankURL = pgtest.Selling(t, b.db, payments.MaxTimeout, nil)
	var err error
	b.pool, err = pg.Open(b.ctx, pg.Options{URL: b.db.ServiceURL(), Name: t.Name(), MaxConns: 4})
	b.must(err)
	t.Cleanup(b.pool.Close)
	b.owner, err = pgx.Connect(b.ctx, b.db.URL())
	b.must(err)
	t.Cleanup(func() { b.owner.Close(b.ctx) })
	b.ring, err = keyring.Parse(keyring.New())
	b.must(err)
	b.tickets = b.store(b.ring)
	tier := func(name string, quantity, price int64) buckets.TierSpec {
		return buckets.TierSpec{Tier: ledger.Unit(name), Quantity: ledger.Amount(quantity), Seated: quantity == 0,
			Price: buckets.Money{Amount: ledger.Amount(price), Currency: "USD"}}
	}
	_, err = b.Events.Create(b.ctx, "t", "event", buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD", HoldSeconds: 3600,
		Tiers: []buckets.TierSpec{tier("ga", 100, 5000), tier("stalls", 0, 9000), tier("lawn", 10, 0)}})
	b.must(err)
	row := seats.Row{Row: "1"}
	for n := range 6 {
		row.Seats = append(row.Seats, seats.Seat{Seat: strconv.Itoa(n + 1)})
	}
	_, err = b.Seats.Load(b.ctx, "t", "chart", "gig", seats.Chart{Sections: []seats.Section{{Section: "A", Tier: "stalls", Rows: []seats.Row{row}}}})
	b.must(err)
	return b
}

func (b *booth) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// store gives the store of another process, or of one with another ring.
func (b *booth) store(ring keyring.Ring) *tickets.Store {
	return tickets.NewStore(tickets.Options{Ring: ring, Events: b.Events, Reads: b.pool})
}

func (b *booth) inbox(c outbox.Consumer) *outbox.Inbox {
	return outbox.NewInbox(outbox.InboxOptions{Pool: b.pool, Consumer: c, Log: slog.New(slog.DiscardHandler)})
}

// follow has the consumer take all that the journals have, and checks what came of it.
func (b *booth) follow() {
	b.Helper()
	b.followWith(b.tickets.Consumer())
	b.sound()
}

func (b *booth) followWith(c outbox.Consumer) {
	b.Helper()
	for _, j := range query[ledger.JournalID](b, `SELECT journal_id FROM journals`) {
		b.must(b.inbox(c).Advance(b.ctx, j))
	}
}

// sound fails unless every check of the package is silent.
func (b *booth) sound() {
	b.Helper()
	for name, list := range b.violations() {
		b.Errorf("%s: %q", name, list)
	}
}

func (b *booth) violations() map[string][]string {
	b.Helper()
	found := make(map[string][]string)
	for _, c := range tickets.Checks() {
		if list := query[string](b, c.SQL, nil); len(list) > 0 {
			found[c.Name] = list
		}
	}
	return found
}

func query[T any](b *booth, sql string, args ...any) []T {
	b.Helper()
	rows, err := b.owner.Query(b.ctx, sql, args...)
	b.must(err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	b.must(err)
	return list
}

func (b *booth) exec(sql string, args ...any) {
	b.Helper()
	_, err := b.owner.Exec(b.ctx, sql, args...)
	b.must(err)
}

func (b *booth) key() string { return "k" + strconv.FormatInt(b.keys.Add(1), 10) }

// buy places a hold of lines and pays for it. A line is "2 ga", or the label of a seat.
func (b *booth) buy(customer, method string, lines ...string) uuid.UUID {
	b.Helper()
	request := holds.Request{Customer: customer}
	var seated []string
	for _, line := range lines {
		if n, tier, ok := strings.Cut(line, " "); ok {
			quantity, err := strconv.Atoi(n)
			b.must(err)
			request.Items = append(request.Items, holds.Line{Tier: ledger.Unit(tier), Quantity: ledger.Amount(quantity)})
		} else {
			seated = append(seated, line)
		}
	}
	if seated != nil {
		request.Items = append(request.Items, holds.Line{Seats: seated})
	}
	placed, err := b.Holds.Place(b.ctx, "t", b.key(), b.event, request)
	b.must(err)
	var h holds.Hold
	b.must(json.Unmarshal(placed.Data, &h))
	_, err = b.Orders.Checkout(b.ctx, "t", b.key(), h.ID, orders.CheckoutRequest{PaymentMethod: method})
	if err != nil && fault.As(err).Kind != fault.Declined {
		b.Fatal(err)
	}
	b.Orders.Idle()
	journal, _ := ledger.JournalOf(h.ID)
	return orders.OrderID(journal, h.ID)
}

// until waits for an order to be in a state.
func (b *booth) until(id uuid.UUID, status orders.Status) {
	b.Helper()
	pgtest.Until(b.TB, "the order to be "+string(status), func() bool {
		o, err := b.Orders.Get(b.ctx, id)
		b.must(err)
		return o.Status == status
	})
	b.Orders.Idle()
}

// bank plays the buyer's bank on an order's payment.
func (b *booth) bank(id uuid.UUID, word string) {
	b.Helper()
	o, err := b.Orders.Get(b.ctx, id)
	b.must(err)
	response, err := http.Post(b.bankURL+"/payments/"+o.Operations[0].Payment+"/"+word, "application/json", strings.NewReader("{}"))
	b.must(err)
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s", word, response.Status)
	}
}

// refund returns units with their money.
func (b *booth) refund(id uuid.UUID, lines ...orders.RefundLine) {
	b.Helper()
	_, err := b.Orders.Refund(b.ctx, "t", b.key(), id, orders.RefundRequest{Items: lines, ReturnTickets: true, Reason: "asked"}, nil)
	b.must(err)
	b.Orders.Idle()
}

// list gives an order's tickets.
func (b *booth) list(id uuid.UUID) []tickets.Ticket {
	b.Helper()
	list, err := b.tickets.List(b.ctx, id, 0, 1000)
	b.must(err)
	return list
}

// want compares an order's tickets, by number: each as its tier or seat, revoked ones in
// parentheses.
func (b *booth) want(id uuid.UUID, want string) {
	b.Helper()
	var got []string
	for _, t := range b.list(id) {
		text := string(t.Tier)
		if t.Seat != "" {
			text = t.Seat
		}
		if t.Status == tickets.Revoked {
			text = "(" + text + ")"
		}
		got = append(got, text)
	}
	if text := strings.Join(got, " "); text != want {
		b.Errorf("order %s has %q, want %q", id, text, want)
	}
}

// events reads what a journal has of some entries, as the runtime does.
func (b *booth) events(where string, args ...any) []outbox.Event {
	b.Helper()
	rows, err := b.owner.Query(b.ctx, `SELECT journal_id, seq, id, kind, at, data FROM entries WHERE `+where+` ORDER BY journal_id, seq`, args...)
	b.must(err)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e outbox.Event, err error) {
		return e, row.Scan(&e.Journal, &e.Seq, &e.ID, &e.Kind, &e.At, &e.Data)
	})
	b.must(err)
	if len(list) == 0 {
		b.Fatalf("no entry is %s", where)
	}
	return list
}

// replay applies entries again, as a replayed dead letter is.
func (b *booth) replay(events []outbox.Event) {
	b.Helper()
	b.must(pgx.BeginFunc(b.ctx, b.pool, func(tx pgx.Tx) error { return b.tickets.Consumer().Effect(b.ctx, tx, events) }))
}

// rows gives all that's stored of tickets, as text.
func (b *booth) rows() string {
	b.Helper()
	return fmt.Sprint(query[string](b, `SELECT t::text FROM tickets t ORDER BY t`), query[string](b, `SELECT o::text FROM ticketed_orders o ORDER BY o`))
}
