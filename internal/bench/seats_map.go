package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

const (
	mapConns = 64 // of all readers of the map
	// wholeEvery is how often a reader has no map yet, in all reads.
	wholeEvery = 20
)

// Outcomes of a read of the map.
const (
	outcomeWhole       = "whole"
	outcomeNotModified = "not modified"
)

// mapReads are readers of the map: most have it and ask whether it has changed.
type mapReads struct {
	path     string
	wires    []*wire
	etag     atomic.Pointer[string] // the latest that any of them has seen
	gzipped  atomic.Int64           // bytes of the last whole map
	plain    int64                  // bytes of the first one, unpacked
	recorder *load.Recorder
	pace     load.Pace
}

// openMapReads makes the readers, one of which reads the map and sees that it's whole.
func openMapReads(ctx context.Context, o *office) (*mapReads, error) {
	m := &mapReads{
		path: "/v1/events/" + o.event + "/seatmap", recorder: load.NewRecorder(),
		wires: make([]*wire, mapConns),
	}
	for i := range m.wires {
		m.wires[i] = newWire(o.server.url)
	}
	answer, err := m.wires[0].get(ctx, m.path, "Accept-Encoding: gzip\r\n")
	if err != nil {
		return nil, err
	}
	defer m.wires[0].close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Encoding") != "gzip" {
		return nil, fmt.Errorf("%d, encoded as %q", answer.StatusCode, answer.Header.Get("Content-Encoding"))
	}
	whole, size, err := readMap(answer.Body)
	if err != nil {
		return nil, err
	}
	if _, err := whole.Letters(o.house.numbers); err != nil {
		return nil, err
	}
	m.plain = size
	m.see(answer)
	return m, nil
}

// see remembers the tag of an answer.
func (m *mapReads) see(answer *http.Response) {
	if tag := answer.Header.Get("ETag"); tag != "" {
		m.etag.Store(&tag)
	}
}

// turn reads the map once. One that has begun is waited for even when ctx ends.
func (m *mapReads) turn(ctx context.Context, client int, n int64, due time.Time) {
	headers := "Accept-Encoding: gzip\r\n"
	if n%wholeEvery != 0 {
		if tag := m.etag.Load(); tag != nil {
			headers += "If-None-Match: " + *tag + "\r\n"
		}
	}
	w := m.wires[client]
	answer, err := w.get(context.WithoutCancel(ctx), m.path, headers)
	if err != nil {
		w.close()
		m.recorder.Failed("map: " + err.Error())
		return
	}
	bytes, err := io.Copy(io.Discard, answer.Body)
	switch {
	case err != nil:
		w.close()
		m.recorder.Failed("map: " + err.Error())
		return
	case answer.StatusCode == http.StatusNotModified:
		m.recorder.Answered(outcomeNotModified, time.Since(due))
	case answer.StatusCode == http.StatusOK:
		m.recorder.Answered(outcomeWhole, time.Since(due))
		m.gzipped.Store(bytes)
		m.see(answer)
	default:
		m.recorder.Failed(fmt.Sprintf("map: %d", answer.StatusCode))
	}
	if answer.Close {
		w.close()
	}
}

// report tells how the reads went.
func (m *mapReads) report() *MapReport {
	whole, same := m.recorder.Count(outcomeWhole), m.recorder.Count(outcomeNotModified)
	return &MapReport{
		MapBytesGzip: m.gzipped.Load(), MapBytes: m.plain, MapP50: ms(m.recorder, 50), MapP99: ms(m.recorder, 99),
		MapReadsPerS:   round(float64(whole+same)/m.pace.Took.Seconds(), 1),
		MapNotModified: round(per(float64(same), whole+same), 3), MapDropped: m.pace.Dropped,
	}
}

func (m *mapReads) close() {
	for _, w := range m.wires {
		w.close()
	}
}
