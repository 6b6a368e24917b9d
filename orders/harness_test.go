package orders_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// shop is an event on sale with a payment provider, all over loopback. No janitor runs
// but by work.
type shop struct {
	testing.TB
	service.Stores
	ctx      context.Context
	db       *pgtest.DB
	owner    *pgx.Conn
	sim      *sim.Server
	provider *payments.Client
	secrets  payments.Secrets
	simURL   string
	traffic  *traffic
	keys     atomic.Int64
	gate     sync.RWMutex // nothing begins while idle waits
}

// option changes how a shop is opened.
type option struct {
	spec     buckets.Spec
	webhooks bool          // the provider's reach the shop
	mailbox  bool          // they're kept for the test to deliver
	proxy    *pgtest.Proxy // the stores reach the database through it
	seed     uint64        // of the provider's faults
}

// usual is an event of 100 tickets at 50.00 + 2.50 + 1 %.
func usual() buckets.Spec {
	rate := &buckets.Rate{}
	if err := rate.UnmarshalJSON([]byte(`"0.01"`)); err != nil {
		panic(err)
	}
	return buckets.Spec{Event: "gig", Name: "Gig", Currency: "USD", HoldSeconds: 3600, Organiser: "org",
		LatePaymentPolicy: buckets.Review, Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 100,
			Price: buckets.Money{Amount: 5000, Currency: "USD"}, Fee: &buckets.Money{Amount: 250, Currency: "USD"}, TaxRate: rate}}}
}

func open(t testing.TB, o option) *shop { return openOn(t, pgtest.New(t), o) }

func openOn(t testing.TB, db *pgtest.DB, o option) *shop {
	t.Helper()
	s := &shop{TB: t, ctx: context.Background(), db: db, traffic: newTraffic()}
	var err error
	if s.secrets, err = service.NewSecret(); err != nil {
		t.Fatal(err)
	}
	if s.sim, err = sim.New(sim.Options{Seed: o.seed, Secrets: s.secrets}); err != nil {
		t.Fatal(err)
	}
	settings := s.sim.Settings()
	settings.HoldAnswer = 1
	if err := s.sim.Configure(settings); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/sim/", s.traffic.through(http.StripPrefix("/sim", s.sim)))
	mux.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err == nil && o.mailbox:
			s.traffic.keep(letter{body, r.Header})
		case err == nil:
			s.gate.RLock()
			err = s.Orders.Receive(r.Context(), "sim", body, r.Header)
			s.gate.RUnlock()
		}
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	server := httptest.NewServer(mux)
	s.simURL = server.URL + "/sim"
	t.Cleanup(server.Close)
	t.Cleanup(func() { s.sim.Close() })
	if s.provider, err = payments.NewClient(payments.Options{
		URL: s.simURL, Secrets: s.secrets, Cooldown: time.Millisecond, Transport: s.traffic.transport(),
		Timeout: payments.MaxTimeout, // no call comes to it: those that get no answer break off
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.provider.Close)
	s.Stores = s.process(o.proxy)
	if o.webhooks || o.mailbox {
		if err := s.sim.SetWebhookURL(server.URL + "/hook"); err != nil {
			t.Fatal(err)
		}
	}
	if s.owner, err = pgx.Connect(s.ctx, db.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.owner.Close(s.ctx) })
	if o.spec.Event == "" {
		o.spec = usual()
	}
	if _, err := s.Events.Create(s.ctx, "tester", "event", o.spec); err != nil {
		t.Fatal(err)
	}
	return s
}

// process gives the stores that a process of its own would have.
func (s *shop) process(proxy *pgtest.Proxy) service.Stores {
	s.Helper()
	if proxy == nil {
		return pgtest.Stores(s.TB, s.db, nil, s.provider)
	}
	pool, err := pg.Open(s.ctx, pg.Options{URL: proxy.ServiceURL(s.TB, s.db), Name: s.Name(), MaxConns: 4})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(pool.Close)
	reads, err := pg.Open(s.ctx, pg.Options{URL: s.db.ServiceURL(), Name: s.Name(), MaxConns: 4})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(reads.Close)
	stores := service.Fit(service.Parts{Commits: pool, Reads: reads, Providers: []payments.Provider{s.provider}})
	s.Cleanup(stores.Ledger.Close)
	s.Cleanup(func() { stores.Orders.Close(s.ctx) })
	return stores
}

