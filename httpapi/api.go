package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/quota"
	"github.com/tierledger/tierledger/recon"
	"github.com/tierledger/tierledger/seats"
	"github.com/tierledger/tierledger/subscribers"
	"github.com/tierledger/tierledger/tickets"
)

// requestTimeout bounds a call, from its head to its answer. It's longer than a
// full queue takes to drain, and shorter than proxies wait.
const requestTimeout = 10 * time.Second

// Config is what the API stands on. The ledger, its reader and the stores are required.
type Config struct {
	Ledger      *ledger.Ledger
	Reader      *ledger.Reader
	Events      *buckets.Store
	Seats       *seats.Store
	Maps        *seats.Maps
	Quotas      *quota.Store
	Holds       *holds.Store
	Orders      *orders.Store
	Recon       *recon.Store
	Tickets     *tickets.Store
	Subscribers *subscribers.Store
	Letters     *outbox.Letters

	// Keys tells who may call; nil knows nobody.
	Keys *Keys
	// LoopbackAdmin lets a call from this machine without a key do everything, as
	// the principal "loopback". For development only: whoever has an account on the
	// machine has the ledger.
	LoopbackAdmin bool

	Ready   []Check      // what /readyz asks
	Metrics *Metrics     // nil: of its own
	Log     *slog.Logger // nil: nowhere
	Version string       // of the program, for /version
}

// Check is something that must work before calls should come here; one that's advisory is
// told, and calls should come all the same.
type Check struct {
	Name     string
	Probe    func(context.Context) error
	Advisory bool
}

// api serves the routes.
type api struct {
	Config
	router *mux.Router
	routes map[*mux.Route]*route
	about  answer // /version
	causes throttle

	webhooks chan struct{} // places for those being taken in
	charts   chan struct{} // places for those being read
}

// New makes the handler of every route. It's safe for concurrent use.
func New(c Config) http.Handler {
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	a := &api{Config: c, router: mux.NewRouter(), routes: make(map[*mux.Route]*route), about: about(c.Version),
		webhooks: make(chan struct{}, maxWebhooks), charts: make(chan struct{}, maxCharts)}
	for _, r := range a.table() {
		methods := []string{r.method}
		if r.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		a.routes[a.router.Methods(methods...).Path(r.path)] = &r
	}
	return a
}

// ServeHTTP answers a call.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	c := &call{request: r, started: time.Now(), id: requestID(r), traceID: traceID(r)}
	ans, err := a.answer(ctx, c)
	if err != nil {
		ans = a.refuse(ctx, c, err)
	}
	ans.write(w, c)
	a.observe(ctx, c, &ans)
}

// answer finds the route, checks the caller and runs the handler. A panic is an
// internal error of this call alone.
func (a *api) answer(ctx context.Context, c *call) (ans answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.ErrInternal.Because("").From(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if err := a.match(c); err != nil {
		return answer{}, err
	}
	if c.route.roles != 0 {
		if err := a.admit(c); err != nil {
			return answer{}, err
		}
	}
	if err := c.readQuery(); err != nil {
		return answer{}, err
	}
	return c.route.handle(ctx, c)
}

// match finds the route and the variables of its path. An escaped slash is none
// that separates, and no name has one.
func (a *api) match(c *call) error {
	if strings.Contains(strings.ToUpper(c.request.URL.RawPath), "%2F") {
		return ErrNotFound.Because("no path has an escaped slash")
	}
	var found mux.RouteMatch
	if a.router.Match(c.request, &found) {
		c.route, c.vars = a.routes[found.Route], found.Vars
		return nil
	}
	// mux's own word on a wrong method depends on the order of the routes.
	if methods := a.allowed(c.request); len(methods) > 0 {
		return ErrMethodNotAllowed.Because("the path knows %s", strings.Join(methods, ", ")).With("allowed", methods)
	}
	return ErrNotFound.Because("there's nothing at this path")
}

// allowed lists the methods that a path knows.
func (a *api) allowed(r *http.Request) []string {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch} {
		try := *r
		try.Method = method
		var found mux.RouteMatch
		if a.router.Match(&try, &found) {
			methods = append(methods, method)
		}
	}
	return methods
}

// observe counts a call, and at debug level logs it.
func (a *api) observe(ctx context.Context, c *call, ans *answer) {
	took := time.Since(c.started)
	if _, streamed := ans.raw.(*stream); !streamed { // that lasts as long as somebody follows
		a.Metrics.observeCall(c, ans, took)
	}
	if a.Log.Enabled(ctx, slog.LevelDebug) {
		a.Log.LogAttrs(ctx, slog.LevelDebug, "answered",
			append(c.attributes(), slog.Int("status", ans.status), slog.String("code", ans.code), slog.Duration("took", took))...)
	}
}
