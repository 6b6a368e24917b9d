package main

import (
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

// Killed between any two steps of a purchase, of a void, of a refund, of a cancellation,
// the service goes on where it was: every step is done once, everything settles, and who
// asks again under the same key gets the same answer.
func TestServeKilledBetweenSteps(t *testing.T) {
	t.Parallel()
	s := openSaga(t)
	s.restartAfter(func() { s.add(3, "sim_ok", captured) }) // the holds
	s.eachPay()
	s.settled()
	for _, at := range []moment{arrived, applied, answered} {
		s.killed(stop{stepAuthorize, at}, s.add(3, "sim_ok", captured), s.pay)
		s.killed(stop{stepCapture, at}, s.add(3, "sim_ok", captured), s.pay)

		back := s.add(3, "sim_ok", refunded)
		s.paid(back, captured)
		s.killed(stop{stepRefund, at}, back, s.refund)

		open := s.add(3, "sim_requires_action", cancelled)
		s.paid(open, state{"pending", "requires_action"})
		s.killed(stop{stepCancel, at}, open, s.cancel)

		late := s.add(3, "sim_requires_action", voided)
		s.paid(late, state{"pending", "requires_action"})
		s.cancelled(late)
		s.webhooks(true)
		s.killed(stop{stepVoid, at}, late, s.complete)
	}
	s.restartAfter(func() {}) // all is captured
	s.settled()
	s.compareBooks()
}

// T38: killed between the provider's success and the commit of it, twenty times.
func TestServeKilledAtTheAnswer(t *testing.T) {
	t.Parallel()
	s := openSaga(t)
	for range 20 {
		s.kill(stop{stepAuthorize, answered}, s.add(3, "sim_ok", captured), s.pay)
	}
	s.settled()
	s.compareBooks()
}

// T38: the database is cut off between the provider's success and the commit of it, before
// the write or after the commit: the same process commits it once, and answers.
func TestServeCutAtTheAnswer(t *testing.T) {
	t.Parallel()
	s := openSaga(t)
	proxy := pgtest.NewProxy(t, s.db)
	s.url = proxy.ServiceURL(t, s.db)
	s.restartAfter(func() {})
	for range 5 {
		for _, lose := range []func() <-chan struct{}{proxy.LoseNextWrite, proxy.LoseNextAnswer} {
			first := time.Now()
			for began := first; !s.cutAtTheAnswer(lose); began = time.Now() {
				// Who was kept waiting is told that it's open: the machine stood still.
				if time.Since(began) < givesUp || time.Since(first) > patience {
					t.Error("the checkout had no final answer")
					break
				}
			}
		}
	}
	s.settled()
	s.compareBooks()
}

// cutAtTheAnswer has a customer pay, loses what lose says once the provider has done it, and
// tells whether the customer had a final answer.
func (s *saga) cutAtTheAnswer(lose func() <-chan struct{}) bool {
	s.Helper()
	p := s.add(1, "sim_ok", captured)[0]
	reached := s.gate.arm(stop{stepAuthorize, applied}, 1)
	var customer sync.WaitGroup
	customer.Go(func() { s.pay(p) })
	s.wait(reached, "the call")
	cut := lose()
	s.gate.arm(stop{}, 0)
	s.wait(cut, "the cut")
	customer.Wait()
	return p.answer != nil
}

// saga is a service with its provider, and purchases in all states.
type saga struct {
	*testing.T
	db        *pgtest.DB
	url       string // by which the service finds it
	owner     *pgx.Conn
	keys, key string
	secret    string
	provider  *sim.Server
	gate      *gate
	gateURL   string
	child     *child
	purchases []*purchase
}

// state is a status of an order with that of its payment.
type state struct{ order, payment string }

var (
	captured  = state{"captured", "captured"}
	refunded  = state{"refunded", "refunded"}
	cancelled = state{"cancelled", "declined"}
	voided    = state{"cancelled", "voided"}
)

// purchase is one of a customer, and how it must end.
type purchase struct {
	name, hold, order, method string
	end                       state
	answer                    *reply // the first one to the checkout that was final
}

func openSaga(t *testing.T) *saga {
	s := &saga{T: t, db: pgtest.Private(t, nil), secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("saga", 8)))}
	s.url = s.db.URL()
	s.keys, s.key = adminKey(t)
	secrets, err := payments.ParseSecrets(s.secret)
	if err == nil {
		s.provider, err = sim.New(sim.Options{Seed: 1, Secrets: secrets})
	}
	if err == nil {
		s.owner, err = pgx.Connect(t.Context(), s.db.URL())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.owner.Close(context.Background()) })
	s.gate = &gate{next: s.provider}
	server := httptest.NewServer(s.gate)
	t.Cleanup(server.Close)
	t.Cleanup(func() { s.provider.Close() })
	s.gateURL = server.URL
	s.start()
	want(t, http.StatusCreated, s.key, "POST", s.child.url+"/v1/events", "event",
		`{"event":"gig","name":"Gig","currency":"USD","hold_seconds":3600,"late_payment_policy":"refund",
		  "tiers":[{"tier":"ga","quantity":1000,"price":{"amount":5000,"currency":"USD"},"fee":{"amount":250,"currency":"USD"}}]}`)
	return s
}

