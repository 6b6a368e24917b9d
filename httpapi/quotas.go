package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// What a list of moves can be asked for.
var (
	moveStatuses = []quota.Status{quota.Awaiting, quota.Rejected, quota.Moved}
	moveCauses   = []quota.Cause{
		quota.ByOperator, quota.Pull, quota.Rebalance, quota.Split, quota.Merge, quota.Collect, quota.Release,
	}
)

func (a *api) getBuckets(ctx context.Context, c *call) (answer, error) {
	view, err := a.Quotas.View(ctx, c.vars["event"])
	if err != nil {
		return answer{}, err
	}
	return found(view)
}

// getLanes answers with the version 0 too, which an event has until it's split: so that
// its first split can be conditional.
func (a *api) getLanes(ctx context.Context, c *call) (answer, error) {
	home, err := a.Events.Journal(ctx, c.vars["event"])
	if err != nil {
		return answer{}, err
	}
	view, err := a.Events.LanesView(ctx, c.vars["event"], home)
	if err != nil {
		return answer{}, err
	}
	ans, err := c.foundVersion(view.Version, view)
	if view.Version == 0 {
		ans.headers = http.Header{"Etag": {`"0"`}}
	}
	return ans, err
}

func (a *api) splitEvent(ctx context.Context, c *call) (answer, error) {
	var body struct {
		Lanes  int    `json:"lanes"`
		Reason string `json:"reason,omitempty"`
	}
	dryRun, key, version, err := c.preview(&body)
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Quotas.Split(ctx, c.caller.principal, key, c.vars["event"], body.Lanes, body.Reason, version, dryRun)
	return previewed(dryRun, http.StatusOK, receipt, err)
}

// moveQuota answers with a move that was made, or with one that awaits approval.
func (a *api) moveQuota(ctx context.Context, c *call) (answer, error) {
	var request quota.Request
	dryRun, key, version, err := c.preview(&request)
	if err != nil {
		return answer{}, err
	}
	if version != nil && request.From.Lane == 0 {
		return answer{}, fault.BadField("from.lane", "is needed with If-Match: a version is that of one lane's bucket")
	}
	receipt, err := a.Quotas.Move(ctx, c.caller.principal, key, c.vars["event"], request, version, dryRun)
	status := http.StatusCreated
	if receipt.Kind == quota.KindRequested {
		status = http.StatusAccepted
	}
	return previewed(dryRun, status, receipt, err)
}

// preview reads what a command needs that can be tried: whether it's only that, its key if
// it isn't, the version that the caller has seen, and its body into the struct that dst
// points to.
func (c *call) preview(dst any) (dryRun bool, key string, version *ledger.Seq, err error) {
	if dryRun, key, err = c.maybeDry(); err != nil {
		return dryRun, key, nil, err
	}
	if version, err = c.ifMatch(); err != nil {
		return dryRun, key, nil, err
	}
	return dryRun, key, version, c.body(dst)
}

// previewed answers such a command: a dry run with what would be, which has no version yet.
func previewed(dryRun bool, status int, r ledger.Receipt, err error) (answer, error) {
	switch {
	case err != nil:
		return answer{}, err
	case dryRun:
		return answer{status: http.StatusOK, body: r.Data}, nil
	}
	return recorded(status, r)
}

// listMoves answers with the moves of all lanes, the newest first. The position is the time
// of the last one, which others may share, and its id.
func (a *api) listMoves(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	filter := quota.Filter{
		Status: quota.Status(c.query.Get("status")), Tier: ledger.Unit(c.query.Get("tier")),
		Cause: quota.Cause(c.query.Get("cause")), Limit: page.Limit + 1,
	}
	if filter.Before, filter.Last, err = page.beforeTime(); err != nil {
		return answer{}, err
	}
	switch {
	case filter.Status != "" && !slices.Contains(moveStatuses, filter.Status):
		return answer{}, oneOf("status", moveStatuses)
	case filter.Cause != "" && !slices.Contains(moveCauses, filter.Cause):
		return answer{}, oneOf("cause", moveCauses)
	}
	moves, err := a.Quotas.History(ctx, c.vars["event"], filter)
	if err != nil {
		return answer{}, err
	}
	return listed(page, moves, func(m *quota.Move) string { return timePosition(m.AskedAt, m.ID) })
}

func (a *api) getMove(ctx context.Context, c *call) (answer, error) {
	id, err := c.moveID()
	if err != nil {
		return answer{}, err
	}
	move, err := a.Quotas.Get(ctx, id)
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(move.Version, move)
}

func (a *api) approveMove(ctx context.Context, c *call) (answer, error) {
	key, err := c.key()
	if err == nil {
		err = c.unconditional()
	}
	if err == nil {
		err = c.noBody()
	}
	if err != nil {
		return answer{}, err
	}
	return a.decideMove(ctx, c, key, true, "")
}

func (a *api) rejectMove(ctx context.Context, c *call) (answer, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	key, err := c.command(&body)
	if err != nil {
		return answer{}, err
	}
	return a.decideMove(ctx, c, key, false, body.Reason)
}

func (a *api) decideMove(ctx context.Context, c *call, key string, approve bool, reason string) (answer, error) {
	id, err := c.moveID()
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Quotas.Decide(ctx, c.caller.principal, key, id, approve, reason)
	return decided(http.StatusOK, receipt, err)
}

// moveID reads the move of the path. What can't be an id is no move's.
func (c *call) moveID() (uuid.UUID, error) { return c.named("move_id", quota.ErrMoveNotFound) }
