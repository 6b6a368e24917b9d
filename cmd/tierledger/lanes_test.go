package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
)

// The sale of the test: all customers together never hold what isn't set aside, so that
// nobody may be told that it's sold out, however empty the own lane is.
const (
	hotEvent     = "hot"
	hotProcesses = 3
	hotCapacity  = 480
	hotCustomers = 60
	hotLimit     = 6 // of a customer
	hotAside     = 60
	hotClients   = 8
	hotKills     = 10
)

// fleet is processes on one database, each of which may be killed and started again.
type fleet struct {
	t     *testing.T
	db    *pgtest.DB
	keys  string
	mu    sync.Mutex
	procs [hotProcesses]*child
}

func (f *fleet) start(i int) {
	f.t.Helper()
	c := start(f.t, "serve", "--listen", "127.0.0.1:0", "--database-url", f.db.URL(), "--keys-file", f.keys,
		"--lanes", fmt.Sprintf("%d/%d", i+1, hotProcesses), "--sweep-every", "100ms")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.procs[i] = c
}

func (f *fleet) url(i int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.procs[i].url
}

// kill kills a process and starts it again.
func (f *fleet) kill(i int) {
	f.t.Helper()
	f.mu.Lock()
	c := f.procs[i]
	f.mu.Unlock()
	c.end(syscall.SIGKILL)
	f.start(i)
}

// hotCrowd is buyers and an operator who ask any process of a fleet, and remember what they
// were answered.
type hotCrowd struct {
	*fleet
	key      string // of the API
	next     atomic.Int64
	operator atomic.Int64 // the process that the operator is asking

	yesMu   sync.Mutex
	yes     map[asked]string
	unsure  []asked
	wrong   []string      // answers that nobody should get
	enough  int           // yeses
	reached chan struct{} // closed when there are so many
}

// ask asks a process: the answer of a yes, none for a refusal; false when what became of it
// isn't known.
func (h *hotCrowd) ask(process int, q asked) (string, bool) {
	r, err := call(context.Background(), h.key, "POST", h.url(process)+q.path, q.key, q.body)
	h.yesMu.Lock()
	defer h.yesMu.Unlock()
	switch {
	case err != nil || r.status == http.StatusServiceUnavailable:
		return "", false
	case r.status != q.status:
		if !mayRefuse(q, r) {
			h.wrong = append(h.wrong, fmt.Sprint(q, r.status, r.body))
		}
		return "", true
	}
	if first, ok := h.yes[q]; ok && (first != r.body || r.header.Get("Idempotency-Replayed") != "true") {
		h.wrong = append(h.wrong, fmt.Sprint(q, ": first ", first, ", then ", r.body))
	}
	h.yes[q] = r.body
	if len(h.yes) == h.enough {
		close(h.reached)
	}
	return r.body, true
}

// mayRefuse tells whether a refusal is one that its request may get.
func mayRefuse(q asked, r reply) bool {
	codes := []string{"limit_exceeded"}
	switch {
	case strings.HasSuffix(q.path, "/release"):
		return false
	case strings.HasSuffix(q.path, "/quota-moves"): // while there are fewer lanes, or few are free there
		codes = []string{"lane_not_found", "insufficient_free"}
	case strings.Contains(q.body, `"code"`): // all that's set aside may be held
		codes = append(codes, "code_used_up", "temporarily_held", "sold_out")
	}
	return slices.ContainsFunc(codes, func(code string) bool { return strings.Contains(r.body, `"code":"`+code+`"`) })
}

// awaitYes waits for so many more yeses.
func (h *hotCrowd) awaitYes(more int) {
	h.t.Helper()
	h.yesMu.Lock()
	h.enough, h.reached = len(h.yes)+more, make(chan struct{})
	reached := h.reached
	h.yesMu.Unlock()
	select {
	case <-reached:
	case <-time.After(patience):
		h.t.Fatalf("in vain: %d more yeses", more)
	}
}

// shop takes tickets and gives them back until ctx ends. Who gets no answer asks another
// process, under the key, or every fourth time doesn't ask again.
func (h *hotCrowd) shop(ctx context.Context) {
	var mine []string // holds
	for ctx.Err() == nil {
		n := h.next.Add(1)
		luck := rand.New(rand.NewPCG(uint64(n), 5))
		q := asked{"/v1/events/" + hotEvent + "/holds", fmt.Sprint("hold-", n), fmt.Sprintf(
			`{"customer":"c-%d","items":[{"tier":"ga","quantity":%d}]}`, luck.IntN(hotCustomers), 1+luck.IntN(hotLimit)), http.StatusCreated}
		if n%8 == 0 {
			q.body = strings.Replace(q.body, `"items"`, `"code":"fan","items"`, 1)
		}
		if len(mine) > 3 || len(mine) > 0 && luck.IntN(3) == 0 {
			i := luck.IntN(len(mine))
			q = asked{"/v1/holds/" + mine[i] + "/release", fmt.Sprint("release-", n), "", http.StatusOK}
			mine = slices.Delete(mine, i, i+1)
		}
		process := luck.IntN(hotProcesses)
		answer, ok := h.ask(process, q)
		for ; !ok && n%4 != 0; answer, ok = h.ask(process, q) {
			process = (process + 1) % hotProcesses
		}
		switch {
		case !ok:
			h.yesMu.Lock()
			h.unsure = append(h.unsure, q)
			h.yesMu.Unlock()
		case answer != "" && q.body != "":
			mine = append(mine, seatsIn(answer).ID)
		}
	}
}

