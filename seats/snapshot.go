package seats

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"time"

	"github.com/tierledger/tierledger/ledger"
)

// Snapshot is a whole map, as it's sent.
type Snapshot struct {
	Version ledger.Seq
	JSON    []byte
	Gzip    []byte // the same, compressed

	made     time.Time // by the process's clock
	rendered time.Time
}

// snapshot gives the map, from the last rendering if that's young enough.
func (h *house) snapshot(ctx context.Context) (*Snapshot, error) {
	if s := h.latest.Load(); s != nil && time.Since(s.made) < snapshotEvery {
		return s, nil
	}
	if last := h.latest.Load(); last == nil {
		h.mu.Lock()
	} else if !h.mu.TryLock() {
		return last, nil // it's being made, or the database doesn't answer
	}
	defer h.mu.Unlock()
	last := h.latest.Load()
	if last != nil && time.Since(last.made) < snapshotEvery {
		return last, nil // another reader has just made it
	}
	if err := h.refresh(ctx, followEvery); err != nil {
		if last == nil {
			return nil, err
		}
		again := *last // it says as of when; the next is tried in a while
		again.made = time.Now()
		h.latest.Store(&again)
		return &again, nil
	}
	last = h.latest.Load() // none, if the map was loaded anew
	now := time.Now()
	if last != nil && last.Version == h.version && now.Sub(last.rendered) < renderEvery {
		again := *last
		again.made = now
		h.latest.Store(&again)
		return &again, nil
	}
	s := &Snapshot{Version: h.version, JSON: h.render(), made: now, rendered: now}
	s.Gzip = compress(s.JSON)
	h.latest.Store(s)
	return s, nil
}

// mapHead is a map without its sections.
type mapHead struct {
	Event   string        `json:"event"`
	Version ledger.Seq    `json:"version"`
	AsOf    time.Time     `json:"as_of"`
	Total   map[State]int `json:"total"`
}

// render writes the map as JSON: what never changes is rendered already, but for the
// letters of each row.
func (h *house) render() []byte {
	total := make(map[State]int, len(States()))
	for _, s := range States() {
		total[s] = 0
		for _, letters := range h.letters {
			total[s] += bytes.Count(letters, []byte{s.letter()})
		}
	}
	head, err := json.Marshal(mapHead{h.event, h.version, h.asOf, total})
	if err != nil {
		panic(err) // a mapHead has nothing that can't be JSON
	}
	var b bytes.Buffer
	if last := h.latest.Load(); last != nil {
		b.Grow(len(last.JSON) + 100)
	}
	b.Write(head[:len(head)-1])
	b.WriteString(`,"sections":[`)
	for i, letters := range h.letters {
		b.Write(h.heads[i])
		b.Write(letters)
		b.WriteString(`"}`)
	}
	if len(h.letters) > 0 {
		b.WriteString("]}")
	}
	b.WriteString("]}")
	return b.Bytes()
}

// rowHead is what of a row never changes.
type rowHead struct {
	Row        string   `json:"row"`
	Seats      []string `json:"seats"`
	X          []int    `json:"x"`
	Y          []int    `json:"y"`
	Accessible []int    `json:"accessible,omitempty"` // places
	Aisles     []int    `json:"aisles,omitempty"`     // places before one
}

// headsOf renders what comes before the letters of each row, the end of the section before
// and the beginning of its own included.
func headsOf(p *plan) [][]byte {
	heads := make([][]byte, len(p.rows))
	for i, r := range p.rows {
		var b bytes.Buffer
		switch s := r.section; {
		case r.number != s.first:
			b.WriteByte(',')
		default:
			if r.number > 0 {
				b.WriteString("]},")
			}
			b.WriteString(`{"section":` + quoted(s.Section.Section) + `,"name":` + quoted(s.Name) + `,"tier":` + quoted(string(s.Tier)) + `,"rows":[`)
		}
		head := rowHead{Row: r.name}
		for place, seat := range r.seats {
			head.Seats = append(head.Seats, seat.Seat)
			head.X, head.Y = append(head.X, seat.X), append(head.Y, seat.Y)
			if seat.Accessible {
				head.Accessible = append(head.Accessible, place)
			}
			if seat.Aisle {
				head.Aisles = append(head.Aisles, place)
			}
		}
		text, err := json.Marshal(head)
		if err != nil {
			panic(err) // a rowHead has nothing that can't be JSON
		}
		b.Write(text[:len(text)-1])
		b.WriteString(`,"states":"`)
		heads[i] = b.Bytes()
	}
	return heads
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // text can be JSON
	}
	return string(text)
}

// compress makes the gzip form. Fast is small enough: rows are much alike.
func compress(text []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}
