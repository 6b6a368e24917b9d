package subscribers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/subscribers"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// desk is a ledger with subscriptions. Nothing is sent but by work.
type desk struct {
	testing.TB
	service.Stores
	*subscribers.Store
	ctx   context.Context
	db    *pgtest.DB
	owner *pgxpool.Pool
	ring  keyring.Ring
	log   *journalLog
	keys  int
}

// open opens a desk with an event on sale, whose subscribers are on this machine.
func open(t testing.TB, change func(*subscribers.Options)) *desk {
	t.Helper()
	d := &desk{TB: t, ctx: context.Background(), db: pgtest.New(t), log: &journalLog{}}
	d.db.Check(sound)
	var err error
	if d.ring, err = keyring.Parse(keyring.New()); err != nil {
		t.Fatal(err)
	}
	if d.owner, err = pg.Open(d.ctx, pg.Options{URL: d.db.URL(), Name: "owner", MaxConns: 2, Scans: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.owner.Close)
	d.Stores = pgtest.Stores(t, d.db, nil)
	d.Store = d.process(change)
	d.event("gig")
	return d
}

// process gives the store that a process of its own would have.
func (d *desk) process(change func(*subscribers.Options)) *subscribers.Store {
	d.Helper()
	pool, err := pg.Open(d.ctx, pg.Options{URL: d.db.ServiceURL(), Name: "outbox", MaxConns: 4})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(pool.Close)
	o := subscribers.Options{
		Pool: pool, Reads: pool, Reader: d.Reader, Events: d.Events, Ring: d.ring, AllowPrivate: true,
		Every: 2 * time.Millisecond, Cooldown: time.Millisecond,
		Log: slog.New(slog.NewJSONHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o)
	}
	return subscribers.NewStore(o)
}

// sound is the check of this package's invariants.
func sound(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var found []error
	for _, c := range subscribers.Checks() {
		rows, err := conn.Query(ctx, c.SQL, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if len(lines) > 0 {
			found = append(found, fmt.Errorf("%s: %q", c.Name, lines))
		}
	}
	return errors.Join(found...)
}

// work has a store send what's due until the test ends, or the function is called.
func (d *desk) work(s *subscribers.Store) (stop func()) {
	ctx, cancel := context.WithCancel(d.ctx)
	done := make(chan struct{})
	go func() { defer close(done); s.Work(ctx) }()
	stop = func() { cancel(); <-done }
	d.Cleanup(stop)
	return stop
}

func (d *desk) key() string { d.keys++; return "k" + strconv.Itoa(d.keys) }

func (d *desk) event(name string) {
	d.Helper()
	_, err := d.Events.Create(d.ctx, "tester", "event "+name, buckets.Spec{Event: name, Name: "Gig", Currency: "USD", HoldSeconds: 3600,
		Tiers: []buckets.TierSpec{{Tier: "ga", Quantity: 1000, Price: buckets.Money{Amount: 5000, Currency: "USD"}}}})
	if err != nil {
		d.Fatal(err)
	}
}

// hold writes an entry of the kind hold.placed.
func (d *desk) hold(event, customer string) ledger.Receipt {
	d.Helper()
	r, err := d.Holds.Place(d.ctx, "tester", d.key(), event, holds.Request{Customer: customer, Items: []holds.Line{{Tier: "ga", Quantity: 1}}})
	if err != nil {
		d.Fatal(err)
	}
	return r
}

// fanOut has the consumer take all entries.
func (d *desk) fanOut() {
	d.Helper()
	pool := d.Options.Pool
	inbox := outbox.NewInbox(outbox.InboxOptions{Pool: pool, Consumer: d.Consumer(), Log: d.Options.Log})
	for _, j := range column[int64](d, `SELECT journal_id FROM journals ORDER BY 1`) {
		if err := inbox.Advance(d.ctx, ledger.JournalID(j)); err != nil {
			d.Fatal(err)
		}
	}
}

// subscribe makes a subscription, by which a receiver verifies what it gets from then on.
func (d *desk) subscribe(r *receiver, spec subscribers.Spec) subscribers.Issued {
	d.Helper()
	if spec.URL == "" {
		spec.URL = r.URL
	}
	made, err := d.Create(d.ctx, "tester", d.key(), spec)
	if err != nil {
		d.Fatal(err)
	}
	if r != nil {
		r.trust(made.Secret)
	}
	return made
}

// passTime makes due what's to be attempted some time.
func (d *desk) passTime() {
	d.Helper()
	d.exec(`UPDATE deliveries SET due_at = now() WHERE status = 'pending'`)
}

func (d *desk) exec(sql string, args ...any) {
	d.Helper()
	if _, err := d.owner.Exec(d.ctx, sql, args...); err != nil {
		d.Fatalf("%s: %v", sql, err)
	}
}

// column gives the values of a query.
func column[T any](d *desk, sql string, args ...any) []T {
	d.Helper()
	rows, err := d.owner.Query(d.ctx, sql, args...)
	if err != nil {
		d.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		d.Fatalf("%s: %v", sql, err)
	}
	return list
}

// statuses counts a subscription's deliveries by status, such as "2 delivered, 1 pending".
func (d *desk) statuses(id uuid.UUID) string {
	d.Helper()
	return column[string](d, `SELECT coalesce(string_agg(n || ' ' || status, ', ' ORDER BY status), 'none')
		FROM (SELECT status, count(*) AS n FROM deliveries WHERE subscription_id = $1 GROUP BY status) s`, id)[0]
}

// await waits until a subscription's deliveries have come to something.
func (d *desk) await(id uuid.UUID, want string) {
	d.Helper()
	got := ""
	pgtest.Until(d, "deliveries are "+want, func() bool {
		got = d.statuses(id)
		return got == want
	})
}

// attempted waits until so many attempts at a subscription's deliveries are recorded.
func (d *desk) attempted(id uuid.UUID, n int) {
	d.Helper()
	pgtest.Until(d, fmt.Sprintf("%d attempts", n), func() bool { return d.attempts(id) >= n })
}

func (d *desk) attempts(id uuid.UUID) int {
	d.Helper()
	return column[int](d, `SELECT count(*) FROM delivery_attempts WHERE subscription_id = $1`, id)[0]
}

// webhook is what a receiver got.
type webhook struct {
	id     string
	header http.Header
	body   []byte
	event  outbox.Event
}

// receiver is a subscriber's server. It verifies every webhook, and answers as told.
type receiver struct {
	*httptest.Server
	t      testing.TB
	mu     sync.Mutex
	secret string
	got    []webhook
	answer http.HandlerFunc // nil: 204
}

func receive(t testing.TB, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{t: t, answer: answer}
	r.Server = httptest.NewServer(r.handler())
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			r.t.Errorf("receiving: %v", err)
		}
		r.take(q, body)
		r.mu.Lock()
		answer := r.answer
		r.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer(w, q)
	})
}