// start serves, and lets the time pass that leases and waits of before take.
func (s *saga) start() {
	s.Helper()
	s.child = start(s.T, "serve", "--listen", "127.0.0.1:0", "--database-url", s.url, "--keys-file", s.keys,
		"--provider-url", s.gateURL, "--provider-secrets", s.secret, "--work-every", "20ms")
	// Not of those that the service is changing: each might wait for the other.
	if _, err := s.owner.Exec(s.Context(), `UPDATE operations SET due_at = 'epoch' WHERE ctid = ANY (ARRAY (
		SELECT ctid FROM operations WHERE due_at IS NOT NULL FOR UPDATE SKIP LOCKED))`); err != nil {
		s.Fatal(err)
	}
}

// webhooks turns them on or off. They're off where the service is to find out by itself.
func (s *saga) webhooks(on bool) {
	s.Helper()
	url := ""
	if on {
		url = s.child.url + "/v1/webhooks/sim"
	}
	if err := s.provider.SetWebhookURL(url); err != nil {
		s.Fatal(err)
	}
}

// add places holds.
func (s *saga) add(n int, method string, end state) []*purchase {
	s.Helper()
	for range n {
		p := &purchase{name: fmt.Sprintf("c%d", len(s.purchases)), method: method, end: end}
		r := want(s.T, http.StatusCreated, s.key, "POST", s.child.url+"/v1/events/gig/holds", "hold-"+p.name,
			fmt.Sprintf(`{"customer":%q,"items":[{"tier":"ga","quantity":2}]}`, p.name))
		var hold struct {
			ID string `json:"hold_id"`
		}
		s.decode(r, &hold)
		p.hold = hold.ID
		s.purchases = append(s.purchases, p)
	}
	return s.purchases[len(s.purchases)-n:]
}

func (s *saga) decode(r reply, into any) {
	s.Helper()
	if err := json.Unmarshal([]byte(r.body), into); err != nil {
		s.Fatalf("%v: %s", err, r.body)
	}
}

// do makes a call of a customer, whom the service may die on.
func (s *saga) do(path, key, body string) (reply, bool) {
	ctx, end := context.WithTimeout(s.Context(), patience)
	defer end()
	r, err := call(ctx, s.key, "POST", s.child.url+path, key, body)
	return r, err == nil
}

// pay checks out, and keeps a final answer.
func (s *saga) pay(p *purchase) {
	r, ok := s.do("/v1/holds/"+p.hold+"/checkout", "pay-"+p.name, fmt.Sprintf(`{"payment_method":%q}`, p.method))
	if ok && r.status == http.StatusCreated {
		p.answer = &r
	}
}