// operate moves tickets, and splits and merges, until ctx ends. What isn't answered is asked
// of the next process, under its key.
func (h *hotCrowd) operate(ctx context.Context) {
	event := "/v1/events/" + hotEvent
	aside := 0
	for n := 0; ctx.Err() == nil; n++ {
		act := []string{"1 3", "any fans", "lanes 2", "2 1", "fans 1", "lanes 4", "4 2", "1 4", "3 2"}[n%9]
		from, to, _ := strings.Cut(act, " ")
		q := asked{event + "/lanes", fmt.Sprint("operator-", n), fmt.Sprintf(`{"lanes":%s,"reason":"a test"}`, to), http.StatusOK}
		bucket := map[string]string{"any": `{}`, "fans": `{"lane":1,"allotment":"fans"}`}
		for lane := 1; lane <= 4; lane++ {
			bucket[fmt.Sprint(lane)] = fmt.Sprintf(`{"lane":%d}`, lane)
		}
		if from != "lanes" {
			quantity := min(20, hotAside-aside)
			if to != "fans" {
				quantity = 20
			} else if quantity == 0 {
				continue
			}
			q = asked{event + "/quota-moves", q.key, fmt.Sprintf(`{"tier":"ga","from":%s,"to":%s,"up_to":%d,"reason":"a test"}`,
				bucket[from], bucket[to], quantity), http.StatusCreated}
		}
		for {
			process := h.operator.Load()
			answer, ok := h.ask(int(process), q)
			h.operator.Store((process + 1) % hotProcesses)
			if !ok {
				continue
			}
			var m struct{ Quantity int }
			if answer != "" && json.Unmarshal([]byte(answer), &m) == nil {
				switch {
				case to == "fans":
					aside += m.Quantity
				case from == "fans":
					aside -= m.Quantity
				}
			}
			break
		}
	}
}

// reader looks at all lanes in one statement, again and again: nothing is ever in two places,
// or in none.
type reader struct {
	conn     *pgx.Conn
	readings int
	wrong    []string
	underWay chan struct{} // gets one when tickets are under way
}

func (r *reader) read(ctx context.Context) {
	for tick := time.NewTicker(2 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		var sum, least, underWay, capacity int
		err := r.conn.QueryRow(context.Background(), `
			SELECT sum(total), coalesce(min(total) FILTER (WHERE code LIKE 'transit%'), 0), coalesce(sum(total) FILTER (WHERE code LIKE 'transit%'), 0),
			       -sum(total) FILTER (WHERE code = 'capacity')
			FROM (SELECT a.code, sum(a.balance) AS total
			      FROM event_journals d
			      JOIN accounts a ON a.journal_id = d.event_journal_id AND a.unit = 'ga' AND a.type = 'inventory' AND a.control IS NULL
			      WHERE d.event = $1
			      GROUP BY a.code) c`, hotEvent).Scan(&sum, &least, &underWay, &capacity)
		if r.readings++; err != nil || sum != 0 || least < 0 || capacity != hotCapacity {
			r.wrong = append(r.wrong, fmt.Sprintf("reading %d: sum %d, %d under way, to one bucket %d, capacity %d, %v",
				r.readings, sum, underWay, least, capacity, err))
		}
		if underWay > 0 {
			select {
			case r.underWay <- struct{}{}:
			default:
			}
		}
	}
}

