package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// outcomeReleased is that of a release.
const outcomeReleased = "released"

// office is one event of a system under load: what it's asked, and what came back.
type office struct {
	*Seats
	server   *server
	event    string
	house    *house
	book     seatBook
	answered moments
}

func (r *seatsRun) newOffice(s *server, event string, h *house) *office {
	return &office{Seats: &r.Seats, server: s, event: event, house: h, answered: moments{started: time.Now()}}
}

// seatsMeasured is what a system did in one time of load.
type seatsMeasured struct {
	measurement                // of the attempts
	releases    *load.Recorder // at once
	doubled     int64          // seats, since the office opened
}

// warmUp loads the office without measuring. Its holds are in the book like all others.
func (o *office) warmUp(ctx context.Context, db *database) error {
	m, err := o.load(ctx, "warm-up", "warm", o.warmUpBound(), 0)
	if err != nil {
		return err
	}
	if texts := m.failures(); len(texts) > 0 {
		return fmt.Errorf("warm-up: %s", strings.Join(texts, "; "))
	}
	return db.checkpoint(ctx)
}

// load loads the office for a time, at a rate or as fast as it answers.
func (o *office) load(ctx context.Context, system, phase string, bound load.Bound, rate float64) (*seatsMeasured, error) {
	loading, giveUp := context.WithCancel(ctx)
	defer giveUp()
	m := &seatsMeasured{measurement: measurement{system: system, recorder: load.NewRecorder()}, releases: load.NewRecorder()}
	turn := func(client int, n int64, due time.Time) {
		if o.turn(ctx, m, client, o.ask(phase, n), due) >= maxFailed {
			giveUp()
		}
	}
	stop := o.watch(&m.measurement)
	if rate > 0 {
		m.pace = load.Open(loading, o.Clients, rate, bound, turn)
	} else {
		m.pace.Took = load.Closed(loading, o.Clients, bound, func(client int, n int64) { turn(client, n, time.Now()) })
	}
	stop()
	m.doubled = o.book.doubled()
	return m, ctx.Err()
}

// turn asks for seats and records what came of it; some holds are released at once. It
// returns how many failed so far. One that has begun is waited for even when ctx ends.
func (o *office) turn(ctx context.Context, m *seatsMeasured, client int, a seatAsk, due time.Time) (failed int64) {
	ctx = context.WithoutCancel(ctx)
	hold, refusal, err := o.place(ctx, client, &a)
	switch {
	case err != nil:
		return m.recorder.Failed(err.Error())
	case refusal != nil:
		m.recorder.Answered(refusal.Code, time.Since(due))
		return 0
	}
	m.recorder.Answered(outcomeHeld, time.Since(due))
	number := o.book.add(hold.claimed)
	if !a.release {
		return 0
	}
	started := time.Now()
	version, err := o.release(ctx, client, hold.id, a.key+"-release")
	if err != nil {
		return m.releases.Failed(err.Error())
	}
	if version > 0 {
		o.book.release(number, version)
	}
	m.releases.Answered(outcomeReleased, time.Since(started))
	return 0
}

// placedHold is a hold that was just placed.
type placedHold struct {
	id string
	claimed
}

// seatRefusal is what a refusal says.
type seatRefusal struct {
	Code      string `json:"code"`
	Available int64  `json:"available"`
}

// place asks for seats on the connection of one client. An error is anything but a hold
// of what was asked for or a refusal.
func (o *office) place(ctx context.Context, client int, a *seatAsk) (placedHold, *seatRefusal, error) {
	o.server.bodies[client] = a.append(o.server.bodies[client][:0], o.house)
	answer, err := o.server.clients[client].Do(ctx, http.MethodPost, "/v1/events/"+o.event+"/holds", a.key, o.server.bodies[client])
	switch {
	case err != nil:
		return placedHold{}, nil, err
	case answer.Status == http.StatusConflict:
		refusal := &seatRefusal{}
		err := json.Unmarshal(answer.Body, refusal)
		return placedHold{}, refusal, err
	case answer.Status != http.StatusCreated:
		return placedHold{}, nil, fmt.Errorf("hold: %d %s", answer.Status, answer.Code())
	}
	hold, err := o.read(answer.Body)
	if err == nil && !a.fits(hold.seats, o.house) {
		err = fmt.Errorf("hold: it has other seats than those asked for")
	}
	if err == nil {
		o.answered.came(hold.version)
	}
	return hold, nil, err
}

// read reads a hold.
func (o *office) read(body []byte) (placedHold, error) {
	var h struct {
		ID        string    `json:"hold_id"`
		Version   int64     `json:"version"`
		CreatedAt time.Time `json:"created_at"`
		ExpiresAt time.Time `json:"expires_at"`
		Items     []struct {
			Seats []string `json:"seats"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return placedHold{}, fmt.Errorf("hold: %w", err)
	}
	p := placedHold{h.ID, claimed{version: h.Version, from: h.CreatedAt, to: h.ExpiresAt}}
	for _, item := range h.Items {
		for _, label := range item.Seats {
			seat, ok := o.house.numbers[label]
			if !ok {
				return p, fmt.Errorf("hold: seat %q isn't in the chart", label)
			}
			p.seats = append(p.seats, int32(seat))
		}
	}
	return p, nil
}

// release gives a hold back. The version is that of the entry that did it; 0 when the
// hold had run out before.
func (o *office) release(ctx context.Context, client int, id, key string) (version int64, err error) {
	a, err := o.server.clients[client].Do(ctx, http.MethodPost, "/v1/holds/"+id+"/release", key, nil)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("release: %d %s", a.Status, a.Code())
	}
	if err != nil {
		return 0, err
	}
	var h struct {
		Status  string `json:"status"`
		Version int64  `json:"version"`
	}
	if err := json.Unmarshal(a.Body, &h); err != nil {
		return 0, fmt.Errorf("release: %w", err)
	}
	o.answered.reach(h.Version)
	if h.Status != outcomeReleased {
		return 0, nil
	}
	return h.Version, nil
}

// watch reports progress until the returned function is called.
func (o *office) watch(m *measurement) (stop func()) {
	if o.Progress == nil {
		return func() {}
	}
	started := time.Now()
	return tick(func() {
		o.Progress(Progress{m.system, m.held(), m.refused(), m.recorder.Failures(), time.Since(started)})
	})
}

// attempts counts what was answered, yes or no.
func (m *seatsMeasured) attempts() int64 { return m.held() + m.refused() }

func (m *seatsMeasured) attemptsPerS() float64 { return float64(m.attempts()) / m.pace.Took.Seconds() }

func (m *seatsMeasured) failed() int64 { return m.recorder.Failures() + m.releases.Failures() }

func (m *seatsMeasured) failures() []string {
	return append(m.recorder.FailureTexts(), m.releases.FailureTexts()...)
}
