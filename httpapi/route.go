package httpapi

import (
	"context"
	"net/http"
)

// route is one operation: its place, who may call it, and what answers it.
type route struct {
	method string
	path   string
	roles  roles    // none: anybody, without a key
	query  []string // the parameters that it knows
	handle func(context.Context, *call) (answer, error)
}

// Who may do what. An admin may do everything, an auditor read everything.
const (
	sells   = booking | operator | admin
	sees    = booking | finance | operator | auditor | admin
	runs    = operator | admin
	posts   = finance | admin
	reviews = finance | operator | auditor | admin
)

// table lists every route. The first is tried first: it's the hot one.
func (a *api) table() []route {
	const (
		event = "/v1/events/{event}"
		hold  = "/v1/holds/{hold_id}"
	)
	list := func(filters ...string) []string { return append(filters, "limit", "cursor") }
	return []route{
		{http.MethodPost, event + "/holds", sells, nil, a.placeHold},
		{http.MethodPost, hold + "/release", sells, nil, a.releaseHold},
		{http.MethodGet, hold, sees, nil, a.getHold},
		{http.MethodGet, event + "/holds", sees, list("customer", "status"), a.listHolds},
		{http.MethodGet, event + "/availability", sees, nil, a.getAvailability},

		{http.MethodPost, "/v1/events", runs, nil, a.createEvent},
		{http.MethodGet, "/v1/events", sees, list(), a.listEvents},
		{http.MethodGet, event, sees, nil, a.getEvent},
		{http.MethodPost, event + "/tiers", runs, nil, a.addTier},
		{http.MethodPatch, event + "/tiers/{tier}", runs, []string{"dry_run"}, a.changeTier},

		{http.MethodPost, event + "/entries", posts, []string{"dry_run"}, a.postEntry},
		{http.MethodGet, event + "/entries", reviews, list(), a.listEntries},
		{http.MethodGet, event + "/entries/{seq}", reviews, nil, a.getEntry},
		{http.MethodGet, event + "/accounts", reviews, list("at"), a.listAccounts},
		{http.MethodGet, event + "/accounts/{code}", reviews, []string{"at", "unit"}, a.getAccount},
		{http.MethodGet, event + "/accounts/{code}/postings", reviews, list("unit"), a.listPostings},
		{http.MethodGet, event + "/trial-balance", reviews, []string{"at"}, a.getTrialBalance},

		{http.MethodGet, "/healthz", 0, nil, a.getHealth},
		{http.MethodGet, "/readyz", 0, nil, a.getReadiness},
		{http.MethodGet, "/metrics", 0, nil, a.getMetrics},
		{http.MethodGet, "/openapi.yaml", 0, nil, a.getDocument},
		{http.MethodGet, "/version", 0, nil, a.getVersion},
	}
}
