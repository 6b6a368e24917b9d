package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// maxCharts bounds the charts that are decoded at one time: each takes a hundred megabytes
// meanwhile.
const maxCharts = 2

// chartCommand is command for a body that may have a chart.
func (a *api) chartCommand(ctx context.Context, c *call, dst any) (key string, err error) {
	return c.commandOf(seats.MaxChartBytes, func(text []byte) error {
		if len(text) > maxBody {
			select {
			case a.charts <- struct{}{}:
				defer func() { <-a.charts }()
			case <-ctx.Done():
				return ledger.ErrOverloaded.Because("other charts are being read").After(time.Second)
			}
		}
		return decode(text, dst)
	})
}

func (a *api) loadChart(ctx context.Context, c *call) (answer, error) {
	var chart seats.Chart
	key, err := a.chartCommand(ctx, c, &chart)
	if err != nil {
		return answer{}, err
	}
	receipt, err := a.Seats.Load(ctx, c.caller.principal, key, c.vars["event"], chart)
	return accepted(http.StatusCreated, receipt.Seq, receipt), err
}

// eventBody is an event, perhaps with its chart.
type eventBody struct {
	buckets.Spec
	Seating *seats.Chart `json:"seating,omitempty"`
}

// validate refuses a chart that the event couldn't have: then neither is made.
func (b *eventBody) validate() error {
	if b.Seating == nil {
		return nil
	}
	for i, s := range b.Seating.Sections {
		if !slices.ContainsFunc(b.Tiers, func(t buckets.TierSpec) bool { return t.Tier == s.Tier && t.Seated }) {
			return fault.BadField(fmt.Sprintf("seating.sections[%d].tier", i), "must be a tier of the event that's seated")
		}
	}
	return b.Seating.ValidateIn("seating.")
}

func (a *api) blockSeats(ctx context.Context, c *call) (answer, error) {
	return a.setAside(ctx, c, a.Seats.Block)
}

func (a *api) unblockSeats(ctx context.Context, c *call) (answer, error) {
	return a.setAside(ctx, c, a.Seats.Unblock)
}

func (a *api) setAside(ctx context.Context, c *call, do func(ctx context.Context, principal, key, event string,
	r seats.BlockRequest, dryRun bool) (ledger.Receipt, error)) (answer, error) {
	dryRun, key, err := c.maybeDry()
	if err != nil {
		return answer{}, err
	}
	if err := c.unconditional(); err != nil {
		return answer{}, err
	}
	var request seats.BlockRequest
	if err := c.body(&request); err != nil {
		return answer{}, err
	}
	receipt, err := do(ctx, c.caller.principal, key, c.vars["event"], request, dryRun)
	if dryRun {
		return answer{status: http.StatusOK, body: receipt.Data}, err
	}
	return accepted(http.StatusOK, receipt.Seq, receipt), err
}

func (a *api) getSeat(ctx context.Context, c *call) (answer, error) {
	label := clip(c.vars["seat"])
	if !plain(label) { // the database couldn't even compare it
		return answer{}, seats.ErrSeatNotFound.Because("%q", label).With("seats", []string{label})
	}
	seat, err := a.Seats.Get(ctx, c.vars["event"], label)
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(seat.Version, seat)
}

// Headers of the map: it's kept, and asked for again each time.
var (
	revalidated = []string{"no-cache"}
	gzipped     = []string{"gzip"}
	byEncoding  = []string{"Accept-Encoding"}
)

func (a *api) getSeatMap(ctx context.Context, c *call) (answer, error) {
	s, err := a.Maps.Snapshot(ctx, c.vars["event"])
	if err != nil {
		return answer{}, err
	}
	ans := answer{status: http.StatusOK, version: s.Version, body: s.JSON,
		headers: http.Header{"Cache-Control": revalidated, "Vary": byEncoding}}
	switch {
	case c.has(s.Version):
		ans.status, ans.body = http.StatusNotModified, nil
	case c.accepts("Accept-Encoding", "gzip"):
		ans.body = s.Gzip
		ans.headers["Content-Encoding"] = gzipped
	}
	return ans, nil
}

// accepts tells whether a header of the Accept family lists a value, and not with weight 0.
func (c *call) accepts(header, value string) bool {
	for _, line := range c.request.Header[header] {
		for one := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(one, ";")
			weight, ok := strings.CutPrefix(strings.ReplaceAll(parameters, " ", ""), "q=")
			if q, err := strconv.ParseFloat(weight, 64); ok && err == nil && q == 0 {
				continue
			}
			if strings.EqualFold(strings.TrimSpace(name), value) {
				return true
			}
		}
	}
	return false
}

// getChanges lists what happened to seats, or for one who accepts an event stream tells it
// as it happens.
func (a *api) getChanges(ctx context.Context, c *call) (answer, error) {
	after, err := c.after()
	if err != nil {
		return answer{}, err
	}
	if c.request.Method == http.MethodGet && c.accepts("Accept", "text/event-stream") {
		f, err := a.Maps.Follow(ctx, c.vars["event"], after)
		if err != nil {
			return answer{}, err
		}
		return answer{status: http.StatusOK, raw: &stream{f}}, nil
	}
	changes, err := a.Maps.Changes(ctx, c.vars["event"], after)
	if err != nil {
		return answer{}, err
	}
	return c.foundVersion(changes.Version, changes)
}

// after is the version that a reader of changes has: what it last heard in a stream that
// broke, or else the parameter.
func (c *call) after() (ledger.Seq, error) {
	field, text := "Last-Event-ID", c.request.Header.Get("Last-Event-ID")
	if text == "" {
		field, text = "after", c.query.Get("after")
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 0 {
		return 0, fault.BadField(field, "must be the version of a map, or of the last changes")
	}
	return ledger.Seq(version), nil
}
