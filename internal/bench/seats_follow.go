package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/wait"
)

const (
	// followBuffer is how much of its stream a follower reads at once.
	followBuffer = 16 << 10
	// silence is how long a stream may say nothing; a heartbeat comes more often.
	silence = 30 * time.Second
	// followAgain is how long a follower that was cut waits before it connects again.
	followAgain = 200 * time.Millisecond

	outcomeDelta = "delta"
)

// followers follow the changes of an event. They note which versions come, and don't
// read what is told of them: they share the processors with all the others.
type followers struct {
	office   *office
	path     string
	measured atomic.Bool // what comes before isn't counted
	recorder *load.Recorder
	bytes    atomic.Int64
	cut      atomic.Int64
	gaps     atomic.Int64
	all      []*follower
	waiting  sync.WaitGroup // until they are connected
}

// follower is one of them.
type follower struct {
	*followers
	wire   *wire
	last   int64 // version that it has come to
	joined sync.Once
}

// follow starts followers, who know the event as it was at a version. They end with ctx.
func follow(ctx context.Context, all *sync.WaitGroup, o *office, n int, version int64) *followers {
	f := &followers{office: o, path: "/v1/events/" + o.event + "/changes", recorder: load.NewRecorder()}
	f.waiting.Add(n)
	for range n {
		one := &follower{followers: f, wire: newWire(o.server.url), last: version}
		f.all = append(f.all, one)
		all.Go(func() {
			defer one.wire.close()
			defer one.joined.Do(f.waiting.Done)
			one.run(ctx)
		})
	}
	return f
}

// connected returns when all have connected, or have failed to; false when ctx ended.
func (f *followers) connected(ctx context.Context) bool {
	f.waiting.Wait() // every one ends with ctx
	return ctx.Err() == nil
}

// run follows until ctx ends, and connects again when it's cut.
func (f *follower) run(ctx context.Context) {
	buffer := make([]byte, followBuffer)
	for ctx.Err() == nil {
		err := f.stream(ctx, buffer)
		f.wire.close()
		f.joined.Do(f.waiting.Done) // nobody waits for one that can't connect
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errRefused):
			f.recorder.Failed("follower: " + err.Error())
			return
		case errors.Is(err, errGap):
			f.gaps.Add(1)
			continue
		}
		f.cut.Add(1)
		wait.For(ctx, followAgain)
	}
}

var (
	errRefused = errors.New("refused")
	errGap     = errors.New("gap")
)

// stream follows on one connection until that ends.
func (f *follower) stream(ctx context.Context, buffer []byte) error {
	last := strconv.FormatInt(f.last, 10)
	answer, err := f.wire.get(ctx, f.path, "Accept: text/event-stream\r\nLast-Event-ID: "+last+"\r\n")
	switch {
	case err != nil:
		return err
	case answer.StatusCode == http.StatusGone:
		var gap struct{ Version int64 }
		if err := json.NewDecoder(io.LimitReader(answer.Body, followBuffer)).Decode(&gap); err != nil || gap.Version == 0 {
			return fmt.Errorf("%w: a gap without a version", errRefused)
		}
		f.last = gap.Version
		return errGap
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%w: %d", errRefused, answer.StatusCode)
	}
	defer f.wire.closeWith(ctx)()
	f.joined.Do(f.waiting.Done)
	var s ids
	for ctx.Err() == nil {
		if err := f.wire.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		n, err := answer.Body.Read(buffer)
		if f.measured.Load() {
			f.bytes.Add(int64(n))
		}
		s.scan(buffer[:n], f.came)
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// came notes an event with the changes up to a version. How late it is counts from the
// answer to the first hold in it; one that nobody here knows of isn't a hold's.
func (f *follower) came(version int64) {
	if version > f.last && f.measured.Load() {
		if late, ok := f.office.answered.since(f.last, version); ok {
			f.recorder.Answered(outcomeDelta, late)
		}
	}
	f.last = max(f.last, version)
}

// report tells how the changes came.
func (f *followers) report() *DeltaReport {
	return &DeltaReport{
		DeltaP50: ms(f.recorder, 50), DeltaP99: ms(f.recorder, 99), Deltas: f.recorder.Count(outcomeDelta),
		DeltaBytes: f.bytes.Load(), FollowersCut: f.cut.Load(), FollowerGaps: f.gaps.Load(),
	}
}

// ids finds the ids of the events of a stream of Server-Sent Events.
type ids struct {
	line [24]byte // the beginning of the line under way
	n    int      // bytes of it, at most those that there's room for
	id   int64    // of the event under way; 0 for none
}

// scan reads on, and calls for each event with an id when it's complete.
func (s *ids) scan(p []byte, each func(id int64)) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.n += copy(s.line[s.n:], p)
			return
		}
		s.n += copy(s.line[s.n:], p[:end])
		p = p[end+1:]
		line := bytes.TrimSuffix(s.line[:s.n], []byte("\r"))
		s.n = 0
		if text, ok := bytes.CutPrefix(line, []byte("id:")); ok {
			s.id, _ = strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
		}
		if len(line) == 0 && s.id != 0 {
			each(s.id)
			s.id = 0
		}
	}
}
