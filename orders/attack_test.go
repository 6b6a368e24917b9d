package orders_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/recon"
)

// theirs is what the provider tells of a payment that isn't ours.
func (s *shop) theirs(kind string, at time.Time, captured, refunded int64) letter {
	s.Helper()
	body, err := json.Marshal(said{"type": kind + ".succeeded", "timestamp": at, "data": said{
		"id": "op_of_" + s.key(), "reference": "their-" + kind, "kind": kind, "status": "succeeded", "amount": captured,
		"currency": "EUR", "updated_at": at, "payment": said{"id": "pay_theirs", "reference": "their-1", "status": "x",
			"currency": "EUR", "amount": 10000, "authorized": 10000, "captured": captured, "refunded": refunded},
	}})
	if err != nil {
		s.Fatal(err)
	}
	header := http.Header{}
	s.secrets.Sign(header, "evt_of_"+s.key(), time.Now(), body)
	return letter{body, header}
}

// A payment that isn't ours is told of in any order: the latest word by the provider's
// clock stands.
func TestAPaymentOfSomebodyElseToldInReverse(t *testing.T) {
	t.Parallel()
	for name, refunded := range map[string]int64{"all of it refunded": 700, "a part refunded": 200} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			now := time.Now().UTC()
			captured, back := s.theirs("capture", now.Add(-time.Minute), 700, 0), s.theirs("refund", now, 700, refunded)
			s.deliver(back)
			s.deliver(captured)
			rests := ledger.Amount(700 - refunded)
			s.expect(map[string]ledger.Amount{"provider:sim EUR": rests, "suspense:unidentified EUR": -rests})
		})
	}
}

// A payment that isn't ours may be captured in parts.
func TestAPaymentOfSomebodyElseInParts(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	now := time.Now().UTC()
	s.deliver(s.theirs("capture", now.Add(-time.Minute), 100, 0))
	s.deliver(s.theirs("capture", now, 700, 0))
	s.expect(map[string]ledger.Amount{"provider:sim EUR": 700, "suspense:unidentified EUR": -700})
}

// Money of which only a part was taken buys nothing, whatever is authorized besides.
func TestAPartTakenWithTheAuthorization(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_requires_action")
	s.tell(s.what(s.op(o.ID, payments.Authorize).ID), time.Second,
		said{"status": "succeeded", "payment": said{"authorized": 10606, "captured": 6}})
	if got := s.balances()["provider:sim USD"]; got != 6 {
		t.Errorf("the provider has %d of ours by the books, and says 6; the order: %+v", got, s.order(o.ID).Status)
	}
}

// A clock of the provider's that was wrong once doesn't shut out what's told later.
func TestAWordFromTheFuture(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"a year": 365 * 24 * time.Hour, "some seconds": 4 * time.Second, "a minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			o := s.buy("ann", 2, "sim_requires_action")
			op := s.op(o.ID, payments.Authorize)
			s.tell(s.what(op.ID), ahead, said{"status": "pending"})
			s.bank(op.Payment, "complete", 0)
			s.work() // a lookup: as it is now
			s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
		})
	}
}

// A payment that the provider neither ends nor knows any more keeps its tickets from
// others: somebody must be told.
func TestAPaymentThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_requires_action")
	s.endGrace(o.ID)
	s.exec(`UPDATE operations SET payment = 'pay_99999999'`) // the provider has lost it
	for range 12 {
		s.work()
	}
	o = s.order(o.ID)
	if got := s.openCases(); o.Status == orders.Pending && len(got) == 0 {
		t.Errorf("order %s, hold and operations %+v: nothing ends it, and nobody is told", o.Status, *s.op(o.ID, payments.Cancel))
	}
}

// A step of the provider's own that carries the reference of the payment isn't the
// payment.
func TestAStepUnderThePaymentsReference(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"sim_ok", "sim_transfer"} {
		for _, status := range []string{"succeeded", "declined"} {
			t.Run(method+" "+status, func(t *testing.T) {
				t.Parallel()
				s := open(t, option{})
				o := s.buy("ann", 2, method)
				if method == "sim_transfer" {
					s.bank(s.op(o.ID, payments.Authorize).Payment, "complete", 0)
					s.work()
				}
				s.is(o.ID, orders.Captured, orders.PaymentCaptured, false)
				s.tell(s.what(s.op(o.ID, payments.Authorize).ID), time.Second,
					said{"kind": "refund", "status": status, "id": "op_dashboard", "amount": 606, "payment": said{"captured": 10606, "refunded": 606}})
				want := ledger.Amount(10606)
				if status == "succeeded" {
					want -= 606
				}
				s.expect(map[string]ledger.Amount{"provider:sim USD": want})
			})
		}
	}
}

