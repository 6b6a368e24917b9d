package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

// The chaos of the test.
const (
	chaosProcesses = 3
	chaosEvents    = 6
	chaosWriters   = 32
	chaosKills     = 20
	chaosEach      = 25 // requests granted between kills
	// chaosBrief is an event whose holds run out before long.
	chaosBrief = "brief"
)

// chaos is processes that serve one database and publish to one NATS, all of which end again
// and again.
type chaos struct {
	*testing.T
	db       *pgtest.DB
	conn     *pgx.Conn
	bus      *natsServer
	press    *press
	receiver *receiver
	args     []string

	mu    sync.Mutex
	procs [chaosProcesses]*child
	count map[*child]float64 // what each had published when it was last looked at

	wiped int // messages that the stream had when it was wiped, or a few less
}

func openChaos(t *testing.T) *chaos {
	t.Helper()
	c := &chaos{T: t, db: pgtest.Private(t, nil), bus: openNATS(t), receiver: openReceiver(t), count: make(map[*child]float64)}
	keys, key := adminKey(t)
	c.press = &press{t: t, key: key, url: c.url, orders: make(map[string]int)}
	secret := "whsec_c2FnYXNhZ2FzYWdhc2FnYXNhZ2FzYWdhc2FnYXNhZ2E="
	secrets, err := payments.ParseSecrets(secret)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := sim.New(sim.Options{Seed: 1, Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	t.Cleanup(func() { provider.Close() })
	if c.conn, err = pgx.Connect(t.Context(), c.db.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.conn.Close(context.Background()) })
	c.args = []string{"serve", "--listen", "127.0.0.1:0", "--database-url", c.db.URL(), "--keys-file", keys,
		"--nats-url", c.bus.url(), "--secret-keys", keyring.New(), "--webhooks-allow-private",
		"--provider-url", server.URL, "--provider-secrets", secret, "--sweep-every", "200ms", "--work-every", "50ms"}
	t.Cleanup(func() {
		if t.Failed() {
			for i, p := range c.procs {
				t.Logf("process %d: %s", i, p.stderr.String())
			}
		}
	})
	for i := range chaosProcesses {
		c.start(i)
	}
	for i := range chaosEvents {
		createEvent(t, key, c.url(i%chaosProcesses), fmt.Sprint("chaos-", i), 3600, crashCapacity)
	}
	createEvent(t, key, c.url(0), chaosBrief, 1, crashCapacity)
	c.subscribe()
	return c
}

// subscribe has the receiver told of what was bought and what has run out.
func (c *chaos) subscribe() {
	c.Helper()
	r := want(c.T, http.StatusCreated, c.press.key, "POST", c.url(0)+"/v1/subscriptions", "subscribe",
		fmt.Sprintf(`{"url":%q,"kinds":["order.captured","hold.expired"],"description":"a test"}`, c.receiver.url))
	var made struct{ Secret string }
	c.decode(r, &made)
	secrets, err := payments.ParseSecrets(made.Secret)
	if err != nil {
		c.Fatal(err)
	}
	c.receiver.secret.Store(&secrets)
}

func (c *chaos) decode(r reply, into any) {
	c.Helper()
	if err := json.Unmarshal([]byte(r.body), into); err != nil {
		c.Fatalf("%v: %s", err, r.body)
	}
}

func (c *chaos) start(i int) {
	c.Helper()
	p := start(c.T, c.args...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.procs[i] = p
}

// url is where a process is, or was before it was killed.
func (c *chaos) url(i int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.procs[i].url
}

// kill kills a process and starts it again.
func (c *chaos) kill(i int) {
	c.Helper()
	c.procs[i].end(syscall.SIGKILL)
	c.start(i)
}

// publisher waits until a process publishes, and gives it; of several the first from i on.
func (c *chaos) publisher(i int) int {
	c.Helper()
	defer func() {
		if c.Failed() {
			var rows string
			err := c.conn.QueryRow(context.Background(), `SELECT string_agg(format('journal %s: %s of %s, %s', j.journal_id, r.seq, j.seq, r), E'\n')
				FROM journals j LEFT JOIN relays r USING (journal_id)`).Scan(&rows)
			c.Log("the relays are\n", rows, err)
		}
	}()
	pgtest.Until(c.T, "somebody publishes", func() bool {
		i = (i + 1) % chaosProcesses
		p := c.procs[i]
		before := c.count[p]
		c.count[p] = metric(c.T, p.url, "tierledger_published_total")
		return c.count[p] > before
	})
	return i
}

// exec runs SQL.
func (c *chaos) exec(sql string) {
	c.Helper()
	if _, err := c.conn.Exec(c.Context(), sql); err != nil {
		c.Fatal(err)
	}
}

// number reads one.
func (c *chaos) number(sql string) (n int) {
	c.Helper()
	if err := c.conn.QueryRow(c.Context(), sql).Scan(&n); err != nil {
		c.Fatal(err)
	}
	return n
}

// due makes the time of a column of all rows come; not of those that somebody is changing,
// whom it would wait for, and who might wait for it.
func (c *chaos) due(table, column string) {
	c.Helper()
	c.exec(fmt.Sprintf(`UPDATE %[1]s SET %[2]s = 'epoch' WHERE ctid = ANY (ARRAY (
		SELECT ctid FROM %[1]s WHERE %[2]s IS NOT NULL FOR UPDATE SKIP LOCKED))`, table, column))
}

// leasesEnd lets the time pass that leases take: those of the dead, and those of the living,
// so that two processes publish the same journals. What's owed to the provider is due.
func (c *chaos) leasesEnd() {
	c.Helper()
	c.due("relays", "held_until")
	c.due("operations", "due_at")
}

// outage takes NATS away, and maybe what it had, and brings it back. The sale goes on
// meanwhile, every process stays ready, and each says what's wrong.
func (c *chaos) outage(wipe, kill bool) {
	c.Helper()
	if wipe {
		c.wiped = c.number(`SELECT sum(seq) FROM relays`)
	}
	c.bus.stop()
	c.press.outage.Store(true)
	if wipe {
		c.bus.wipe()
	}
	if kill {
		c.kill(0) // it starts without NATS
	}
	c.press.awaitMore(5 * chaosEach)
	for i := range chaosProcesses {
		pgtest.Until(c.T, "a process says that NATS is away", func() bool { return !ready(c.T, c.url(i), "publisher") })
	}
	c.press.outage.Store(false)
	c.bus.start()
	c.publisher(0)
}

// Processes that sell are killed again and again, those that publish above all, and NATS goes
// away and once loses everything. No buyer notices. In the end the stream has every entry
// once and in order, every ticket is issued once, every webhook has come, and what ran out is
// on sale again.
func TestPublishersKilledAndNATSRestarted(t *testing.T) {
	t.Parallel()
	c := openChaos(t)
	selling, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	for range chaosWriters {
		writers.Go(func() { c.press.write(selling) })
	}
	for n := range chaosKills {
		c.press.awaitMore(chaosEach)
		c.kill(c.publisher(n))
		if n%4 != 0 { // else they run out by themselves
			c.leasesEnd()
		}
		switch n {
		case chaosKills / 4:
			c.outage(false, false)
		case chaosKills / 2:
			c.outage(true, false)
		case chaosKills * 3 / 4:
			c.outage(false, true)
		}
	}
	c.press.awaitMore(chaosEach)
	stop()
	writers.Wait()
	for _, w := range c.press.wrong {
		t.Errorf("an answer that nobody should get: %s", w)
	}
	if c.press.repeats.Load() == 0 {
		t.Error("no kill cut a request short")
	}
	c.settle()
	events, _ := c.bus.streamed()
	entries := wantStream(t, c.db, events)
	t.Logf("%d entries; %d requests granted and %d repeated; %d messages wiped", entries, c.press.yes.Load(), c.press.repeats.Load(), c.wiped)
	c.wantTickets()
	c.wantWebhooks()
	if n := c.number(`SELECT count(*) FROM dead_letters`); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	for _, p := range c.procs {
		if code := p.end(syscall.SIGTERM); code != exitOK {
			t.Errorf("exit code %d: %s", code, p.stderr.String())
		}
	}
	if code, stdout, stderr := execute(t, "verify", "--database-url", c.db.URL()); code != exitOK {
		t.Errorf("verify: exit code %d: %s%s", code, stdout, stderr)
	}
}

// settle waits until everything is published and consumed, paid, delivered and expired.
func (c *chaos) settle() {
	c.Helper()
	c.leasesEnd()
	c.due("deliveries", "due_at")
	open := [][2]string{
		{"captured", `SELECT count(*) FROM orders WHERE status <> 'captured'`},
		{"expired", fmt.Sprintf(`SELECT count(*) - %d FROM entries WHERE kind = 'hold.expired'`, c.press.left)},
		{"published", `SELECT count(*) FROM journals j LEFT JOIN relays r USING (journal_id) WHERE j.seq > coalesce(r.seq, 0)`},
		{"consumed", `SELECT count(*) FROM journals j CROSS JOIN (SELECT DISTINCT consumer FROM inbox) c
			LEFT JOIN inbox i ON i.consumer = c.consumer AND i.journal_id = j.journal_id WHERE j.seq > coalesce(i.seq, 0)`},
		{"delivered", `SELECT count(*) FROM deliveries WHERE status <> 'delivered'`},
	}
	last := ""
	defer func() {
		if c.Failed() {
			c.Log("what isn't ", last)
		}
	}()
	pgtest.Until(c.T, "everything is captured, expired, published, consumed and delivered", func() bool {
		for _, o := range open {
			if n := c.number(o[1]); n != 0 {
				last = fmt.Sprint(o[0], ": ", n)
				return false
			}
		}
		return true
	})
}

// wantTickets wants a ticket for each unit of each order, and no other.
func (c *chaos) wantTickets() {
	c.Helper()
	seen := make(map[string]bool)
	for id, quantity := range c.press.orders {
		var list struct {
			Data []struct {
				ID     string `json:"ticket_id"`
				Number int
				Status string
			}
		}
		c.decode(want(c.T, http.StatusOK, c.press.key, "GET", c.url(len(seen)%chaosProcesses)+"/v1/orders/"+id+"/tickets", "", ""), &list)
		if len(list.Data) != quantity {
			c.Errorf("order %s of %d has %d tickets", id, quantity, len(list.Data))
		}
		for i, ticket := range list.Data {
			if ticket.Number != i+1 || ticket.Status != "valid" || seen[ticket.ID] {
				c.Errorf("order %s has %+v", id, list.Data)
			}
			seen[ticket.ID] = true
		}
	}
	if n := c.number(`SELECT count(*) FROM tickets`); n != len(seen) || n == 0 {
		c.Errorf("%d tickets of orders that nobody has made", n-len(seen))
	}
	if n := c.number(`SELECT count(*) FROM orders`); n != len(c.press.orders) {
		c.Errorf("%d orders, %d were made", n, len(c.press.orders))
	}
	c.Logf("%d orders have %d tickets; %d holds ran out", len(c.press.orders), len(seen), c.press.left)
}

// wantWebhooks wants the receiver to have every event that it's subscribed to, under one id
// each.
func (c *chaos) wantWebhooks() {
	c.Helper()
	rows, err := c.conn.Query(c.Context(), `SELECT id::text FROM entries WHERE kind IN ('order.captured', 'hold.expired') ORDER BY 1`)
	if err != nil {
		c.Fatal(err)
	}
	expected, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		c.Fatal(err)
	}
	c.receiver.mu.Lock()
	defer c.receiver.mu.Unlock()
	var got []string
	for _, event := range c.receiver.byID {
		got = append(got, event)
	}
	slices.Sort(got)
	if !slices.Equal(got, expected) {
		c.Errorf("webhooks told of %d events, want %d, each under one id", len(got), len(expected))
	}
	for _, w := range c.receiver.wrong {
		c.Errorf("a webhook that nobody should get: %s", w)
	}
	c.Logf("%d webhooks told of %d events", c.receiver.calls, len(got))
}
