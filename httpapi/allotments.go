package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// listAllotments answers with all there are, which fit on one page.
func (a *api) listAllotments(ctx context.Context, c *call) (answer, error) {
	list, err := a.Events.Allotments(ctx, c.vars["event"])
	if err != nil {
		return answer{}, err
	}
	return listed(cursor{Limit: len(list)}, list, nil)
}

// allot makes an allotment and moves tickets to it. It answers as accepted when somebody
// else has to approve of a move.
func (a *api) allot(ctx context.Context, c *call) (answer, error) {
	var request quota.AllotRequest
	key, err := c.command(&request)
	if err != nil {
		return answer{}, err
	}
	made, moves, err := a.Quotas.Allot(ctx, c.caller.principal, key, c.vars["event"], request)
	if err != nil {
		return answer{}, err
	}
	ans := answer{status: http.StatusCreated, version: made.Seq, replayed: made.Replayed}
	for _, m := range moves {
		ans.replayed = ans.replayed && m.Replayed
		if m.Kind == quota.KindRequested {
			ans.status = http.StatusAccepted
		}
	}
	ans.body, err = withMoves(made, moves)
	return ans, err
}

// withMoves gives an allotment, as it was made, with the moves to it.
func withMoves(made ledger.Receipt, moves []ledger.Receipt) ([]byte, error) {
	view := struct {
		Event string `json:"event"`
		buckets.Allotment
		Codes []buckets.CodeSpec `json:"codes,omitempty"`
		Moves []json.RawMessage  `json:"moves"`
	}{Moves: []json.RawMessage{}}
	if err := json.Unmarshal(made.Data, &view); err != nil {
		return nil, err
	}
	for _, m := range moves {
		view.Moves = append(view.Moves, m.Data)
	}
	return json.Marshal(view)
}

// addCodes answers without a version: the allotment's stays as it is.
func (a *api) addCodes(ctx context.Context, c *call) (answer, error) {
	var body struct {
		Codes []buckets.CodeSpec `json:"codes"`
	}
	key, err := c.command(&body)
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Events.AddCodes(ctx, c.caller.principal, key, c.vars["event"], clip(c.vars["allotment"]), body.Codes)
	return accepted(http.StatusCreated, 0, receipt), err
}

func (a *api) closeAllotment(ctx context.Context, c *call) (answer, error) {
	key, version, err := c.conditional()
	if err != nil {
		return answer{}, err
	}
	var body struct {
		Reason string `json:"reason"`
	}
	if err := c.body(&body); err != nil {
		return answer{}, err
	}
	receipt, err := a.Quotas.CloseAllotment(ctx, c.caller.principal, key, c.vars["event"], clip(c.vars["allotment"]), body.Reason, version)
	return decided(http.StatusOK, receipt, err)
}
