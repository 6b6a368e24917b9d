package sale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// pollEvery is how often a reader asks for changes, and lookEvery for the whole map.
	pollEvery = 300 * time.Millisecond
	lookEvery = 500 * time.Millisecond
	// hangUpEach is after how many messages a reader hangs up, and resumes.
	hangUpEach = 8
	// catchUpTimeout bounds the wait for the readers to know all.
	catchUpTimeout = 10 * time.Second
)

// gallery is those who look at the map: readers who follow its changes, some as a stream
// and one by asking; and one who looks at the whole map again and again.
type gallery struct {
	house     *house
	maps      *mapAPI
	surprise  func(format string, args ...any)
	followers []*follower
	polls     *follower // one of them, of whom it's known how far it is

	inside, looking sync.WaitGroup
	stop, stopLook  context.CancelFunc

	mu          sync.Mutex
	readings    []mapReading // of the whole map; the last one is taken when all is over
	notModified int
}

// openGallery makes the readers of the plan's map, and lets them look until it's closed.
// There's none without seats.
func (s *sale) openGallery(ctx context.Context) error {
	if s.plan.Seats == 0 {
		return nil
	}
	g := &gallery{house: s.plan.house(), surprise: s.book.surprise}
	got, _, err := s.api.call(ctx, "POST", s.path("/chart"), "chart-"+s.plan.Event, g.house.chart())
	if err == nil && got.status != 201 {
		err = errors.New(got.String())
	}
	if err != nil {
		return fmt.Errorf("load the chart: %w", err)
	}
	g.maps = newMapAPI(s.plan.URL, s.path(""), g.house)
	first, _, err := g.maps.read(ctx, "")
	if err != nil {
		return err
	}
	g.readings = append(g.readings, first)
	ctx, g.stop = context.WithCancel(ctx)
	for _, stream := range []bool{true, true, false} {
		f := &follower{
			name: fmt.Sprintf("reader %d of the map", len(g.followers)+1), maps: g.maps, stream: stream,
			surprise: s.book.surprise,
		}
		f.reset(first)
		g.followers = append(g.followers, f)
		g.inside.Go(func() { f.run(ctx) })
	}
	g.polls = g.followers[len(g.followers)-1]
	looks, stopLook := context.WithCancel(ctx)
	g.stopLook = stopLook
	g.looking.Go(func() {
		if err := g.look(looks); err != nil && looks.Err() == nil {
			s.book.surprise("the map couldn't be read: %v", err)
		}
	})
	s.gallery = g
	return nil
}

// close lets the readers come to know all that has happened, and go. The last reading of
// the map is taken before.
func (g *gallery) close(ctx context.Context) error {
	if g == nil {
		return nil
	}
	defer g.leave()
	g.stopLook()
	g.looking.Wait() // no reading is later than the last one
	last, _, err := g.maps.read(ctx, "")
	if err != nil {
		return err
	}
	g.keep(last)
	g.catchUp(ctx, g.polls, last.version)
	// A stream says nothing while no seat changes, so the version itself may not come.
	change := g.polls.lastChange(last.version)
	for _, f := range g.followers {
		g.catchUp(ctx, f, change)
	}
	return ctx.Err()
}

// leave makes the readers go, if there are any.
func (g *gallery) leave() {
	if g == nil {
		return
	}
	g.stop()
	g.inside.Wait()
	g.looking.Wait()
}

// catchUp waits until a reader knows the map up to a version.
func (g *gallery) catchUp(ctx context.Context, f *follower, version int64) {
	ticker := time.NewTicker(pollEvery / 4)
	defer ticker.Stop()
	for began := time.Now(); f.knows() < version; {
		if time.Since(began) > catchUpTimeout {
			g.surprise("%s knows version %d after %v, and not %d", f.name, f.knows(), catchUpTimeout, version)
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look reads the whole map again and again, as a page does that can't follow.
func (g *gallery) look(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	tag := ""
	for {
		reading, next, err := g.maps.read(ctx, tag)
		switch {
		case errors.Is(err, errNotModified):
			g.mu.Lock()
			g.notModified++
			g.mu.Unlock()
		case err != nil && !isBusy(err):
			return err
		case err == nil:
			tag = next
			g.keep(reading)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (g *gallery) keep(m mapReading) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readings = append(g.readings, m)
}

// pick chooses seats on a map that's followed as a stream.
func (g *gallery) pick(r *rand.Rand, gone map[string]bool, n int) []string {
	f := g.followers[0]
	f.mu.Lock()
	defer f.mu.Unlock()
	return g.house.pick(r, f.letters, gone, n)
}

// last is the last reading of the whole map.
func (g *gallery) last() mapReading { return g.readings[len(g.readings)-1] }

// Seats is what became of the assigned seats.
type Seats struct {
	All, Sold, Held int64 // by the last reading of the map
	Named, Best     int64 // holds of seats chosen on the map, and of the best available
	Apart           int64 // of the latter, those whose seats aren't side by side
	ChoseAgain      int64 // times that somebody did, as the seats were gone

	Readers     int // who followed the map's changes
	Changes     int // of seats that they were told of, all together
	Resumed     int // times that one hung up and went on
	Gaps        int // times that one had to read the whole map anew
	Readings    int // of the whole map
	NotModified int // times that it was still the same
}

// seats reports on the assigned seats; it's empty without any.
func (s *sale) seats() (r Seats) {
	g := s.gallery
	if g == nil {
		return r
	}
	r = s.book.seats
	r.All, r.Readers, r.Readings, r.NotModified = int64(len(g.house.seats)), len(g.followers), len(g.readings), g.notModified
	for _, letter := range g.last().letters {
		switch letter {
		case letterSold:
			r.Sold++
		case letterHeld:
			r.Held++
		}
	}
	for _, f := range g.followers {
		r.Changes += len(f.log)
		r.Resumed += f.resumed
		r.Gaps += f.gaps
	}
	return r
}
