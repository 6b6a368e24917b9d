package orders

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// TestPostings runs the scripts in testdata/postings: commands and evidence, the postings
// that they make as a ledger, and how the order then stands.
func TestPostings(t *testing.T) {
	datadriven.Walk(t, "testdata/postings", func(t *testing.T, path string) {
		s := &script{named: map[string]*holds.Hold{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.T, s.line = t, d
			return s.run()
		})
	})
}

// script runs one file. Holds, and their orders, have names in it.
type script struct {
	*testing.T
	*journal
	line  *datadriven.TestData
	named map[string]*holds.Hold
	last  int // entries shown so far
}

// arg gives an argument of the line; the default when it isn't there.
func (s *script) arg(name, fallback string) string {
	for _, a := range s.line.CmdArgs {
		if a.Key == name && len(a.Vals) == 1 {
			return a.Vals[0]
		}
	}
	return fallback
}

func (s *script) number(name string, fallback ledger.Amount) ledger.Amount {
	n, err := strconv.ParseInt(s.arg(name, strconv.Itoa(int(fallback))), 10, 64)
	if err != nil {
		s.line.Fatalf(s.T, "%s: %v", name, err)
	}
	return ledger.Amount(n)
}

func (s *script) run() string {
	switch s.line.Cmd {
	case "event": // event [policy=review]
		s.journal = openJournal(s.T, s.arg("policy", buckets.Review), 10, 4)
		s.last = len(s.Entries())
		return ""
	case "wait": // wait for=2m
		span, err := time.ParseDuration(s.arg("for", ""))
		if err != nil {
			s.line.Fatalf(s.T, "%v", err)
		}
		s.now = s.now.Add(span)
		return ""
	case "limit": // limit to=1
		s.event.LimitPerCustomer = new(int64(s.number("to", 0)))
		return ""
	case "hold": // hold as=h customer=mia [ga=2]
		h, err := s.hold(s.arg("customer", "mia"), holds.Item{Tier: "ga", Quantity: s.number("ga", 2)})
		if err == nil {
			s.named[s.arg("as", "h")] = h
		}
		return s.show(h, err)
	}
	h := s.named[s.arg("of", "h")]
	if h == nil {
		s.line.Fatalf(s.T, "no hold %s", s.arg("of", "h"))
	}
	return s.show(h, s.about(h))
}

// about runs a line about a hold's order.
func (s *script) about(h *holds.Hold) (err error) {
	switch s.line.Cmd {
	case "checkout":
		_, err = s.checkout(h)
	case "told": // told kind=capture [attempt=1] outcome=succeeded [source=answer] ...
		_, err = s.tell(h, source(s.arg("source", string(fromAnswer))), s.result(h))
	case "timeout":
		_, err = s.do(ledger.SystemPrincipal, &timeout{s.of(h)})
	case "claim": // claim kind=capture [attempt=1]
		_, err = s.do(ledger.SystemPrincipal, &claim{ref: s.of(h), operation: s.operation(h).ID})
	case "cancel":
		_, err = s.do(h.Customer, &cancel{ref: s.of(h)})
	case "refund": // refund [amount=5300] [ga=1] [return]
		r := RefundRequest{Reason: "asked for", ReturnTickets: s.line.HasArg("return")}
		if s.line.HasArg("amount") {
			r.Amount = &buckets.Money{Amount: s.number("amount", 0), Currency: "USD"}
		}
		if s.line.HasArg("ga") {
			r.Items = []RefundLine{{Tier: "ga", Quantity: s.number("ga", 0)}}
		}
		_, err = s.do(h.Customer, &refund{ref: s.of(h), request: r})
	case "policy": // policy reason=late_payment
		_, err = s.settle(h, s.caseOf(h, cases.Reason(s.arg("reason", ""))), "")
	case "people": // people reason=late_payment resolution=honour
		c := s.caseOf(h, cases.Reason(s.arg("reason", "")))
		if _, err = s.do("fay", &proposing{c.ID, "fay", cases.Resolution(s.arg("resolution", ""))}); err == nil {
			_, err = s.settle(h, c, "gus")
		}
	case "reject": // reject reason=late_payment
		_, err = s.do("gus", &proposing{caseID: s.caseOf(h, cases.Reason(s.arg("reason", ""))).ID, by: "gus"})
	default:
		s.line.Fatalf(s.T, "unknown command %s", s.line.Cmd)
	}
	return err
}

