package recon_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/recon"
)

// desk is a sale with a case to decide: a transfer of another amount than the order's.
type desk struct {
	*sale
	order uuid.UUID
	id    uuid.UUID
}

var refundIt = recon.Resolution{Resolution: cases.Refund, Reason: "the amount is wrong", Evidence: "mail of 1 May"}

func openDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{sale: openSale(t)}
	d.order = d.buy("gig", "ann", "sim_transfer")
	d.post("/payments/"+d.payment(d.order)+"/complete", `{"amount": 5000}`)
	d.await(d.order, payments.Authorize)
	list, err := d.Recon.Cases(t.Context(), cases.Filter{Event: "gig", Status: cases.Open, Reason: cases.AmountMismatch, Limit: 10})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	d.id = list[0].ID
	return d
}

// now reads the case.
func (d *desk) now() cases.Case {
	d.Helper()
	c, err := d.Recon.Case(d.Context(), d.id)
	if err != nil {
		d.Fatal(err)
	}
	return c
}

func (d *desk) resolve(who string, r recon.Resolution, ifMatch *ledger.Seq) (cases.Case, error) {
	d.Helper()
	receipt, err := d.Recon.Resolve(d.Context(), who, "resolve "+uuid.NewString(), d.id, r, ifMatch)
	return d.answered(receipt, err)
}

func (d *desk) approve(who string, ifMatch *ledger.Seq) (cases.Case, error) {
	d.Helper()
	receipt, err := d.Recon.Approve(d.Context(), who, "approve "+uuid.NewString(), d.id, ifMatch)
	return d.answered(receipt, err)
}

func (d *desk) reject(who string, ifMatch *ledger.Seq) (cases.Case, error) {
	d.Helper()
	receipt, err := d.Recon.Reject(d.Context(), who, "reject "+uuid.NewString(), d.id, "not like this", ifMatch)
	return d.answered(receipt, err)
}

// answered reads the case that a receipt tells of, which is the one that's there.
func (d *desk) answered(receipt ledger.Receipt, err error) (c cases.Case, _ error) {
	d.Helper()
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(receipt.Data, &c); err != nil || c.ID != d.id || c.Version != receipt.Seq {
		d.Fatalf("the answer is %s: %v", receipt.Data, err)
	}
	return c, nil
}

func (d *desk) refused(err error, want *fault.Def) {
	d.Helper()
	if f := fault.As(err); f == nil || f.Def != want {
		d.Errorf("got %v, want %s", err, want.Code)
	}
}

// Two people: one proposes, the other approves, and the money goes back.
func TestFourEyes(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	c, err := d.resolve("fay", refundIt, nil)
	if err != nil || c.Status != cases.AwaitingApproval || c.ProposedBy != "fay" || c.Evidence != refundIt.Evidence {
		t.Fatalf("%+v %v", c, err)
	}
	_, err = d.approve("fay", nil)
	d.refused(err, fault.ErrSamePerson)
	_, err = d.reject("fay", nil)
	d.refused(err, fault.ErrSamePerson)
	_, err = d.resolve("gus", refundIt, nil)
	d.refused(err, cases.ErrCaseState)
	c, err = d.approve("gus", nil)
	if err != nil || c.DecidedBy != "gus" || c.Status != cases.Resolving || c.Suspended != 0 {
		t.Fatalf("%+v %v", c, err)
	}
	_, err = d.approve("gus", nil)
	d.refused(err, cases.ErrCaseState)
	d.await(d.order, payments.Refund)
	if c := d.now(); c.Status != cases.Resolved || c.ResolvedAt == nil || c.ProposedBy != "fay" || c.DecidedBy != "gus" {
		t.Errorf("%+v", c)
	}
	_, err = d.resolve("fay", refundIt, nil)
	d.refused(err, cases.ErrCaseState)
}

// Rejected, it's open again, and the same two may change places.
func TestRejected(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	if _, err := d.resolve("fay", refundIt, nil); err != nil {
		t.Fatal(err)
	}
	c, err := d.reject("gus", nil)
	if err != nil || c.Status != cases.Open || c.ProposedBy != "" || !strings.Contains(c.LastFact, "not like this") {
		t.Fatalf("%+v %v", c, err)
	}
	_, err = d.reject("gus", nil)
	d.refused(err, cases.ErrCaseState)
	if _, err := d.resolve("gus", refundIt, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.approve("fay", nil); err != nil {
		t.Fatal(err)
	}
	d.await(d.order, payments.Refund)
}

// T35: who decides by what isn't so any more is refused, in each of the three steps.
func TestT35StaleVersions(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	first := d.now().Version
	stale := first - 1
	_, err := d.resolve("fay", refundIt, &stale)
	d.refused(err, buckets.ErrVersionConflict)
	c, err := d.resolve("fay", refundIt, &first)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.approve("gus", &first)
	d.refused(err, buckets.ErrVersionConflict)
	_, err = d.reject("gus", &first)
	d.refused(err, buckets.ErrVersionConflict)
	if _, err := d.approve("gus", &c.Version); err != nil {
		t.Fatal(err)
	}
	d.await(d.order, payments.Refund)
}

// P46: of many who approve at once, one does it, and the money goes back once; the same
// call again gives the same answer.
func TestManyApproveAtOnce(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	if _, err := d.resolve("fay", refundIt, nil); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = d.approve("gus", nil) })
	}
	wg.Wait()
	approved := 0
	for _, err := range errs {
		if err == nil {
			approved++
		} else {
			d.refused(err, cases.ErrCaseState)
		}
	}
	d.await(d.order, payments.Refund)
	o, err := d.Orders.Get(t.Context(), d.order)
	if err != nil || approved != 1 || len(o.Operations) != 2 {
		t.Errorf("%d approved, %d operations, %v", approved, len(o.Operations), err)
	}
}

