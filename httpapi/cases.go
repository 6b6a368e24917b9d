package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/recon"
)

func (a *api) listCases(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	filter := cases.Filter{
		Event: c.query.Get("event"), Reason: cases.Reason(c.query.Get("reason")),
		Status: cases.Status(c.query.Get("status")), Limit: page.Limit + 1,
	}
	if filter.After, err = page.afterID(); err != nil {
		return answer{}, err
	}
	if filter.MinAge, err = c.age(); err != nil {
		return answer{}, err
	}
	switch {
	case filter.Status != "" && !filter.Status.Valid():
		return answer{}, oneOf("status", cases.Statuses())
	case filter.Reason != "" && !filter.Reason.Valid():
		return answer{}, oneOf("reason", cases.Reasons())
	}
	list, err := a.Recon.Cases(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	return listed(page, list, func(v cases.Case) string { return v.ID.String() })
}

// age reads how old a case must be at least.
func (c *call) age() (time.Duration, error) {
	text := c.query.Get("age")
	if text == "" {
		return 0, nil
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		return 0, fault.BadField("age", "must be a duration such as 24h or 90m")
	}
	return age, nil
}

func (a *api) getCase(ctx context.Context, c *call) (answer, error) {
	id, err := c.caseID()
	if err != nil {
		return answer{}, err
	}
	found, err := a.Recon.Case(ctx, id)
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(found.Version, found)
}

// resolveCase proposes how a case ends. Somebody else has to approve.
func (a *api) resolveCase(ctx context.Context, c *call) (answer, error) {
	var resolution recon.Resolution
	key, version, id, err := c.verdict(&resolution)
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Recon.Resolve(ctx, c.caller.principal, key, id, resolution, version)
	return decided(http.StatusAccepted, receipt, err)
}

func (a *api) approveCase(ctx context.Context, c *call) (answer, error) {
	key, version, id, err := c.verdict(nil)
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Recon.Approve(ctx, c.caller.principal, key, id, version)
	return decided(http.StatusOK, receipt, err)
}

func (a *api) rejectCase(ctx context.Context, c *call) (answer, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	key, version, id, err := c.verdict(&body)
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Recon.Reject(ctx, c.caller.principal, key, id, body.Reason, version)
	return decided(http.StatusOK, receipt, err)
}

// verdict reads what a decision on a case needs: its key, the version that the caller
// has seen, the case, and the body into the struct that dst points to; nil for none.
func (c *call) verdict(dst any) (key string, version *ledger.Seq, id uuid.UUID, err error) {
	if key, version, err = c.conditional(); err != nil {
		return "", nil, id, err
	}
	if dst == nil {
		err = c.noBody()
	} else {
		err = c.body(dst)
	}
	if err != nil {
		return "", nil, id, err
	}
	id, err = c.caseID()
	return key, version, id, err
}

// decided answers with the case.
func decided(status int, r ledger.Receipt, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return recorded(status, r)
}

// caseID reads the case of the path. What can't be an id is no case's.
func (c *call) caseID() (uuid.UUID, error) { return c.named("case_id", cases.ErrCaseNotFound) }
