package bench

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/internal/sale"
)

// maxLine bounds a line of a stream: the most changes that one event may tell of.
const maxLine = 16 << 20

// readMap reads a gzipped map, and tells how many bytes it has unpacked.
func readMap(body io.Reader) (m sale.SeatMap, size int64, err error) {
	unpacked, err := gzip.NewReader(body)
	if err != nil {
		return m, 0, err
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		return m, 0, err
	}
	return m, int64(len(text)), json.Unmarshal(text, &m)
}

// witness is a follower who does read what it's told: it keeps a map by the changes alone,
// which is compared with the journal at the end.
type witness struct {
	office  *office
	wire    *wire
	states  []byte // letters, by the seats' numbers
	version int64  // that they are of
	err     error  // that it ended with
}

// newWitness reads the map that the changes begin from.
func newWitness(ctx context.Context, o *office) (*witness, error) {
	w := &witness{office: o, wire: newWire(o.server.url)}
	return w, w.load(ctx)
}

// load reads the map.
func (w *witness) load(ctx context.Context) error {
	defer w.wire.close()
	answer, err := w.wire.get(ctx, "/v1/events/"+w.office.event+"/seatmap", "Accept-Encoding: gzip\r\n")
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%d", answer.StatusCode)
	}
	m, _, err := readMap(answer.Body)
	if err != nil {
		return err
	}
	w.version = m.Version
	w.states, err = m.Letters(w.office.house.numbers)
	return err
}

// start follows the changes until ctx ends. When it's cut it begins anew from the map.
func (w *witness) start(ctx context.Context, all *sync.WaitGroup) {
	all.Go(func() {
		defer w.wire.close()
		err := w.follow(ctx)
		for errors.Is(err, errCut) && ctx.Err() == nil {
			if err = w.load(ctx); err == nil {
				err = w.follow(ctx)
			}
		}
		if ctx.Err() == nil {
			w.err = fmt.Errorf("witness: at version %d: %w", w.version, err)
		}
	})
}

var errCut = errors.New("cut")

// follow applies the changes until the connection ends, or tells what's wrong with them.
func (w *witness) follow(ctx context.Context) error {
	defer w.wire.close()
	answer, err := w.wire.get(ctx, "/v1/events/"+w.office.event+"/changes",
		"Accept: text/event-stream\r\nLast-Event-ID: "+strconv.FormatInt(w.version, 10)+"\r\n")
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%d", answer.StatusCode)
	}
	defer w.wire.closeWith(ctx)()
	if err := w.wire.conn.SetDeadline(noDeadline); err != nil {
		return err
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxLine)
	var data []byte // of the event under way
	for lines.Scan() {
		if text, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
			data = append(data[:0], text...)
		}
		if len(lines.Bytes()) == 0 && len(data) > 0 {
			if err := w.apply(data); err != nil {
				return err
			}
			data = data[:0]
		}
	}
	return errors.Join(lines.Err(), errCut)
}

// apply makes the changes of an event.
func (w *witness) apply(data []byte) error {
	var event struct {
		Version int64 `json:"version"`
		Changes []struct {
			Version int64    `json:"version"`
			State   string   `json:"state"`
			Seats   []string `json:"seats"`
		} `json:"changes"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return err
	}
	last := w.version
	for _, c := range event.Changes {
		if c.Version <= w.version || c.Version < last || c.Version > event.Version || c.State == "" {
			return fmt.Errorf("a change of version %d comes after %d, in an event of %d", c.Version, last, event.Version)
		}
		last = c.Version
		for _, seat := range c.Seats {
			number, ok := w.office.house.numbers[seat]
			if !ok {
				return fmt.Errorf("seat %q isn't in the chart", seat)
			}
			w.states[number] = c.State[0]
		}
	}
	w.version = event.Version
	return nil
}

// wrong counts the seats whose state isn't what the journal says of the version that the
// witness has come to.
func (w *witness) wrong(ctx context.Context, db *database) (n int64, err error) {
	want := bytes.Repeat([]byte("a"), len(w.states))
	rows, err := db.pool.Query(ctx, sqlStatesAt, w.office.event, w.version)
	if err != nil {
		return 0, err
	}
	var seat, state string
	_, err = pgx.ForEachRow(rows, []any{&seat, &state}, func() error {
		want[w.office.house.numbers[seat]] = state[0]
		return nil
	})
	for i := range want {
		if want[i] != w.states[i] {
			n++
		}
	}
	return n, err
}
