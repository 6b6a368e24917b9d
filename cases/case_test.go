package cases_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// one is a case that waits for a person.
func one() cases.Case {
	id := uuid.New()
	return cases.Case{ID: uuid.New(), Reason: cases.LatePayment, Status: cases.Open, OperationID: &id, OpenedAt: now,
		Owner: cases.OwnerFinance, Version: 7}
}

// The ways through the states, and who was there on each.
func TestStates(t *testing.T) {
	t.Parallel()
	at := func(n int) (time.Time, ledger.Seq) { return now.Add(time.Duration(n) * time.Hour), ledger.Seq(7 + n) }
	proposed := func() cases.Case {
		c := one()
		return c.Propose("fay", cases.Refund, "why", "where", 8)
	}
	for name, c := range map[string]struct {
		is       cases.Case
		status   cases.Status
		proposed string
		decided  string
	}{
		"proposed": {proposed(), cases.AwaitingApproval, "fay", ""},
		"rejected": {func() cases.Case { c := proposed(); return c.Reject("gus", "no", 9) }(), cases.Open, "", ""},
		"approved": {func() cases.Case {
			c := proposed()
			at, version := at(2)
			return c.Decide("gus", cases.Refund, false, at, version)
		}(), cases.Resolving, "fay", "gus"},
		"approved and done": {func() cases.Case {
			c := proposed()
			at, version := at(2)
			return c.Decide("gus", cases.Honour, true, at, version)
		}(), cases.Resolved, "fay", "gus"},
		"by policy": {func() cases.Case {
			c := one()
			at, version := at(1)
			return c.Decide("", cases.Refund, false, at, version)
		}(), cases.Resolving, ledger.SystemPrincipal, ""},
		"by a fact": {func() cases.Case {
			c := one()
			at, version := at(1)
			return c.Resolve("told", at, version)
		}(), cases.Resolved, ledger.SystemPrincipal, ""},
		"by a fact, when it was proposed": {func() cases.Case {
			c := proposed()
			at, version := at(1)
			return c.Resolve("told", at, version)
		}(), cases.Resolved, ledger.SystemPrincipal, ""},
	} {
		if c.is.Status != c.status || c.is.ProposedBy != c.proposed || c.is.DecidedBy != c.decided {
			t.Errorf("%s: %+v", name, c.is)
		}
		if (c.is.ResolvedAt != nil) != (c.status == cases.Resolved) {
			t.Errorf("%s: resolved at %v", name, c.is.ResolvedAt)
		}
		if c.status != cases.Open && c.is.Resolution == "" || c.status == cases.Open && c.is.Resolution != "" {
			t.Errorf("%s: resolution %q", name, c.is.Resolution)
		}
	}
}

// A resolved case is over, and one that's done isn't proposed again: a program that tries
// has a bug.
func TestResolvedIsFinal(t *testing.T) {
	t.Parallel()
	c := one()
	done := c.Resolve("told", now, 8)
	for name, f := range map[string]func(){
		"proposed": func() { done.Propose("fay", cases.Refund, "why", "", 9) },
		"rejected": func() { done.Reject("gus", "no", 9) },
		"decided":  func() { done.Decide("gus", cases.Refund, true, now, 9) },
		"resolved": func() { done.Resolve("again", now, 9) },
		"reopened": func() { done.Reopen("again", 9) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("it was %s", name)
				}
			}()
			f()
		}()
	}
}

// Who may decide, and on which version; in the order of precedence.
func TestApprovable(t *testing.T) {
	t.Parallel()
	c := one()
	stale := ledger.Seq(1)
	p := c.Propose("fay", cases.Refund, "why", "", 8)
	for name, a := range map[string]struct {
		c    cases.Case
		by   string
		seen *ledger.Seq
		want *fault.Def
	}{
		"nothing was proposed":     {c, "gus", nil, cases.ErrCaseState},
		"by the same person":       {p, "fay", &p.Version, fault.ErrSamePerson},
		"by somebody who saw less": {p, "fay", &stale, buckets.ErrVersionConflict},
		"by another":               {p, "gus", &p.Version, nil},
		"by another, any version":  {p, "gus", nil, nil},
	} {
		err := a.c.Approvable(a.by, a.seen)
		if f := fault.As(err); a.want == nil && err != nil || a.want != nil && (f == nil || f.Def != a.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, r := range cases.Reasons() {
		if !r.Valid() {
			t.Errorf("%s isn't valid", r)
		}
	}
	for _, s := range cases.Statuses() {
		if !s.Valid() {
			t.Errorf("%s isn't valid", s)
		}
	}
	if cases.Reason("x").Valid() || cases.Status("").Valid() || cases.Resolution("").Valid() || !cases.Link.Valid() {
		t.Error("what's valid isn't what it should be")
	}
}