// What names an operation that this journal never gets, as another deployment at the
// same provider would, is money all the same: somebody is told.
func TestMoneyUnderAnIDOfAnotherDeployment(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	journal, _ := ledger.JournalOf(o.ID)
	id := ledger.NewID(journal, "another", "deployment").String()
	s.tell(s.what(s.op(o.ID, payments.Authorize).ID), time.Second, said{"reference": id, "id": "op_x",
		"payment": said{"id": "pay_x", "reference": id, "captured": 700, "authorized": 700}})
	for range 12 {
		s.work()
	}
	if s.webhooks("parked") != 0 && len(s.openCases()) == 0 {
		t.Error("parked for good, and nobody is told")
	}
}

// What a provider writes into names and texts is kept, or refused, and the payment goes on.
func TestOddTextsOfTheProvider(t *testing.T) {
	t.Parallel()
	long := strings.Builder{}
	for range 400 {
		long.WriteString(uuid.NewString())
	}
	for name, changes := range map[string]said{
		"NUL in the reference":      {"id": "op_\x00"},
		"NUL in the payment":        {"payment": said{"id": "pay_\x00"}},
		"NUL in the reason":         {"reason": "a\x00b"},
		"NUL in the next action":    {"next_action": map[string]string{"type": "redirect", "url": "https://x/\x00"}},
		"a long payment":            {"payment": said{"id": long.String()}},
		"a long reference":          {"id": long.String()},
		"no time":                   {"updated_at": "0001-01-01T00:00:00Z"},
		"negative amounts":          {"payment": said{"captured": -5, "refunded": -7, "disputed": -9}},
		"a currency that isn't one": {"payment": said{"currency": "ga"}},
		"a currency with a NUL":     {"payment": said{"currency": "U\x00D"}},
		"more than there is":        {"payment": said{"authorized": int64(1) << 62, "captured": int64(1) << 62}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, option{})
			o := s.buy("ann", 2, "sim_requires_action")
			told := said{"status": "succeeded"}
			if changes["next_action"] != nil {
				told["status"] = "pending"
			} else if changes["payment"] == nil {
				told["payment"] = said{"authorized": 10606}
			}
			for name, value := range changes {
				told[name] = value
			}
			if p, ok := told["payment"].(said); ok && p["authorized"] == nil {
				p["authorized"] = 10606
			}
			l := s.letter(s.what(s.op(o.ID, payments.Authorize).ID), time.Second, told)
			err := s.Orders.Receive(s.ctx, "sim", l.body, l.header)
			s.idle()
			if n := s.webhooks("parked"); n != 0 || fault.As(err) != nil && fault.As(err).Kind == fault.Internal {
				t.Errorf("taken: %v; %d parked for good; order %s, cases %v", err, n, s.order(o.ID).Status, s.openCases())
			}
		})
	}
}

// What the buyer has to do is kept as the provider says it, or refused: the books stay
// readable.
func TestANextActionWithANUL(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_requires_action")
	l := s.letter(s.what(s.op(o.ID, payments.Authorize).ID), time.Second, said{"status": "pending"})
	s.deliver(l)
	l = s.letter(s.what(s.op(o.ID, payments.Authorize).ID), 2*time.Second,
		said{"status": "requires_action", "next_action": map[string]string{"type": "redirect", "url": "https://bank/\x00"}})
	_ = s.Orders.Receive(s.ctx, "sim", l.body, l.header)
	s.idle()
}

// What can't be done, as with a provider that's no longer configured, keeps nobody else
// waiting.
func TestParkedForAProviderThatIsGone(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("bob", 1, "sim_requires_action")
	journal, _ := ledger.JournalOf(o.ID)
	s.exec(`INSERT INTO webhooks (journal_id, provider, event_id, type, body, received_at, status, tries, due_at, version)
		SELECT $1, 'gone', 'evt' || n, 'x', '{}', now(), 'parked', 1, 'epoch', 1 FROM generate_series(1, 300) n`, int64(journal))
	s.db.Except("webhooks_recorded")
	id := ledger.NewID(journal, ledger.SystemPrincipal, "operation", o.ID.String(), "authorize", "2")
	s.tell(s.what(s.op(o.ID, payments.Authorize).ID), time.Second, said{"status": "pending", "reference": id.String(), "payment": said{"reference": id.String()}})
	var before, after int
	count := `SELECT tries FROM webhooks WHERE provider = 'sim'`
	if err := s.owner.QueryRow(s.ctx, count).Scan(&before); err != nil {
		t.Fatal(err)
	}
	s.exec(`UPDATE webhooks SET due_at = now() - interval '1 minute' WHERE provider = 'sim'`)
	for range 5 {
		_, _ = s.Orders.Work(s.ctx)
	}
	if err := s.owner.QueryRow(s.ctx, count).Scan(&after); err != nil || after == before {
		t.Errorf("tried %d times before five rounds and %d times after: %v", before, after, err)
	}
}

