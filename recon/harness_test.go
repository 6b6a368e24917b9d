package recon_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
	"github.com/tierledger/tierledger/recon"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	pgtest.Prepare(t, pgtest.New(t), recon.Statements, "sql.go")
}

const header = "id,type,payment,reference,created,gross,fee,net,currency\n"

// shop is an event for each of three currencies on a database of its own, the
// simulated provider, and the operations with it.
type shop struct {
	*testing.T
	*recon.Reports
	*payments.Client
	db       *pgtest.DB
	owner    *pgx.Conn
	journals map[ledger.Unit]ledger.JournalID
	books    books
	url      string // of the provider
	clock    time.Time
}

func openShop(t *testing.T) *shop {
	t.Helper()
	ctx := context.Background()
	s := &shop{T: t, db: pgtest.New(t), clock: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		journals: map[ledger.Unit]ledger.JournalID{}}
	var err error
	if s.owner, err = pgx.Connect(ctx, s.db.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.owner.Close(ctx) })
	s.db.Check(checked)
	s.Reports = s.process(s.db.ServiceURL())

	stores := pgtest.Stores(t, s.db, nil)
	for _, currency := range []ledger.Unit{"USD", "JPY", "KWD"} {
		name := strings.ToLower(string(currency))
		if _, err := stores.Events.Create(ctx, "tester", name, buckets.Spec{Event: name, Name: name, Currency: currency,
			Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 10, Price: buckets.Money{Amount: 5000, Currency: currency}}}}); err != nil {
			t.Fatal(err)
		}
		if s.journals[currency], err = stores.Events.Journal(ctx, name); err != nil {
			t.Fatal(err)
		}
	}

	provider, err := sim.New(sim.Options{Clock: func() time.Time { return s.clock }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(provider)
	t.Cleanup(func() {
		server.Close()
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	})
	s.url = server.URL
	if s.Client, err = payments.NewClient(payments.Options{URL: s.url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Client.Close)
	return s
}

// process gives reports as a process of their own would: with a ledger of their own.
func (s *shop) process(url string) *recon.Reports {
	s.Helper()
	pool, err := pg.Open(context.Background(), pg.Options{URL: url, Name: s.T.Name(), MaxConns: 8})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(pool.Close)
	l := ledger.New(ledger.Options{Pool: pool, Shelves: []func() ledger.Shelf{recon.NewShelf}})
	s.Cleanup(l.Close)
	return recon.NewReports(l, &s.books, s.reads())
}

func (s *shop) reads() *pgxpool.Pool {
	s.Helper()
	pool, err := pg.Open(context.Background(), pg.Options{URL: s.db.ServiceURL(), Name: s.T.Name(), MaxConns: 4, ReadOnly: true})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(pool.Close)
	return pool
}

// checked runs this package's invariants.
func checked(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var failed []error
	for _, c := range recon.Checks() {
		found, err := violations(ctx, conn, c)
		if err != nil || len(found) > 0 {
			failed = append(failed, fmt.Errorf("%s: %q %w", c.Name, found, cmp.Or(err, errViolated)))
		}
	}
	return errors.Join(failed...)
}

var errViolated = errors.New("violated")

func violations(ctx context.Context, conn *pgx.Conn, c ledger.Check) ([]string, error) {
	rows, err := conn.Query(ctx, c.SQL, nil)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// books are operations in memory, read as from their table.
type books struct {
	mu   sync.Mutex
	list []recon.Operation

	entered, leave chan struct{} // when not nil, a reader tells that it's there, and waits
}

func (b *books) add(o recon.Operation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, o)
}

func (b *books) change(id uuid.UUID, change func(*recon.Operation)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.list {
		if b.list[i].ID == id {
			change(&b.list[i])
		}
	}
}

func (b *books) those(wanted func(o *recon.Operation) bool) (list []recon.Operation, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.list {
		if wanted(&b.list[i]) {
			list = append(list, b.list[i])
		}
	}
	return list, nil
}

func (b *books) ByID(_ context.Context, provider string, ids []uuid.UUID) ([]recon.Operation, error) {
	if b.entered != nil {
		b.entered <- struct{}{}
		<-b.leave
	}
	return b.those(func(o *recon.Operation) bool { return o.Provider == provider && slices.Contains(ids, o.ID) })
}

func (b *books) OfPayments(_ context.Context, provider string, payments []string) ([]recon.Operation, error) {
	return b.those(func(o *recon.Operation) bool { return o.Provider == provider && slices.Contains(payments, o.Payment) })
}

func (b *books) Moved(_ context.Context, provider string, from, to time.Time) ([]recon.Operation, error) {
	return b.those(func(o *recon.Operation) bool {
		return o.Provider == provider && o.Status == "succeeded" && (o.Kind != payments.Authorize || o.Captured) &&
			o.ToldAt != nil && !o.ToldAt.Before(from) && o.ToldAt.Before(to)
	})
}

// sell authorizes and captures a payment, and notes both as operations. An hour passes.
func (s *shop) sell(key string, amount ledger.Amount, currency ledger.Unit) (payment string, capture uuid.UUID) {
	s.Helper()
	money := buckets.Money{Amount: amount, Currency: currency}
	journal := s.journals[currency]
	a, err := s.Authorize(s.Context(), payments.Authorization{Operation: ledger.NewID(journal, "authorize", key), Amount: money, Method: "sim_ok"})
	s.note(a, err)
	capture = ledger.NewID(journal, "capture", key)
	c, err := s.Capture(s.Context(), payments.Step{Operation: capture, Payment: a.Payment.Reference, Amount: money})
	s.note(c, err)
	s.clock = s.clock.Add(time.Hour)
	return a.Payment.Reference, capture
}

func (s *shop) refund(key, payment string, amount ledger.Amount, currency ledger.Unit) {
	s.Helper()
	r, err := s.Refund(s.Context(), payments.Step{Operation: ledger.NewID(s.journals[currency], "refund", key), Payment: payment,
		Amount: buckets.Money{Amount: amount, Currency: currency}})
	s.note(r, err)
}

// note keeps what the provider said of an operation.
func (s *shop) note(r payments.Result, err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	s.books.add(recon.Operation{ID: r.Operation, Kind: r.Kind, Status: string(r.Outcome), Provider: "sim",
		Payment: r.Payment.Reference, Reference: r.Reference, Amount: r.Amount, ToldAt: &r.At,
		Captured: r.Kind == payments.Authorize && r.Payment.Captured > 0})
}

// dispute charges an amount back. The ledger hears of it, or doesn't.
func (s *shop) dispute(payment string, amount ledger.Amount, currency ledger.Unit, heard bool) {
	s.Helper()
	s.post("/payments/"+payment+"/dispute", fmt.Sprintf(`{"amount": %d}`, amount))
	if !heard {
		return
	}
	const name = "op_of_the_bank"
	told := s.clock
	s.books.add(recon.Operation{
		ID:   ledger.NewID(s.journals[currency], ledger.SystemPrincipal, "foreign", "sim", name),
		Kind: payments.Chargeback, Status: "succeeded", Provider: "sim", Payment: payment, Reference: name,
		Amount: buckets.Money{Amount: amount, Currency: currency}, ToldAt: &told,
	})
}

func (s *shop) post(path, body string) {
	s.Helper()
	answer, err := http.Post(s.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		s.Fatal(answer.Status)
	}
}

// report gets the provider's report of a time, "" for all.
func (s *shop) report(query string) string {
	s.Helper()
	answer, err := http.Get(s.url + "/report?" + query)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.Fatal(answer.Status, err)
	}
	return string(text)
}

// imports imports a report that can be imported.
func (s *shop) imports(text string) recon.Report {
	s.Helper()
	r, err := s.Import(s.Context(), "finance", "sim", strings.NewReader(text))
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// one reads a single value as the owner.
func one[T any](s *shop, sql string, args ...any) (value T) {
	s.Helper()
	if err := s.owner.QueryRow(s.Context(), sql, args...).Scan(&value); err != nil {
		s.Fatal(err)
	}
	return value
}

// entries counts the entries that booked lines.
func (s *shop) entries() int {
	s.Helper()
	return one[int](s, `SELECT count(*) FROM entries WHERE kind = 'report.booked'`)
}

// fees lists the provider's fees: journal, amount and unit.
func (s *shop) fees() string {
	s.Helper()
	return one[string](s, `SELECT coalesce(string_agg(format('%s: %s %s', journal_id, balance, unit), ', ' ORDER BY journal_id, unit), '')
FROM accounts WHERE code = 'fees:provider:sim'`)
}

// lines lists the rows: id, journal, result, and whether they've an operation.
func (s *shop) lines() string {
	s.Helper()
	return one[string](s, `SELECT coalesce(string_agg(format('%s in %s %s%s', line_id, journal_id, result,
       CASE WHEN operation_id IS NULL THEN '' ELSE ' +' END), ', ' ORDER BY line_id), '') FROM report_lines`)
}
