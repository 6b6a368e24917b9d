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
	buys    = booking | admin
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
		order = "/v1/orders/{order_id}"
		cases = "/v1/recon/cases"
		move  = "/v1/quota-moves/{move_id}"
		lot   = event + "/allotments/{allotment}"
		dead  = "/v1/dead-letters"
		redo  = dead + "/replays/{replay_id}"
		subs  = "/v1/subscriptions"
		sub   = subs + "/{subscription_id}"
	)
	list := func(filters ...string) []string { return append(filters, "limit", "cursor") }
	return []route{
		{http.MethodPost, event + "/holds", sells, nil, a.placeHold},
		{http.MethodPost, hold + "/release", sells, nil, a.releaseHold},
		{http.MethodGet, hold, sees, nil, a.getHold},
		{http.MethodGet, event + "/holds", sees, list("customer", "status"), a.listHolds},
		{http.MethodGet, event + "/availability", sees, nil, a.getAvailability},

		{http.MethodGet, event + "/seatmap", sees, nil, a.getSeatMap},
		{http.MethodGet, event + "/changes", sees, []string{"after"}, a.getChanges},
		{http.MethodGet, event + "/seats/{seat}", sees, nil, a.getSeat},
		{http.MethodPost, event + "/seats/block", runs, []string{"dry_run"}, a.blockSeats},
		{http.MethodPost, event + "/seats/unblock", runs, []string{"dry_run"}, a.unblockSeats},
		{http.MethodPost, event + "/chart", runs, nil, a.loadChart},
		{http.MethodGet, "/events/{event}/map", 0, nil, a.mapPage},

		{http.MethodPost, hold + "/checkout", buys, nil, a.checkOut},
		{http.MethodPost, order + "/cancel", sells, nil, a.cancelOrder},
		{http.MethodPost, order + "/refunds", posts, nil, a.refundOrder},
		{http.MethodGet, order, sees, nil, a.getOrder},
		{http.MethodGet, "/v1/orders", sees, list("event", "customer", "status"), a.listOrders},
		{http.MethodGet, order + "/tickets", sees, list(), a.listTickets},
		{http.MethodGet, "/v1/tickets/{ticket_id}", sees, nil, a.getTicket},
		{http.MethodGet, "/v1/ticket-keys", 0, nil, a.getTicketKeys},
		{http.MethodPost, "/v1/webhooks/{provider}", 0, nil, a.receiveWebhook},

		{http.MethodGet, cases, reviews, list("event", "status", "reason", "age"), a.listCases},
		{http.MethodGet, cases + "/{case_id}", reviews, nil, a.getCase},
		{http.MethodPost, cases + "/{case_id}/resolve", posts, nil, a.resolveCase},
		{http.MethodPost, cases + "/{case_id}/approve", posts, nil, a.approveCase},
		{http.MethodPost, cases + "/{case_id}/reject", posts, nil, a.rejectCase},
		{http.MethodPost, "/v1/recon/reports/{provider}", posts, nil, a.importReport},

		{http.MethodPost, "/v1/events", runs, nil, a.createEvent},
		{http.MethodGet, "/v1/events", sees, list(), a.listEvents},
		{http.MethodGet, event, sees, nil, a.getEvent},
		{http.MethodPost, event + "/tiers", runs, nil, a.addTier},
		{http.MethodPatch, event + "/tiers/{tier}", runs, []string{"dry_run"}, a.changeTier},

		{http.MethodGet, event + "/buckets", sees, nil, a.getBuckets},
		{http.MethodGet, event + "/lanes", sees, nil, a.getLanes},
		{http.MethodPost, event + "/lanes", runs, []string{"dry_run"}, a.splitEvent},
		{http.MethodPost, event + "/quota-moves", runs, []string{"dry_run"}, a.moveQuota},
		{http.MethodGet, event + "/quota-moves", reviews, list("status", "tier", "cause"), a.listMoves},
		{http.MethodGet, move, reviews, nil, a.getMove},
		{http.MethodPost, move + "/approve", runs, nil, a.approveMove},
		{http.MethodPost, move + "/reject", runs, nil, a.rejectMove},
		{http.MethodGet, event + "/allotments", sees, nil, a.listAllotments},
		{http.MethodPost, event + "/allotments", runs, nil, a.allot},
		{http.MethodPost, lot + "/codes", runs, nil, a.addCodes},
		{http.MethodPost, lot + "/close", runs, nil, a.closeAllotment},

		{http.MethodPost, subs, runs, nil, a.createSubscription},
		{http.MethodGet, subs, reviews, list(), a.listSubscriptions},
		{http.MethodGet, sub, reviews, nil, a.getSubscription},
		{http.MethodPatch, sub, runs, nil, a.changeSubscription},
		{http.MethodPost, sub + "/rotate-secret", runs, nil, a.rotateSecret},
		{http.MethodPost, sub + "/enable", runs, nil, a.enableSubscription},
		{http.MethodPost, sub + "/disable", runs, nil, a.disableSubscription},
		{http.MethodPost, sub + "/test", runs, nil, a.testSubscription},
		{http.MethodGet, sub + "/deliveries", reviews, list("status"), a.listDeliveries},
		{http.MethodPost, sub + "/deliveries/resend", runs, []string{"dry_run"}, a.resendDeliveries},
		{http.MethodGet, sub + "/deliveries/{journal}/{seq}", reviews, nil, a.getDelivery},

		{http.MethodPost, event + "/entries", posts, []string{"dry_run"}, a.postEntry},
		{http.MethodGet, event + "/entries", reviews, list("lane"), a.listEntries},
		{http.MethodGet, event + "/entries/{seq}", reviews, []string{"lane"}, a.getEntry},
		{http.MethodGet, event + "/accounts", reviews, list("at", "lane"), a.listAccounts},
		{http.MethodGet, event + "/accounts/{code}", reviews, []string{"at", "lane", "unit"}, a.getAccount},
		{http.MethodGet, event + "/accounts/{code}/postings", reviews, list("lane", "unit"), a.listPostings},
		{http.MethodGet, event + "/trial-balance", reviews, []string{"at", "lane"}, a.getTrialBalance},

		{http.MethodGet, dead + "/replays", reviews, list("action", "status"), a.listReplays},
		{http.MethodPost, dead + "/replays", runs | posts, []string{"dry_run"}, a.requestReplay},
		{http.MethodGet, redo, reviews, nil, a.getReplay},
		{http.MethodPost, redo + "/approve", posts, nil, a.approveReplay},
		{http.MethodPost, redo + "/reject", posts, nil, a.rejectReplay},
		{http.MethodPost, redo + "/stop", runs | posts, nil, a.stopReplay},
		{http.MethodPost, redo + "/resume", runs | posts, nil, a.resumeReplay},
		{http.MethodGet, dead, reviews, list(letterFilters...), a.listLetters},
		{http.MethodGet, dead + "/{letter_id}", reviews, nil, a.getLetter},

		{http.MethodGet, "/healthz", 0, nil, a.getHealth},
		{http.MethodGet, "/readyz", 0, nil, a.getReadiness},
		{http.MethodGet, "/metrics", 0, nil, a.getMetrics},
		{http.MethodGet, "/openapi.yaml", 0, nil, a.getDocument},
		{http.MethodGet, "/asyncapi.yaml", 0, nil, a.getEventsDocument},
		{http.MethodGet, "/version", 0, nil, a.getVersion},
	}
}
