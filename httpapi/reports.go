package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// reportTimeout bounds the import of a report, which is some hundred commits: longer
// than any other call, and shorter than a connection may be written to.
const reportTimeout = 50 * time.Second

// importReport matches a provider's report to the books. Its lines are its key: what
// was booked once isn't booked again, so that it needs no other. It has a time limit of
// its own.
func (a *api) importReport(_ context.Context, c *call) (answer, error) {
	ctx, cancel := context.WithTimeout(c.request.Context(), reportTimeout)
	defer cancel()
	if kind := c.request.Header.Get("Content-Type"); !isKind(kind, "text/csv") {
		return answer{}, fault.BadField("Content-Type", "must be text/csv")
	}
	provider := c.vars["provider"]
	if !slices.ContainsFunc(a.Orders.Providers, func(p payments.Provider) bool { return p.Name() == provider }) {
		return answer{}, orders.ErrProviderNotFound.Because("%q", clip(provider))
	}
	report, err := a.Recon.Import(ctx, c.caller.principal, provider, c.request.Body)
	if err != nil {
		return answer{}, err
	}
	return found(report)
}