// settle repeats everything after the kills: what is unsure is settled, and every key gives
// its first answer at any process. Then holds have what their answers say.
func (h *hotCrowd) settle() {
	h.t.Helper()
	h.t.Logf("%d yeses, %d unsure", len(h.yes), len(h.unsure))
	if len(h.unsure) == 0 {
		h.t.Error("no kill cut a request short")
	}
	for _, q := range h.unsure {
		pgtest.Until(h.t, "an answer to "+q.key, func() bool { _, ok := h.ask(len(q.key)%hotProcesses, q); return ok })
	}
	held := 0
	for q := range h.yes {
		process := int(h.next.Add(1) % hotProcesses)
		pgtest.Until(h.t, "the answer to "+q.key, func() bool { _, ok := h.ask(process, q); return ok })
		var hold struct{ Items []struct{ Quantity int } }
		if err := json.Unmarshal([]byte(h.yes[q]), &hold); err != nil {
			h.t.Fatal(err)
		}
		for _, i := range hold.Items {
			if q.body == "" {
				i.Quantity = -i.Quantity // it was given back
			}
			held += i.Quantity
		}
	}
	var a struct {
		Tiers []struct {
			Held      int
			InTransit int `json:"in_transit"`
		}
	}
	r := want(h.t, http.StatusOK, h.key, "GET", h.url(0)+"/v1/events/"+hotEvent+"/availability", "", "")
	if err := json.Unmarshal([]byte(r.body), &a); err != nil {
		h.t.Fatal(err)
	}
	if a.Tiers[0].Held != held {
		h.t.Errorf("holds have %d tickets, the API says %s", held, r.body)
	}
	for _, w := range h.wrong {
		h.t.Errorf("an answer that nobody should get: %s", w)
	}
}

// Three processes sell an event of four lanes, and are killed again and again while tickets
// are under way between lanes: those are never in two places nor lost, all moves end, every
// key gives its first answer, and nobody is refused what's free in another lane.
func TestProcessesKilledDuringMoves(t *testing.T) {
	t.Parallel()
	db := pgtest.Private(t, nil)
	keys, key := adminKey(t)
	h := &hotCrowd{fleet: &fleet{t: t, db: db, keys: keys}, key: key, yes: make(map[asked]string)}
	for i := range hotProcesses {
		h.start(i)
	}
	want(t, http.StatusCreated, key, "POST", h.url(0)+"/v1/events", "create", fmt.Sprintf(
		`{"event":%q,"name":"Test","currency":"USD","hold_seconds":3600,"limit_per_customer":%d,
		  "tiers":[{"tier":"ga","quantity":%d,"price":{"amount":5000,"currency":"USD"}}]}`, hotEvent, hotLimit, hotCapacity))
	want(t, http.StatusOK, key, "POST", h.url(1)+"/v1/events/"+hotEvent+"/lanes", "split", `{"lanes":4,"reason":"a test"}`)
	want(t, http.StatusCreated, key, "POST", h.url(2)+"/v1/events/"+hotEvent+"/allotments", "allot",
		`{"allotment":"fans","codes":[{"code":"FAN","max_uses":25}],"reason":"a test"}`)
	conn, err := pgx.Connect(t.Context(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	r := &reader{conn: conn, underWay: make(chan struct{})}

	selling, stopSelling := context.WithCancel(t.Context())
	reading, stopReading := context.WithCancel(t.Context())
	var people, readers sync.WaitGroup
	for range hotClients {
		people.Go(func() { h.shop(selling) })
	}
	people.Go(func() { h.operate(selling) })
	readers.Go(func() { r.read(reading) })
	defer readers.Wait()
	defer people.Wait()
	defer stopReading()
	defer stopSelling()
	for n := range hotKills {
		h.awaitYes(50)
		<-r.underWay
		process := int(h.operator.Load()) // it may be in the middle of the move
		if n%2 == 1 {
			process = n / 2 % hotProcesses // or in that of a pull
		}
		h.kill(process)
	}
	h.awaitYes(50)
	stopSelling()
	people.Wait()
	h.settle()
	h.settled()
	stopReading()
	readers.Wait()
	t.Logf("%d readings", r.readings)
	for _, w := range r.wrong {
		t.Errorf("not conserved: %s", w)
	}
	if code, stdout, stderr := execute(t, "verify", "--database-url", db.URL()); code != exitOK {
		t.Errorf("verify: exit code %d: %s%s", code, stdout, stderr)
	}
	for _, c := range h.procs {
		if code := c.end(syscall.SIGTERM); code != exitOK {
			t.Errorf("exit code %d: %s", code, c.stderr.String())
		}
	}
}

// settled waits until nothing is under way and no lane is behind, and wants no customer to
// have more than the limit in all lanes together.
func (h *hotCrowd) settled() {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.db.URL())
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	number := func(sql string) (n int) {
		if err := conn.QueryRow(h.t.Context(), sql).Scan(&n); err != nil {
			h.t.Error(err)
		}
		return n
	}
	pgtest.Until(h.t, "the end of all moves", func() bool {
		return number(`SELECT count(*) FROM quota_moves m WHERE status = 'moved' AND to_journal <> journal_id
			AND NOT EXISTS (SELECT FROM quota_arrivals a WHERE a.journal_id = m.to_journal AND a.move_id = m.move_id)`) == 0 &&
			number(`SELECT count(DISTINCT generation) FROM lanes`) == 1
	})
	if n := number(`SELECT coalesce(max(tickets), 0) FROM (SELECT sum(balance) AS tickets FROM accounts WHERE control = 'held' GROUP BY code) c`); n > hotLimit {
		h.t.Errorf("a customer has %d tickets", n)
	}
}
