package sale

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/tierledger/tierledger/internal/wait"
)

// maxMessage bounds a message of a stream; only a broken server sends a longer one.
const maxMessage = 16 << 20

// follower is a reader who keeps a map up to date by its changes, and writes them down.
type follower struct {
	name     string
	maps     *mapAPI
	stream   bool // or asks for changes
	surprise func(format string, args ...any)

	mu      sync.Mutex // guards all below
	letters []byte
	version int64 // up to which it knows all
	start   mapReading
	log     []delta // since then, in order

	messages []int64 // versions to which news came
	resumed  int
	gaps     int
}

// reset begins with a reading of the whole map.
func (f *follower) reset(m mapReading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.start, f.log, f.messages = m, nil, nil
	f.letters, f.version = append([]byte(nil), m.letters...), m.version
}

// knows is the version up to which the reader knows the map.
func (f *follower) knows() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

// lastChange is the version of the last change that isn't after one; that of the
// beginning if there's none.
func (f *follower) lastChange(most int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.start.version
	for _, d := range f.log {
		if d.version <= most {
			last = max(last, d.version)
		}
	}
	return last
}

// run follows until ctx ends. Whatever fails is a surprise, and the end of it.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		follow := f.poll
		if f.stream {
			follow = f.listen
		}
		err := follow(ctx)
		var busy *busyError
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.As(err, &busy):
			wait.For(ctx, busy.after)
		case errors.Is(err, errGap):
			err = f.reload(ctx)
		}
		if err != nil && ctx.Err() == nil && busy == nil {
			f.surprise("%s: %v", f.name, err)
			return
		}
	}
}

// reload reads the whole map anew.
func (f *follower) reload(ctx context.Context) error {
	m, _, err := f.maps.read(ctx, "")
	if err != nil {
		return err
	}
	f.reset(m)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gaps++
	return nil
}

// poll asks for changes again and again.
func (f *follower) poll(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := f.maps.changes(ctx, f.knows())
		if err == nil {
			err = f.learn(n)
		}
		if err != nil {
			return err
		}
		wait.For(ctx, pollEvery)
	}
	return nil
}

// learn takes news.
func (f *follower) learn(n news) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, err := f.maps.deltas(n, f.version)
	if err != nil {
		return err
	}
	if n.Version < f.version {
		return fmt.Errorf("version %d was told after version %d", n.Version, f.version)
	}
	for _, d := range list {
		f.letters[d.seat] = d.letter
	}
	f.log, f.version = append(f.log, list...), n.Version
	f.messages = append(f.messages, n.Version)
	return nil
}

// listen follows a stream from where the reader is, for a few messages: then it hangs up,
// and will resume.
func (f *follower) listen(ctx context.Context) error {
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	resp, err := f.maps.get(ctx, "/changes", "Accept", "text/event-stream", "Last-Event-ID", strconv.FormatInt(f.knows(), 10))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return fmt.Errorf("the stream of changes is %s", kind)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxMessage)
	var m message
	heard := 0
	for heard < hangUpEach && lines.Scan() {
		if !m.line(lines.Text()) {
			continue
		}
		n, err := m.news()
		if errors.Is(err, errGap) {
			return err
		}
		if err == nil {
			err = f.learn(n)
		}
		if err != nil {
			return err
		}
		m = message{}
		heard++
	}
	if heard == 0 { // nobody there yet, perhaps
		wait.For(ctx, pollEvery)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resumed++
	return nil // cut off, perhaps: resuming tells whether anything is lost
}

// message is a message of a stream of events, as far as it has come.
type message struct {
	id, event string
	data      []string
}

// line takes a line; true when the message is complete.
func (m *message) line(text string) bool {
	if text == "" {
		return len(m.data) > 0 || m.event != ""
	}
	field, value, _ := strings.Cut(text, ":")
	value = strings.TrimPrefix(value, " ")
	switch field {
	case "id":
		m.id = value
	case "event":
		m.event = value
	case "data":
		m.data = append(m.data, value)
	}
	return false
}

// news reads a complete message.
func (m *message) news() (n news, err error) {
	if m.event == "gap" {
		return n, errGap
	}
	if m.event != "changes" {
		return n, fmt.Errorf("the stream has a message %q", m.event)
	}
	if err := json.Unmarshal([]byte(strings.Join(m.data, "\n")), &n); err != nil {
		return n, fmt.Errorf("a message of the stream: %w", err)
	}
	if m.id != strconv.FormatInt(n.Version, 10) {
		return n, fmt.Errorf("a message of the stream of version %d has id %q", n.Version, m.id)
	}
	return n, nil
}