// take verifies a webhook as a subscriber should, and keeps it.
func (r *receiver) take(q *http.Request, body []byte) {
	h := webhook{header: q.Header.Clone(), body: body}
	r.mu.Lock()
	defer r.mu.Unlock()
	secrets, err := payments.ParseSecrets(r.secret)
	if err == nil {
		h.id, err = secrets.Verify(q.Header, body, time.Now())
	}
	if err == nil {
		err = json.Unmarshal(body, &h.event)
	}
	if err != nil || q.Method != http.MethodPost || q.Header.Get("Content-Type") != outbox.ContentType {
		r.t.Errorf("%s %v is no webhook: %v", q.Method, q.Header, err)
	}
	r.got = append(r.got, h)
}

// trusts sets the secret that webhooks are verified with to one that's issued now: what comes
// meanwhile waits.
func (r *receiver) trusts(issue func() (secret string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = issue()
}

// trust sets the secret that webhooks are verified with.
func (r *receiver) trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// answers sets what's answered from now on; nil: 204.
func (r *receiver) answers(h http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = h
}

func (r *receiver) webhooks() []webhook {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]webhook(nil), r.got...)
}

// status answers with a status and headers in turn.
func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// journalLog is a log that's written while the test reads.
type journalLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *journalLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *journalLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