// hanging is a provider that takes every call and never answers.
type hanging struct{ calls atomic.Int64 }

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.calls.Add(1)
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A provider that hangs costs a moment after a while, not a deadline each.
func TestTheBreakerOpensForAProviderThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{}
		c, err := payments.NewClient(payments.Options{URL: "http://provider.test", Cooldown: time.Hour, Transport: h})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			var calls sync.WaitGroup
			for range 32 {
				calls.Go(func() { _, _ = c.Lookup(t.Context(), uuid.New()) })
			}
			calls.Wait()
		}
		if n := h.calls.Load(); n > 64 {
			t.Errorf("%d calls in ten deadlines", n)
		}
	})
}

// A buyer can't fill the books with payments that are declined.
func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 1)
	for range 120 {
		_, _ = s.pay(hold, "sim_decline")
	}
	if n := len(s.ops(s.orderOf(hold), payments.Authorize)); n > 100 {
		t.Errorf("%d attempts", n)
	}
}

// What was answered is answered again under its key, whoever takes payments now.
func TestARepeatWhenTheProviderIsGone(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	hold := s.hold("ann", 1)
	first, err := s.checkout("once", hold, "sim_ok")
	if err != nil {
		t.Fatal(err)
	}
	s.idle()
	s.Stores = pgtest.Stores(t, s.db, nil)
	again, err := s.checkout("once", hold, "sim_ok")
	if err != nil || string(again.Data) != string(first.Data) {
		t.Errorf("answered %v", err)
	}
}

// A read takes one connection at a time: else as many readers as there are connections
// wait for each other.
func TestAListNeedsOneConnection(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	s.buy("ann", 1, "sim_ok")
	reads, err := pg.Open(s.ctx, pg.Options{URL: s.db.ServiceURL(), Name: t.Name(), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reads.Close)
	fresh := service.Fit(service.Parts{Commits: reads, Reads: reads, Providers: []payments.Provider{s.provider}})
	t.Cleanup(fresh.Ledger.Close)
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	if _, err := fresh.Orders.List(ctx, "gig", orders.Filter{Limit: 1}); err != nil {
		t.Error(err)
	}
}

// Money of nobody's order whose refund was never told: people can settle it.
func TestAPaymentOfSomebodyElseIsSettledByPeople(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	s.deliver(s.theirs("capture", time.Now().UTC(), 700, 0))
	c := s.theCase(cases.Unidentified, cases.Open)
	var failed []error
	for _, r := range []cases.Resolution{cases.Link, cases.WriteOff, cases.Refund} {
		err := s.decide(c.ID, recon.Resolution{Resolution: r, Reason: "paid back on 1 May", Evidence: "statement 17"})
		if err == nil {
			s.expect(map[string]ledger.Amount{"suspense:unidentified EUR": 0})
			return
		}
		failed = append(failed, err)
		if _, err := s.Recon.Reject(s.ctx, "gus", s.key(), c.ID, "not possible", nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("neither is possible: %v", failed)
}

// What people have settled of somebody else's payment isn't booked again by a word that's
// no younger than what they have settled.
func TestAPaymentOfSomebodyElseToldAfterItsSettlement(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	now := time.Now().UTC()
	s.deliver(s.theirs("capture", now, 700, 0))
	c := s.theCase(cases.Unidentified, cases.Open)
	if err := s.decide(c.ID, recon.Resolution{Resolution: cases.Link, Reason: "paid out by bank", Evidence: "statement 17"}); err != nil {
		t.Fatal(err)
	}
	s.deliver(s.theirs("capture", now, 700, 0)) // another event of the same moment
	s.expect(map[string]ledger.Amount{"provider:sim EUR": 0, "suspense:unidentified EUR": 0})
}
