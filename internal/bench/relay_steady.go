package bench

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/ledger"
)

// openRelay starts a child with the product: with publisher and consumers, or without.
func (r *relayRun) openRelay(ctx context.Context, system System, profile string) (*server, error) {
	command := slices.Concat(r.Server, []string{"--system", string(system)})
	if system == Publishing {
		command = append(command, "--nats-dir", r.bus.store.Dir(), "--sync-always="+strconv.FormatBool(r.SyncAlways))
	}
	if profile != "" {
		command = append(command, "--profile", profile)
	}
	return startServer(ctx, command, system, r.db.url, r.Stderr, r.Clients)
}

// openEvent makes an event with one tier on sale; its holds outlast the run.
func (r *relayRun) openEvent(ctx context.Context, t target, event string) error {
	err := t.create(ctx, buckets.Spec{
		Event: r.event(event), Name: "Hot tier", Currency: "USD", HoldSeconds: 24 * 3600,
		Tiers: []buckets.TierSpec{{
			Tier: tier, Quantity: ledger.Amount(maxQuantity), Price: buckets.Money{Amount: ticketPrice, Currency: "USD"},
		}},
	})
	if err != nil {
		return fmt.Errorf("create event: %w", err)
	}
	return nil
}

// warm loads without measuring, lets everything that follows the journals come to their
// end, and begins without dirty pages.
func (r *relayRun) warm(ctx context.Context, t target, event, phase string, follows bool) error {
	to, _ := r.hold(ctx, t, event, "warm-"+phase, 0, r.Clients, load.Bound{For: min(warmUpTime, r.Duration/warmUpPart)})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if texts := to.FailureTexts(); len(texts) > 0 {
		return fmt.Errorf("warm-up: %s", strings.Join(texts, "; "))
	}
	if follows {
		if _, err := r.caughtUp(ctx, "warm-up", r.db.notPublished, r.db.notConsumed); err != nil {
			return err
		}
	}
	return r.db.checkpoint(ctx)
}

// warmUpPart is the part of the measured time that a warm-up has, if that's less than its own.
const warmUpPart = 10

// steady measures an even load on one event, with publisher and consumers.
func (r *relayRun) steady(ctx context.Context) error {
	const event = "steady"
	t, err := r.openRelay(ctx, Publishing, r.Profile)
	if err != nil {
		return err
	}
	defer t.close()
	if err := r.openEvent(ctx, t, event); err != nil {
		return err
	}
	if err := r.warm(ctx, t, event, event, true); err != nil {
		return err
	}
	journal, err := r.db.journal(ctx, r.event(event))
	if err != nil {
		return err
	}
	from, err := r.db.head(ctx, r.event(event))
	if err != nil {
		return err
	}
	before, err := readAcked(ctx, t)
	if err != nil {
		return err
	}
	to, pace := r.hold(ctx, t, event, event, r.Rate, r.Clients, load.Bound{For: r.Duration})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, err := r.caughtUp(ctx, "the end", r.db.notPublished); err != nil {
		return err
	}
	upTo, err := r.db.head(ctx, r.event(event))
	if err != nil {
		return err
	}
	after, err := readAcked(ctx, t)
	if err != nil {
		return err
	}
	rss := t.peakMB()
	if err := t.close(); err != nil {
		return err
	}
	lags, err := r.lagsOf(ctx, span{journal, from, upTo})
	if err != nil {
		return err
	}
	r.report.steady(r.Rate, to, pace, lags, after.since(before), rss)
	return nil
}

// lagsOf opens what the child has left, audits it, and gives the lags of a few entries.
func (r *relayRun) lagsOf(ctx context.Context, spans ...span) (*load.Recorder, error) {
	if err := r.bus.start(ctx); err != nil {
		return nil, err
	}
	defer r.bus.stop()
	s, err := r.audit(ctx, spans...)
	if err != nil {
		return nil, err
	}
	return s.lags, nil
}

// acked is what the service says of its own batches and of the time from an entry until
// the stream's acknowledgement, as histograms.
type acked struct {
	batches, entries float64
	sum              float64 // seconds
	within           map[string]float64
}

// readAcked looks at the service's metrics.
func readAcked(ctx context.Context, t *server) (acked, error) {
	a, err := t.clients[0].Do(ctx, http.MethodGet, "/metrics", "", nil)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%d %s", a.Status, a.Code())
	}
	if err != nil {
		return acked{}, fmt.Errorf("metrics: %w", err)
	}
	return parseAcked(string(a.Body))
}

// parseAcked reads the histograms of publishing out of the text of all metrics.
func parseAcked(text string) (a acked, err error) {
	a.within = make(map[string]float64)
	const name = "tierledger_publish_lag_seconds_"
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(key, "#") || !strings.HasPrefix(key, name) && key != "tierledger_published_batch_entries_count" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return a, fmt.Errorf("metrics: %s: %w", key, err)
		}
		switch bound, ok := strings.CutPrefix(key, name+`bucket{le="`); {
		case ok:
			a.within[strings.TrimSuffix(bound, `"}`)] = n
		case key == name+"sum":
			a.sum = n
		case key == name+"count":
			a.entries = n
		default:
			a.batches = n
		}
	}
	if len(a.within) == 0 {
		return a, fmt.Errorf("metrics: there's no %sbucket", name)
	}
	return a, nil
}

// since leaves what came after an earlier look.
func (a acked) since(before acked) acked {
	d := acked{a.batches - before.batches, a.entries - before.entries, a.sum - before.sum, make(map[string]float64)}
	for bound, n := range a.within {
		d.within[bound] = n - before.within[bound]
	}
	return d
}

// most is the smallest of the histogram's bounds within which a share of the entries was
// acknowledged, in seconds; 0 when none is large enough.
func (a acked) most(share float64) (bound float64) {
	for text, n := range a.within {
		at, err := strconv.ParseFloat(text, 64)
		if err != nil || text == "+Inf" || n < share*a.entries {
			continue
		}
		if bound == 0 || at < bound {
			bound = at
		}
	}
	return bound
}