func (s *saga) cancel(p *purchase) { s.do("/v1/orders/"+p.order+"/cancel", "cancel-"+p.name, "") }

func (s *saga) refund(p *purchase) {
	s.do("/v1/orders/"+p.order+"/refunds", "refund-"+p.name, `{"return_tickets":true,"reason":"asked for"}`)
}

// complete has the buyer's bank make the payment, late or not.
func (s *saga) complete(p *purchase) {
	w := httptest.NewRecorder()
	s.provider.ServeHTTP(w, httptest.NewRequest("POST", "/payments/"+s.orderOf(p).operation("authorize").Payment+"/complete", nil))
	if w.Code != http.StatusOK {
		s.Errorf("complete: %d %s", w.Code, w.Body)
	}
}

// paid checks out and waits for a state on the way.
func (s *saga) paid(list []*purchase, on state) {
	s.Helper()
	s.all(list, s.pay)
	s.await(list, func(*purchase) state { return on })
}

// cancelled cancels and waits for that.
func (s *saga) cancelled(list []*purchase) {
	s.Helper()
	s.all(list, s.cancel)
	s.await(list, func(*purchase) state { return cancelled })
}

// eachPay checks all out.
func (s *saga) eachPay() { s.all(s.purchases, s.pay) }

// all does something for purchases side by side.
func (s *saga) all(list []*purchase, act func(*purchase)) {
	var customers sync.WaitGroup
	for _, p := range list {
		customers.Go(func() { act(p) })
	}
	customers.Wait()
}

// restartAfter kills the service when something was done and starts it again.
func (s *saga) restartAfter(act func()) {
	s.Helper()
	act()
	s.child.end(syscall.SIGKILL)
	s.start()
}

// kill has purchases do something side by side, kills the service when their calls are at
// a point, starts it again, and has everybody repeat what they did. A void is nobody's
// doing, and what brings it about isn't repeated.
func (s *saga) kill(at stop, list []*purchase, act func(*purchase)) {
	s.Helper()
	n := len(list)
	repeated := at.path != stepVoid
	if at.moment == answered && repeated {
		n = 1 // the others are anywhere
	}
	reached := s.gate.arm(at, n)
	var customers sync.WaitGroup
	customers.Go(func() { s.all(list, act) })
	s.wait(reached, fmt.Sprintf("%d calls at %v", n, at))
	s.child.end(syscall.SIGKILL)
	customers.Wait()
	s.gate.arm(stop{}, 0)
	s.webhooks(false)
	s.start()
	if repeated {
		s.all(list, act)
	}
}

// wait waits until something has happened.
func (s *saga) wait(happened <-chan struct{}, what string) {
	s.Helper()
	select {
	case <-happened:
	case <-time.After(patience):
		s.Fatalf("in vain: %s", what)
	}
}

// killed is kill, and waits until all is settled.
func (s *saga) killed(at stop, list []*purchase, act func(*purchase)) {
	s.Helper()
	s.kill(at, list, act)
	s.settled()
}

// order is what the API says of one.
type order struct {
	ID         string      `json:"order_id"`
	Status     string      `json:"status"`
	Payment    string      `json:"payment_status"`
	Uncertain  bool        `json:"reconciling"`
	Operations []operation `json:"operations"`
}

type operation struct {
	ID      string `json:"operation_id"`
	Kind    string `json:"kind"`
	Status  string `json:"status"`
	Payment string `json:"provider_payment"`
}

// operation gives the one of a kind.
func (o order) operation(kind string) operation {
	i := slices.IndexFunc(o.Operations, func(op operation) bool { return op.Kind == kind })
	if i < 0 {
		return operation{}
	}
	return o.Operations[i]
}

