package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// entryBody is a manual entry as its author writes it.
type entryBody struct {
	Description string          `json:"description"`
	Postings    []postingBody   `json:"postings"`
	Conditions  []conditionBody `json:"conditions,omitempty"`
}

type postingBody struct {
	Account string        `json:"account"`
	Unit    ledger.Unit   `json:"unit"`
	Amount  ledger.Amount `json:"amount"`
}

type conditionBody struct {
	Account string          `json:"account"`
	Unit    ledger.Unit     `json:"unit"`
	Version *ledger.Seq     `json:"version,omitempty"`
	Balance *ledger.Balance `json:"balance,omitempty"`
}

func (a *api) postEntry(ctx context.Context, c *call) (answer, error) {
	dryRun, key, err := c.maybeDry()
	if err != nil {
		return answer{}, err
	}
	if err := c.unconditional(); err != nil {
		return answer{}, err
	}
	var body entryBody
	if err := c.body(&body); err != nil {
		return answer{}, err
	}
	journal, err := a.Events.Journal(ctx, c.vars["event"])
	if err != nil {
		return answer{}, err
	}
	post, err := body.post()
	if err != nil {
		return answer{}, err
	}
	post.ID = ledger.NewID(journal, c.caller.principal, key)
	command, err := ledger.NewCommand(journal, c.caller.principal, key, ledger.KindPosted, body, post)
	if err != nil {
		return answer{}, err
	}
	command.DryRun = dryRun
	receipt, err := a.Ledger.Do(ctx, journal, command)
	if dryRun {
		receipt.Seq = 0 // nothing has got this version
	}
	return accepted(http.StatusCreated, receipt.Seq, receipt), err
}

// post makes the command, and refuses what could never be posted.
func (b *entryBody) post() (*ledger.Post, error) {
	post := &ledger.Post{Description: b.Description, Units: buckets.Unpostable}
	for _, p := range b.Postings {
		post.Legs = append(post.Legs, ledger.Leg{Account: p.Account, Unit: p.Unit, Amount: p.Amount})
	}
	for i, c := range b.Conditions {
		condition := ledger.Condition{Account: c.Account, Unit: c.Unit, Version: c.Version}
		if c.Balance != nil {
			if *c.Balance == (ledger.Balance{}) {
				return nil, fault.BadField(fmt.Sprintf("conditions[%d].balance", i), "needs gte, lte or eq")
			}
			condition.Balance = *c.Balance
		}
		post.Conditions = append(post.Conditions, condition)
	}
	return post, post.Validate()
}
