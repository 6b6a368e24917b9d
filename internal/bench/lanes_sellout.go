package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

const (
	maxParty = 6
	// selloutFor bounds a sellout that comes to no end.
	selloutFor = 10 * time.Minute
	// auditEvery is how often the buckets are looked at: often, and with little beside
	// the load.
	auditEvery = 10 * time.Millisecond
	// codeSoldOut refuses what no hold that ends could bring back.
	codeSoldOut = "sold_out"
)

// sellout sells an event to parties that hold and buy, for nothing, until one person is
// told that it's sold out.
func (r *lanesRun) sellout(ctx context.Context) error {
	if !r.Sellout {
		return nil
	}
	event := r.event(selloutEvent)
	layout, err := r.fleet.open(ctx, event, r.SelloutTickets, 0, r.SelloutLanes)
	if err != nil {
		return err
	}
	if err := r.db.checkpoint(ctx); err != nil {
		return err
	}
	s := &lanesSelling{run: r, event: event, way: r.byLane(layout), holds: load.NewRecorder(),
		refusals: load.NewRecorder(), purchases: load.NewRecorder()}
	w := newAuditor(r.db, event, r.SelloutTickets)
	stop := w.watch(ctx, auditEvery)
	open, full := context.WithCancel(ctx)
	defer full()
	s.full = full
	endProgress := r.tellSellout(s)
	took := load.Closed(open, r.Clients, load.Bound{For: selloutFor}, func(client int, n int64) {
		s.party(context.WithoutCancel(ctx), client, n)
	})
	endProgress()
	if err := stop(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	end, err := w.read(ctx)
	if err != nil {
		return err
	}
	moves, err := r.db.moves(ctx, event)
	if err != nil {
		return err
	}
	r.report.sold(s, w, end, moves, took)
	return nil
}

func (r *lanesRun) tellSellout(s *lanesSelling) (end func()) {
	if r.Progress == nil {
		return func() {}
	}
	started := time.Now()
	return tick(func() {
		r.Progress(Progress{selloutEvent, s.holds.Count(outcomeHeld), int64(len(s.refused())), s.failed(), time.Since(started)})
	})
}

// lanesSelling is a sellout under way.
type lanesSelling struct {
	run       *lanesRun
	event     string
	way       way
	holds     *load.Recorder // of those that were placed
	refusals  *load.Recorder
	purchases *load.Recorder
	full      context.CancelFunc // ends it

	mu   sync.Mutex
	said []saidNo
}

// saidNo is a refusal for want of tickets.
type saidNo struct {
	answered time.Time
	quantity int
}

func (s *lanesSelling) refused() []saidNo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

func (s *lanesSelling) failed() int64 { return s.holds.Failures() }

func (s *lanesSelling) fail(err error) {
	if s.holds.Failed(err.Error()) >= maxFailed {
		s.full()
	}
}

// party is one party's try: a hold and its purchase.
func (s *lanesSelling) party(ctx context.Context, client int, n int64) {
	quantity := 1 + rand.New(rand.NewPCG(s.run.Seed, uint64(n))).IntN(maxParty)
	customer := "party-" + strconv.FormatInt(n, 10)
	process := s.run.fleet.processes[s.way(customer, n)]
	key := s.event + "-" + customer
	started := time.Now()
	hold, refused, err := process.hold(ctx, client, ask{s.event, key, customer, int64(quantity)})
	took := time.Since(started)
	switch {
	case err != nil:
		s.fail(err)
	case refused != "":
		s.refusals.Answered(refused, took)
		s.mu.Lock()
		s.said = append(s.said, saidNo{time.Now(), quantity})
		s.mu.Unlock()
		if refused == codeSoldOut && quantity == 1 {
			s.full()
		}
	default:
		s.holds.Answered(outcomeHeld, took)
		started = time.Now()
		if err := process.buy(ctx, client, hold, key+"-buy"); err != nil {
			s.fail(err)
			return
		}
		s.purchases.Answered(outcomeCaptured, time.Since(started))
	}
}

// hold places a hold; refused is the code of a refusal.
func (s *server) hold(ctx context.Context, client int, a ask) (id, refused string, err error) {
	body := fmt.Appendf(s.bodies[client][:0], `{"customer":%q,"items":[{"tier":%q,"quantity":%d}]}`, a.customer, tier, a.quantity)
	s.bodies[client] = body
	answer, err := s.clients[client].Do(ctx, http.MethodPost, "/v1/events/"+a.event+"/holds", a.key, body)
	switch {
	case err != nil:
		return "", "", err
	case answer.Status == http.StatusConflict:
		return "", answer.Code(), nil
	case answer.Status != http.StatusCreated:
		return "", "", fmt.Errorf("hold: %d %s", answer.Status, answer.Code())
	}
	var hold struct {
		ID string `json:"hold_id"`
	}
	err = json.Unmarshal(answer.Body, &hold)
	return hold.ID, "", err
}

// buy buys what a hold has, which costs nothing.
func (s *server) buy(ctx context.Context, client int, hold, key string) error {
	a, err := s.clients[client].Do(ctx, http.MethodPost, "/v1/holds/"+hold+"/checkout", key, payBody)
	if err == nil && a.Status != http.StatusCreated {
		err = fmt.Errorf("checkout: %d %s", a.Status, a.Code())
	}
	return err
}