func TestTheSameKeyOfAnApproval(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	one, err := d.Recon.Resolve(t.Context(), "fay", "r", d.id, refundIt, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := d.Recon.Resolve(t.Context(), "fay", "r", d.id, refundIt, nil)
	if err != nil || string(two.Data) != string(one.Data) || !two.Replayed {
		t.Errorf("%s, then %s %v", one.Data, two.Data, err)
	}
	_, err = d.Recon.Resolve(t.Context(), "fay", "r", d.id, recon.Resolution{Resolution: cases.Honour, Reason: "x"}, nil)
	d.refused(err, ledger.ErrIdempotencyMismatch)
	one, err = d.Recon.Approve(t.Context(), "gus", "a", d.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.await(d.order, payments.Refund)
	two, err = d.Recon.Approve(t.Context(), "gus", "a", d.id, nil)
	if err != nil || string(two.Data) != string(one.Data) || !two.Replayed {
		t.Errorf("%s, then %s %v", one.Data, two.Data, err)
	}
}

// What doesn't fit the case is refused by the second of the two, and what isn't one by
// the first.
func TestResolutionsThatDontFit(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	for name, r := range map[string]recon.Resolution{
		"none":              {Reason: "x"},
		"unknown":           {Resolution: "forget", Reason: "x"},
		"no reason":         {Resolution: cases.Refund},
		"a long reason":     {Resolution: cases.Refund, Reason: strings.Repeat("x", 2001)},
		"link, no evidence": {Resolution: cases.Link, Reason: "x"},
	} {
		t.Log(name)
		_, err := d.resolve("fay", r, nil)
		d.refused(err, fault.ErrInvalidRequest)
	}
	for _, r := range []cases.Resolution{cases.Honour, cases.WriteOff, cases.Link} {
		if _, err := d.resolve("fay", recon.Resolution{Resolution: r, Reason: "x", Evidence: "y"}, nil); err != nil {
			t.Fatal(err)
		}
		_, err := d.approve("gus", nil)
		d.refused(err, cases.ErrResolution)
		if _, err := d.reject("gus", nil); err != nil {
			t.Fatal(err)
		}
	}
	if c := d.now(); c.Status != cases.Open || c.Suspended != 5000 {
		t.Errorf("%+v", c)
	}
	d.id = ledger.NewID(ledger.System, "no such case")
	_, err := d.resolve("fay", refundIt, nil)
	d.refused(err, cases.ErrCaseNotFound)
	_, err = d.approve("gus", nil)
	d.refused(err, cases.ErrCaseNotFound)
	d.id = uuid.New()
	_, err = d.reject("gus", nil)
	d.refused(err, cases.ErrCaseNotFound)
}

// The provider may settle by itself what waits for an approval: the fact is taken in, and
// nothing is left to approve.
func TestAFactWhileItWaitsForApproval(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	if _, err := d.resolve("fay", refundIt, nil); err != nil {
		t.Fatal(err)
	}
	d.post("/payments/"+d.payment(d.order)+"/refunds", `{"reference": "dashboard", "amount": 5000, "currency": "USD"}`)
	d.await(d.order, payments.Refund)
	if c := d.now(); c.Status != cases.Resolved || c.Suspended != 0 || c.Resolution != cases.Link {
		t.Errorf("%+v", c)
	}
	_, err := d.approve("gus", nil)
	d.refused(err, cases.ErrCaseState)
}

// Four eyes are the database's too: the service's own role can't write a case that one
// person has decided alone.
func TestFourEyesInTheDatabase(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	if _, err := d.resolve("fay", refundIt, nil); err != nil {
		t.Fatal(err)
	}
	conn := d.Orders.Reads // the service's own
	for name, c := range map[string]struct{ sql, constraint string }{
		"the same person":   {`UPDATE cases SET status = 'resolving', decided_by = proposed_by`, "cases_four_eyes"},
		"nobody":            {`UPDATE cases SET status = 'resolving'`, "cases_four_eyes"},
		"resolved by one":   {`UPDATE cases SET status = 'resolved', resolved_at = now(), decided_by = 'fay'`, "cases_four_eyes"},
		"nothing proposed":  {`UPDATE cases SET status = 'resolved', resolved_at = now(), proposed_by = '', decided_by = 'gus'`, "cases_four_eyes"},
		"resolved, no time": {`UPDATE cases SET status = 'resolved', decided_by = 'gus'`, "cases_resolved"},
		"no resolution":     {`UPDATE cases SET resolution = ''`, "cases_resolved"},
		"more than it has":  {`UPDATE cases SET suspended = 5001`, "cases_suspended"},
	} {
		_, err := conn.Exec(t.Context(), c.sql)
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.ConstraintName != c.constraint {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, sql := range []string{`DELETE FROM cases`, `UPDATE cases SET currency = 'EUR'`, `UPDATE cases SET opened_at = now()`,
		`UPDATE cases SET order_id = NULL`, `TRUNCATE cases`} {
		_, err := conn.Exec(t.Context(), sql)
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != "42501" { // insufficient_privilege
			t.Errorf("%s: %v", sql, err)
		}
	}
}