// idle waits until no call to the provider is under way.
func (s *shop) idle() {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.Orders.Idle()
}

func (s *shop) key() string { return "k" + strconv.FormatInt(s.keys.Add(1), 10) }

// hold places a hold of n tickets.
func (s *shop) hold(customer string, n ledger.Amount) uuid.UUID {
	s.Helper()
	receipt, err := s.Holds.Place(s.ctx, "tester", s.key(), "gig",
		holds.Request{Customer: customer, Items: []holds.Line{{Tier: "ga", Quantity: n}}})
	if err != nil {
		s.Fatal(err)
	}
	var h holds.Hold
	s.decode(receipt.Data, &h)
	return h.ID
}

func (s *shop) decode(data json.RawMessage, into any) {
	s.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		s.Fatal(err)
	}
}

// pay checks a hold out.
func (s *shop) pay(hold uuid.UUID, method string) (orders.Order, error) {
	s.Helper()
	answer, err := s.Orders.Checkout(s.ctx, "tester", s.key(), hold, orders.CheckoutRequest{PaymentMethod: method})
	if err != nil {
		return orders.Order{}, err
	}
	var o orders.Order
	s.decode(answer.Data, &o)
	return o, nil
}

// buy places a hold and checks it out, and waits for the calls that follow. What it gives
// is the order then.
func (s *shop) buy(customer string, n ledger.Amount, method string) orders.Order {
	s.Helper()
	hold := s.hold(customer, n)
	_, err := s.pay(hold, method)
	if err != nil && fault.As(err).Kind != fault.Declined {
		s.Fatal(err)
	}
	s.idle()
	return s.order(s.orderOf(hold))
}

func (s *shop) orderOf(hold uuid.UUID) uuid.UUID {
	journal, _ := ledger.JournalOf(hold)
	return orders.OrderID(journal, hold)
}

func (s *shop) order(id uuid.UUID) orders.Order {
	s.Helper()
	o, err := s.Orders.Get(s.ctx, id)
	if err != nil {
		s.Fatal(err)
	}
	return o
}

// work makes everything that waits due, as time would, and has the janitor do it.
func (s *shop) work() {
	s.Helper()
	for _, sql := range []string{
		`UPDATE operations SET due_at = 'epoch' WHERE due_at IS NOT NULL`,
		`UPDATE webhooks SET due_at = 'epoch' WHERE due_at IS NOT NULL`,
	} {
		if _, err := s.owner.Exec(s.ctx, sql); err != nil {
			s.Fatal(err)
		}
	}
	if _, err := s.Orders.Work(s.ctx); err != nil {
		s.Fatal(err)
	}
	s.idle()
}

// balances gives the accounts of the event that aren't zero, by code and unit.
func (s *shop) balances() map[string]ledger.Amount {
	s.Helper()
	rows, err := s.owner.Query(s.ctx, `SELECT code || ' ' || unit, balance FROM accounts WHERE balance <> 0`)
	if err != nil {
		s.Fatal(err)
	}
	found := make(map[string]ledger.Amount)
	var key string
	var balance ledger.Amount
	if _, err := pgx.ForEachRow(rows, []any{&key, &balance}, func() error { found[key] = balance; return nil }); err != nil {
		s.Fatal(err)
	}
	return found
}

// expect compares the balances of accounts.
func (s *shop) expect(want map[string]ledger.Amount) {
	s.Helper()
	got := s.balances()
	for key, balance := range want {
		if got[key] != balance {
			s.Errorf("%s has %d, want %d", key, got[key], balance)
		}
	}
}

func collect[T any](s *shop, rows pgx.Rows) []T {
	s.Helper()
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		s.Fatal(err)
	}
	return list
}