// operation finds the one that the line is about.
func (s *script) operation(h *holds.Hold) *Operation {
	for _, op := range s.order(h).Operations {
		if op.Kind == payments.Kind(s.arg("kind", "")) && ledger.Amount(op.Attempt) == s.number("attempt", 1) {
			return op
		}
	}
	s.line.Fatalf(s.T, "no such operation")
	return nil
}

// result reads what the provider says: of an operation of ours, or with ref=dash1 of a
// step of its own.
func (s *script) result(h *holds.Hold) payments.Result {
	outcome := payments.Outcome(s.arg("outcome", ""))
	var r payments.Result
	if reference := s.arg("ref", ""); reference != "" {
		paid := s.order(h).last(payments.Authorize)
		r = payments.Result{Operation: uuid.Nil, Kind: payments.Kind(s.arg("kind", "")), Outcome: outcome, Reference: reference,
			Amount: buckets.Money{Currency: "USD"}, At: s.now, Payment: payments.Payment{Reference: paid.Payment, Operation: paid.ID}}
	} else {
		r = s.said(s.operation(h), outcome)
	}
	r.Reason = s.arg("reason", r.Reason)
	r.Amount.Amount = s.number("amount", r.Amount.Amount)
	r.Payment.Authorized = s.number("authorized", r.Payment.Authorized)
	r.Payment.Captured = s.number("captured", r.Payment.Captured)
	r.Payment.Currency = ledger.Unit(s.arg("currency", string(r.Payment.Currency)))
	at, err := time.ParseDuration(s.arg("at", "0s"))
	if err != nil {
		s.line.Fatalf(s.T, "%v", err)
	}
	r.At = r.At.Add(at)
	return r
}

// show gives the entries since it was last called, as columns, the reason for a refusal,
// and how hold, order and cases stand.
func (s *script) show(h *holds.Hold, err error) string {
	var out strings.Builder
	entries := s.Entries()[s.last:]
	s.last = len(s.Entries())
	for _, e := range entries {
		kind := fmt.Sprintf("%d %s", e.Seq, e.Kind)
		if len(e.Postings) == 0 {
			fmt.Fprintln(&out, kind)
		}
		for i, p := range e.Postings {
			if i > 0 {
				kind = ""
			}
			fmt.Fprintf(&out, "%-26s %-20s %-8s %+6d = %6d\n", kind, p.Account, p.Unit, p.Amount, p.Balance)
		}
	}
	switch f := fault.As(err); {
	case f != nil:
		fmt.Fprintf(&out, "%s: %s\n", f.Code, f.Detail)
	case err != nil:
		fmt.Fprintln(&out, err)
	case len(entries) == 0:
		fmt.Fprintln(&out, "nothing to do")
	}
	if h != nil && s.order(h) != nil && len(entries) > 0 {
		s.standing(&out, h)
	}
	return out.String()
}

// standing tells how things are, in a line each.
func (s *script) standing(out *strings.Builder, h *holds.Hold) {
	o := s.order(h)
	fmt.Fprintf(out, "-- order %s, payment %s, hold %s", o.Status, o.PaymentStatus, h.Status)
	for _, op := range o.Operations {
		fmt.Fprintf(out, "; %s %s", op.Kind, op.Status)
	}
	fmt.Fprintln(out)
	for _, reason := range cases.Reasons() {
		if c := s.caseOf(h, reason); c != nil {
			fmt.Fprintf(out, "-- case %s %s, %s's, %d in suspense\n", c.Reason, c.Status, c.Owner, c.Suspended)
		}
	}
}