// orderOf reads the order of a purchase.
func (s *saga) orderOf(p *purchase) (o order) {
	s.Helper()
	if p.order == "" {
		var found struct{ Data []order }
		s.decode(want(s.T, http.StatusOK, s.key, "GET", s.child.url+"/v1/orders?event=gig&customer="+p.name, "", ""), &found)
		if len(found.Data) != 1 {
			s.Fatalf("%s has %d orders", p.name, len(found.Data))
		}
		p.order = found.Data[0].ID
	}
	s.decode(want(s.T, http.StatusOK, s.key, "GET", s.child.url+"/v1/orders/"+p.order, "", ""), &o)
	return o
}

// await waits until purchases are in a state, with nothing under way.
func (s *saga) await(list []*purchase, state func(*purchase) state) {
	s.Helper()
	deadline := time.Now().Add(patience)
	for _, p := range list {
		for {
			o := s.orderOf(p)
			to := state(p)
			open := slices.ContainsFunc(o.Operations, func(op operation) bool {
				return !slices.Contains([]string{"succeeded", "declined", "not_attempted"}, op.Status) && op.Status != to.payment
			})
			if o.Status == to.order && o.Payment == to.payment && !open && !o.Uncertain {
				break
			}
			if time.Now().After(deadline) {
				s.Fatalf("%s (%s) isn't %v: %+v\n%s", p.name, p.method, to, o, s.child.stderr.String())
			}
		}
	}
}

// settled repeats every checkout, waits until every purchase has ended as it must, and
// repeats them again: now each has its one answer.
func (s *saga) settled() {
	s.Helper()
	s.all(s.purchases, s.pay)
	s.await(s.purchases, func(p *purchase) state { return p.end })
	for _, p := range s.purchases {
		first, repeated := http.StatusCreated, p.answer
		if p.method != "sim_ok" {
			first = http.StatusAccepted
		}
		for range 2 {
			r := want(s.T, first, s.key, "POST", s.child.url+"/v1/holds/"+p.hold+"/checkout", "pay-"+p.name,
				fmt.Sprintf(`{"payment_method":%q}`, p.method))
			if r.header.Get("Idempotency-Replayed") != "true" || repeated != nil && r.body != repeated.body {
				s.Fatalf("%s: %v\nbefore: %v", p.name, r, repeated)
			}
			repeated = &r
		}
	}
}

// compareBooks compares the provider's books with what was sold: each step was done once.
func (s *saga) compareBooks() {
	s.Helper()
	w := httptest.NewRecorder()
	s.provider.ServeHTTP(w, httptest.NewRequest("GET", "/report", nil))
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil {
		s.Fatal(err)
	}
	done := map[string]int{} // by kind and our id
	for _, row := range rows[1:] {
		done[row[1]+" "+row[3]]++
	}
	expected := 0
	for _, p := range s.purchases {
		o := s.orderOf(p)
		var kinds []string
		switch p.end {
		case captured:
			kinds = []string{"capture"}
		case refunded:
			kinds = []string{"capture", "refund"}
		}
		for _, kind := range kinds {
			expected++
			if n := done[kind+" "+o.operation(kind).ID]; n != 1 {
				s.Errorf("%s: the provider has %d rows of its %s", p.name, n, kind)
			}
		}
		if n := s.paymentsOf(o); n != 1 {
			s.Errorf("%s: the provider has %d payments", p.name, n)
		}
	}
	if n := s.gate.payments(); n != len(s.purchases) {
		s.Errorf("the provider has %d payments of %d orders", n, len(s.purchases))
	}
	if len(rows)-1 != expected {
		s.Errorf("the provider's report has %d rows, want %d: %v", len(rows)-1, expected, rows)
	}
}

// paymentsOf counts the provider's payments of an order.
func (s *saga) paymentsOf(o order) int {
	w := httptest.NewRecorder()
	s.provider.ServeHTTP(w, httptest.NewRequest("GET", "/payments?reference="+o.operation("authorize").ID, nil))
	var list struct{ Data []json.RawMessage }
	s.decode(reply{body: w.Body.String()}, &list)
	return len(list.Data)
}
